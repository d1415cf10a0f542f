"""Our delay line and MuJoCo's agree wherever MuJoCo is exact; where it is not, a test says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from support.toy_sensors import MS, Plain, config, make

from rig_common.errors import RigError
from sim_sensors.interface.truth import ColumnReader
from sim_sensors.rig import Rig
from sim_sensors.world.actuation.delay_lines import ControlDelay
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model import native_delay

STEP_NS = 2 * MS
EXACT_NS = 1_953_125
"""2^-9 s: MuJoCo adds up its times without rounding, so that its intervals do not slip."""
ORDERS = {'zoh': 0, 'linear': 1, 'cubic': 2}
"""MuJoCo's numbers of the interpolations it knows."""
XML = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <worldbody>
    <body><joint name="slide" type="slide"/><geom size="0.1"/></body>
    <body><joint name="ball" type="ball"/><geom size="0.1"/></body>
  </worldbody>
  <actuator><motor joint="slide"/></actuator>
  <sensor><clock/><jointpos joint="slide"/><ballquat joint="ball"/></sensor>
</mujoco>"""


def native(delay_s: float, interpolation: str = 'zoh', **keys: Any) -> mujoco.MjModel:
    spec = mujoco.MjSpec.from_string(keys.get('xml', XML))
    spec.option.timestep = keys.get('step_ns', STEP_NS) / 1e9
    for each in (*spec.sensors, *spec.actuators):
        each.delay, each.interp = delay_s, ORDERS[interpolation]
        each.nsample = keys.get('nsample', 24)
    for sensor in spec.sensors:
        sensor.interval = [keys.get('interval_s', 0.0), 0.0]
    return spec.compile()


def moving(model: mujoco.MjModel) -> mujoco.MjData:
    data = mujoco.MjData(model)
    data.qvel[:] = [1.0, 0.0, 0.0, 60.0]
    return data


def clock_ms(model: mujoco.MjModel, steps: int) -> list[float]:
    """Return what the delayed clock sensor says at each step, ms."""
    data = moving(model)
    out = []
    for _ in range(steps):
        mujoco.mj_step(model, data)
        out.append(round(data.sensordata[0] * 1e3, 6))
    return out


@dataclass(frozen=True)
class Delayed:
    """Any delay of a step or more, between steps and on them, shorter and longer than a period."""

    step_ns: int
    every: int
    """Steps between captures."""
    delay_s: float
    interpolation: str

    @classmethod
    def drawn(cls, seed: int) -> Delayed:
        random = np.random.default_rng(seed)
        step_ns, every = EXACT_NS * int(random.integers(1, 3)), int(random.integers(1, 9))
        steps = random.uniform(1.0, 12.0) if seed % 2 else random.integers(1, 12)
        return cls(step_ns, every, round(steps * step_ns) / 1e9, [*ORDERS][seed % 3])

    def model(self) -> mujoco.MjModel:
        interval_s = self.every * self.step_ns / 1e9 if self.every > 1 else 0.0
        keys = {'step_ns': self.step_ns, 'interval_s': interval_s, 'nsample': 40}
        return native(self.delay_s, self.interpolation, **keys)


@pytest.mark.parametrize('seed', range(14))
def test_sensor_reads_agree(seed: int) -> None:
    """`mj_readSensor` after a step, at any time, is what a read of ours gives.

    `sensordata` is computed before its step stores the capture of that step: MuJoCo's rule for
    what a step itself sees is our read without that capture.
    """
    drawn, random = Delayed.drawn(seed), np.random.default_rng(seed)
    step_ns, model = drawn.step_ns, drawn.model()
    plain = native(0.0, step_ns=step_ns, nsample=0)
    truth, delayed = moving(plain), moving(model)
    pipeline = make(
        1,
        dt_ns=step_ns,
        rate_hz=1e9 / (drawn.every * step_ns),
        delay_range_s=(drawn.delay_s, drawn.delay_s),
        interpolation=drawn.interpolation,
        history_length=30,
    )
    settled = round(drawn.delay_s * 1e9) + 3 * drawn.every * step_ns  # before: zeros there
    found = np.zeros((1, 1))
    for step in range(150):
        now = step * step_ns
        truth.qfrc_applied[0] = delayed.qfrc_applied[0] = random.normal(scale=1e4)
        mujoco.mj_step(plain, truth)
        mujoco.mj_step(model, delayed)
        before = pipeline.read(now) if step else None
        if step % drawn.every == 0:
            pipeline.tick(None, now, truth.sensordata[None, :2])
        if before is not None and now >= settled:
            np.testing.assert_allclose(before.values[0], delayed.sensordata[:2], atol=1e-9)
        at, order = now - int(random.integers(0, 6 * step_ns)), [*ORDERS][random.integers(3)]
        if at >= settled:
            ours = pipeline.read(at, interpolation=order).values[0]
            for sensor in range(2):
                theirs = mujoco.mj_readSensor(
                    model, delayed, sensor, at / 1e9, found, ORDERS[order]
                )
                assert ours[sensor] == pytest.approx(theirs.item(), abs=1e-9)


@pytest.mark.parametrize('seed', range(12))
def test_commands_agree(seed: int) -> None:
    drawn, random = Delayed.drawn(seed), np.random.default_rng(seed)
    model = drawn.model()
    data = mujoco.MjData(model)
    line = ControlDelay(1, 1, drawn.delay_s, drawn.step_ns, drawn.interpolation)
    kept = round(drawn.delay_s * 1e9) // drawn.step_ns + 3
    past_ns = [-drawn.step_ns * n for n in range(kept, 0, -1)]
    line.start_history(past_ns, np.zeros((len(past_ns), 1, 1)))
    for step in range(60):
        data.ctrl[:] = command = random.normal(size=1)
        # a step sees the commands before its own, as in `test_sensor_reads_agree`
        expected = line.read(step * drawn.step_ns)[0, 0]
        line.set(step * drawn.step_ns, command[None])
        mujoco.mj_step(model, data)
        assert data.actuator_force[0] == pytest.approx(expected, abs=1e-9)


SEVERAL_INPUTS = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><pid name="pid" joint="slide" kp="10" kv="3" input="pos vel"/></actuator>
</mujoco>"""


