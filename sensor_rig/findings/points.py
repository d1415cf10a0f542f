"""Findings about sweeps: where in a sweep the stamp lies, and the times of a cloud's points."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import numpy as np

from sensor_rig.bags.inspect import CLOUD_TYPE, TopicFacts
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding
from sensor_rig.findings.record import PointTimes, TopicRecord

UNITS = {'milliseconds': 1e-3, 'microseconds': 1e-6, 'nanoseconds': 1e-9, 'seconds': 1.0}
ABSOLUTE_S = 1e6
"""A point time above this is a date."""
SHORTEST, LONGEST = 0.3, 1.1
"""Of a period: how long a sweep may be."""
SLACK_S, SLACK = 0.002, 0.03


def point_findings(record: TopicRecord, facts: TopicFacts) -> Iterator[Finding]:
    """Yield what is wrong with the times of a cloud's points, and where its stamp lies."""
    if record.type_name != CLOUD_TYPE or not record.clouds:
        return
    name, clouds = (record.name,), record.clouds
    timed = [cloud for cloud in clouds if cloud.field]
    if not timed:
        yield found('point_times_missing', INFO, name, 'its points have no times of their own')
        return
    if all(cloud.low == cloud.high == 0.0 for cloud in timed):
        yield found(
            'point_times_zero', WARNING, name, f'the field "{timed[0].field}" of every point is 0'
        )
        return
    period_s = record.line.period_s
    spans = [span_of(cloud) for cloud in timed]
    span_s, low_s, high_s = (statistics.median(each) for each in zip(*spans, strict=True))
    if (timed[0].is_float and timed[0].low > ABSOLUTE_S) or (
        not timed[0].is_float and timed[0].low * 1e-9 > ABSOLUTE_S
    ):
        yield found(
            'point_times_absolute',
            WARNING,
            name,
            f'point times are dates, {timed[0].low if timed[0].is_float else low_s:.3f} '
            f's, where most readers expect times since the stamp',
            {'span_ms': span_s * 1e3},
        )
    if period_s and not SHORTEST < span_s / period_s < LONGEST:
        yield from _odd_span(name, timed[0], span_s, period_s)
        return
    yield from _order(name, timed)
    yield from _stamp_point(name, low_s, high_s, span_s)


def span_of(cloud: PointTimes) -> tuple[float, float, float]:
    """Return (span, first, last) of the point times after the stamp, s."""
    scale = 1.0 if cloud.is_float else 1e-9
    low, high = cloud.low * scale, cloud.high * scale
    if low > ABSOLUTE_S:
        low, high = low - cloud.stamp_ns / 1e9, high - cloud.stamp_ns / 1e9
    return high - low, low, high


def _odd_span(
    name: tuple[str, ...], cloud: PointTimes, span_s: float, period_s: float
) -> Iterator[Finding]:
    raw = cloud.high - cloud.low
    evidence = {'span_s': span_s, 'period_s': period_s}
    declared = 'seconds' if cloud.is_float else 'nanoseconds'
    for unit, scale in UNITS.items():
        if unit != declared and SHORTEST < raw * scale / period_s < LONGEST:
            yield found(
                'point_times_unit',
                WRONG,
                name,
                f'point times span {raw:g}, which fits its period of '
                f'{period_s * 1e3:.0f} ms in {unit}, not in {declared}',
                evidence,
                change=f'write floats in seconds or integers in nanoseconds, or tell the '
                f'reader that they are {unit}',
            )
            return
    if span_s > period_s:
        yield found(
            'point_times_long',
            WRONG,
            name,
            f'point times span {span_s * 1e3:.1f} ms, more than its period of '
            f'{period_s * 1e3:.1f} ms',
            evidence,
        )


def _order(name: tuple[str, ...], clouds: list[PointTimes]) -> Iterator[Finding]:
    trend = statistics.median(cloud.trend for cloud in clouds)
    if trend < -0.5:
        yield found(
            'point_times_reversed',
            WARNING,
            name,
            'point times decrease from the first point to the last',
            {'trend': trend},
        )
    elif statistics.median(cloud.decreasing for cloud in clouds) > 0.2 and trend < 0.5:
        yield found(
            'point_times_unsorted', WARNING, name, 'point times are not sorted', {'trend': trend}
        )


def _stamp_point(
    name: tuple[str, ...], low_s: float, high_s: float, span_s: float
) -> Iterator[Finding]:
    evidence = {
        'first_point_ms': low_s * 1e3,
        'last_point_ms': high_s * 1e3,
        'sweep_ms': span_s * 1e3,
    }
    if span_s <= 2.0 * SLACK_S or abs(low_s) < 0.2 * span_s:
        return
    if abs(high_s) < 0.2 * span_s:
        yield found(
            'stamp_point',
            WRONG,
            name,
            f'stamped at the end of the sweep, {-low_s * 1e3:.1f} ms after its first point',
            evidence,
            rests_on='point times',
            change='set stamp_point: end, or stamp the first point',
        )
    elif abs(low_s + high_s) < 0.2 * span_s:
        yield found(
            'stamp_point',
            WARNING,
            name,
            f'stamped in the middle of the sweep, {-low_s * 1e3:.1f} ms after its first point',
            evidence,
            rests_on='point times',
            change='set stamp_point: middle, or stamp the first point',
        )


def sweep_findings(record: TopicRecord, facts: TopicFacts) -> Iterator[Finding]:
    """Yield a finding where a sweep arrives before it can have ended, counted from its stamp."""
    if facts.source != 'device' or not facts.sweep_s or abs(facts.delay_s) > 1.0:
        return
    least_s = float(np.percentile(record.line.blocks.least_s, 5))
    missing_s = facts.sweep_s - least_s
    if least_s > -SLACK_S and missing_s > max(SLACK_S, SLACK * facts.sweep_s):
        yield found(
            'stamp_point',
            WRONG,
            (record.name,),
            f'arrives {least_s * 1e3:.1f} ms after its stamp, though its sweep takes '
            f'{facts.sweep_s * 1e3:.1f} ms: the stamp is at least '
            f'{missing_s * 1e3:.1f} ms late: it is that of the end of the sweep, or its clock is '
            f'ahead',
            {'delay_ms': least_s * 1e3, 'sweep_ms': facts.sweep_s * 1e3},
            change='set stamp_point: end, or stamp the first ray; or set its clock',
            rests_on='stamps and receive times',
        )
