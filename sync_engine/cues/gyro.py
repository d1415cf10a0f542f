"""The IMU's angular rate and its integral, to be looked up at any time of the IMU's clock."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S

_MOST_FRESH = 65536

TurnTrack = Callable[[Floats], Floats]
"""times [...] (s) -> angles (rad, from any start) about m axes, [m, ...]."""


class GyroTrack:
    """The IMU's angular rate and its integral, over the last seconds of the IMU's clock.

    Samples are only noted as they come. Who looks something up pays for all that came since the
    last time: they are integrated in one go.
    """

    def __init__(self, span_s: float) -> None:
        self._span_ns = int(span_s * NS_PER_S)
        self._fresh: list[tuple[int, float, float, float]] = []
        self.rate_var = float('inf')
        """Variance of the noise of a rate that is averaged over 20 ms (rad^2/s^2)."""
        self.clear()

    def note_noise(self, rate_var: float) -> None:
        """Take what third differences of rates over 20 ms leave (rad^2/s^2): noise and vibration.

        Third differences of white noise have 1 + 9 + 9 + 1 times its variance, and nearly nothing
        of a motion. A vibration is motion, too: the quietest second shows what is noise.
        """
        self.rate_var = min(self.rate_var, rate_var)

    def clear(self) -> None:
        """Forget everything (the IMU's clock stepped, or time started over)."""
        self._fresh.clear()
        self._stamps_ns: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._rates_theta: Floats = np.zeros((6, 0))
        """Angular rate (rad/s) and its integral from any start (rad), IMU frame."""
        self._last_ns = -1

    def add(self, stamp_ns: int, x: float, y: float, z: float) -> None:
        """Take one angular rate (rad/s, IMU frame); a stamp that goes back is left out."""
        if stamp_ns > self._last_ns and abs(x) + abs(y) + abs(z) < 1e3:
            self._last_ns = stamp_ns
            self._fresh.append((stamp_ns, x, y, z))
            if len(self._fresh) > _MOST_FRESH:  # nobody asks for fits: keep the memory bounded
                del self._fresh[: _MOST_FRESH // 2]

    @property
    def last_ns(self) -> int:
        """Latest stamp, -1 without any."""
        return self._last_ns

    def covered_ns(self) -> tuple[int, int] | None:
        """Return the first and the last stamp that can be looked up, None below two samples."""
        self._settle()
        if len(self._stamps_ns) < 2:
            return None
        return int(self._stamps_ns[0]), int(self._stamps_ns[-1])

    def turning_rad_s(self) -> float:
        """Return how much the rate varies (root mean square without its mean, rad/s)."""
        return float(np.sqrt(self.rates().var(axis=1).sum()))

    def rates(self) -> Floats:
        """Return the rates [3, n], means over about 50 ms: vibration does not count."""
        covered = self.covered_ns()
        if covered is None:
            return np.zeros((3, 1))
        count = max(int((covered[1] - covered[0]) / 5e7), 2)
        times_s = np.linspace(0.0, (covered[1] - covered[0]) / NS_PER_S, count)
        track = self.about(np.eye(3), covered[0], 0.0, float(times_s[-1]))
        rates: Floats = np.diff(track(times_s), axis=1) / (times_s[1] - times_s[0])
        return rates

    def angle(self, stamp_ns: int, times_s: Floats, axis: Floats) -> Floats | None:
        """Return the angle about `axis` [3] (IMU frame), from any start, [n] (rad).

        `times_s` [n] are after `stamp_ns` (IMU clock); None where they are outside the track.
        """
        covered = self.covered_ns()
        low_s, high_s = float(times_s.min()), float(times_s.max())
        if (
            covered is None
            or covered[0] > stamp_ns + int(low_s * NS_PER_S)
            or (covered[1] < stamp_ns + int(high_s * NS_PER_S))
        ):
            return None
        about: Floats = self.about(axis[None], stamp_ns, low_s, high_s)(times_s)[0]
        return about

    def about(self, axes: Floats, origin_ns: int, low_s: float, high_s: float) -> TurnTrack:
        """Return the track about `axes` [m, 3], times in seconds after `origin_ns` (IMU clock).

        It holds what `low_s` .. `high_s` needs and no more; there are at least two samples. The
        rate runs linearly between its samples, so the angle is a parabola; a straight line would
        add up to rate' dt^2 / 8 to it.
        """
        from scipy.interpolate import PPoly  # loaded by then, with the filters

        self._settle()
        low_ns, high_ns = origin_ns + int(low_s * NS_PER_S), origin_ns + int(high_s * NS_PER_S)
        stamps = self._stamps_ns
        low, high = stamps.searchsorted([low_ns, high_ns]).tolist()
        first = max(min(low, len(stamps) - 1) - 1, 0)
        part = slice(first, max(high + 2, first + 2))
        knots = (stamps[part] - origin_ns) / NS_PER_S
        rates, angles = (axes @ rows[:, part] for rows in np.split(self._rates_theta, 2))
        half_slopes = 0.5 * np.diff(rates) / np.diff(knots)
        angle = PPoly(np.stack([half_slopes, rates[:, :-1], angles[:, :-1]]).swapaxes(1, 2), knots)
        return lambda times_s: np.moveaxis(angle(times_s), -1, 0)

    def _settle(self) -> None:
        """Integrate and append what came since the last call; forget what is too old."""
        if not self._fresh:
            return
        fresh = np.array([each[1:] for each in self._fresh]).T
        stamps = np.append(self._stamps_ns, [each[0] for each in self._fresh])
        self._fresh.clear()
        old = self._rates_theta
        rates = np.hstack([old[:3], fresh])
        start = max(old.shape[1] - 1, 0)  # the last known sample, where there is one
        means = 0.5 * (rates[:, start + 1 :] + rates[:, start:-1])
        turns = np.cumsum(means * np.diff(stamps[start:]) / NS_PER_S, axis=1)
        theta = old[3:] if old.shape[1] else np.zeros((3, 1))
        theta = np.hstack([theta, turns + theta[:, -1:]])
        kept = slice(int(stamps.searchsorted(self._last_ns - self._span_ns)), None)
        self._stamps_ns = stamps[kept]
        # Angles count from the first kept sample: small ones have small errors.
        self._rates_theta = np.vstack([rates, theta - theta[:, kept][:, :1]])[:, kept]
