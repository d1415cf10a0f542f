"""The noise of simulated sensors on recorded values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rig_common import msgs
from rig_common.msgs.decode import read_cloud, read_imu, read_odometry, read_scan
from sensor_rig.inprocess import InProcessRig
from sensor_rig.payload_noise import PayloadNoise
from sensor_rig.rigfile import rig_from_parameters
from sensor_rig.rigfile.stream_keys import stream_config
from sim_sensors.timing.faults import HEALTHY, Condition


def noise(kind: str, **keys: Any) -> PayloadNoise:
    config = stream_config({'topics': ['/a'], 'type': kind, 'rate_hz': 100.0, **keys}, 'streams.a')
    return PayloadNoise('imu', config, 7)


def repeated(
    made: PayloadNoise, raw: bytes, count: int, condition: Condition = HEALTHY
) -> list[bytes]:
    return [made.apply(raw, k, k * 10**7, condition) for k in range(count)]


def test_an_imu_gets_the_very_noise_of_the_simulated_one() -> None:
    keys = {
        'gyro': {'noise_density': 1e-3, 'bias_instability': 1e-4, 'turn_on_bias': 0.01},
        'accel': {
            'noise_density': 1e-2,
            'bandwidth_hz': 0.0,
            'scale_error': 0.01,
            'resolution': 0.001,
        },
        'noise': 0.002,
        'random_walk': 1e-4,
    }

    def messages(more: dict[str, Any]) -> list[tuple[int, bytes]]:
        rig = rig_from_parameters(
            {
                'seed': 7,
                'world': {'model': 'rover_yard.xml', 'driver': 'figure_eight'},
                'sensors': {
                    'imu': {
                        'type': 'imu',
                        'mount': {'site': 'imu_mount'},
                        'rate_hz': 100.0,
                        **more,
                    }
                },
            }
        )
        return [
            (each.sample.index, each.data) for each in InProcessRig(rig, arrays=False).run(2.5)
        ]

    made = noise('imu', **keys)
    for (k, clean), (_, noisy) in zip(messages({}), messages(keys), strict=True):
        assert read_imu(made.apply(clean, k, k * 10**7, HEALTHY)) == read_imu(noisy)


def test_white_noise_of_every_type_has_its_size() -> None:
    odometry = msgs.odometry('map', 'base').fill(0, position=[1.0, 2.0, 3.0], linear=[4.0, 0, 0])
    found = [
        read_odometry(raw)
        for raw in repeated(
            noise('pose', position_noise_m=0.1, linear_noise_m_s=0.5), odometry, 400
        )
    ]
    assert np.std([each.position_m for each in found], 0) == pytest.approx([0.1] * 3, rel=0.15)
    assert np.std([each.linear_m_s for each in found], 0) == pytest.approx([0.5] * 3, rel=0.15)
    assert np.mean([each.position_m for each in found], 0) == pytest.approx([1, 2, 3], abs=0.03)

    reading = msgs.range_reading(
        'a',
        radiation_type=0,
        field_of_view_rad=0.1,
        min_range_m=0.2,
        max_range_m=9.0,
        variance=0.0,
    )
    ranges = [
        float(reading.read(raw)[1]['range'])
        for raw in repeated(noise('range', noise=0.05), reading.fill(0, range=8.0), 400)
    ]
    assert np.std(ranges) == pytest.approx(0.05, rel=0.15)

    fix = msgs.nav_sat_fix('gps')
    places = np.array(
        [
            fix.read(raw)[1]['position']
            for raw in repeated(
                noise('gnss', horizontal_noise_m=2.0, vertical_noise_m=4.0),
                fix.fill(0, position=[48.0, 11.0, 500.0]),
                400,
            )
        ]
    )
    metres = (places - [48.0, 11.0, 500.0]) * [111_195.0, 111_195.0 * np.cos(0.8378), 1.0]
    assert np.std(metres, 0) == pytest.approx([2.0, 2.0, 4.0], rel=0.15)


def test_a_scan_is_disturbed_within_its_limits_and_keeps_what_is_no_range() -> None:
    scan = msgs.laser_scan(
        'a',
        400,
        angle_min_rad=0,
        angle_max_rad=1,
        angle_increment_rad=0.1,
        range_min_m=0.1,
        range_max_m=10.0,
        intensities=True,
    )
    given = np.full(400, 5.0, np.float32)
    given[:3] = [np.nan, np.inf, 9.999]
    lights = np.arange(400, dtype=np.float32)
    raw = scan.fill(0, ranges=given, intensities=lights)
    made = noise('lidar2d', noise=0.1)
    first, again = (read_scan(made.apply(raw, 3, 0, HEALTHY)) for _ in range(2))
    assert np.array_equal(first.ranges, again.ranges, equal_nan=True)
    assert np.isnan(first.ranges[0]) and first.ranges[1] == np.inf
    assert np.std(first.ranges[3:]) == pytest.approx(0.1, rel=0.15)
    assert np.array_equal(first.intensities, lights)
    assert (
        read_scan(
            noise('lidar2d', noise=0.0, optics={'dropout_probability': 1.0}).apply(
                raw, 0, 0, HEALTHY
            )
        ).ranges[3:]
        == np.inf
    ).all()


def cloud(points: NDArray[Any]) -> bytes:
    record = np.zeros(len(points), [('x', '<f4'), ('y', '<f4'), ('z', '<f4'), ('time', '<f4')])
    record['x'], record['y'], record['z'] = points.T
    record['time'] = 0.05
    return msgs.point_cloud2('a', record.dtype, len(record)).fill(0, points=record)


def test_points_move_along_their_rays_whatever_their_number() -> None:
    made = noise('lidar3d', noise=0.2)
    directions = np.random.default_rng(2).normal(size=(3000, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    moved = {}
    for number, count in enumerate((2000, 1500, 3000, 2000)):
        found = read_cloud(made.apply(cloud(directions[:count] * 20.0), number, 0, HEALTHY)).points
        places = np.stack([found[axis] for axis in 'xyz'], 1)
        reach = np.linalg.norm(places, axis=1)
        assert np.std(reach) == pytest.approx(0.2, rel=0.1)
        assert np.allclose(places / reach[:, None], directions[:count], atol=1e-5)
        assert (found['time'] == np.float32(0.05)).all()
        moved[number] = reach
    # what a capture draws does not depend on how large the clouds before it were
    alone = read_cloud(
        noise('lidar3d', noise=0.2).apply(cloud(directions[:2000] * 20.0), 3, 0, HEALTHY)
    ).points
    assert np.allclose(
        np.linalg.norm(np.stack([alone[axis] for axis in 'xyz'], 1), axis=1), moved[3]
    )


def test_faults_of_values_and_what_cannot_be_read() -> None:
    raw = msgs.imu('imu').fill(0, linear_acceleration=[1.0, 2.0, 3.0])
    wrong = noise('imu').apply(raw, 0, 0, Condition(wrong=((2.0, 1.0),)))
    assert read_imu(wrong)[1] == (3.0, 5.0, 7.0)
    assert noise('imu').apply(raw[:40], 0, 0, HEALTHY) == raw[:40]
    loud = np.std(
        [
            read_imu(each)[1]
            for each in repeated(noise('imu', noise=0.1), raw, 300, Condition(noise_gain=10.0))
        ],
        0,
    )
    assert loud == pytest.approx([1.0] * 3, rel=0.15)
