"""Offsets of a sensor's clock over a recording, as a function that gives every stamp its own.

A stamp has one offset whatever topic it comes on and whenever it arrives, so that an image and its
camera_info keep equal stamps. Between two known moments the offset is on the line between them;
where the clock stepped or started over, another piece begins.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.times import NEVER_NS
from sync_engine.clocks.smoothing import ClockTrack

LEAST_SPAN_NS = 10 * 10**9
"""A drift over less than this is not told."""
EDGE_NS, CLEAR_STEP_NS = 50_000_000, 10_000_000
"""Within so long before a step of at least this a message may belong behind it."""
REMEMBERED = 256
"""Stamps whose offset is kept for messages of other topics with the same stamp."""


class OffsetPiece(NamedTuple):
    """A stretch in which the clock neither stepped nor started over."""

    from_ns: int
    """Host time of the first message that it holds for."""
    base_ns: int
    """What the offsets are counted from: a clock that counts from its power-up is years away."""
    times_ns: list[int]
    """Host times."""
    offsets_ns: list[float]
    """Sensor's clock minus the other, at these times, without `base_ns`."""
    slopes: tuple[float, float]
    """Before the first and after the last time, ns a ns."""

    def at(self, stamp_ns: int) -> int:
        """Return the offset for a stamp of the sensor's clock, ns."""
        times, offsets = self.times_ns, self.offsets_ns
        found = offsets[0]
        for _ in range(2):  # the second time with a moment that is right to a drift of the first
            time_ns = stamp_ns - self.base_ns - round(found)
            place = bisect_right(times, time_ns)
            if place == 0:
                found = offsets[0] + self.slopes[0] * (time_ns - times[0])
            elif place == len(times):
                found = offsets[-1] + self.slopes[1] * (time_ns - times[-1])
            else:
                share = (time_ns - times[place - 1]) / (times[place] - times[place - 1])
                found = offsets[place - 1] + share * (offsets[place] - offsets[place - 1])
        return self.base_ns + round(found)


@dataclass(frozen=True)
class OffsetSummary:
    """A clock's offset over a recording in a few figures."""

    median_ns: int
    drift_ppm: float
    """Slope over the longest piece; NaN where it is too short to tell."""
    sigma_s: float
    """Median of the sigma of the offset."""
    starts: int
    """Stretches between steps and restarts of the clock."""


class OffsetTrack:
    """The offset of one clock against another one, or against the host's, over a recording."""

    def __init__(self, pieces: list[OffsetPiece], sigma_s: float, starts: int = 1) -> None:
        """`starts` is how often the clock itself began anew; others may break it up further."""
        self._pieces = pieces
        self._from_ns = [piece.from_ns for piece in pieces]
        self._known: OrderedDict[int, int] = OrderedDict()
        self._delay_ns = 0
        """From capture to arrival of the last message."""
        self.summary = _summary(pieces, sigma_s, starts)

    def at(self, stamp_ns: int, arrival_ns: int) -> int:
        """Return the offset for a message, ns."""
        if len(self._pieces) == 1:
            return self._pieces[0].at(stamp_ns)
        known = self._known.get(stamp_ns)
        if known is None:
            place = max(bisect_right(self._from_ns, arrival_ns) - 1, 0)
            known = self._pieces[place].at(stamp_ns)
            if place + 1 < len(self._pieces):
                known = self._at_edge(self._pieces[place + 1], stamp_ns, arrival_ns, known)
            self._delay_ns = arrival_ns - stamp_ns + known
            self._known[stamp_ns] = known
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return known

    def _at_edge(self, following: OffsetPiece, stamp_ns: int, arrival_ns: int, known: int) -> int:
        """Return the offset of a message that came just before the next piece begins, ns.

        A camera_info may come a little before the image that shows the step.
        """
        if following.from_ns - arrival_ns > EDGE_NS:
            return known
        after = following.at(stamp_ns)
        late_ns = arrival_ns - stamp_ns - self._delay_ns
        is_after = abs(late_ns + after) < abs(late_ns + known)
        return after if is_after and abs(after - known) > CLEAR_STEP_NS else known


