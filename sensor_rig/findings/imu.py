"""Accelerometer against gyro of one IMU: whether both were measured at the same moment.

While an IMU tilts, gravity turns in its frame: the specific force f changes by -w x f, with w the
rate of the gyro. An accelerometer that is late (a low-pass filter, samples of another moment)
shows that change later than the gyro. Turns on the level show nothing, and pushes are noise. A
push that always comes with the same tilt, as in walking, looks like a delay, but like another one
for slow motion than for fast; so it is said only where both agree.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.msgs.decode import read_imu
from sensor_rig.findings.turning import AgreementCurve

GRID_S = 0.005
"""Both are looked at on an even grid of this step, or of the IMU's period where that is longer."""
SMOOTH_S = (0.1, 0.3)
"""Boxes over which both are averaged, twice: for fast motion without vibration, and for slow."""
WIDEST_S = 0.12
"""Delays that are tried, to either side."""
PART_S, FEWEST_PARTS = 4.0, 5
LEAST_CHANGE = 0.5
"""m/s^3, root mean square: what the specific force has to change by in a part."""
EXPLAINED = 0.9
"""Correlation of the change with -w x f at the best delay, at least."""
AGREE_S, SIGMAS = 0.002, 3.0
"""How far the delays of fast and slow motion may be apart, and in their sigmas."""


class ImuDelay(NamedTuple):
    """How late the accelerometer is against the gyro."""

    delay_s: float
    sigma_s: float
    parts: int
    """Parts of the recording that tell it."""
    curve: AgreementCurve


@dataclass
class ImuMotion:
    """The measurements of one IMU."""

    _times_ns: list[int] = field(default_factory=list)
    _values: list[tuple[float, ...]] = field(default_factory=list)

    def add(self, raw: bytes) -> None:
        """Take a message."""
        try:
            gyro, force = read_imu(raw)
            self._times_ns.append(read_stamp_ns(raw))
        except CdrError:
            return
        self._values.append((*gyro, *force))

    def delay(self) -> ImuDelay | None:
        """Return how late the accelerometer is; None where motion does not tell."""
        even = self._on_a_grid()
        if even is None:
            return None
        found = [_delay(*even, smooth_s) for smooth_s in SMOOTH_S]
        fast, slow = found
        if (
            fast is None
            or slow is None
            or abs(fast.delay_s - slow.delay_s)
            > max(AGREE_S, SIGMAS * math.hypot(fast.sigma_s, slow.sigma_s))
        ):
            return None
        return min(fast, slow, key=lambda each: each.sigma_s)

    def _on_a_grid(self) -> tuple[float, Floats, Floats] | None:
        """Return (step in s, gyro [n, 3], specific force [n, 3]), even in time."""
        if len(self._times_ns) < 100:
            return None
        times, kept = np.unique(
            (np.array(self._times_ns) - self._times_ns[0]) / 1e9, return_index=True
        )
        values = np.array(self._values)[kept]
        step_s = max(GRID_S, float(np.median(np.diff(times))) if len(times) > 1 else 0.0)
        count = int((times[-1] - times[0]) / step_s) if len(times) > 1 else 0
        if not np.isfinite(values).all() or not PART_S < count * step_s <= 10.0 * len(times):
            return None
        grid = times[0] + np.arange(count) * step_s
        even = np.stack([np.interp(grid, times, column) for column in values.T], axis=1)
        return step_s, even[:, :3], even[:, 3:]


def _delay(step_s: float, gyro: Floats, force: Floats, smooth_s: float) -> ImuDelay | None:
    """Return the delay of motion that a box of `smooth_s` lets through."""
    for _ in range(2):
        gyro, force = (_averaged(each, max(round(smooth_s / step_s), 1)) for each in (gyro, force))
    change = np.gradient(force, step_s, axis=0) if len(force) > 1 else force
    size, most = round(PART_S / step_s), int(WIDEST_S / step_s)
    lags = np.arange(-most, most + 1)
    parts = []
    for start in range(most, len(force) - size - most, size):
        part = slice(start, start + size)
        power = float((change[part] ** 2).sum())
        if power > size * LEAST_CHANGE**2:
            turned = [
                np.cross(force[part], gyro[start - lag : start - lag + size])  # -w x f
                for lag in lags
            ]
            parts.append(
                [
                    [float((change[part] * each).sum()), float((each**2).sum()), power]
                    for each in turned
                ]
            )
    if len(parts) < FEWEST_PARTS:
        return None
    sums = np.array(parts)
    delay, curve = _peak(sums.sum(axis=0))
    without = [_peak(sums.sum(axis=0) - each)[0] for each in sums]
    if curve.max() <= EXPLAINED or not np.isfinite([delay, *without]).all():
        return None
    count = len(sums)
    sigma = float(np.std(without)) * (count - 1) / count**0.5  # the jackknife's
    tried_s = np.asarray(lags * step_s, np.float64)
    return ImuDelay(delay * step_s, sigma * step_s, count, AgreementCurve(tried_s, curve))


def _averaged(values: Floats, width: int) -> Floats:
    """Return means over `width` rows."""
    sums = np.cumsum(np.pad(values, ((1, 0), (0, 0))), axis=0)
    return np.asarray((sums[width:] - sums[:-width]) / width)


def _peak(sums: Floats) -> tuple[float, Floats]:
    """Return the lag of the best agreement, in steps from the middle, and the agreement of all.

    `sums` [lags, 3] of products, of squares of one and of the other. NaN for a lag at the ends.
    """
    curve = sums[:, 0] / np.sqrt(np.maximum(sums[:, 1] * sums[:, 2], 1e-300))
    best = int(np.argmax(curve))
    if not 0 < best < len(curve) - 1:
        return math.nan, curve
    before, here, after = curve[best - 1 : best + 2]
    bend = float(before - 2.0 * here + after)
    top = 0.5 * float(before - after) / bend if bend < 0.0 else 0.0
    return best - len(curve) // 2 + top, curve
