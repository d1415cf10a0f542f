"""Which finding is a cause, and which follows from another."""

from __future__ import annotations

import pytest

from sensor_rig.findings.explaining import explained
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WRONG, Severity


@pytest.mark.parametrize(
    ('offset_ms', 'severity'),
    [(-303.0, INFO), (-330.0, WRONG), (-100.0, WRONG), (303.0, WRONG)],
)
def test_an_offset_follows_from_a_clock_that_is_as_far_ahead(
    offset_ms: float, severity: Severity
) -> None:
    """The IMU is stamped 300 ms in the future; a scan is early against it by so much."""
    future = found('future_stamps', WRONG, ('/imu',), 'stamped ahead', {'delay_ms': -300.0})
    offset = found(
        'clock_offset',
        WRONG,
        ('/scan',),
        'stamped early',
        {'offset_ms': offset_ms, 'sigma_ms': 0.3},
        related=('/imu',),
    )
    said = {each.code: each.severity for each in explained([future, offset], [])}
    assert said == {'future_stamps': WRONG, 'clock_offset': severity}
