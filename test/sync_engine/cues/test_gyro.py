"""The gyro's track gives the integral of what was added, however it was added and looked up."""

from __future__ import annotations

import numpy as np
import pytest
from support.sync_feeder import T0, S

from sync_engine.cues.gyro import GyroTrack

AXIS = np.array([0.6, 0.0, 0.8])


def samples(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return irregular stamps [n] (ns) and rates [n, 3]."""
    rng = np.random.default_rng(3)
    return T0 + np.cumsum(rng.integers(2_000_000, 9_000_000, count)), rng.normal(0, 1, (count, 3))


def integral(stamps: np.ndarray, rates: np.ndarray, start_s: float, end_s: float) -> float:
    """Return the turn about AXIS between two times (s after T0): trapezoids, knot by knot."""
    times = (stamps - T0) / S
    inside = times[(times > start_s) & (times < end_s)]
    at = np.concatenate([[start_s], inside, [end_s]])
    rate = np.interp(at, times, rates @ AXIS)
    return float(np.sum(0.5 * (rate[1:] + rate[:-1]) * np.diff(at)))


@pytest.mark.parametrize('chunk', [1, 7, 400, 6000])
def test_angles_are_the_integral_of_the_rates(chunk: int) -> None:
    """With a short span samples are forgotten and the arrays made again several times."""
    stamps, rates = samples(6000)
    gyro, looked = GyroTrack(2.0), 0
    for k, (stamp_ns, rate) in enumerate(zip(stamps, rates, strict=True), start=1):
        gyro.add(int(stamp_ns), *rate.tolist())
        if k % chunk or k < 200 or (k // chunk) % max(1, 600 // chunk):
            continue
        end_s = (int(stamp_ns) - T0) / S
        times = end_s - np.array([1.9, 0.7, 1.2, 0.0004])
        angles = gyro.angle(T0, times, AXIS)
        assert angles is not None
        for one, angle in zip(times[1:], angles[1:], strict=True):
            expected = integral(stamps, rates, times[0], one)
            assert angle - angles[0] == pytest.approx(expected, abs=1e-9)
        looked += 1
    assert looked


def test_outside_the_track_there_is_no_angle() -> None:
    stamps, rates = samples(1000)
    gyro = GyroTrack(1.0)
    assert gyro.angle(T0, np.zeros(1), AXIS) is None
    for stamp_ns, rate in zip(stamps, rates, strict=True):
        gyro.add(int(stamp_ns), *rate.tolist())
    last_ns = int(stamps[-1])
    assert gyro.angle(last_ns, np.array([-0.9, 0.0]), AXIS) is not None
    assert gyro.angle(last_ns, np.array([0.001]), AXIS) is None
    assert gyro.angle(last_ns, np.array([-1.1]), AXIS) is None
    gyro.clear()
    assert gyro.covered_ns() is None
