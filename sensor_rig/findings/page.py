"""The findings of a recording as one HTML page, each with the plot that shows it."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats, Ints
from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.bags.inspect import seconds_between as between
from sensor_rig.drawing import html_page as page
from sensor_rig.drawing.plots import Plot
from sensor_rig.findings.imu import ImuDelay
from sensor_rig.findings.model import Finding, Severity
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.recording import Inspection
from sensor_rig.findings.turning import AgreementCurve

MOST_POINTS = 1500


class Shown(NamedTuple):
    """One plot over the time of a recording."""

    ylabel: str
    caption: str
    series: Callable[[TopicRecord, int], tuple[Floats, Floats, Floats]]
    """Times in s, then what is drawn in blue and in red, ms; of many messages those around a time
    (ns)."""


def findings_page(source: str, found: Inspection) -> str:
    """Return the whole document."""
    facts, findings = found.facts, found.findings
    counts = {
        severity: sum(each.severity is severity for each in findings)
        for severity in reversed(Severity)
    }
    tiles = [
        (str(count), severity.word, 'bad' if count and severity is Severity.WRONG else '')
        for severity, count in counts.items()
    ]
    sections = [page.tiles([*tiles, (str(len(facts)), 'topics', '')])]
    if not found.coverage.checked:
        sections.append(
            page.section('Nothing could be checked', page.text('No stamped topic is long enough.'))
        )
    elif not findings:
        sections.append(
            page.section(
                'Nothing found',
                page.text(
                    f'None of {found.coverage.checked} kinds of findings that were looked for. '
                    'What cannot be told from a recording alone: a constant latency, and a '
                    'constant clock offset of the same size.'
                ),
            )
        )
    sections += [_finding(each, found) for each in findings]
    if found.coverage.unchecked:
        sections.append(
            page.section(
                'Not checked',
                page.table(
                    ('kinds of findings', *map(page.Words, ('topics', 'needs'))),
                    [
                        (
                            ', '.join(code.replace('_', ' ') for code in each.codes),
                            page.Words(', '.join(each.topics)),
                            page.Words(each.missing),
                        )
                        for each in found.coverage.unchecked
                    ],
                ),
            )
        )
    sections.append(
        page.section(
            'Topics',
            page.table(
                (
                    'topic',
                    'messages',
                    'Hz',
                    'stamps',
                    'arrival jitter',
                    'stamp jitter',
                    'delay',
                    'on the way',
                    'drift (ppm)',
                ),
                [_row(each) for each in facts],
            ),
        )
    )
    return page.page('Timestamps', source, sections)


def _finding(finding: Finding, found: Inspection) -> str:
    parts = [
        f'<p><b class="{"bad" if finding.severity is Severity.WRONG else ""}">'
        f'{escape(finding.severity.word)}</b> {escape(finding.what)}.</p>'
    ]
    if finding.effect:
        parts.append(page.text(f'What it does: {finding.effect}.'))
    if finding.change:
        parts.append(page.text(f'What to change: {finding.change}.'))
    if finding.explains:
        names = ', '.join(code.replace('_', ' ') for code in finding.explains)
        parts.append(page.text(f'Explains what else was seen: {names}.'))
    parts.append(page.text(f'It rests on {finding.rests_on}.'))
    if finding.evidence:
        figures = ', '.join(f'{key} {value:.4g}' for key, value in finding.evidence.items())
        parts.append(page.text(f'Evidence: {figures}.'))
    record = _shown(finding, found)
    curve = found.curves.get(finding.topics[0])
    if curve is not None and 'offset_ms' in finding.evidence:
        parts.append(agreement_plot(finding.topics[0], curve, finding.evidence['offset_ms']))
    elif finding.code == 'imu_delay':
        parts.append(imu_plot(finding.topics[0], found.imus[finding.topics[0]]))
    elif record is not None:
        at_ns = finding.spans[0][0] if finding.spans else 0
        parts.append(times_plot(record, PLOTS.get(finding.code, DELAY), at_ns))
    return page.section(
        f'{", ".join(finding.topics[:4])}: {finding.code.replace("_", " ")}', *parts
    )


def _shown(finding: Finding, found: Inspection) -> TopicRecord | None:
    """Return the topic whose times show a finding: of many, one that has changed most."""
    named = [r for r in found.records if r.name in finding.topics and r.line.count > 2]
    others = [r for r in found.records if r.stamped and r.line.count > 2]
    return max(
        named or others, key=lambda record: float(np.ptp(record.line.delays_s)), default=None
    )


def times_plot(record: TopicRecord, shown: Shown, at_ns: int = 0) -> str:
    """Return the times of a topic over the recording."""
    times, blue, red = shown.series(record, at_ns)
    out = 0.0 if shown is DELAY else 0.2
    low, high = np.percentile(np.concatenate([blue, red]), (out, 100.0 - out))
    margin = 0.04 * float(high - low)
    plot = Plot(
        (float(times[0]), max(float(times[-1]), float(times[0]) + 1e-3)),
        (float(low) - margin, float(high) + margin),
        xlabel='time (s)',
        ylabel=shown.ylabel,
    )
    plot.line(times.tolist(), red.tolist(), 1)
    plot.line(times.tolist(), blue.tolist(), 0)
    caption = f'{record.name}: {shown.caption}'
    return page.figure(plot.svg(caption.partition(',')[0]), caption)


def _delays(record: TopicRecord, _: int) -> tuple[Floats, Floats, Floats]:
    blocks = record.line.blocks
    return blocks.since_s, blocks.middle_s * 1e3, blocks.least_s * 1e3


def _around(record: TopicRecord, at_ns: int) -> tuple[Floats, Ints, Ints]:
    """Return times since the start (s), stamps and arrivals of the messages around a time."""
    arrivals = np.array(record.arrivals_ns, np.int64)
    near = int(np.searchsorted(arrivals, at_ns)) - MOST_POINTS // 4
    begin = max(min(near, len(arrivals) - MOST_POINTS), 0)
    part = slice(begin, begin + MOST_POINTS)
    since = between(np.full(len(arrivals), arrivals[0]), arrivals)
    return since[part], np.array(record.stamps_ns, np.int64)[part], arrivals[part]


def _spacings(record: TopicRecord, at_ns: int) -> tuple[Floats, Floats, Floats]:
    times, stamps, arrivals = _around(record, at_ns)
    return (
        times[1:],
        between(stamps[:-1], stamps[1:]) * 1e3,
        between(arrivals[:-1], arrivals[1:]) * 1e3,
    )


def _off_grid(record: TopicRecord, at_ns: int) -> tuple[Floats, Floats, Floats]:
    times, *both = _around(record, at_ns)
    numbers = np.arange(len(times))
    blue, red = (
        seconds - np.polyval(np.polyfit(numbers, seconds, 1), numbers)
        for seconds in (between(np.full(len(each), each[0]), each) for each in both)
    )
    return times, blue * 1e3, red * 1e3


DELAY = Shown(
    'arrival - stamp (ms)',
    'arrival minus stamp, median (blue) and least (red) of each block. A line that slopes is '
    'drift, a step is a step of the clock.',
    _delays,
)
SPACING = Shown(
    'spacing (ms)',
    f'time between two stamps (blue) and between two arrivals (red), of {MOST_POINTS} '
    'messages at most.',
    _spacings,
)
GRID = Shown(
    'off an even grid (ms)',
    'how far stamps (blue) and arrivals (red) are from an even grid, of '
    f'{MOST_POINTS} messages at most. Stamps of a device are steadier than the arrivals; those of '
    'a host are as restless.',
    _off_grid,
)
PLOTS = {
    **dict.fromkeys(
        (
            'dropped_frames',
            'throttled',
            'repeated_stamps',
            'frozen_stamps',
            'doubled_messages',
            'arrivals_in_batches',
            'recorder_hiccup',
            'rate_not_declared',
            'qos_loss',
            'two_sources',
            'rate_changes',
            'ends_early',
        ),
        SPACING,
    ),
    **dict.fromkeys(('host_stamps', 'out_of_order'), GRID),
}
"""What shows a finding, where it is not the delay."""


def agreement_plot(topic: str, curve: AgreementCurve, offset_ms: float) -> str:
    """Return the correlation of a topic's turns with the IMU's over the offset of its stamps."""
    plot = _agreement(curve, offset_ms, 'offset of its stamps (ms)', 'share of turns explained')
    return page.figure(
        plot.svg(f'turns of {topic} against those of the IMU'),
        f'{topic}: share of its turns that the gyro, integrated between its stamps, explains if '
        f'these were off by so much (blue; the mounting is free), and the estimated offset (red).',
    )


def imu_plot(topic: str, found: ImuDelay) -> str:
    """Return how well gravity turns with the gyro over the delay of the accelerometer."""
    plot = _agreement(
        found.curve, found.delay_s * 1e3, 'delay of the accelerometer (ms)', 'correlation'
    )
    return page.figure(
        plot.svg(f'accelerometer of {topic} against its gyro'),
        f'{topic}: how well the change of its specific force agrees with that of '
        f'gravity in a frame that turns as its gyro says, if the accelerometer was '
        f'so late (blue), and the best delay (red).',
    )


def _agreement(curve: AgreementCurve, at_ms: float, xlabel: str, ylabel: str) -> Plot:
    offsets = (curve.offsets_s * 1e3).tolist()
    low, high = float(curve.agreement.min()), float(curve.agreement.max())
    plot = Plot(
        (offsets[0], offsets[-1]), (low, max(high, low + 1e-3)), xlabel=xlabel, ylabel=ylabel
    )
    plot.line(offsets, curve.agreement.tolist(), 0)
    plot.line([at_ms, at_ms], [low, high], 1)
    return plot


def _row(facts: TopicFacts) -> tuple[object, ...]:
    def ms(seconds: float) -> str:
        return '-' if seconds != seconds else f'{seconds * 1e3:.2f}'

    drift = (
        '-'
        if facts.drift_ppm != facts.drift_ppm
        else (f'{facts.drift_ppm:+.1f} ± {facts.drift_sigma_ppm:.1f}')
    )
    return (
        (facts.name, facts.type_name),
        facts.count,
        f'{facts.rate_hz:.2f}',
        facts.source,
        ms(facts.arrival_jitter_s),
        ms(facts.stamp_jitter_s),
        ms(facts.delay_s),
        ms(facts.transport_s),
        drift,
    )
