"""Turns of two sensors agree where one is shifted by its clock's offset."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common import msgs
from sensor_rig.findings.turning import Turning
from sync_engine.cues.motion import Rotation

S = 10**9
START_NS = 1_700_000_000 * S


def angle(time_s: float) -> float:
    return float(np.sin(1.3 * time_s) + 0.4 * np.sin(4.1 * time_s))


def rate(time_s: float) -> float:
    return float(1.3 * np.cos(1.3 * time_s) + 1.64 * np.cos(4.1 * time_s))


@pytest.mark.parametrize('offset_s', [-0.095, 0.0, 0.04])
def test_the_peak_is_at_the_offset(offset_s: float) -> None:
    turning = Turning()
    for k in range(4000):
        turning.add_imu(
            bytes(
                msgs.imu('imu').fill(
                    START_NS + k * S // 200, angular_velocity=[0.0, 0.0, rate(k / 200)]
                )
            )
        )
    for k in range(200):
        begin, end = k / 10, (k + 1) / 10
        stamps = [START_NS + round((time_s + offset_s) * S) for time_s in (begin, end)]
        turning.add_turn('lidar', Rotation(*stamps, (angle(end) - angle(begin),), None, (1e-6,)))
    curve = turning.curve('lidar')
    assert curve is not None
    best = float(curve.offsets_s[int(np.argmax(curve.agreement))])
    assert best == pytest.approx(offset_s, abs=0.006)
    assert float(curve.agreement.max()) > 0.99


def test_few_turns_are_not_compared() -> None:
    assert Turning().curve('lidar') is None