@pytest.mark.parametrize('interpolation', ORDERS)
def test_all_inputs_of_an_actuator_are_delayed(interpolation: str) -> None:
    """MuJoCo 3.12 and 3.13 delay the first input alone and read the others out of old memory."""
    model = native(0.0053, interpolation, xml=SEVERAL_INPUTS)
    data, random = mujoco.MjData(model), np.random.default_rng(3)
    line = ControlDelay(1, 2, 0.0053, STEP_NS, interpolation)
    line.start_history([-STEP_NS * n for n in range(6, 0, -1)], np.zeros((6, 1, 2)))
    for step in range(40):
        data.ctrl[:] = random.normal(size=2)
        position, speed = line.read(step * STEP_NS)[0]
        line.set(step * STEP_NS, data.ctrl[None])
        expected = 10.0 * (position - data.qpos[0]) + 3.0 * (speed - data.qvel[0])
        mujoco.mj_step(model, data)
        assert data.actuator_force[0] == pytest.approx(expected, abs=1e-9)


def test_histories_start_with_the_present() -> None:
    model = native(0.01)
    data = moving(model)
    data.qpos[0] = 3.0
    data.ctrl[:] = 7.0
    mujoco.mj_forward(model, data)
    native_delay.start_histories(model, data)
    assert (model.sensor_delay == 0.01).all()
    for _ in range(4):
        mujoco.mj_step(model, data)
        assert data.sensordata[1] == pytest.approx(3.0)
        assert data.actuator_force[0] == pytest.approx(7.0)


# ---- where MuJoCo is not exact ---------------------------------------------------------------


