"""A clean rig's recording, degraded, is the recording of the same rig with those settings."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from rig_common.cdr import read_stamp_ns
from rig_common.msgs import read_time_reference
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.recorder import record_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.degrade.recording import FATES, degrade_recording
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import RigConfig, rig_from_parameters

CLEAN: dict[str, dict[str, Any]] = {
    'imu': {'type': 'imu', 'mount': {'site': 'imu_mount'}, 'rate_hz': 200.0},
    'front_lidar': {
        'type': 'lidar2d',
        'mount': {'body': 'rover', 'pos_m': [0.3, 0.0, 0.4]},
        'rate_hz': 10.0,
        'num_rays': 90,
        'noise': 0.0,
    },
    'body': {'type': 'pose', 'mount': {'body': 'rover'}, 'rate_hz': 50.0, 'phase_s': 0.007},
}
TIMING: dict[str, dict[str, Any]] = {
    'imu': {
        'delay_range_s': [0.002, 0.003],
        'jitter_s': 0.001,
        'clock': {'offset_s': 0.012, 'drift_ppm': -15.0, 'stamp_jitter_s': 0.0003},
        'faults': {
            'gap': {'kind': 'dead', 'at_s': 1.0, 'duration_s': 0.2},
            'step': {'kind': 'clock_step', 'at_s': 2.0, 'offset': 0.05},
            'part': {'kind': 'loss_burst', 'at_s': 2.5, 'duration_s': 0.3, 'scale': 0.5},
        },
    },
    'front_lidar': {
        'delay_range_s': [0.040, 0.060],
        'jitter_s': 0.030,
        'clock': {'offset_s': -0.085, 'drift_ppm': 400.0},
        'loss': {'probability': 0.2, 'burst_mean': 2.0},
        'faults': {'slow': {'kind': 'slow', 'at_s': 1.5, 'duration_s': 0.5, 'offset': 0.3}},
    },
    'body': {
        'delay_range_s': [0.05, 0.1],
        'jitter_s': 0.04,
        'clock': {'stamp_at': 'arrival'},
        'loss': {'probability': 0.1},
    },
}
MODELS: dict[str, dict[str, Any]] = {
    'imu': {
        'rate_hz': 200.0,
        'order': 'fifo',
        'latency': {
            'model': 'gamma',
            'mean_s': 0.004,
            'sigma_s': 0.003,
            'correlation': 0.5,
            'stalls': {'probability': 0.02, 'duration_range_s': [0.02, 0.05]},
        },
        'clock': {
            'offset_s': 0.5,
            'white_fm': 1e-6,
            'random_walk_fm': 1e-7,
            'servo': {'kind': 'ptp', 'sigma_s': 1e-6},
            'resolution_s': 1e-6,
        },
        'loss': {
            'probability': 0.1,
            'burst_mean': 3.0,
            'bad_probability': 0.5,
            'duplicate_probability': 0.1,
        },
    },
    'front_lidar': {
        'rate_hz': 10.0,
        'delay_range_s': [0.01, 0.01],
        'clock': {'stamp_point': 'end', 'drift_ppm': 300.0},
    },
}
TOPICS = {'imu': '/imu/data_raw', 'front_lidar': '/front_lidar/scan', 'body': '/body/odom'}
SECONDS = 4.0


def rig_of(sensors: dict[str, dict[str, Any]], **more: Any) -> RigConfig:
    return rig_from_parameters(
        {
            'seed': 11,
            'world': {'model': 'rover_yard.xml', 'driver': 'figure_eight'},
            'sensors': sensors,
            **more,
        }
    )


def recorded(folder: Path, rig: RigConfig) -> Path:
    with BagWriter(folder) as writer:
        record_rig(InProcessRig(rig, arrays=False, sync=False), writer, SECONDS, lambda s: None)
    return folder


def streams_of(**timing: dict[str, Any]) -> RigConfig:
    return rig_from_parameters(
        {
            'seed': 11,
            'streams': {
                name: {'topics': [TOPICS[name]], 'base': 'stamp', **keys}
                for name, keys in timing.items()
            },
        }
    )


def times_of(folder: Path, topic: str) -> list[tuple[int, int]]:
    """Return (receive time, stamp) of each message."""
    with BagReader(folder) as bag:
        return [(each.receive_ns, read_stamp_ns(each.raw)) for each in bag.messages([topic])]


@pytest.fixture(scope='module')
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp('law') / 'clean', rig_of(CLEAN))


@pytest.fixture(scope='module')
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rig = rig_of({name: {**CLEAN[name], **TIMING[name]} for name in CLEAN})
    return recorded(tmp_path_factory.mktemp('law') / 'simulated', rig)


@pytest.fixture(scope='module')
def degraded(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp('law') / 'degraded'
    degrade_recording(clean, folder, streams_of(**TIMING))
    return folder


@pytest.mark.parametrize('name', TOPICS)
def test_stamps_arrivals_and_losses_are_the_simulated_ones(
    name: str, degraded: Path, simulated: Path
) -> None:
    expected = times_of(simulated, TOPICS[name])
    # the simulation ends with samples on their way; the recording lets all of them arrive
    found = [each for each in times_of(degraded, TOPICS[name]) if each[0] <= expected[-1][0]]
    assert len(expected) > 25
    assert found == expected


@pytest.mark.parametrize('name', TOPICS)
def test_arrivals_are_exact_in_the_list_of_fates(name: str, degraded: Path, clean: Path) -> None:
    rig = InProcessRig(
        rig_of({each: {**CLEAN[each], **TIMING[each]} for each in CLEAN}), arrays=False, sync=False
    )
    expected = {
        message.sample.index: (
            message.sample.capture_ns,
            message.stamp_ns,
            message.sample.arrival_ns,
        )
        for message in rig.run(SECONDS)
        if message.sample.sensor == name
    }
    with (degraded / FATES).open() as file:
        rows = [row for row in csv.DictReader(file) if row['stream'] == name]
    found = {
        int(row['number']): (
            int(row['stamp_ns']),
            int(row['new_stamp_ns']),
            int(row['arrival_ns']),
        )
        for row in rows
        if row['fate'] == 'delivered'
    }
    assert len(rows) == len(times_of(clean, TOPICS[name]))
    assert {number: found[number] for number in expected} == expected


@pytest.mark.parametrize('name', TOPICS)
def test_truth_beside_it_is_the_simulated_one(name: str, degraded: Path, simulated: Path) -> None:
    def truth(folder: Path) -> list[tuple[int, int]]:
        with BagReader(folder) as bag:
            read = [
                read_time_reference(each.raw) for each in bag.messages([f'/truth/time/{name}'])
            ]
        return [(capture_ns, stamp_ns) for capture_ns, _, stamp_ns, _ in read]

    expected = truth(simulated)
    assert truth(degraded)[: len(expected)] == expected


def test_thinned_stream_is_the_sensor_of_that_rate(clean: Path, tmp_path: Path) -> None:
    keys = {**TIMING['imu'], 'rate_hz': 50.0}
    degrade_recording(clean, tmp_path / 'degraded', streams_of(imu=keys))
    slower = recorded(tmp_path / 'slower', rig_of({'imu': {**CLEAN['imu'], **keys}}))
    expected = times_of(slower, TOPICS['imu'])
    assert times_of(tmp_path / 'degraded', TOPICS['imu'])[: len(expected)] == expected


def test_measured_models_are_the_simulated_ones(clean: Path, tmp_path: Path) -> None:
    degrade_recording(clean, tmp_path / 'degraded', streams_of(**MODELS))
    rig = rig_of({name: {**CLEAN[name], **keys} for name, keys in MODELS.items()})
    simulated = recorded(tmp_path / 'simulated', rig)
    for name in MODELS:
        expected = times_of(simulated, TOPICS[name])
        found = times_of(tmp_path / 'degraded', TOPICS[name])
        assert found[: len(expected)] == expected, name
        assert len(expected) > 25
    assert len(set(times_of(simulated, TOPICS['imu']))) < len(times_of(simulated, TOPICS['imu']))
