"""Turns compared without an IMU: another stream takes its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sync_engine.config import load_config
from sync_engine.engine import SyncEngine

T0_S = 1000.0


def yaw(t_s: Floats | float) -> Floats:
    return np.asarray(0.8 * np.sin(1.3 * np.asarray(t_s)) + 0.3 * np.sin(3.1 * np.asarray(t_s)))


def pitch(t_s: Floats | float) -> Floats:
    return np.asarray(0.2 * np.sin(2.3 * np.asarray(t_s)))


def orientation(t_s: float) -> Floats:
    """Return the attitude (x, y, z, w) of a body that yaws and pitches."""
    half_yaw, half_pitch = 0.5 * float(yaw(t_s)), 0.5 * float(pitch(t_s))
    cz, sz, cy, sy = np.cos(half_yaw), np.sin(half_yaw), np.cos(half_pitch), np.sin(half_pitch)
    return np.array([-sz * sy, cz * sy, sz * cy, cz * cy])


def config(**inputs: dict[str, Any]) -> dict[str, Any]:
    plain = {'latency_s': 0.02, 'latency_sigma_s': 0.05, 'cue': 'odometry', 'cue_wander': 0.02}
    return {
        'inputs': {name: {**plain, **given} for name, given in inputs.items()},
        'reference_sensor_id': next(iter(inputs)),
    }


def run(
    engine: SyncEngine,
    rates_hz: dict[str, float],
    late_s: dict[str, float],
    lasting_s: float = 40.0,
) -> None:
    """Feed poses; each stamp is its capture plus the offset of its clock."""
    rng = np.random.default_rng(3)
    events = []
    for name, rate_hz in rates_hz.items():
        for t_s in np.arange(0.0, lasting_s, 1.0 / rate_hz):
            noise = rng.normal(0.0, 1e-4, 4)
            arrival_s = t_s + 0.02 + rng.exponential(0.002)
            events.append((arrival_s, name, t_s + late_s[name], orientation(t_s) + noise))
    for arrival_s, name, stamp_s, pose in sorted(events, key=lambda event: event[0]):
        stamp_ns, arrival_ns = (round((T0_S + each) * 1e9) for each in (stamp_s, arrival_s))
        engine.push(name, stamp_ns, pose, arrival_ns)
        while engine.run_cues():
            pass


def readers(*names: str) -> dict[str, Any]:
    return {name: lambda pose: {'orientation': pose} for name in names}


def tumbling(pose: Floats) -> Floats:
    """Return an attitude that has nothing to do with the true one: the noise of it, enlarged."""
    drawn = np.modf(pose * 1e6)[0]
    return drawn / np.linalg.norm(drawn)


def test_two_streams_of_poses_find_their_difference() -> None:
    section = load_config(config(lidar={}, camera={}))
    engine = SyncEngine(section, readers=readers('lidar', 'camera'))
    run(engine, {'lidar': 20.0, 'camera': 30.0}, {'lidar': -0.085, 'camera': 0.037})
    found = engine.offset('camera', to='lidar')
    assert abs(found.offset_ns / 1e6 - 122.0) < max(3e3 * found.sigma_s, 0.5)
    assert found.sigma_s < 2e-3
    status = engine.status()
    assert status.motion_reference == 'lidar'
    assert {name: each.rests_on for name, each in status.sensors.items()} == {
        'lidar': 'rotation',
        'camera': 'rotation',
    }


def test_what_is_missing_or_does_not_agree_is_said() -> None:
    alone = SyncEngine(
        load_config(config(poses={}, far={'cue': 'none'})), readers=readers('poses')
    )
    run(alone, {'poses': 20.0}, {'poses': 0.0}, 2.0)
    said = {name: each.motion_refusal for name, each in alone.status().sensors.items()}
    assert said == {
        'poses': 'there is neither an IMU nor a second stream that tells turns',
        'far': '',
    }
    other = SyncEngine(
        load_config(config(lidar={}, camera={})),
        readers={**readers('lidar'), 'camera': lambda pose: {'orientation': tumbling(pose)}},
    )
    run(other, {'lidar': 20.0, 'camera': 30.0}, {'lidar': -0.085, 'camera': 0.037}, 6.0)
    seen = other.status().sensors
    assert 'gyro' not in seen['camera'].motion_refusal and seen['lidar'].motion_refusal == ''
    assert seen['camera'].rests_on == 'arrivals' and 'lidar' in seen['camera'].motion_refusal


def test_a_reference_whose_turns_err_in_time_locks_nothing_against_it() -> None:
    section = load_config(config(wheels={'cue_bias_s': 0.02}, camera={}))
    engine = SyncEngine(section, readers=readers('wheels', 'camera'))
    run(engine, {'wheels': 20.0, 'camera': 30.0}, {'wheels': 0.0, 'camera': 0.037})
    assert engine.offset('camera', to='wheels').sigma_s > 0.02


def test_the_reference_may_be_named_and_is_chosen_by_its_cue() -> None:
    poses = config(poses={}, wheels={'cue': 'rate'}, far={'cue': 'none'})
    assert load_config(poses).turn_reference == 'wheels'
    assert load_config({**poses, 'motion_reference': 'poses'}).turn_reference == 'poses'
    alone = config(poses={}, far={'cue': 'none'})
    assert load_config(alone).turn_reference == ''
    with pytest.raises(RigError, match="'far', whose cue is 'none'"):
        load_config({**poses, 'motion_reference': 'far'})
    imu = config(imu={'type': 'sensor_msgs/msg/Imu', 'cue': 'none'}, poses={}, wheels={})
    assert load_config({**imu, 'imu_sensor_id': 'imu'}).turn_reference == 'imu'
    with pytest.raises(RigError, match="beside the IMU 'imu'"):
        load_config({**imu, 'imu_sensor_id': 'imu', 'motion_reference': 'poses'})
