"""Clocks compared by how far sensors went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.speed_drive import Speed, bends, constant, driven, straight, varying

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.msgs.catalogue import CATALOGUE
from sync_engine.config import load_config
from sync_engine.cues.speed import SpeedCue, Travel
from sync_engine.engine import SyncEngine
from sync_engine.state.status import EngineStatus
from sync_engine.wire.cue_readers import VALUES, types_of

T0_S = 1000.0
LATE_S = 0.12
"""Offset of the GNSS receiver's clock against the wheels'."""


def compared(
    speed: Speed,
    turn_rate: Speed,
    *,
    noise_m: float = 0.02,
    scale: float = 1.0,
    drift: float = 0.0,
    lost: Callable[[float], bool] = lambda t_s: False,
    has_places: bool = True,
    seen: Floats | None = None,
) -> tuple[SyncEngine, EngineStatus]:
    """Return the engine after a drive: wheels at 20 Hz, `scale` too large, and fixes at 5 Hz.

    `seen` are other places for the fixes than those of the drive.
    """
    plain = {'cue': 'speed', 'latency_s': 0.05, 'latency_sigma_s': 0.1, 'cue_wander': 0.02}
    section = {'inputs': {'wheels': plain, 'gnss': plain}, 'reference_sensor_id': 'wheels'}
    engine = SyncEngine(
        load_config(section), readers=dict.fromkeys(('wheels', 'gnss'), lambda values: values)
    )
    rng = np.random.default_rng(5)
    t_s, places = driven(speed, turn_rate)
    events: list[tuple[float, str, float, dict[str, Any]]] = []
    for k in range(0, len(t_s), 5):
        place = scale * places[k]
        values = (
            {'position': (place.real, place.imag, 0.0)}
            if has_places
            else {
                'velocity': np.array([scale * speed(t_s[k : k + 1])[0], 0.0, 0.0]),
                'turn_rate': np.zeros(3),
            }
        )
        events.append((t_s[k] + 0.05 + rng.exponential(0.003), 'wheels', t_s[k], values))
    for k in range(7, len(t_s), 20):
        if not lost(t_s[k]):
            place = (places if seen is None else seen)[k] * np.exp(2.0j)
            place += noise_m * (rng.normal() + 1j * rng.normal())
            values = {'position': (place.real, place.imag, rng.normal(0.0, 1.0))}
            stamp_s = t_s[k] * (1.0 + drift) + LATE_S
            events.append((t_s[k] + 0.05 + rng.exponential(0.003), 'gnss', stamp_s, values))
    for arrival_s, name, stamp_s, values in sorted(events, key=lambda event: event[0]):
        stamp_ns, arrival_ns = (round((T0_S + each) * 1e9) for each in (stamp_s, arrival_s))
        engine.push(name, stamp_ns, values, arrival_ns)
        while engine.run_cues():
            pass
    return engine, engine.status()


@pytest.mark.parametrize(
    'case',
    [
        {'turn_rate': bends},
        {'turn_rate': bends, 'noise_m': 0.4},
        {'turn_rate': straight},
        {'turn_rate': bends, 'scale': 3.6},
        {'turn_rate': straight, 'scale': 0.8, 'has_places': False},
        {'turn_rate': bends, 'lost': lambda t_s: t_s % 20.0 > 14.0 or int(t_s * 5) % 4 == 0},
        {'turn_rate': bends, 'drift': 40e-6},
        {'speed': constant, 'turn_rate': bends},
    ],
    ids=['turns', '40cm', 'straight', 'km/h', 'speed alone', 'gaps', 'drift', 'constant, turns'],
)
def test_how_late_a_receiver_is_shows_against_the_wheels(case: dict[str, Any]) -> None:
    engine, status = compared(**{'speed': varying, **case})
    found = engine.offset('gnss', to='wheels')
    error_s = found.offset_ns / 1e9 - LATE_S - 60.0 * case.get('drift', 0.0)
    assert found.sigma_s < (0.06 if 'noise_m' in case else 0.03)
    assert abs(error_s) < 3.0 * found.sigma_s
    assert status.speed_reference == 'wheels'
    assert {each.rests_on for each in status.sensors.values()} == {'speed'}
    assert status.sensors['gnss'].mounting is None
    assert abs((1.0 + status.sensors['gnss'].scale) * case.get('scale', 1.0) - 1.0) < 0.1


@pytest.mark.parametrize(
    ('speed', 'turn_rate', 'why'),
    [
        (lambda t_s: 0.0 * t_s, straight, 'nothing moves, as wheels says'),
        (constant, straight, 'wheels shows no change of speed'),
        (constant, lambda t_s: 0.0 * t_s + 0.3, 'more than one offset'),
    ],
    ids=['still', 'constant', 'circle'],
)
def test_motion_that_shows_no_time_gives_no_offset_and_a_reason(
    speed: Speed, turn_rate: Speed, why: str
) -> None:
    engine, status = compared(speed, turn_rate)
    gnss = status.sensors['gnss']
    assert (gnss.rests_on, gnss.motion_fixes) == ('arrivals', 0)
    assert why in gnss.motion_refusal
    assert engine.offset('gnss', to='wheels').sigma_s > 0.09


def test_a_way_that_is_not_the_references_is_said() -> None:
    _, another = driven(lambda t_s: 0.8 + 0.6 * np.sin(1.9 * t_s), lambda t_s: -bends(1.7 * t_s))
    _, status = compared(varying, bends, seen=another)
    gnss = status.sensors['gnss']
    assert gnss.rests_on == 'arrivals'
    assert gnss.motion_refusal


def test_fixes_become_metres_also_across_the_180th_meridian() -> None:
    way = Travel()
    assert way.follow(0, {'fix': (60.0, 179.9999, 10.0)}) is not None
    place = way.follow(1, {'fix': (60.0001, -179.9999, 12.0)})
    # WGS 84 at 60 degrees: 55.800 km a degree to the east, 111.412 km to the north
    assert place == pytest.approx((11.16, 11.14, 12.0), abs=0.01)
    assert way.follow(2, {}) is None


def test_twists_with_turns_have_a_heading_and_those_without_a_speed_alone() -> None:
    way = Travel()
    for k in range(101):
        values = {'velocity': np.array([1.0, 0.0, 0.0]), 'turn_rate': (0.0, 0.0, 0.5 * np.pi)}
        place = way.follow(k * 10_000_000, values)
    assert way.has_heading and place == pytest.approx((2.0 / np.pi, 2.0 / np.pi, 0.0), abs=1e-3)
    speed = Travel()
    for k in range(101):
        values = {'velocity': np.array([0.0, -1.0, 0.0]), 'turn_rate': (0.0, 0.0, 0.0)}
        place = speed.follow(k * 10_000_000, values)
    assert not speed.has_heading and place == pytest.approx((1.0, 0.0, 0.0))


def test_messages_without_a_fix_or_a_number_tell_nothing() -> None:
    cue = SpeedCue()
    fix = CATALOGUE['sensor_msgs/msg/NavSatFix']
    assert fix.decode is not None
    none = msgs.nav_sat_fix('gnss').fill(1, position=(50.0, 8.0, 100.0), status=-1)
    assert VALUES['speed'](fix.decode(none)) == {}
    good = msgs.nav_sat_fix('gnss').fill(1, position=(50.0, 8.0, 100.0), status=0)
    assert VALUES['speed'](fix.decode(good)) == {'fix': (50.0, 8.0, 100.0)}
    assert cue.feed(1, {}) is None
    assert cue.feed(2, {'velocity': np.full(3, np.nan), 'turn_rate': np.zeros(3)}) is None


def test_which_input_others_speeds_are_compared_with() -> None:
    odometry, fix = 'nav_msgs/msg/Odometry', 'sensor_msgs/msg/NavSatFix'
    assert {odometry, fix, 'geometry_msgs/msg/TwistStamped'} <= set(types_of('speed'))
    inputs: dict[str, dict[str, Any]] = {
        'gnss': {'cue': 'speed', 'type': fix},
        'wheels': {'cue': 'odometry', 'type': odometry},
    }
    section: dict[str, Any] = {'inputs': inputs, 'reference_sensor_id': 'wheels'}
    assert load_config(section).speed_reference == 'wheels'
    assert load_config(section).turn_reference == ''
    imu = {'imu': {'type': 'sensor_msgs/msg/Imu'}}
    with_imu = {**section, 'inputs': {**inputs, **imu}, 'imu_sensor_id': 'imu'}
    assert load_config(with_imu).speed_reference == ''  # the wheels are compared by their turns
    with_imu['inputs']['wheels'] = {'cue': 'speed', 'type': odometry}
    config = load_config(with_imu)
    assert (config.speed_reference, config.clock_anchor('gnss')) == ('wheels', 'wheels')
    with pytest.raises(RigError, match="cue_axes 'yaw' is of turns"):
        load_config({**section, 'inputs': {**inputs, 'gnss': {'cue': 'speed', 'cue_axes': 'yaw'}}})
