"""Contact switches and probes: thresholds by brute force, forces and distances by geometry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sensor_run import decode, feed, make_sensor, run

from rig_common.errors import RigError

TABLE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="crate" pos="0 0 0.1"><freejoint/>
      <geom name="crate" type="box" size="0.1 0.1 0.1" mass="2"/></body>
    <body name="lid" pos="0 0 0.22"><freejoint/>
      <geom name="lid" type="box" size="0.1 0.1 0.02" mass="1"/></body>
    <body name="far" pos="2 0 1"><joint type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.1"/></body>
  </worldbody>
</mujoco>
"""


def switch(**keys: Any) -> dict[str, Any]:
    return {'type': 'contact', 'rate_hz': 100.0, **keys}


def test_a_switch_knows_what_it_touches(tmp_path: Path) -> None:
    sensors = {
        'all': switch(mount={'body': 'crate'}, threshold_n=25.0),
        'lid': switch(mount={'body': 'crate'}, against='lid', threshold_n=5.0),
        'heavy': switch(mount={'body': 'crate'}, against='lid', threshold_n=15.0),
        'air': switch(mount={'body': 'far'}, threshold_n=0.0),
    }
    done = run(tmp_path, TABLE, sensors, 0.4)
    closed = {name: bool(done.values(name, 'contact')[-1]) for name in sensors}
    # the crate carries the lid (9.8 N down) and is carried by the floor (29.4 N up): net 19.6 N
    assert closed == {'all': False, 'lid': True, 'heavy': False, 'air': False}
    messages = {
        name: decode('sensor_msgs/msg/Range', done.messages(name)[-1]['contact'])
        for name in sensors
    }
    assert messages['lid'].range == -np.inf
    assert messages['air'].range == np.inf
    assert messages['lid'].min_range == messages['lid'].max_range


def reference(forces: list[float], threshold: float, release: float, captures: int) -> list[bool]:
    """Return what a switch says, one capture after the other; a change must last `captures`."""
    state: bool | None = None
    waiting = 0
    out = []
    for force in forces:
        closed = force > (release if state else threshold)
        if state is None:
            state = closed
        elif closed == state:
            waiting = 0
        elif waiting >= captures:
            state, waiting = closed, 0
        else:
            waiting += 1
        out.append(state)
    return out


