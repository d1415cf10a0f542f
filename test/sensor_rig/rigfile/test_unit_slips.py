"""What `rig check` says of timing: figures, and values that look like another unit."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sensor_rig.rigfile import RigConfig, rig_from_parameters
from sensor_rig.rigfile.timing_figures import clock_error, timing_figures
from sensor_rig.rigfile.unit_slips import unit_slips, unmounted
from sim_sensors.timing.config import TimingConfig


def rig(sensor: dict[str, Any], **more: Any) -> RigConfig:
    return rig_from_parameters(
        {
            'world': {'model': 'rover_yard.xml'},
            'sensors': {'it': {'rate_hz': 100.0, **sensor}},
            **more,
        }
    )


@pytest.mark.parametrize(
    ('keys', 'question'),
    [
        ({'type': 'imu', 'delay_range_s': [2.0, 2.0]}, r'delay_range_s is 2; .* is it ms\?'),
        (
            {'type': 'imu', 'mount': {'rpy_rad': [0.0, 0.0, 90.0]}},
            'rpy_rad is 90; .* is it degrees',
        ),
        ({'type': 'imu', 'latency': {'model': 'uniform', 'max_s': 3.0}}, 'latency.max_s is 3'),
        ({'type': 'imu', 'mount': {'pos_m': [150.0, 0.0, 0.0]}}, 'is it mm'),
        ({'type': 'gnss', 'delay_range_s': [20.0, 20.0]}, 'is it ms'),
        ({'type': 'imu', 'clock': {'drift_ppm': 2e-5}}, 'plain fraction'),
        ({'type': 'imu', 'clock': {'white_fm': 1e-3}}, 'is it ppm'),
        ({'type': 'imu', 'clock': {'stamp_jitter_s': 0.5}}, 'ms or us'),
        ({'type': 'joint_state', 'joints': ['a'], 'rate_hz': 0.01}, 'the period in s'),
    ],
)
def test_a_likely_slip_is_asked_about(keys: dict[str, Any], question: str) -> None:
    (sentence,) = unit_slips(rig(keys))
    assert re.search(question, sentence)


def test_a_forgotten_mount_is_asked_about() -> None:
    (sentence,) = unmounted(rig({'type': 'imu', 'mount': {'pos_m': [0.0, 0.0, 1.0]}}))
    assert sentence.startswith('sensors.it.mount names no body')
    for keys in (
        {'type': 'imu', 'mount': {'body': 'world'}},
        {'type': 'imu', 'mount': {'site': 'imu'}},
    ):
        assert unmounted(rig(keys)) == []
    assert unmounted(rig({'type': 'joint_state', 'joints': ['wheel']})) == []


def test_usual_values_are_not_asked_about() -> None:
    assert (
        unit_slips(
            rig(
                {
                    'type': 'imu',
                    'delay_range_s': [0.002, 0.003],
                    'mount': {'rpy_rad': [0.0, 3.14159, 1.57]},
                }
            )
        )
        == []
    )
    assert unit_slips(rig({'type': 'gnss', 'delay_range_s': [0.5, 1.0]})) == []
    slow = rig(
        {'type': 'imu', 'link': 'a'}, links={'a': {'bandwidth_bps': 9e3, 'queue_bytes': 999}}
    )
    assert len(unit_slips(slow)) == 1


def test_latency_figures() -> None:
    keys = {
        'type': 'imu',
        'latency': {'model': 'uniform', 'min_s': 0.01, 'max_s': 0.03, 'correlation': 0.6},
    }
    found = timing_figures(rig(keys))['it']
    assert found.latency_p50_s == pytest.approx(0.02, abs=0.001)
    assert found.latency_p99_s == pytest.approx(0.0298, abs=0.0005)
    assert found.correlation == pytest.approx(0.6, abs=0.08)


def test_clock_figures() -> None:
    free = TimingConfig(clock={'offset_s': 1.0, 'drift_ppm': 10.0, 'random_walk_fm': 1e-8})
    after = clock_error(free, 3600.0)
    assert after.mean_s == pytest.approx(1.036)
    assert after.sigma_s == pytest.approx(1e-8 * (3600.0**3 / 3.0) ** 0.5)
    ntp = TimingConfig(
        clock={'offset_s': 0.05, 'servo': {'kind': 'ntp', 'sigma_s': 0.001, 'period_s': 16.0}}
    )
    after = clock_error(ntp, 3600.0)
    assert abs(after.mean_s) < 0.001
    assert 0.0002 < after.sigma_s < 0.002
