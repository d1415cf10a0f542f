"""Findings about what comes and what does not: loss, throttles, batches, doubles, hiccups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sensor_rig.findings.model import Finding, Severity, times
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.timeline import Event

INFO, WARNING, WRONG = Severity.INFO, Severity.WARNING, Severity.WRONG
FEW = 20
"""Messages below which nothing is said about rates."""
HICCUP_S = 0.15
"""Shortest silence of all topics that is laid to the recorder."""
SHORTEST = 4.0
"""Periods of a topic from which on a silence of others must be one of this topic, too."""


def arrival_findings(record: TopicRecord, hiccups: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    """Yield what one topic's arrivals tell; `hiccups` are the recorder's own silences."""
    line, name = record.line, (record.name,)
    if line.count < FEW or not line.period_s:
        return
    throttle = throttled(line.spacings_s)
    ours = [event for event in line.gaps if not overlaps(event, hiccups)]
    missing = sum(round(event.amount_s / line.period_s) - 1 for event in ours)
    if len(line.gaps) >= 500:
        missing = line.missing
    missing = max(missing - line.zero, 0)  # a frame with a stamp of zero is there
    share = missing / (line.count + missing)
    if throttle:
        yield Finding(
            'throttled',
            WARNING,
            name,
            f'every {throttle:.2g}th frame of a faster stream: spacings of one and two '
            f'periods in turn, {1.0 / line.period_s:.1f} Hz at most',
            'the spacing is uneven although no frame is lost',
            'throttle by a whole factor, or at the source',
        )
    elif share > 0.001 and missing >= 2:
        longest = max(event.amount_s for event in ours) if ours else 0.0
        extra = ', offered best effort: loss is what that allows' if record.best_effort else ''
        yield Finding(
            'dropped_frames',
            WRONG if share > 0.2 else WARNING,
            name,
            f'{missing} frames are missing, {share * 100:.1f} %, the longest gap is '
            f'{longest * 1e3:.0f} ms{extra}',
            'no partner for the other sensors at these times',
            "look at the QoS, the bandwidth and the recorder's cache"
            if record.best_effort
            else 'look at the bandwidth and the queues on the way',
            {'missing': missing, 'share': share, 'longest_gap_ms': longest * 1e3},
        )
        if record.best_effort:
            yield Finding(
                'qos_loss',
                INFO,
                name,
                f'offered best effort, and {share * 100:.1f} % is missing',
                'best effort does not repeat what is lost',
                'publish it reliably, where the driver allows it',
            )
    batches = line.bunched / line.count
    if line.is_bunched:
        yield Finding(
            'arrivals_in_batches',
            WARNING,
            name,
            f'{batches * 100:.0f} % of the messages arrive together with the one before',
            'arrival times tell nothing about single messages; host stamps are wrong',
            "look for Nagle's algorithm, USB polling, or a queue that drains late",
            {'share': batches},
        )
    doubled = record.doubled / max(record.count, 1)
    if doubled > 0.005 and record.doubled > 1:
        yield Finding(
            'doubled_messages',
            WARNING,
            name,
            f'{record.doubled} of {record.count} messages are the one before once more',
            'rates look higher than they are; filters see each value twice',
            'look for two publishers, a relay in a circle, or a recorder that hears twice',
            {'doubled': record.doubled},
        )
    declared = record.scan_time_s
    if declared > 0.0 and abs(declared - line.period_s) > 0.1 * line.period_s:
        yield Finding(
            'rate_not_declared',
            WARNING,
            name,
            f'its messages declare {1.0 / declared:.2f} Hz (scan_time), it has '
            f'{1.0 / line.period_s:.2f} Hz',
            'who computes point times from the declared rate is wrong',
            'correct scan_time in the driver',
            {'declared_hz': 1.0 / declared, 'measured_hz': 1.0 / line.period_s},
        )


def throttled(spacings_s: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
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
    runs = np.flatnonzero(np.diff(np.flatnonzero(factors == 2)) > 0)
    lengths = np.diff(np.flatnonzero(factors == 2))
    if not len(runs) or np.ptp(lengths) > 1:
        return 0.0
    return float(factors[near].mean())


def hiccups_of(records: Sequence[TopicRecord]) -> list[tuple[int, int]]:
    """Return the times (from, to; ns) in which nothing at all was recorded, and should have been.

    That is the recorder's fault and not a sensor's: every topic that is fast enough is silent.
    """
    sources = sorted(
        (
            record
            for record in records
            if record.line.count >= FEW and record.line.arrival_period_s > 0.0
        ),
        key=lambda record: record.line.arrival_period_s,
    )
    if len(sources) < 2:
        return []
    found = []
    for silence in sources[0].line.silences:
        span = _span(silence)
        witnesses = [
            record
            for record in sources[1:]
            if SHORTEST * record.line.arrival_period_s * 1e9 < span[1] - span[0]
        ]
        for record in witnesses:
            span = next(
                (both for each in record.line.silences if (both := _overlap(span, _span(each)))),
                (0, 0),
            )
        if witnesses and span[1] - span[0] >= HICCUP_S * 1e9:
            found.append((span[0], silence.arrival_ns))
    return found


def _span(silence: Event) -> tuple[int, int]:
    """Return from when to when a topic was silent, ns."""
    return silence.arrival_ns - int(silence.amount_s * 1e9), silence.arrival_ns


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> tuple[int, int] | None:
    """Return what two spans have in common; None for nothing."""
    begin, end = max(one[0], other[0]), min(one[1], other[1])
    return (begin, end) if begin < end else None


def hiccup_finding(
    records: Sequence[TopicRecord], hiccups: Sequence[tuple[int, int]], start_ns: int
) -> Iterator[Finding]:
    """Yield the recorder's hiccups as one finding of all topics."""
    if hiccups:
        longest = max(end - begin for begin, end in hiccups) / 1e9
        at_s = (hiccups[0][0] - start_ns) / 1e9
        yield Finding(
            'recorder_hiccup',
            WARNING,
            ('all topics',),
            f'the recorder stood still {times(len(hiccups))}, for {longest:.2f} s at '
            f'most, first at {at_s:.1f} s',
            "gaps on every topic at once are the recorder's and not the sensors'",
            'record to a faster disk, with a larger cache or without compression',
            {'times': len(hiccups), 'longest_s': longest},
        )


def overlaps(gap: Event, spans: Sequence[tuple[int, int]]) -> bool:
    """Return whether a gap lies over one of the spans."""
    return any(_overlap(_span(gap), span) for span in spans)
