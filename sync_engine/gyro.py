"""The IMU's angular rate and its integral, to be looked up at any time of the IMU's clock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sensor_rig.times import NS_PER_S

FloatArray = NDArray[np.float64]


class GyroTrack:
    """The IMU's angular rate and its integral, over the last seconds of the IMU's clock."""

    def __init__(self, span_s: float) -> None:
        self._span_ns = int(span_s * NS_PER_S)
        self._fresh: list[tuple[int, float, float, float]] = []
        self.clear()

    def clear(self) -> None:
        """Forget everything (the IMU's clock stepped, or time started over)."""
        self._fresh.clear()
        self.stamps_ns: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.rates: FloatArray = np.zeros((0, 3))
        self._theta: FloatArray = np.zeros((0, 3))
        self._last_ns = -1

    def add(self, stamp_ns: int, x: float, y: float, z: float) -> None:
        """Take one angular rate (rad/s, IMU frame); a stamp that goes back is left out."""
        if stamp_ns > self._last_ns and abs(x) + abs(y) + abs(z) < 1e3:
            self._last_ns = stamp_ns
            self._fresh.append((stamp_ns, x, y, z))
            if len(self._fresh) > 65536:  # nobody asks for fits: keep the memory bounded
                del self._fresh[:32768]

    @property
    def last_ns(self) -> int:
        """Latest stamp, -1 without any."""
        return self._last_ns

    def settle(self) -> None:
        """Append what came since the last call to the arrays and forget what is too old."""
        if not self._fresh:
            return
        stamps = np.array([row[0] for row in self._fresh], dtype=np.int64)
        rates = np.array([row[1:] for row in self._fresh], dtype=np.float64)
        self._fresh.clear()
        keep = int(np.searchsorted(self.stamps_ns, self._last_ns - self._span_ns))
        self.stamps_ns = np.concatenate([self.stamps_ns[keep:], stamps])
        self.rates = np.concatenate([self.rates[keep:], rates])
        steps = np.diff(self.stamps_ns)[:, None] / NS_PER_S
        theta = np.zeros_like(self.rates)
        np.cumsum(0.5 * (self.rates[1:] + self.rates[:-1]) * steps, axis=0, out=theta[1:])
        self._theta = theta

    def turn(self, stamp_ns: int, times_s: FloatArray) -> FloatArray | None:
        """Return Th [n, 3] at times (s after `stamp_ns`, IMU clock), None outside the track."""
        self.settle()
        low_ns = stamp_ns + int(times_s.min() * NS_PER_S)
        high_ns = stamp_ns + int(times_s.max() * NS_PER_S)
        if len(self.stamps_ns) < 2 or low_ns < self.stamps_ns[0] or high_ns > self.stamps_ns[-1]:
            return None
        return np.column_stack([self.integral(times_s, axis, stamp_ns) for axis in np.eye(3)])

    def integral(self, times_s: FloatArray, axis: FloatArray, origin_ns: int) -> FloatArray:
        """Return axis . Th at times (s after `origin_ns`, IMU clock), any shape."""
        knots = (self.stamps_ns - origin_ns) / NS_PER_S
        return _hermite(times_s, knots, self._theta @ axis, self.rates @ axis)

    def rate(self, times_s: FloatArray, axis: FloatArray, origin_ns: int) -> FloatArray:
        """Return axis . w at times (s after `origin_ns`, IMU clock), any shape."""
        knots = (self.stamps_ns - origin_ns) / NS_PER_S
        return np.interp(times_s, knots, self.rates @ axis)


def _hermite(
    times: FloatArray, knots: FloatArray, values: FloatArray, slopes: FloatArray
) -> FloatArray:
    """Interpolate with known slopes; linear would add up to rate' dt^2 / 8 to every angle."""
    index = np.clip(np.searchsorted(knots, times) - 1, 0, len(knots) - 2)
    width = knots[index + 1] - knots[index]
    u = (times - knots[index]) / width
    # The integral of a rate that runs linearly between its samples is a parabola.
    rise = slopes[index] * width * u + 0.5 * (slopes[index + 1] - slopes[index]) * width * u * u
    result: FloatArray = values[index] + rise
    return result
