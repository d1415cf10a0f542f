"""The page of `rig trust`: the verdict, what was injected and what came of it, the stretches."""

from __future__ import annotations

from rig_common.jsonable import JsonObject
from sensor_rig.drawing import html_page as page
from sensor_rig.drawing.plots import Plot, legend

LIMITS_MS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""How far a plot may reach; what lies beyond the last is cut off."""


def trust_page(found: JsonObject) -> str:
    """Return the HTML of a trust report's document."""
    sections: list[str] = []
    for name, sensor in found['sensors'].items():
        sections += _sensor(name, sensor)
    return page.page('May these offsets be believed?', found['source'], sections)


def _sensor(name: str, sensor: JsonObject) -> list[str]:
    same = sensor['consistency']
    outcome = (
        ('claims hold', 'good')
        if sensor['holds']
        else ('claims do not hold', 'bad')
        if sensor['refuted']
        else ('claims not shown', '')
    )
    passed = sum(each['passed'] for each in sensor['responses'])
    tiles = page.tiles(
        [
            (outcome[0], name, outcome[1]),
            (_ms(sensor['sigma_ms']), 'claimed sigma at the end', ''),
            (
                f'{passed} of {len(sensor["responses"])}',
                'changes answered as they should be',
                'good' if passed == len(sensor['responses']) else 'bad',
            ),
            (
                _plain(same['nees']),
                'NEES of the stretches (1 is honest)',
                'good' if same['passed'] else 'bad' if same['enough'] else '',
            ),
            (f'{sensor["motion_fixes"]}', 'comparisons with the gyro', ''),
        ]
    )
    sentence = page.text(sensor['verdict']) if sensor['holds'] else page.warning(sensor['verdict'])
    return [
        page.section(f'{name} against {sensor["imu"]}', sentence, tiles),
        _responses(sensor),
        _stretches(same),
    ]


def _responses(sensor: JsonObject) -> str:
    rows = [
        (
            each['change'],
            each['wanted'],
            'yes' if each['passed'] else 'NO',
            _plain(each['error_ms']),
            _plain(each['sigma_ms']),
            each['motion_fixes'],
            each['says'],
        )
        for each in sensor['responses']
    ]
    followed = [
        each for each in sensor['responses'] if each['wanted'] != 'refuse' and each['series']
    ]
    parts = [
        page.table(
            (
                'change',
                'wanted',
                'passed',
                'error (ms)',
                'sigma (ms)',
                'comparisons',
                'what it did',
            ),
            rows,
        )
    ]
    if followed:
        parts += [_response_plot(followed), legend([each['change'] for each in followed])]
    return page.section(
        'Response to known changes',
        page.text(
            'Each change was put into the stamps, and the recording estimated again. The error is '
            'the new estimate minus the old one minus the change; a constant error cancels in it.'
        ),
        *parts,
    )


def _response_plot(followed: list[JsonObject]) -> str:
    end_s = max(each['series'][-1][0] for each in followed)
    sizes = [abs(row[1]) for each in followed for row in each['series'] if row[1] is not None]
    high = _round_limit(sorted(sizes)[int(0.98 * (len(sizes) - 1))])
    plot = Plot((0.0, end_s), (-high, high), xlabel='time (s)', ylabel='error (ms)')
    for index, each in enumerate(followed):
        rows = [row for row in each['series'] if row[1] is not None]
        plot.line([row[0] for row in rows], [row[1] for row in rows], index, each['change'])
    return page.figure(
        plot.svg('error of the estimate after each change over time'),
        'Estimate with the change, minus without it, minus the change.',
    )


def _stretches(same: JsonObject) -> str:
    shown = [each for each in same['stretches'] if each['observed']]
    if not same['enough']:
        return page.section(
            'Agreement of disjoint stretches',
            page.text(
                f'Only {len(shown)} of {len(same["stretches"])} stretches of '
                f'{same["length_s"]:.0f} s have enough motion to observe the offset: too '
                f'few to compare.'
            ),
        )
    high = _round_limit(max(abs(each['offset_ms']) + 2.0 * each['sigma_ms'] for each in shown))
    plot = Plot(
        (0.0, same['stretches'][-1]['end_s']),
        (-high, high),
        xlabel='time (s)',
        ylabel='offset (ms)',
    )
    for each in shown:
        middle = 0.5 * (each['start_s'] + each['end_s'])
        low, top = (each['offset_ms'] + sign * 2.0 * each['sigma_ms'] for sign in (-1.0, 1.0))
        plot.bar(
            (each['start_s'], each['end_s']),
            (low, top),
            0,
            f'{each["offset_ms"]:+.3f} ms',
            opacity=0.2,
        )
        plot.dots([middle], [each['offset_ms']], 0, 3.0)
    plot.polyline([(0.0, 0.0), (same['stretches'][-1]['end_s'], 0.0)], 'truth')
    return page.section(
        'Agreement of disjoint stretches',
        page.figure(
            plot.svg('offset of every stretch with two sigma'),
            'Each stretch was estimated alone: its offset against the line through all of them '
            f'(drift {same["drift_ppm"]:+.1f} ppm taken out), with 2 sigma.',
        ),
        page.text(
            f'Spread {same["spread_ms"]:.3f} ms, claimed {same["claimed_ms"]:.3f} ms; '
            f'{same["coverage"]:.0%} inside 2 sigma; NEES {same["nees"]:.2f}, at most '
            f'{same["nees_limit"]:.2f} for honest claims.'
        ),
    )


def _round_limit(size_ms: float) -> float:
    return next((limit for limit in LIMITS_MS if limit >= size_ms), LIMITS_MS[-1])


def _ms(value: float | None) -> str:
    return '-' if value is None else f'{value:.2f} ms'


def _plain(value: float | None) -> str:
    return '-' if value is None else f'{value:.3g}'
