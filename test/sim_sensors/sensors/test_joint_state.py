from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from support.sensor_run import decode, feed, make_sensor, run

from rig_common.errors import RigError

ARM = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="turret">
      <joint name="pan" axis="0 0 1"/>
      <geom type="cylinder" size="0.2 0.1"/>
      <body name="rail" pos="0 0 0.2">
        <joint name="lift" type="slide" axis="0 0 1"/>
        <geom type="box" size="0.1 0.1 0.1" mass="2"/>
      </body>
    </body>
    <body name="loose" pos="3 0 0"><freejoint name="free"/><geom size="0.1"/></body>
  </worldbody>
  <actuator><motor name="push" joint="lift" gear="1"/></actuator>
  <keyframe>
    <key name="moving" qpos="0 0 3 0 0 1 0 0 0" qvel="1.5 0 0 0 0 0 0 0"/>
  </keyframe>
</mujoco>
"""


def test_position_velocity_and_effort(tmp_path: Path) -> None:
    keys = {
        'type': 'joint_state',
        'joints': ['lift', 'pan'],
        'velocity_from': 'tachometer',
        'rate_hz': 100.0,
    }
    done = run(
        tmp_path,
        ARM,
        {'arm': keys},
        1.0,
        keyframe='moving',
        on_step=lambda world: world.command({'push': 3.0}),
    )
    time_s = done.times_s('arm')
    position, velocity = done.values('arm', 'position'), done.values('arm', 'velocity')
    np.testing.assert_allclose(position[:, 1], 1.5 * time_s, atol=1e-9)
    np.testing.assert_allclose(velocity[:, 0], 3.0 / 2.0 * time_s, atol=2e-3)
    np.testing.assert_allclose(position[:, 0], 0.5 * 1.5 * time_s**2, atol=2e-3)
    np.testing.assert_allclose(done.values('arm', 'effort'), [[3.0, 0.0]] * len(time_s))
    message = decode('sensor_msgs/msg/JointState', done.messages('arm')[50]['/joint_states'])
    assert message.name == ['lift', 'pan']
    assert message.position.tolist() == position[50].tolist()
    assert message.effort.tolist() == [3.0, 0.0]


def test_counts_and_the_velocity_made_of_them() -> None:
    sensor = make_sensor(
        'enc', type='joint_state', joints=['a'], counts_per_rev=100.0, rate_hz=100.0
    )
    angle = 0.7 * np.arange(500) * 0.01
    rows = np.stack([angle, np.full(500, 0.7), np.zeros(500)], axis=1)
    values = feed(sensor, rows, period_s=0.01)[:, 0]
    step = 2.0 * np.pi / 100.0
    counts = values[:, 0] / step
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    assert np.abs(values[:, 0] - angle).max() <= step / 2.0 + 1e-12
    # one count or none per capture: the velocity jumps between 0 and one count a period
    assert values[0, 1] == 0.0
    np.testing.assert_allclose(values[1:, 1], np.diff(values[:, 0]) / 0.01, atol=1e-12)
    assert set(np.round(values[1:, 1] * 0.01 / step).tolist()) == {0.0, 1.0}
    assert values[1:, 1].mean() == pytest.approx(0.7, rel=0.02)


def test_velocity_from_counts_uses_the_real_time_between_captures(tmp_path: Path) -> None:
    """400 Hz on a 1 ms grid captures after 2 or 3 ms in turn; the speed must not show it."""
    keys = {'type': 'joint_state', 'joints': ['pan'], 'rate_hz': 400.0}
    done = run(tmp_path, ARM, {'arm': keys}, 0.1, keyframe='moving')
    np.testing.assert_allclose(done.values('arm', 'velocity')[1:], 1.5, rtol=1e-9)


def test_backlash_hides_reversals() -> None:
    sensor = make_sensor(
        'enc',
        type='joint_state',
        joints=['a'],
        backlash=0.2,
        rate_hz=0.0,
        velocity_from='tachometer',
    )
    angle = np.concatenate([np.linspace(0.0, 1.0, 101), np.linspace(1.0, 0.0, 101)])
    read = feed(sensor, np.stack([angle, 0 * angle, 0 * angle], 1), period_s=0.01)[:, 0, 0]
    expected, held = [], angle[0]
    for value in angle:
        held = min(max(held, value - 0.1), value + 0.1)
        expected.append(held)
    np.testing.assert_allclose(read, expected, atol=1e-12)
    assert read[100] == pytest.approx(0.9)
    assert read[110] == pytest.approx(0.9)
    assert read[-1] == pytest.approx(0.1)


def test_lost_counts_never_come_back() -> None:
    sensor = make_sensor(
        'enc',
        type='joint_state',
        joints=['a', 'b'],
        counts_per_rev=1000.0,
        drop_probability=0.01,
        rate_hz=100.0,
    )
    angle = 0.05 * np.arange(2000)
    rows = np.zeros((2000, 6))
    rows[:, 0] = angle
    values = feed(sensor, rows, period_s=0.01, num_envs=10)
    step = 2.0 * np.pi / 1000.0
    missing = np.round((angle[:, None] - values[:, :, 0]) / step)
    assert np.all(np.diff(missing, axis=0) >= -1.0)
    assert missing[-1].mean() == pytest.approx(20.0, rel=0.35)
    assert np.all(values[:, :, 1] == 0.0), 'a joint at rest loses nothing'


def test_noise_of_tachometer_and_effort() -> None:
    sensor = make_sensor(
        'enc',
        type='joint_state',
        joints=['a'],
        velocity_from='tachometer',
        velocity_noise=0.1,
        effort_noise=0.5,
        noise=0.01,
        rate_hz=100.0,
    )
    values = feed(sensor, np.zeros((3000, 3)), period_s=0.01)[:, 0]
    np.testing.assert_allclose(values.std(axis=0), [0.01, 0.1, 0.5], rtol=0.06)


@pytest.mark.parametrize(
    ('keys', 'sentence'),
    [
        ({'joints': ['pam']}, "joint is 'pam'.*did you mean 'pan'"),
        ({'joints': ['free']}, 'neither a hinge nor a slide'),
        ({'joints': ['lift'], 'counts_per_rev': 100.0}, 'makes no turns'),
    ],
)
def test_joints_that_cannot_be_measured(
    tmp_path: Path, keys: dict[str, object], sentence: str
) -> None:
    with pytest.raises(RigError, match=sentence):
        run(tmp_path, ARM, {'arm': {'type': 'joint_state', **keys}}, 0.1)


def test_only_counts_can_be_dropped() -> None:
    with pytest.raises(ValidationError, match='nothing is counted'):
        make_sensor('enc', type='joint_state', joints=['a'], drop_probability=0.1)
