"""Findings about one topic's stamps as a series: zero, stray, repeated, out of order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rig_common.arrays import Flags
from sensor_rig.findings.kinds import found
from sensor_rig.findings.levels import Order
from sensor_rig.findings.model import WARNING, WRONG, Finding, Span, lasting, times
from sensor_rig.findings.record import FROZEN, TopicRecord
from sensor_rig.findings.timeline import TimeLine

FEW = 0.001
"""Share of messages below which being out of order is not worth a word."""


def zero_finding(record: TopicRecord) -> Iterator[Finding]:
    """Yield stamps of zero."""
    total = max(len(record.stamps_ns), 1)
    if not record.stamped or not (record.zero > 1 or record.zero == total):
        return
    share = record.zero / total
    yield found(
        'zero_stamps',
        WRONG if share > 0.01 else WARNING,
        record.name,
        f'{record.zero} of {total} stamps are zero',
        {'zero': record.zero, 'messages': total},
    )


def stray_finding(name: str, line: TimeLine, stray: Flags) -> Iterator[Finding]:
    """Yield single stamps that are far from all others."""
    count = int(stray.sum())
    if count:
        away = line.delays_s[stray] - float(np.median(line.delays_s))
        yield found(
            'stray_stamps',
            WRONG,
            name,
            f'{count} of {line.count} stamps are alone, up to '
            f'{lasting(float(np.abs(away).max()))} from those before and after them',
            {'stray': count, 'largest_s': float(np.abs(away).max())},
        )


def order_finding(name: str, line: TimeLine, order: Order) -> Iterator[Finding]:
    """Yield messages that come late and fit between the others."""
    count = int(order.late.sum())
    if count <= max(FEW * line.count, 1):
        return
    gaps = sum(round(gap.amount_s / line.period_s) - 1 for gap in line.gaps)
    missing = 'none is missing' if not gaps else f'{gaps} are missing besides'
    yield found(
        'out_of_order',
        WARNING,
        name,
        f'{count} of {line.count} messages come out of order, by up to {lasting(order.by_s)}; '
        f'sorted by stamp {missing}',
        {'messages': count, 'largest_ms': order.by_s * 1e3, 'missing': gaps},
        spans=spans_of(line, order.late),
    )


def spans_of(line: TimeLine, where: Flags) -> list[Span]:
    """Return the times of some messages; of many the first."""
    places = np.flatnonzero(where)
    return [(int(line.arrivals_ns[i]), int(line.arrivals_ns[i]) + 1) for i in places[:500]]


def repeats(line: TimeLine) -> tuple[int, int, list[Span]]:
    """Return (stamps equal to the one before, the longest run of them, spans of long runs)."""
    same = line.steps_s == 0.0
    edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
    begins, ends = edges[::2], edges[1::2]
    lengths = ends - begins
    long = lengths >= FROZEN
    spans = [
        (int(line.arrivals_ns[b]), int(line.arrivals_ns[min(e + 1, line.count - 1)]))
        for b, e in zip(begins[long].tolist(), ends[long].tolist(), strict=True)
    ]
    return int(same.sum()), int(lengths.max()) if len(lengths) else 0, spans


def repeat_findings(name: str, line: TimeLine) -> Iterator[Finding]:
    """Yield frozen and repeated stamps."""
    count, longest, spans = repeats(line)
    total = max(line.count, 1)
    if longest >= FROZEN:
        yield found(
            'frozen_stamps',
            WRONG,
            name,
            f'the same stamp up to {longest + 1} times in a row, {count} of {total} messages in '
            f'all, while messages go on arriving',
            {'longest': longest + 1, 'repeated': count},
            spans=spans,
        )
    elif count > max(0.005 * total, 1):
        each = round(total / max(total - count, 1))
        pattern = f' ({each} messages to each stamp)' if each > 1 and count > 0.45 * total else ''
        yield found(
            'repeated_stamps',
            WARNING,
            name,
            f'{count} of {total} stamps repeat the one before{pattern}',
            {'repeated': count},
        )


def without_repeats(line: TimeLine) -> TimeLine:
    """Return the line with the first message of each stamp only."""
    return line.only(np.concatenate([[True], line.steps_s != 0.0])) if line.count else line


def back_findings(name: str, line: TimeLine) -> Iterator[Finding]:
    """Yield time that goes back, as far as nothing else explained it."""
    far = line.steps_s < -2.0 * max(line.period_s, 1e-3)
    if far.any():
        worst = float(line.steps_s[far].min())
        yield found(
            'time_back',
            WRONG,
            name,
            f'time goes back {times(int(far.sum()))}, by up to {lasting(worst)}',
            {'times': int(far.sum()), 'largest_s': -worst},
        )