def offset_track(clock: ClockTrack, reference: ClockTrack, *, to_host: bool) -> OffsetTrack | None:
    """Return the offset of `clock` over a recording; None where one of the two is not known.

    It is the one against `reference`, and `to_host` adds that of the reference against the host,
    as bundles do. Two clocks are compared over the host or over the IMU, whichever is surer over
    the whole recording; for an offset to the host the first needs no other clock.
    """
    if not clock.pieces or not reference.pieces:
        return None
    is_reference = clock is reference
    stretches = list(_stretches(clock, reference))
    own = [_columns(clock, times_ns) for times_ns in stretches]
    other = [_columns(reference, times_ns) for times_ns in stretches]
    counts = np.array([not (is_reference or to_host), not is_reference], float)
    variances = [
        mine.variances + counts * theirs.variances for mine, theirs in zip(own, other, strict=True)
    ]
    if clock.anchor != reference.anchor:  # nothing that both were compared with
        variances = [each[:, :1].repeat(2, axis=1) for each in variances]
    over_host, over_imu = np.concatenate(variances).sum(axis=0)
    pieces = []
    for times_ns, mine, theirs in zip(stretches, own, other, strict=True):
        base_ns, offsets, skews = mine.base_ns, mine.offsets_ns, mine.skews
        if over_imu < over_host and not is_reference:
            offsets = offsets - mine.anchors_ns + theirs.anchors_ns
        if not to_host:
            base_ns -= theirs.base_ns
            offsets, skews = offsets - theirs.offsets_ns, skews - theirs.skews
        ends = float(skews[0]), float(skews[-1])
        pieces.append(OffsetPiece(times_ns[0], base_ns, times_ns, offsets.tolist(), ends))
    sigmas_s = np.sqrt(np.maximum(np.concatenate(variances).min(axis=1), 0.0))
    return OffsetTrack(pieces, float(np.median(sigmas_s)), len(clock.pieces))


def _stretches(clock: ClockTrack, reference: ClockTrack) -> Iterator[list[int]]:
    """Yield the host times, ns, at which something is known, stretch by stretch.

    A stretch begins with the first moment that it holds for: where one of the two clocks stepped
    or started over.
    """
    breaks = sorted({from_ns for track in (clock, reference) for from_ns, _ in track.pieces})
    times_ns = sorted({each.time_ns for _, known in clock.pieces for each in known})
    for begin_ns, end_ns in zip(breaks, [*breaks[1:], NEVER_NS], strict=True):
        inside = times_ns[bisect_right(times_ns, begin_ns) : bisect_left(times_ns, end_ns)]
        yield [begin_ns, *inside]


class _Columns(NamedTuple):
    """What is known of a clock at n moments, as arrays [n]."""

    base_ns: int
    offsets_ns: NDArray[np.float64]
    """Without `base_ns`."""
    skews: NDArray[np.float64]
    anchors_ns: NDArray[np.float64]
    variances: NDArray[np.float64]
    """[n, 2]: of the offset against the host and against the IMU, s^2."""


def _columns(track: ClockTrack, times_ns: Sequence[int]) -> _Columns:
    rows = [(time_ns, each) for time_ns in times_ns if (each := track.at(time_ns)) is not None]
    base_ns = rows[0][1].offset_ns
    return _Columns(
        base_ns,
        np.array(
            [
                each.offset_ns - base_ns + each.skew * (time_ns - each.time_ns)
                for time_ns, each in rows
            ]
        ),
        np.array([each.skew for _, each in rows]),
        np.array([each.anchor_ns for _, each in rows], np.float64),
        np.array(
            [
                (each.offset_var + each.bias_var, each.anchored_var + each.bias_var)
                for _, each in rows
            ]
        ),
    )


def _summary(pieces: list[OffsetPiece], sigma_s: float, starts: int) -> OffsetSummary:
    longest = max(pieces, key=lambda piece: piece.times_ns[-1] - piece.times_ns[0])
    drift_ppm = float('nan')
    if longest.times_ns[-1] - longest.times_ns[0] >= LEAST_SPAN_NS:
        times = np.array(longest.times_ns, float) - longest.times_ns[0]
        drift_ppm = float(np.polyfit(times, longest.offsets_ns, 1)[0]) * 1e6
    every = sorted(p.base_ns + round(offset) for p in pieces for offset in p.offsets_ns)
    return OffsetSummary(every[len(every) // 2], drift_ppm, sigma_s, starts)