def test_inexact_shorter_than_a_step_is_one_step() -> None:
    assert clock_ms(native(0.0005), 6)[3:] == [4.0, 6.0, 8.0]
    assert clock_ms(native(0.002), 6)[3:] == [4.0, 6.0, 8.0]
    pipeline = make(1, dt_ns=STEP_NS, delay_range_s=(0.0005, 0.0005), interpolation='linear')
    for step in range(6):
        pipeline.tick(None, step * STEP_NS, np.full((1, 2), 2.0 * step))
    # ours waits half a millisecond: 1.5 ms after a capture it is there
    assert pipeline.read(5 * STEP_NS + 3 * MS // 2).values[0, 0] == 10.0


def test_inexact_zeros_before_the_first_sample() -> None:
    model = native(0.006)
    data = moving(model)
    data.qpos[0] = 3.0
    seen = []
    for _ in range(5):
        mujoco.mj_step(model, data)
        seen.append(data.sensordata[1])
    assert seen[:3] == [0.0, 0.0, 0.0] and seen[3] == pytest.approx(3.0)
    pipeline = make(1, dt_ns=STEP_NS, delay_range_s=(0.006, 0.006))
    pipeline.tick(None, 0, np.full((1, 2), 3.0))
    assert not pipeline.read(4 * MS).valid[0] and pipeline.read(6 * MS).valid[0]


def test_inexact_a_short_history_shortens_the_delay() -> None:
    assert clock_ms(native(0.020, nsample=3), 30)[-1] == 58.0 - 6.0
    assert clock_ms(native(0.020), 30)[-1] == 58.0 - 20.0


def test_inexact_intervals_slip() -> None:
    times = clock_ms(native(0.0, interval_s=0.01), 20_000)
    captures = np.unique(times)
    late = np.count_nonzero(np.abs(captures % 10.0) > 1e-6) / len(captures)
    assert late > 0.1
    exact = make(1, dt_ns=STEP_NS, rate_hz=100.0).schedule
    assert all(exact.time_of(k) == k * 10 * MS for k in range(4000))


def test_inexact_orientations_leave_the_sphere() -> None:
    model = native(0.0053, 'linear')
    data = moving(model)
    for _ in range(20):
        mujoco.mj_step(model, data)
    assert np.linalg.norm(data.sensordata[2:6]) < 1.0 - 1e-5  # slerp in test_delay stays on it


# ---- as a backend ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ('keys', 'message'),
    [
        ({'delay_range_s': (0.01, 0.02)}, 'one fixed delay and no jitter'),
        ({'delay_range_s': (0.01, 0.01), 'jitter_s': 0.001}, 'one fixed delay and no jitter'),
        ({'delay_range_s': (0.001, 0.001)}, 'shortest delay is one physics step, 0.002 s'),
        ({'delay_range_s': (0.01, 0.01), 'interpolation': 'linear'}, 'is linear, use zoh'),
    ],
)
def test_what_mujoco_cannot_do_is_refused(keys: dict[str, Any], message: str) -> None:
    sensor = Plain('toy', config(delay_backend='mujoco', **keys))
    with pytest.raises(RigError, match=message):
        native_delay.check(sensor, STEP_NS)


class Slider(Plain):
    """Position of the slider, and a clock."""

    def mount(self, spec: mujoco.MjSpec) -> None:
        spec.add_sensor(name=f'{self.name}_clock', type=mujoco.mjtSensor.mjSENS_CLOCK)
        spec.add_sensor(
            name=f'{self.name}_pos',
            type=mujoco.mjtSensor.mjSENS_JOINTPOS,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname='slide',
        )

    def reader(self, view: Any) -> ColumnReader:
        return ColumnReader(view.model, [f'{self.name}_clock', f'{self.name}_pos'])


def rig_of(tmp_path: Path, num_envs: int, sensor_keys: dict[str, Any], **world: Any) -> Rig:
    (tmp_path / 'slider.xml').write_text(
        XML.replace(
            '</mujoco>',
            '<keyframe><key name="home" qpos="2 1 0 0 0" ctrl="3"/></keyframe></mujoco>',
        )
    )
    sensor = Slider('slider', config(history_length=2, noise=0.1, **sensor_keys))
    keys = WorldConfig(
        model='slider.xml', timestep_s=0.002, num_envs=num_envs, keyframe='home', **world
    )
    return Rig(keys, [sensor], seed=3, base_dir=tmp_path)


@pytest.mark.parametrize('num_envs', [1, 3])
@pytest.mark.parametrize('delay_s', [0.006, 0.0091])
def test_a_rig_gives_the_same_with_either_backend(
    tmp_path: Path, num_envs: int, delay_s: float
) -> None:
    keys = {'rate_hz': 100.0, 'delay_range_s': (delay_s, delay_s)}
    ours = rig_of(tmp_path, num_envs, keys)
    theirs = rig_of(tmp_path, num_envs, {**keys, 'delay_backend': 'mujoco'})
    for step in range(80):
        ours.step(), theirs.step()
        if step == 43:
            ours.reset([num_envs - 1]), theirs.reset([num_envs - 1])
        for one, other in zip(
            ours.read('slider', history_length=2),
            theirs.read('slider', history_length=2),
            strict=True,
        ):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    assert ours.read('slider').valid.all()


@pytest.mark.parametrize('num_envs', [1, 3])
def test_commands_reach_a_world_the_same_way_with_either_backend(
    tmp_path: Path, num_envs: int
) -> None:
    rigs = [
        rig_of(tmp_path, num_envs, {}, control_delay_s=0.01, control_delay_backend=backend)
        for backend in ('rig', 'mujoco')
    ]
    for step in range(60):
        for rig in rigs:
            rig.world.command_all(np.full((num_envs, 1), np.sin(step) * 100.0))
            rig.step()
            if step == 30:
                rig.reset([0])
        one, other = (rig.world.sensordata for rig in rigs)
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9)
    assert np.ptp(rigs[0].world.sensordata[:, -1]) > 0 or num_envs == 1
