"""Findings about what comes and what does not: loss, throttles, doubles, declared rates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from rig_common.arrays import Floats, Ints
from sensor_rig.bags.inspect import CLOUD_TYPE
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, Span, lasting
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.timeline import Event, TimeLine
from sensor_rig.findings.together import overlaps

FEW = 20
"""Messages below which nothing is said about rates."""
COMPUTED = ('geometry_msgs/', 'nav_msgs/', 'visualization_msgs/', 'tf2_msgs/')
"""Packages of results, which may leave out frames on purpose; as clouds without point times do."""
CHANGED, STEADY = 0.2, 0.9
"""How far two rates are apart, and the share of spacings that are as usual on either side."""
SILENT_S = 2.0
"""A stream that ends so long before the recording has fallen silent."""
LOSS, MUCH = 0.001, 0.2
"""Share of lost frames that is worth a word, and that is wrong."""
SPORADIC, PAUSE = ('geometry_msgs/', 'visualization_msgs/', 'tf2_msgs/'), 20.0
"""Packages of commands and of what is drawn: published where there is something to say. A gap of
so many periods is a pause."""


def loss_findings(
    record: TopicRecord, line: TimeLine, told: Sequence[Span], grid_s: float = 0.0
) -> Iterator[Finding]:
    """Yield lost frames; gaps over the spans that are `told` have another cause.

    Stamps that are rounded to `grid_s` have spacings that differ by it.
    """
    if line.count < FEW or not line.period_s:
        return
    throttle = throttled(line.sorted_steps_s)
    if throttle:
        yield found(
            'throttled',
            WARNING,
            record.name,
            f'every {throttle:.2g}th frame of a faster stream: spacings of one and two '
            f'periods in turn, {1.0 / line.period_s:.1f} Hz at most',
        )
        return
    timed = record.type_name != CLOUD_TYPE or any(cloud.field for cloud in record.clouds)
    computed = record.type_name.startswith(COMPUTED) or not timed
    sporadic = record.type_name.startswith(SPORADIC)
    if sporadic and line.is_uneven:
        return
    change = rate_change(line)
    if change:
        before, after = line.only(slice(0, change)), line.only(slice(change, None))
        yield found(
            'rate_changes',
            WARNING,
            record.name,
            f'{1.0 / before.period_s:.1f} Hz until {lasting(before.span_s)} after its first '
            f'message, then {1.0 / after.period_s:.1f} Hz',
            {'first_hz': 1.0 / before.period_s, 'second_hz': 1.0 / after.period_s},
            spans=[(before.span[1], after.span[0])],
        )
        for part in (before, after):
            yield from loss_findings(record, part, told, grid_s)
        return
    shortest_s = line.period_s + 1.5 * grid_s
    longest_s = PAUSE * line.period_s if sporadic else math.inf
    gaps = [
        gap
        for gap in line.gaps
        if shortest_s < gap.amount_s < longest_s and not overlaps(gap, told)
    ]
    missing = sum(_missing_in(gap, line.spacing_s, record.untold_ns) for gap in gaps)
    share = missing / (line.count + missing)
    if share <= LOSS or missing < 2:
        return
    longest_s = max(gap.amount_s for gap in gaps)
    yield found(
        'dropped_frames',
        WRONG if share > MUCH and not computed else WARNING,
        record.name,
        f'{missing} frames are missing{" or were left out" if computed else ""}, '
        f'{share * 100:.1f} %, the longest gap is {lasting(longest_s)}',
        {'missing': missing, 'share': share, 'longest_gap_ms': longest_s * 1e3},
        change="look at the QoS, the bandwidth and the recorder's cache"
        if record.best_effort
        else None,
        spans=[gap.span for gap in gaps],
    )
    if record.best_effort:
        yield found(
            'qos_loss',
            INFO,
            record.name,
            f'offered best effort, and {share * 100:.1f} % is missing',
        )


def end_finding(record: TopicRecord, line: TimeLine, end_ns: int) -> Iterator[Finding]:
    """Yield a stream that ends long before the recording does, at `end_ns`."""
    if line.count < FEW or line.is_uneven or record.type_name.startswith(SPORADIC):
        return
    silent_s = (end_ns - line.span[1]) / 1e9
    if silent_s > max(SILENT_S, PAUSE * line.arrival_period_s):
        yield found(
            'ends_early',
            WARNING,
            record.name,
            f'falls silent after {lasting(line.span_s)}, while the recording goes on for '
            f'{lasting(silent_s)}',
            {'silent_s': silent_s},
            spans=[(line.span[1], end_ns)],
        )


def _missing_in(gap: Event, spacing_s: float, untold_ns: Ints) -> int:
    """Return the frames that have room in a gap, without those that came with no own stamp."""
    there = (untold_ns > gap.span[0]) & (untold_ns <= gap.span[1])
    return max(round(gap.amount_s / spacing_s) - 1 - int(there.sum()), 0)


def double_findings(record: TopicRecord) -> Iterator[Finding]:
    """Yield messages that come twice."""
    total = max(len(record.stamps_ns), 1)
    if record.copies / total > 0.005 and record.copies > 1:
        apart = record.copies_apart > 0.5 * record.copies
        how = ', with others between them: they come by two ways' if apart else ''
        yield found(
            'doubled_messages',
            WARNING,
            record.name,
            f'{record.copies} of {total} messages are an earlier one once more{how}',
            {
                'doubled': record.copies,
                'apart': record.copies_apart,
                'share': record.copies / total,
            },
        )


def rate_findings(record: TopicRecord, line: TimeLine) -> Iterator[Finding]:
    """Yield a declared rate that is not the one there is."""
    declared, period_s = record.scan_time_s, line.period_s
    if line.count >= FEW and declared > 0.0 and abs(declared - period_s) > 0.1 * period_s > 0.0:
        yield found(
            'rate_not_declared',
            WARNING,
            record.name,
            f'its messages declare {1.0 / declared:.2f} Hz (scan_time), it has '
            f'{1.0 / period_s:.2f} Hz',
            {'declared_hz': 1.0 / declared, 'measured_hz': 1.0 / period_s},
        )


def rate_change(line: TimeLine) -> int:
    """Return the message from which on the rate is another one; 0 where it stays."""
    steps = line.steps_s
    if line.count < 3 * FEW:
        return 0
    usual = line.period_s
    other = np.abs(steps / usual - 1.0) > CHANGED
    # Where the two sides differ most in how many of their spacings are not the usual ones.
    share = np.cumsum(other - other.mean())
    place = int(np.argmax(np.abs(share[FEW:-FEW]))) + FEW
    sides = [np.sort(side) for side in (steps[:place], steps[place + 1 :])]
    periods = [float(np.median(side)) for side in sides]
    even = all(
        float((np.abs(side / period - 1.0) < 0.5 * CHANGED).mean()) > STEADY
        for side, period in zip(sides, periods, strict=True)
        if period > 0.0
    )
    return place + 1 if even and abs(math.log(periods[0] / periods[1])) > CHANGED else 0


def throttled(spacings_s: Floats) -> float:
    """Return the mean factor of a stream that was thinned out by a time gate; 0 for others.

    Random loss also makes spacings of two periods, but of three, too, and at random places; a gate
    alternates regularly.
    """
    forward = spacings_s[spacings_s > 0.0]
    if len(forward) < FEW:
        return 0.0
    base = float(np.percentile(forward, 10))
    factors = np.rint(forward / base)
    near = np.abs(forward / base - factors) < 0.2
    ones, twos = float((factors[near] == 1).mean()), float((factors[near] == 2).mean())
    if near.mean() < 0.9 or min(ones, twos) < 0.2 or ones + twos < 0.98:
        return 0.0
    places = np.flatnonzero(factors == 2)
    if len(places) < 2 or np.ptp(np.diff(places)) > 1 or np.ptp(places) < 0.9 * len(forward):
        return 0.0
    return float(factors[near].mean())
