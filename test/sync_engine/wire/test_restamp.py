"""New stamps in serialised messages."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.msgs import decode
from sync_engine.wire.restamp import restamp


def cloud(kind, times):
    points = np.zeros(len(times), [('x', '<f4'), ('time', kind)])
    points['time'] = times
    return msgs.point_cloud2_message(1_000_000_000, 'lidar', points)


@pytest.mark.parametrize(('kind', 'unit'), [('<f4', 1e9), ('<f8', 1e9), ('<u4', 1), ('<i4', 1)])
def test_point_times_stay_true_when_the_stamp_moves(kind, unit):
    """Stamp 1.000 s was captured at host time 1.500 s; the bundle is stamped 1.480 s."""
    raw, shift_ns = restamp(
        'sensor_msgs/msg/PointCloud2',
        cloud(kind, [0, 0.05e9 / unit]),
        1_000_000_000,
        1_480_000_000,
        1_500_000_000,
    )
    assert read_stamp_ns(raw) == 1_480_000_000
    assert shift_ns == 20_000_000
    times_ns = decode.read_cloud(raw).points['time'].astype(float) * unit
    np.testing.assert_allclose(times_ns, [0.02e9, 0.07e9], rtol=1e-6)


def test_unsigned_times_that_would_go_below_zero_are_left_and_it_is_told():
    raw, shift_ns = restamp(
        'sensor_msgs/msg/PointCloud2',
        cloud('<u4', [0, 5]),
        1_000_000_000,
        1_500_000_000,
        1_480_000_000,
    )
    assert shift_ns == 0
    assert read_stamp_ns(raw) == 1_500_000_000
    np.testing.assert_array_equal(decode.read_cloud(raw).points['time'], [0, 5])


def test_absolute_point_times_move_with_the_clock_not_with_the_header():
    raw, _ = restamp(
        'sensor_msgs/msg/PointCloud2',
        cloud('<f8', [1.7e9, 1.7e9 + 0.5]),
        1_000_000_000,
        1_480_000_000,
        1_500_000_000,
    )
    np.testing.assert_allclose(
        decode.read_cloud(raw).points['time'], [1.7e9 + 0.5, 1.7e9 + 1.0], rtol=0, atol=1e-6
    )


def test_everything_else_only_gets_the_stamp():
    raw = msgs.imu('imu').fill(5, angular_velocity=[1, 2, 3])
    out, shift_ns = restamp('sensor_msgs/msg/Imu', raw, 5, 9, 7)
    assert (out[:4], read_stamp_ns(out), out[12:], shift_ns) == (raw[:4], 9, raw[12:], 0)
