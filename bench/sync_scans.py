"""The LiDAR's offset from nothing but its scans and the IMU: in a yard of boxes drawn here, and in
the simulated yard with the real messages, decoded as the sync node decodes them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from rich.progress import track
from support.sync_runs import make_config
from support.sync_streams import START_S, Scenario
from support.synthetic_yard import Yard, sweep

from rig_common.arrays import Floats
from sync_engine.config import SyncConfig
from sync_engine.engine import SyncEngine

RAYS = 1024
NOISE_M = 0.01
SETTLED_S = 20.0
_TIMESTEP_S = 0.001


def drawn_yard(seed: int, duration_s: float, sweep_s: float) -> Floats:
    """Return |error| (ms) of the LiDAR's offset to the IMU, every 0.1 s after convergence."""
    scenario = Scenario(seed, duration_s=duration_s)
    motion, yard = scenario.motion(), Yard.of_boxes(seed)
    rng = np.random.default_rng([seed, 9])

    def pose(times: Floats) -> tuple[Floats, Floats, Floats]:
        return 1.5 * np.sin(0.5 * times), 1.2 * np.cos(0.37 * times), motion.angle(times)[:, 2]

    def read(capture_s: float) -> dict[str, Any]:
        ranges = sweep(yard, pose, capture_s, RAYS, sweep_s, NOISE_M, rng)
        increment = 2.0 * np.pi / RAYS
        return {
            'ranges': ranges,
            'angle_min': -np.pi,
            'angle_increment': increment,
            'time_increment': sweep_s / RAYS,
            'range_max': 30.0,
        }

    lidar = scenario.sensors['lidar']
    scenario = replace(
        scenario,
        sensors={
            'lidar': replace(lidar, latency_s=lidar.latency_s + sweep_s),  # sent when complete
            'imu': scenario.sensors['imu'],
        },
    )
    plain = make_config(scenario, required_sensors=['lidar']).model_dump()
    plain['inputs']['lidar']['cue'] = 'scan'
    engine = SyncEngine(SyncConfig.model_validate(plain), readers={'lidar': read})
    errors = []
    for message in scenario.messages():
        engine.push(message.sensor_id, message.stamp_ns, message.capture_s, message.arrival_ns)
        if message.sensor_id == 'imu':
            engine.push_imu(message.stamp_ns, message.gyro, message.accel)
        engine.run_cues()
        now_s = message.arrival_ns / 1e9 - START_S
        if message.sensor_id == 'lidar' and now_s > SETTLED_S:
            sensors = scenario.sensors
            true = sensors['lidar'].true_offset(now_s) - sensors['imu'].true_offset(now_s)
            errors.append(engine.offset('lidar', to='imu').offset_ns / 1e9 - float(true))
    return 1e3 * np.abs(np.array(errors))


def simulated_yard(seed: int, duration_s: float) -> Floats | None:
    """Return the same for the rover in its yard, None where the simulator is not installed."""
    try:
        from sensor_rig.rigfile import rig_from_parameters
        from sim_sensors.rig import Rig
        from sync_engine.wire.session import WireSync
    except ImportError:
        return None
    config = rig_from_parameters(_rover(seed))
    rig = Rig(
        config.simulated_world,
        config.make_sensors().values(),
        seed=seed,
        messages=True,
        arrays=False,
    )
    assert config.sync is not None
    sync = WireSync(config.sync)
    names = {given.topic: name for name, given in config.sync.inputs.items()}
    found, latest = [], {'lidar': 0, 'imu': 0}
    for _ in range(round(duration_s / _TIMESTEP_S)):
        for message in rig.step():
            name = names.get(message.topic)
            if name is None:
                continue
            sync.push(name, message.data, message.arrival_ns)
            sync.run_cues()
            latest[name] = message.stamp_ns - message.sample.capture_ns
            if name == 'lidar' and rig.elapsed_ns > SETTLED_S * 1e9:
                offset_ns = sync.engine.offset('lidar', to='imu').offset_ns
                found.append(offset_ns - (latest['lidar'] - latest['imu']))
    return np.abs(np.array(found) / 1e6)


def _rover(seed: int) -> dict[str, Any]:
    """Return the rig: the demo's rover with its IMU and a sweeping 1024-ray LiDAR."""
    return {
        'seed': seed,
        'world': {'model': 'rover_yard.xml', 'timestep_s': _TIMESTEP_S, 'driver': 'figure_eight'},
        'sensors': {
            'imu': {
                'type': 'imu',
                'mount': {'site': 'imu_mount'},
                'rate_hz': 200.0,
                'delay_range_s': [0.002, 0.003],
                'jitter_s': 0.001,
                'clock': {'offset_s': 0.012, 'drift_ppm': 20.0},
                'gyro': {'noise_density': 1.7e-4, 'turn_on_bias': 0.002},
            },
            'lidar': {
                'type': 'lidar2d',
                'mount': {'body': 'rover', 'pos_m': [0.0, 0.0, 0.4]},
                'rate_hz': 10.0,
                'num_rays': RAYS,
                'noise': NOISE_M,
                'delay_range_s': [0.02, 0.04],
                'jitter_s': 0.005,
                'clock': {'offset_s': -0.085, 'drift_ppm': -10.0},
            },
        },
        'sync': {
            'reference_sensor_id': 'lidar',
            'required_sensors': ['lidar'],
            'imu_sensor_id': 'imu',
            'inputs': {'imu': {'collect': True}},
        },
    }


def scan_cue_rows(quick: bool, make_row: Callable[..., dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of the scan cue, by yard."""
    seeds = range(2 if quick else 10)
    duration_s = 40.0 if quick else 60.0
    goal = 'median 0.3, p95 1'
    rows = []
    yards: dict[str, Callable[[int], Floats | None]] = {
        'simulated yard, sweeping': lambda seed: simulated_yard(seed, duration_s),
        'drawn yard, whole scans at once': lambda seed: drawn_yard(seed, duration_s, 0.0),
        'drawn yard, sweeping': lambda seed: drawn_yard(seed, duration_s, 0.1),
    }
    for name, measure in yards.items():
        found = [measure(seed) for seed in track(seeds, description=name, transient=True)]
        parts = [errors for errors in found if errors is not None]
        case = f'LiDAR offset from scans, {name}'
        if not parts:
            rows.append({'case': case, 'unit': 'ms', 'note': 'simulator not installed'})
            continue
        row = make_row(case, np.concatenate(parts), 'ms', goal)
        row['met'] = row['median'] <= 0.3 and row['p95'] <= 1.0
        rows.append(row)
    return rows
