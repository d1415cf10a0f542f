"""Stamps in a wrong unit, at a wrong pace, or rounded: hypotheses that arrivals confirm or refuse.

A mistake that can be undone gives the time line as it would be without it, so that whatever else
is wrong with the topic is found too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sensor_rig.bags.inspect import FAR_S
from sensor_rig.bags.inspect import seconds_between as between
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, lasting
from sensor_rig.findings.timeline import TimeLine

FEWEST = 10
SHARE = 0.99
"""Of the stamps, that must be as a mistake makes them."""
LOCAL_S = 0.35
MISFIT, CONFIRMED = 0.3, 0.3
"""How far lapses of stamps and arrivals disagree in a wrong unit, and what part the right one may
leave of it."""
IN_NANOSEC = ((10**6, 'milliseconds'), (10**3, 'microseconds'), (100, '100 ns'))
COUNTERS = (
    (1e3, 'microseconds written as nanoseconds'),
    (1e6, 'milliseconds written as nanoseconds'),
    (1e-3, 'nanoseconds written as microseconds'),
    (1e-6, 'nanoseconds written as milliseconds'),
)
AS_NS = ((10**3, 'microseconds'), (10**6, 'milliseconds'), (10**9, 'seconds'))
DATE_NS = 10**18
"""Times above this are dates."""
NEAR = 1e-4
"""How far a time since 1970 in another unit may be from the arrivals."""
DAY_S = 86400.0
ODD_PACE = 0.02
EDGE_S = 0.05
"""How far the places in a second may be apart at which sec changes."""
SHORT_S, LONG_S = 2.0, 5.0
FLOAT_STEP_S, FLOAT_SLACK_NS = 1e-4, 1000
GRID_NS = tuple(
    round(ms * 1e6) for ms in (1000, 500, 250, 200, 100, 50, 40, 20, 15.625, 10, 5, 4, 2, 1)
)
COARSE_NS = 5_000_000


class Undone(NamedTuple):
    """A mistake, and the line as it would be without it."""

    finding: Finding
    line: TimeLine
    delays_known: bool
    """Whether arrival minus stamp still means something."""
    grid_s: float = 0.0
    """To which stamps are rounded."""


def unit_mistake(name: str, line: TimeLine) -> Undone | None:
    """Return the mistake in the unit of the stamps of a topic, if there is one.

    Judged by times of a part of a second, which no jump, drift, loss or epoch changes much.
    """
    before = misfit(line) if line.count >= FEWEST else 0.0
    if before < MISFIT:
        return _torn(name, line)
    for right, what, change in _readings(line):
        if misfit(right) < CONFIRMED * before:
            finding = found(
                'stamp_unit', WRONG, name, what, {'pace': pace_of(line)}, change=change
            )
            return Undone(finding, right, 'counter' not in what)
    return _torn(name, line)


def _torn(name: str, line: TimeLine) -> Undone | None:
    """Return stamps whose sec is one off in the same part of every second.

    Whoever rounds seconds, or reads sec and nanosec at two moments, makes such stamps.
    """
    if line.count < FEWEST * FEWEST or line.span_s < LONG_S:
        return None
    parts_s = (line.stamps_ns % NS_PER_S) / 1e9
    jumps = line.steps_s - line.waits_s
    edges = []
    for way in (1.0, -1.0):  # where sec goes one too far, and where it comes back
        at = parts_s[1:][np.abs(jumps - way) < 0.2]
        if len(at) < 0.5 * line.span_s:
            return None
        angle = float(np.angle(np.exp(2j * np.pi * at).mean())) / (2.0 * np.pi)
        off = np.abs((at - angle + 0.5) % 1.0 - 0.5)
        if float((off < max(EDGE_S, 3.0 * line.period_s)).mean()) < 0.9:
            return None
        edges.append(float(at[off < EDGE_S].min(initial=angle % 1.0)))
    begin_s, end_s = edges
    ahead = (parts_s - begin_s) % 1.0 < (end_s - begin_s) % 1.0
    few = ahead.mean() < 0.6
    off_by = np.where(ahead if few else ~ahead, 1 if few else -1, 0)
    right = line.moved(-off_by * NS_PER_S)
    off = off_by != 0
    low_s, high_s = np.percentile(parts_s[off], (0, 100)) if off.any() else (0.0, 0.0)
    side = 'ahead' if few else 'behind'
    finding = found(
        'stamp_unit',
        WRONG,
        name,
        f'sec and nanosec are not of one moment: sec is 1 s {side} where nanosec says '
        f'{low_s:.3f} to {high_s:.3f} s, in {off.mean() * 100:.1f} % of the stamps',
        {'share': float(off.mean())},
        change='read the clock once, and split it into sec = t // 10^9 and nanosec = t % 10^9',
    )
    return Undone(finding, right, True)


def _readings(line: TimeLine) -> Iterator[tuple[TimeLine, str, str]]:
    """Yield (the line in another unit, the mistake, what to change), the likeliest first."""
    seconds, parts = np.divmod(line.stamps_ns, NS_PER_S)
    right = TimeLine((parts + NS_PER_S) * NS_PER_S + seconds - 1, line.arrivals_ns)
    if abs(float(np.median(right.delays_s))) < DAY_S:
        yield (
            right,
            'sec and nanosec are swapped: read so, stamps go on as messages arrive',
            'write the seconds into sec and the rest into nanosec',
        )
    for scale, unit in IN_NANOSEC:
        if float((parts < NS_PER_S // scale).mean()) >= SHARE:
            yield (
                TimeLine(seconds * NS_PER_S + parts * scale, line.arrivals_ns),
                f'nanosec counts {unit}: it never exceeds {int(parts.max())}; read so, stamps '
                f'go on as messages arrive',
                f'multiply by {scale} where the driver fills nanosec',
            )
    stamp, arrival = float(np.median(line.stamps_ns)), float(np.median(line.arrivals_ns))
    for factor, unit in AS_NS:
        near = arrival > DATE_NS and abs(stamp * factor / arrival - 1.0) < NEAR
        if near and int(np.abs(line.stamps_ns).max()) < 2**63 // factor:
            right = TimeLine(line.stamps_ns * factor, line.arrivals_ns)
            yield (
                right,
                f'stamps are {unit} since 1970 written as nanoseconds: they say '
                f'{stamp / 1e9:.3f} s; read so, messages arrive '
                f'{lasting(float(np.median(right.delays_s)))} after their stamp',
                f'multiply by {factor} before sec and nanosec are filled',
            )
    for pace, wrong in COUNTERS:
        since = between(np.full(line.count, line.stamps_ns[0]), line.stamps_ns) * pace
        if np.abs(since).max() < FAR_S:
            yield (
                TimeLine(
                    line.arrivals_ns[0] + np.rint(since * 1e9).astype(np.int64), line.arrivals_ns
                ),
                f'its stamps run at {pace_of(line):.3g} of the pace of the receive times: a '
                f'counter of {wrong}',
                'correct the unit of the counter in the driver',
            )


def misfit(line: TimeLine) -> float:
    """Return how far stamps and arrivals disagree on a part of a second, as a share of it."""
    stamps, arrivals = _lapses(line, LOCAL_S)
    usual_s = float(np.median(arrivals))
    return float(np.median(np.abs(stamps - arrivals))) / usual_s if usual_s > 0.0 else 0.0


def pace_of(line: TimeLine, apart_s: float = SHORT_S) -> float:
    """Return how fast stamps run against arrivals; 1 where the recording is too short."""
    if line.count < FEWEST or line.span_s < SHORT_S:
        return 1.0
    stamps, arrivals = _lapses(line, apart_s)
    told = arrivals > 0.0
    return float(np.median(stamps[told] / arrivals[told])) if told.any() else 1.0


def _lapses(line: TimeLine, apart_s: float) -> tuple[Floats, Floats]:
    """Return the times between messages about `apart_s` apart, by stamps and by arrivals, s."""
    most = max(line.count // 2, 1)
    apart = min(max(round(apart_s / max(line.arrival_period_s, 1e-9)), 1), most)
    stamps, arrivals = line.stamps_ns, line.arrivals_ns
    return between(stamps[:-apart], stamps[apart:]), between(arrivals[:-apart], arrivals[apart:])


def odd_pace(line: TimeLine) -> float:
    """Return the pace of stamps that no clock explains; 0 for a usual one.

    It is odd on short times, which no jump spoils, and on long ones, which no batches do.
    """
    pace, long = pace_of(line), pace_of(line, line.span_s / 3.0)
    return pace if abs(pace - 1.0) > ODD_PACE < abs(long - 1.0) else 0.0


def rounded(name: str, line: TimeLine) -> Undone | None:
    """Return stamps that are rounded more coarsely than their rate allows."""
    if line.count < FEWEST:
        return None
    return _as_float(name, line) or _on_a_grid(name, line)


def _as_float(name: str, line: TimeLine) -> Undone | None:
    seconds = line.stamps_ns / 1e9
    single = seconds.astype(np.float32)
    step_s = float(np.spacing(np.abs(single).max()))
    back_ns = np.rint(single.astype(np.float64) * 1e9).astype(np.int64)
    near = np.abs(back_ns - line.stamps_ns) <= FLOAT_SLACK_NS
    coarse = np.abs(seconds * 64 - np.rint(seconds * 64)) < 1e-6  # whole parts of a second
    if step_s < FLOAT_STEP_S or near.mean() < SHARE or (step_s < 0.125 and coarse.mean() > 0.5):
        return None
    repeated = 1.0 - len(np.unique(line.stamps_ns)) / line.count
    if step_s >= 0.125 and line.span_s > 0.0 and repeated < 0.5:
        return None
    return Undone(
        found(
            'stamp_float',
            WRONG if step_s > 0.005 else WARNING,
            name,
            f'stamps are multiples of {lasting(step_s)}: seconds that went through a 32-bit float '
            f'({repeated * 100:.0f} % repeat another one)',
            {'step_s': step_s, 'repeated_share': repeated},
        ),
        line.only(np.full(line.count, step_s <= line.arrival_period_s)),  # else nothing is left
        step_s <= line.arrival_period_s,
        step_s,
    )


def _on_a_grid(name: str, line: TimeLine) -> Undone | None:
    grid_ns = next((g for g in GRID_NS if float((line.stamps_ns % g == 0).mean()) >= SHARE), 0)
    if not grid_ns or line.count < 2 * FEWEST:
        return None
    steps = np.diff(np.sort(line.stamps_ns)) // grid_ns
    kinds, counts = np.unique(steps, return_counts=True)
    share = counts / len(steps)
    repeated = float(share[kinds == 0].sum())
    usual = int(kinds[np.argmax(share)])
    beside = float(share[(np.abs(kinds - usual) == 1) & (kinds > 0)].sum())
    fewest = min(float(line.count), line.span_s * 1e9 / grid_ns)
    if len(kinds) == 1 or len(np.unique(line.stamps_ns)) < 0.5 * fewest:
        return None  # even, or standing still
    if repeated < 0.05 and (beside < 0.05 or share.max() + beside < 0.9):
        return None
    part = grid_ns / 1e9 / max(line.arrival_period_s, 1e-9)
    coarse = grid_ns >= COARSE_NS or repeated >= 0.05
    if not coarse and part < 0.2:
        return None
    if repeated >= 0.05 and part < 0.5:
        return None  # they repeat for another reason
    told = f', and {repeated * 100:.0f} % of them repeat the one before' if repeated else ''
    return Undone(
        found(
            'stamp_resolution',
            WARNING if coarse else INFO,
            name,
            f'stamps are rounded to {lasting(grid_ns / 1e9)}, at '
            f'{1.0 / max(line.arrival_period_s, 1e-9):.4g} messages a second{told}',
            {'grid_ms': grid_ns / 1e6, 'repeated_share': repeated},
        ),
        line,
        True,
        grid_ns / 1e9,
    )
