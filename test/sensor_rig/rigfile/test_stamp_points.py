"""A scan stamped at its end, or its middle, is synced as one stamped at its start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.validation import validated
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import rig_from_parameters
from sync_engine.config import InputConfig


def synced(point: str, policy: str) -> tuple[list[int], list[int]]:
    """Return the stamps of the scans as they come and as they are published in bundles."""
    clock: dict[str, Any] = {'offset_s': 0.05, 'stamp_point': point}
    rig = InProcessRig(
        rig_from_parameters(
            {
                'world': {'model': 'rover_yard.xml'},
                'sensors': {
                    'imu': {'type': 'imu', 'rate_hz': 100.0},
                    'lidar': {'type': 'lidar2d', 'rate_hz': 10.0, 'num_rays': 30, 'clock': clock},
                },
                'sync': {
                    'reference_sensor_id': 'lidar',
                    'required_sensors': ['lidar', 'imu'],
                    'imu_sensor_id': 'imu',
                    'stamp_policy': policy,
                },
            }
        ),
        arrays=False,
    )
    raw, out = [], []
    for _ in range(1000):
        raw += [message.stamp_ns for message in rig.step() if message.topic == 'lidar/scan']
        for bundle in rig.bundles:
            out += [
                read_stamp_ns(output.raw)
                for output in rig.outputs(bundle)
                if output.topic.endswith('lidar/scan')
            ]
    return raw, out


def test_another_stamp_point_gives_the_same_bundles() -> None:
    start, bundles = synced('start', 'corrected')
    assert len(bundles) > 4
    end, same = synced('end', 'corrected')
    assert np.subtract(end, start)[0] == pytest.approx(0.0967e9, abs=1e6)
    assert same == bundles
    middle, same = synced('middle', 'corrected')
    assert np.subtract(end, middle)[0] == pytest.approx(0.0483e9, abs=1e6)
    assert np.abs(np.subtract(same, bundles)).max() <= 1
    raw, kept = synced('end', 'raw')
    assert kept[0] in raw


@pytest.mark.parametrize(
    ('kind', 'point', 'shift_ms'),
    [
        ('sensor_msgs/msg/LaserScan', 'start', 0),
        ('sensor_msgs/msg/LaserScan', 'middle', -50),
        ('sensor_msgs/msg/PointCloud2', 'end', -100),
        ('sensor_msgs/msg/Image', 'start', 50),
        ('sensor_msgs/msg/Image', 'middle', 0),
        ('sensor_msgs/msg/Image', 'end', -50),
    ],
)
def test_shifts(kind: str, point: str, shift_ms: int) -> None:
    given = validated(InputConfig, {'type': kind, 'stamp_point': point, 'capture_s': 0.1}, 'x')
    assert given.stamp_shift_ns == shift_ms * 1_000_000


def test_a_point_without_a_length_is_refused() -> None:
    with pytest.raises(RigError, match='needs its length'):
        validated(InputConfig, {'stamp_point': 'end'}, 'sync.inputs.lidar')
    with pytest.raises(RigError, match='the default none'):
        validated(InputConfig, {'capture_s': 0.1}, 'sync.inputs.lidar')