@settings(max_examples=60, deadline=None)
@given(
    forces=st.lists(st.sampled_from([0.0, 2.0, 4.0, 6.0, 9.0]), min_size=1, max_size=40),
    release=st.sampled_from([1.0, 3.0, 5.0]),
    debounce_ms=st.sampled_from([0, 5, 10, 25, 30]),
)
def test_threshold_hysteresis_and_debounce(
    forces: list[float], release: float, debounce_ms: int
) -> None:
    sensor = make_sensor(
        's', **switch(threshold_n=5.0, release_n=release, debounce_s=debounce_ms / 1e3)
    )
    rows = np.zeros((len(forces), 3))
    rows[:, 1] = forces
    values = feed(sensor, rows, period_s=0.01)[:, 0, 0].astype(bool)
    captures = -(-debounce_ms // 10)  # a change of 25 ms is seen to have lasted after 30 ms
    assert values.tolist() == reference(forces, 5.0, release, captures)


def test_a_change_must_last_its_whole_time() -> None:
    sensor = make_sensor('s', **switch(threshold_n=5.0, debounce_s=0.025))
    rows = np.zeros((8, 3))
    rows[1:, 0] = 9.0
    values = feed(sensor, rows, period_s=0.01)[:, 0, 0].astype(bool)
    assert values.tolist() == [False] * 4 + [True] * 4


def test_a_delayed_switch_is_still_a_switch(tmp_path: Path) -> None:
    keys = switch(
        mount={'body': 'far'},
        delay_range_s=[0.03, 0.03],
        jitter_s=0.02,
        interpolation='zoh',
        history_length=5,
    )
    done = run(tmp_path, TABLE, {'s': keys}, 0.6)
    assert {each.values.dtype for each in done.samples['s']} == {np.dtype(bool)}
    assert {bool(each.values[0]) for each in done.samples['s']} == {False, True}
    for sample in done.samples['s']:
        assert sample.values[0] == sample.truth[0]
        assert 30_000_000 <= sample.arrival_ns - sample.capture_ns < 50_000_000


@pytest.mark.parametrize(
    'keys', [{'mount': {'body': 'crate'}, 'against': 'lit'}, {'mount': {'body': 'world'}}]
)
def test_mistakes_are_one_sentence(tmp_path: Path, keys: dict[str, Any]) -> None:
    with pytest.raises(RigError, match=r"against is 'lit'.*'lid'|no contacts of its own"):
        run(tmp_path, TABLE, {'s': switch(**keys)}, 0.0)


def test_release_is_below_threshold() -> None:
    with pytest.raises(ValueError, match='release_n is 3'):
        make_sensor('s', **switch(threshold_n=2.0, release_n=3.0))


# ---- the probe ----------------------------------------------------------------------------------

HOIST = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <geom type="plane" size="5 5 0.1"/>
    <body name="arm" pos="0 0 0.25"><joint type="slide" axis="0 0 1"/>
      <geom type="box" size="0.2 0.05 0.05" contype="0" conaffinity="0"/></body>
    <body name="ball" pos="1 0 2"><geom type="sphere" size="0.3"/></body>
  </worldbody>
  <keyframe><key name="sinking" qvel="-0.5"/></keyframe>
</mujoco>
"""


def test_signed_distance_above_and_below_the_surface(tmp_path: Path) -> None:
    keys = {
        'type': 'contact_probe',
        'mount': {'body': 'arm', 'pos_m': [0.1, 0.0, -0.05]},
        'radius_m': 0.02,
        'max_range_m': 0.15,
        'max_penetration_m': 0.08,
    }
    done = run(tmp_path, HOIST, {'probe': keys}, 0.6, keyframe='sinking')
    height = 0.25 - 0.05 - 0.5 * done.times_s('probe') - 0.02
    expected = np.where(height >= 0.15, np.inf, np.where(height < -0.08, -np.inf, height))
    np.testing.assert_allclose(done.values('probe', 'range'), expected, atol=1e-6)
    assert {np.inf, -np.inf} <= set(expected)
    assert ((expected < 0.0) & np.isfinite(expected)).sum() > 10
    message = decode('sensor_msgs/msg/Range', done.messages('probe')[-1]['distance'])
    assert (message.min_range, message.max_range) == pytest.approx((-0.08, 0.15))


def test_a_probe_measures_against_one_body(tmp_path: Path) -> None:
    keys = {
        'type': 'contact_probe',
        'mount': {'body': 'arm'},
        'target': 'ball',
        'radius_m': 0.05,
        'max_range_m': 10.0,
    }
    done = run(tmp_path, HOIST, {'probe': keys}, 0.0)
    expected = np.hypot(1.0, 1.75) - 0.3 - 0.05
    assert done.values('probe', 'range')[0] == pytest.approx(expected, abs=1e-6)
    with pytest.raises(RigError, match=r"target is 'bal'.*did you mean 'ball'"):
        run(tmp_path, HOIST, {'probe': {**keys, 'target': 'bal'}}, 0.0)


def test_a_probe_weighs_and_touches_nothing(tmp_path: Path) -> None:
    keys = {'type': 'contact_probe', 'mount': {'body': 'crate'}, 'radius_m': 0.3}
    with_probe = run(tmp_path, TABLE, {'probe': keys}, 0.3).world
    without = run(tmp_path, TABLE, {}, 0.3).world
    np.testing.assert_array_equal(with_probe.data(0).qpos, without.data(0).qpos)


def test_many_probes_share_a_mount(tmp_path: Path) -> None:
    centres = [[0.1, 0.0, -0.05], [0.0, 0.1, 0.02], [-0.05, 0.0, 0.0]]
    shared = {'type': 'contact_probe', 'radius_m': 0.02, 'max_range_m': 3.0}
    mount = {'body': 'arm', 'pos_m': [0.0, 0.0, 0.1], 'rpy_rad': [0.0, 0.0, 1.5707963267948966]}
    skin = {**shared, 'mount': mount, 'probes_m': [x for each in centres for x in each]}
    single = {
        f'single_{k}': {
            **shared,
            'mount': {'body': 'arm', 'pos_m': [-centre[1], centre[0], 0.1 + centre[2]]},
        }
        for k, centre in enumerate(centres)
    }
    done = run(tmp_path, HOIST, {'skin': skin, **single}, 0.2, keyframe='sinking')
    together = done.values('skin', 'ranges')
    assert together.shape[1:] == (3,)
    for k in range(3):
        np.testing.assert_allclose(together[:, k], done.values(f'single_{k}', 'range'), atol=1e-6)
    cloud = decode('sensor_msgs/msg/PointCloud2', done.messages('skin')[-1]['distances'])
    assert [each.name for each in cloud.fields] == ['x', 'y', 'z', 'distance']
    assert cloud.width == 3


def test_probes_are_points() -> None:
    with pytest.raises((RigError, ValueError), match='probes_m has 4 numbers'):
        make_sensor('skin', type='contact_probe', probes_m=[0.0, 0.0, 0.0, 1.0])


def test_times_of_contacts_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    """A ball that bounces: how long it flies and lies, and how long it did before."""
    xml = """
    <mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="3 3 1"/>
      <body name="ball" pos="0 0 .3"><freejoint/>
        <geom type="sphere" size=".05" mass=".5" solref="-9000 -.5"/></body>
    </worldbody></mujoco>"""
    keys = {'type': 'contact', 'mount': {'body': 'ball'}, 'rate_hz': 200.0, 'threshold_n': 0.5}
    done = run(tmp_path, xml, {'plain': keys, 'timed': {**keys, 'times': True}}, 2.0)
    closed = np.array([each.values[0] for each in done.samples['plain']])
    times = np.array([each.values for each in done.samples['timed']])
    assert np.count_nonzero(np.diff(closed)) > 6
    np.testing.assert_array_equal(times[:, 0] > 0, closed)
    since, last = 0.0, {False: 0.0, True: 0.0}
    for k, is_closed in enumerate(closed):
        if k and is_closed == closed[k - 1]:
            since += 0.005
        elif k:
            last[bool(closed[k - 1])], since = since + 0.005, 0.0
        now = (0.0, since) if is_closed else (since, 0.0)
        np.testing.assert_allclose(times[k, 1:], [*now, last[False], last[True]], atol=1e-5)
    assert times[-1, 3] > 0.02 and times[-1, 4] > 0.0
