"""Stamps in a wrong unit, at a wrong pace, or rounded: hypotheses that arrivals confirm or refuse.

A mistake that can be undone gives the time line as it would be without it, so that whatever else
is wrong with the topic is found too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, lasting
from sensor_rig.findings.timeline import TimeLine, between

FEWEST = 10
SHARE = 0.99
"""Of the stamps, that must be as a mistake makes them."""
CONFIRMED = 0.3
"""Delays must spread by this much less when the mistake is undone."""
IN_NANOSEC = (
    (10**3, 10**6, 'milliseconds'),
    (10**6, 10**3, 'microseconds'),
    (10**7, 100, '100 ns'),
)
"""Every nanosec is below the first: it counts units of the second (ns)."""
AS_NS = ((10**3, 'microseconds'), (10**6, 'milliseconds'), (10**9, 'seconds'))
DATE_NS = 10**18
"""Times above this are dates."""
NEAR = 1e-4
"""How far a time since 1970 in another unit may be from the arrivals."""
PACE, ODD_PACE = 0.1, 0.02
SHORT_S = 2.0
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


def unit_mistake(name: str, line: TimeLine) -> Undone | None:
    """Return the mistake in the unit of the stamps of a topic, if there is one."""
    if line.count < FEWEST:
        return None
    return _in_nanosec(name, line) or _since_1970(name, line) or _pace(name, line)


def _spread(delays: Floats) -> float:
    low, high = np.percentile(delays, (5, 95))
    return float(high - low)


def _in_nanosec(name: str, line: TimeLine) -> Undone | None:
    seconds, parts = np.divmod(line.stamps_ns, NS_PER_S)
    for below, scale, unit in IN_NANOSEC:
        if float((parts < below).mean()) < SHARE:
            continue
        if int(parts.max()) < below // 1000 or len(np.unique(parts)) < FEWEST // 2:
            return None
        right = TimeLine(seconds * NS_PER_S + parts * scale, line.arrivals_ns)
        before_s, after_s = _spread(line.delays_s), _spread(right.delays_s)
        if after_s > CONFIRMED * before_s:
            return None
        return Undone(
            found(
                'stamp_unit',
                WRONG,
                name,
                f'nanosec counts {unit}: it never exceeds {int(parts.max())}; read so, delays '
                f'spread by {lasting(after_s)} instead of {lasting(before_s)}',
                {
                    'largest_nanosec': int(parts.max()),
                    'spread_ms': before_s * 1e3,
                    'spread_undone_ms': after_s * 1e3,
                },
                change=f'multiply by {scale} where the driver fills nanosec',
            ),
            right,
            True,
        )
    return None


def _since_1970(name: str, line: TimeLine) -> Undone | None:
    stamp, arrival = float(np.median(line.stamps_ns)), float(np.median(line.arrivals_ns))
    for factor, unit in AS_NS:
        if arrival < DATE_NS or stamp <= 0 or abs(stamp * factor / arrival - 1.0) > NEAR:
            continue
        if int(np.abs(line.stamps_ns).max()) > 2**63 // factor - 1:
            return None
        right = TimeLine(line.stamps_ns * factor, line.arrivals_ns)
        if abs(pace_of(right) - 1.0) > PACE and line.span_s > SHORT_S:
            return None
        return Undone(
            found(
                'stamp_unit',
                WRONG,
                name,
                f'stamps are {unit} since 1970 written as nanoseconds: they say '
                f'{stamp / 1e9:.3f} s; read so, messages arrive '
                f'{lasting(float(np.median(right.delays_s)))} after their stamp',
                {'factor': factor, 'delay_ms': float(np.median(right.delays_s)) * 1e3},
                change=f'multiply by {factor} before sec and nanosec are filled',
            ),
            right,
            True,
        )
    return None


def pace_of(line: TimeLine) -> float:
    """Return how fast stamps run against arrivals; 1 where the recording is too short."""
    if line.count < FEWEST or line.span_s < SHORT_S:
        return 1.0
    apart = max(line.count // 3, 1)
    stamps = between(line.stamps_ns[:-apart], line.stamps_ns[apart:])
    arrivals = between(line.arrivals_ns[:-apart], line.arrivals_ns[apart:])
    told = arrivals > 0.0
    return float(np.median(stamps[told] / arrivals[told])) if told.any() else 1.0


def _pace(name: str, line: TimeLine) -> Undone | None:
    """Return a pace that is a power of 1000: a counter in another unit."""
    pace = pace_of(line)
    for factor, wrong in (
        (10**3, 'microseconds written as nanoseconds'),
        (10**6, 'milliseconds written as nanoseconds'),
        (1e-3, 'nanoseconds written as microseconds'),
        (1e-6, 'nanoseconds written as milliseconds'),
    ):
        if abs(pace * factor - 1.0) < PACE:
            since = between(np.full(line.count, line.stamps_ns[0]), line.stamps_ns) * factor
            right = TimeLine(
                line.arrivals_ns[0] + np.rint(since * 1e9).astype(np.int64), line.arrivals_ns
            )
            return Undone(
                found(
                    'stamp_unit',
                    WRONG,
                    name,
                    f'its stamps run at {pace:.6g} of the pace of the receive times: a counter '
                    f'of {wrong}',
                    {'pace': pace},
                    change='correct the unit of the counter in the driver',
                ),
                right,
                False,
            )
    return None


def odd_pace(line: TimeLine) -> float:
    """Return the pace of stamps that no clock explains; 0 for a usual one."""
    pace = pace_of(line)
    return pace if abs(pace - 1.0) > ODD_PACE else 0.0


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
        TimeLine(line.arrivals_ns, line.arrivals_ns) if step_s > line.arrival_period_s else line,
        step_s <= line.arrival_period_s,
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
    )
