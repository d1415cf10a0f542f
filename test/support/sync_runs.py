"""Runs the sync engine over synthetic streams and notes what it believed, moment by moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rig_common.arrays import Floats
from support.sync_streams import IMU_PRIOR_SIGMA_S, START_S, Message, Pairs, Scenario
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.config import SyncConfig, load_config
from sync_engine.engine import SyncEngine

SENSORS = ('camera', 'lidar')
_EVERY_S = 0.1


@dataclass
class Run:
    """What one run showed. Errors in seconds, [n] at `times`."""

    times: Floats = field(default_factory=lambda: np.zeros(0))
    errors: dict[str, Floats] = field(default_factory=dict)
    """By "camera", "lidar" (against the IMU), "camera-lidar", "camera/host", "lidar/host"."""
    sigmas: dict[str, Floats] = field(default_factory=dict)
    states: dict[str, OffsetState] = field(default_factory=dict)
    pairs: Pairs = field(default_factory=list)
    """(LiDAR, camera) true capture times of the bundles."""
    pair_sigmas: list[float] = field(default_factory=list)
    """Sigma (s) of the offset that each pair was chosen with."""

    def late(self, key: str, start_s: float = 30.0) -> Floats:
        """Return |error| (ms) from `start_s` on."""
        late: Floats = np.abs(self.errors[key][self.times > start_s]) * 1e3
        return late

    def settled_s(self, key: str, limit_s: float, start_s: float = 0.0) -> float:
        """Return how long after `start_s` the error was last outside `limit_s`."""
        outside = self.times[(np.abs(self.errors[key]) > limit_s) & (self.times > start_s)]
        return float(outside[-1] - start_s) if len(outside) else 0.0

    def inside_from_s(self, key: str, limit_s: float, stay_s: float = 2.0) -> float:
        """Return when the error first was inside `limit_s` and stayed there for `stay_s`."""
        outside = self.times[np.abs(self.errors[key]) > limit_s]
        edges = np.concatenate([[0.0], outside, [np.inf]])
        return float(edges[:-1][np.diff(edges) > stay_s][0])


PAYLOAD_WANDER, POSE_WANDER = 0.02, 0.5
"""Chance of wander that is declared: of simulated sensors' own turns, and of poses."""


def make_config(
    scenario: Scenario, latency: str = 'declared', cue_wander: float = PAYLOAD_WANDER, **more: Any
) -> SyncConfig:
    """Return the sync section for `scenario`; `latency` is declared, known or unknown."""
    inputs: dict[str, dict[str, Any]] = {}
    for name, sensor in scenario.sensors.items():
        sigma = IMU_PRIOR_SIGMA_S if name == 'imu' else scenario.prior_sigma_s
        values = {
            'declared': (scenario.declared_latency_s(name), sigma),
            'known': (sensor.latency_s, 0.001),
            'unknown': (0.0, 0.02),
        }
        latency_s, sigma_s = values[latency]
        inputs[name] = {
            'latency_s': latency_s,
            'latency_sigma_s': sigma_s,
            'deadline_s': 0.4,
            'imu_quat_wxyz': (1.0, 0.0, 0.0, 0.0),
            'cue_wander': cue_wander,
        }
    inputs['imu']['collect'] = True
    section = {
        'inputs': inputs,
        'reference_sensor_id': 'lidar',
        'required_sensors': _present(scenario),
        'imu_sensor_id': 'imu',
    }
    return load_config(section | more)


def run_engine(
    scenario: Scenario, config: SyncConfig, motion: bool = True, messages: Any = None
) -> Run:
    """Play `scenario` to an engine; `motion` hands it the rotations."""
    return _run(SyncEngine(config), scenario, motion, messages or scenario.messages())


def run_twice(scenario: Scenario, config: SyncConfig) -> Run:
    """Look at `scenario` as at a recording: learn its clocks first, then play it with them."""
    messages = scenario.messages()
    first, second = SyncEngine(config), SyncEngine(config)
    first.clocks.record()
    _run(first, scenario, True, messages)
    second.clocks.play(first.clocks.smoothed())
    return _run(second, scenario, False, messages)


def _run(engine: SyncEngine, scenario: Scenario, motion: bool, messages: list[Message]) -> Run:
    run = Run()
    notes: list[tuple[float, ...]] = []
    last: dict[str, int] = {}
    due_s = _EVERY_S
    for message in messages:
        name = message.sensor_id
        for bundle in engine.push(name, message.stamp_ns, message.capture_s, message.arrival_ns):
            if (camera := bundle.members.get('camera')) is not None:
                run.pairs.append((bundle.members['lidar'].payload, camera.payload))
                run.pair_sigmas.append(camera.offset_sigma_s)
        if name == 'imu':
            engine.push_imu(message.stamp_ns, message.gyro, message.accel)
        elif motion and message.turn:
            give_rotation(engine, scenario, message, last[name])
        last[name] = message.stamp_ns
        engine.run_cues()
        now_s = message.arrival_ns / 1e9 - START_S
        if now_s >= due_s:
            due_s += _EVERY_S
            notes.append(_note(engine, scenario, now_s))
    _fill(run, notes, _columns(scenario))
    run.states = {name: engine.offset(name, to='imu').state for name in _present(scenario)}
    return run


def _present(scenario: Scenario) -> list[str]:
    return [name for name in SENSORS if name in scenario.sensors]


def _columns(scenario: Scenario) -> list[str]:
    names = _present(scenario)
    both = ['camera-lidar'] if len(names) == 2 else []
    return [*names, *both, *(f'{name}/host' for name in names)]


def give_rotation(engine: SyncEngine, scenario: Scenario, message: Message, since_ns: int) -> None:
    """Hand over a message's rotation: the camera's as a vector, the LiDAR's about z."""
    sensor = scenario.sensors[message.sensor_id]
    variance = (sensor.turn_claim * sensor.turn_sigma_rad) ** 2
    if message.sensor_id == 'camera':
        engine.push_rotation('camera', since_ns, message.stamp_ns, message.turn, variance=variance)
    else:
        engine.push_rotation(
            'lidar', since_ns, message.stamp_ns, message.turn[0], (0.0, 0.0, 1.0), variance
        )


def _note(engine: SyncEngine, scenario: Scenario, now_s: float) -> tuple[float, ...]:
    truth = {name: float(sensor.cue_offset(now_s)) for name, sensor in scenario.sensors.items()}
    names = _present(scenario)
    found = [(engine.offset(name, to='imu'), truth[name] - truth['imu']) for name in names]
    if len(names) == 2:
        found.append((engine.offset('camera', to='lidar'), truth['camera'] - truth['lidar']))
    found += [(engine.offset_to_host(name), truth[name]) for name in names]
    errors = [offset.offset_ns / 1e9 - true for offset, true in found]
    return (now_s, *errors, *(offset.sigma_s for offset, _ in found))


def _fill(run: Run, notes: list[tuple[float, ...]], columns: list[str]) -> None:
    table = np.array(notes)
    run.times = table[:, 0]
    count = len(columns)
    run.errors = {key: table[:, 1 + k] for k, key in enumerate(columns)}
    run.sigmas = {key: table[:, 1 + count + k] for k, key in enumerate(columns)}
