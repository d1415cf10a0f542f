"""The IMU's angular rate and its integral, to be looked up at any time of the IMU's clock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S

_FIRST_ROOM = 1024
_MOST_FRESH = 65536


class GyroTrack:
    """The IMU's angular rate and its integral, over the last seconds of the IMU's clock.

    Samples are only noted as they come. Who looks something up pays for all that came since the
    last time: they are integrated in one go and appended to arrays with room at the end.
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
        self._stamps_ns: NDArray[np.int64] = np.zeros(_FIRST_ROOM, dtype=np.int64)
        self._rates_theta: Floats = np.zeros((6, _FIRST_ROOM))
        """Angular rate (rad/s) and its integral from any start (rad), IMU frame."""
        self._from = self._to = 0
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
        if self._to - self._from < 2:
            return None
        return int(self._stamps_ns[self._from]), int(self._stamps_ns[self._to - 1])

    def turning_rad_s(self) -> float:
        """Return how much the rate varies (root mean square without its mean, rad/s).

        Rates are means over about 50 ms: vibration does not count.
        """
        covered = self.covered_ns()
        if covered is None:
            return 0.0
        count = max(int((covered[1] - covered[0]) / 5e7), 2)
        times_s = np.linspace(0.0, (covered[1] - covered[0]) / NS_PER_S, count)
        track = self.about(np.eye(3), covered[0], 0.0, float(times_s[-1]))
        rates = np.diff(track.angles(times_s), axis=1) / (times_s[1] - times_s[0])
        return float(np.sqrt(rates.var(axis=1).sum()))

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
        about: Floats = self.about(axis[None], stamp_ns, low_s, high_s).angles(times_s)[0]
        return about

    def about(self, axes: Floats, origin_ns: int, low_s: float, high_s: float) -> TurnTrack:
        """Return the track about `axes` [m, 3], times in seconds after `origin_ns` (IMU clock).

        It holds what `low_s` .. `high_s` needs and no more; there are at least two samples.
        """
        self._settle()
        low_ns, high_ns = origin_ns + int(low_s * NS_PER_S), origin_ns + int(high_s * NS_PER_S)
        stamps = self._stamps_ns[self._from : self._to]
        low, high = stamps.searchsorted([low_ns, high_ns]).tolist()
        first = self._from + max(min(low, len(stamps) - 1) - 1, 0)
        last = min(max(self._from + high + 2, first + 2), self._to)
        knots = (self._stamps_ns[first:last] - origin_ns) / NS_PER_S
        part = self._rates_theta[:, first:last]
        return TurnTrack(knots, axes @ part[:3], axes @ part[3:])

    def _settle(self) -> None:
        """Integrate and append what came since the last call; forget what is too old."""
        count = len(self._fresh)
        if not count:
            return
        if self._to + count > len(self._stamps_ns):
            self._make_room(count)
        old, new = self._to, self._to + count
        columns = tuple(zip(*self._fresh, strict=True))
        self._fresh.clear()
        stamps, table = self._stamps_ns, self._rates_theta
        stamps[old:new] = columns[0]
        table[:3, old:new] = columns[1:]
        joined = max(old - 1, self._from)  # the last known sample, where there is one
        steps_s = (stamps[joined + 1 : new] - stamps[joined : new - 1]) / NS_PER_S
        means = 0.5 * (table[:3, joined + 1 : new] + table[:3, joined : new - 1])
        table[3:, joined + 1 : new] = np.cumsum(means * steps_s, axis=1) + table[3:, joined, None]
        self._to = new
        self._from += int(stamps[self._from : new].searchsorted(self._last_ns - self._span_ns))

    def _make_room(self, count: int) -> None:
        """Move what is kept to the front of arrays that hold it twice over."""
        kept = slice(self._from, self._to)
        length = self._to - self._from
        room = max(_FIRST_ROOM, 2 * (length + count))
        stamps, table = np.zeros(room, dtype=np.int64), np.zeros((6, room))
        stamps[:length], table[:, :length] = self._stamps_ns[kept], self._rates_theta[:, kept]
        table[3:, :length] -= table[3:, :1].copy()  # angles stay small, and so do their errors
        self._stamps_ns, self._rates_theta = stamps, table
        self._from, self._to = 0, length


class TurnTrack:
    """Rate and angle about some axes.

    The rate runs linearly between its samples, so the angle is a parabola; a straight line would
    add up to rate' dt^2 / 8 to it.
    """

    def __init__(self, knots_s: Floats, rates: Floats, angles: Floats) -> None:
        """Take knots [n] and, about every axis, rates and angles [m, n] there."""
        self._inner = knots_s[1:-1]
        """Without the first and the last: what lies beyond them belongs to the end intervals."""
        self._count = count = len(rates)
        table = self._table = np.empty((1 + 3 * count, len(knots_s) - 1))
        """Per interval: its first knot; angles, rates there and half the slopes of the rates."""
        table[0], table[1 : 1 + count] = knots_s[:-1], angles[:, :-1]
        table[1 + count : 1 + 2 * count] = rates[:, :-1]
        table[1 + 2 * count :] = 0.5 * (rates[:, 1:] - rates[:, :-1]) / np.diff(knots_s)

    def angles(self, times_s: Floats) -> Floats:
        """Return the angles (rad, from any start) [m, ...] at times of any shape."""
        after, angle, rate, half_slope = self._at(times_s)
        result: Floats = angle + after * (rate + half_slope * after)
        return result

    def _at(self, times_s: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return time since its knot [...], angles, rates, half of their slopes there [m, ...]."""
        rows = self._table.take(self._inner.searchsorted(times_s), axis=1)
        np.subtract(times_s, rows[0], out=rows[0])
        angle, rate, half_slope = rows[1:].reshape(3, self._count, *rows.shape[1:])
        return rows[0], angle, rate, half_slope
