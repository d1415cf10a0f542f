"""The page of a fit: measured against modelled, for every stream."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig_common.arrays import Floats
from sensor_rig.drawing.html_page import figure, page, section, table, text, tiles
from sensor_rig.drawing.plots import Plot, legend
from sensor_rig.fit.fitting import TopicFit
from sensor_rig.fit.servo import ServoFit
from sensor_rig.fit.simulating import simulated_latencies
from sensor_rig.fit.statistics import autocorrelation
from sim_sensors.timing.marginals import filter_taps

LAGS = 30
RUNS = 40
MOST_CAPTURES = 2000


def fit_page(fits: Sequence[TopicFit], source: str) -> str:
    """Return the whole document."""
    return page(
        'Timing fit',
        f'{source}; measured against what the fitted models give',
        [_stream(fit) for fit in fits],
    )


def servo_page(fit: ServoFit, source: str) -> str:
    """Return the page of a disciplined clock: its offsets, and how they follow each other."""
    offset_us = (fit.corrections.offset_s - fit.corrections.offset_s.mean()) * 1e6
    at_s: Floats = fit.period_s * np.arange(len(offset_us), dtype=float)
    if len(fit.corrections.time_s):
        at_s = fit.corrections.time_s - fit.corrections.time_s[0]
    course = Plot(_limits(at_s), _limits(offset_us), xlabel='time (s)', ylabel='offset (us)')
    course.line(at_s.tolist(), offset_us.tolist(), 0)
    lags = list(range(1, min(LAGS, len(offset_us) - 1) + 1))
    ours = autocorrelation(offset_us, lags[-1])[1:]
    taps = np.pad(filter_taps(fit.correlations), (0, lags[-1]))
    theirs = np.array([float(taps[lag:] @ taps[: len(taps) - lag]) for lag in lags])
    plot = Plot(
        (0.5, lags[-1] + 0.5),
        _limits(ours, theirs),
        xlabel='lag (corrections)',
        ylabel='autocorrelation',
    )
    plot.line([float(lag) for lag in lags], theirs.tolist(), 1)
    plot.dots([float(lag) for lag in lags], ours.tolist(), 0, radius=3.0)
    parts = [
        tiles(
            [
                (f'{fit.sigma_s.value * 1e6:.3g} us', 'left by a correction', ''),
                (f'{fit.period_s:.3g} s', 'between corrections', ''),
                (f'{len(offset_us)}', 'corrections', ''),
            ]
        ),
        *(text(_sentence(note)) for note in fit.notes),
        figure(course.svg('offsets'), 'What each correction left of the error.'),
        legend(['measured', 'modelled']),
        figure(plot.svg('autocorrelation'), 'How one offset follows from those before it.'),
    ]
    return page('Clock fit', source, [section(fit.corrections.name, *parts)])


def _stream(fit: TopicFit) -> str:
    parts = [tiles(_tiles(fit)), *(text(_sentence(note)) for note in fit.notes)]
    if fit.choice is not None and not fit.varies:
        constant = 'Its latency does not vary, so there is nothing to compare with a model.'
        parts += [text(constant), _runs(fit), _parameters(fit)]
    elif fit.choice is not None:
        count = min(len(fit.latency_s), MOST_CAPTURES)
        modelled = simulated_latencies(fit.config(), count, RUNS)
        parts += [
            legend(['measured', 'modelled']),
            _quantiles(fit.latency_s, modelled),
            _correlations(fit.latency_s, modelled),
            _allan(fit, modelled),
            _runs(fit),
            _parameters(fit),
            _scores(fit),
        ]
    return section(fit.times.name, *parts)


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + '.'


def _tiles(fit: TopicFit) -> list[tuple[str, str, str]]:
    found = [
        (f'{fit.gaps.rate_hz.value:.4g} Hz', 'rate', ''),
        (f'{len(fit.times)}', 'messages', ''),
    ]
    if fit.choice is not None:
        found += [
            (fit.choice.fitted.name.replace('_', ' '), 'latency model', ''),
            (f'{fit.figures["p50_s"].value * 1e3:.3g} ms', 'median latency', ''),
            (f'{fit.figures["p99_s"].value * 1e3:.3g} ms', '99 % below', ''),
        ]
    if fit.varies:
        found.append((f'{fit.correlation.value:+.2f}', 'lag-1 correlation', ''))
    lost = f'{100 * fit.gaps.probability.value:.2g} %' if fit.gaps.regular else 'not told'
    return [*found, (lost, 'lost', '')]


def _limits(*values: Floats) -> tuple[float, float]:
    low, high = (float(edge([edge(each) for each in values])) for edge in (np.min, np.max))
    margin = 0.04 * (high - low) or 1e-3
    return low - margin, high + margin


def _quantiles(measured: Floats, modelled: Floats) -> str:
    p = (np.arange(len(measured)) + 0.5) / len(measured)
    y = np.sort(measured) * 1e3
    x = np.quantile(modelled, p) * 1e3
    limits = _limits(x, y)
    plot = Plot(
        limits, limits, xlabel='modelled latency (ms)', ylabel='measured (ms)', height=300.0
    )
    runs = np.quantile(modelled, p, axis=0) * 1e3
    low, high = np.quantile(runs, [0.025, 0.975], axis=1)
    keep = np.unique(np.linspace(0, len(p) - 1, 400).astype(int))
    plot.band(x[keep].tolist(), low[keep].tolist(), high[keep].tolist(), 1)
    plot.polyline([(limits[0], limits[0]), (limits[1], limits[1])], 'truth')
    plot.dots(x[keep].tolist(), y[keep].tolist(), 0)
    return figure(
        plot.svg('quantiles'),
        'Quantiles of the latency, measured over modelled. The '
        'band holds 95 of 100 modelled recordings of this length.',
    )


def _correlations(measured: Floats, modelled: Floats) -> str:
    ours = autocorrelation(measured, LAGS)[1:]
    theirs = np.array([autocorrelation(run, LAGS)[1:] for run in modelled.T])
    lags = list(range(1, len(ours) + 1))
    low, high = np.quantile(theirs, [0.025, 0.975], axis=0)
    plot = Plot(
        (0.5, len(ours) + 0.5),
        _limits(ours, low, high),
        xlabel='lag (messages)',
        ylabel='autocorrelation',
    )
    plot.band(lags, low.tolist(), high.tolist(), 1)
    plot.line(lags, theirs.mean(axis=0).tolist(), 1)
    plot.dots(lags, ours.tolist(), 0, radius=3.0)
    return figure(
        plot.svg('autocorrelation'),
        'How latencies are correlated in time. The model has as many of the measured lags as the '
        'data support; what lies outside the band is not modelled.',
    )


def allan(phase_s: Floats, period_s: float) -> tuple[Floats, Floats]:
    """Return (tau, overlapping Allan deviation) of time errors at a steady period."""
    n = len(phase_s)
    steps = np.unique(np.geomspace(1, max(n // 4, 1), 24).astype(int))
    found = []
    for m in steps:
        second = phase_s[2 * m :] - 2.0 * phase_s[m:-m] + phase_s[: -2 * m]
        found.append(np.sqrt((second**2).mean() / 2.0) / (m * period_s))
    return steps * period_s, np.array(found)


def _allan(fit: TopicFit, modelled: Floats) -> str:
    period_s = 1.0 / fit.gaps.rate_hz.value
    delay_s = (fit.times.receive_ns - fit.times.stamp_ns) / 1e9
    tau, ours = allan(delay_s, period_s)
    theirs = np.median([np.interp(tau, *allan(run, period_s)) for run in modelled.T[:10]], axis=0)
    logs = [np.log10(np.maximum(each, 1e-15)) for each in (tau, ours, theirs)]
    plot = Plot(
        _limits(logs[0]),
        _limits(logs[1], logs[2]),
        xlabel='log10 of the time (s)',
        ylabel='log10 of the Allan deviation',
    )
    plot.line(logs[0].tolist(), logs[2].tolist(), 1)
    plot.dots(logs[0].tolist(), logs[1].tolist(), 0, radius=3.0)
    return figure(
        plot.svg('Allan deviation'),
        'Allan deviation of arrival minus stamp. Latency '
        'falls with the time; a clock that wanders shows where it stops falling. The '
        'model here is that of the latency alone.',
    )


def _runs(fit: TopicFit) -> str:
    if not len(fit.gaps.runs):
        return text('No message is missing.' if fit.gaps.regular else '')
    counts = np.bincount(fit.gaps.runs)
    most = len(counts) - 1
    leave = 1.0 / fit.gaps.burst_mean.value
    expected = len(fit.gaps.runs) * leave * (1.0 - leave) ** np.arange(most)
    plot = Plot(
        (0.4, most + 0.6),
        (0.0, 1.05 * max(float(counts.max()), float(expected.max()))),
        xlabel='messages lost in a row',
        ylabel='runs',
        height=180.0,
    )
    for length in range(1, most + 1):
        plot.bar((length - 0.3, length + 0.3), (0.0, float(counts[length])), 0)
    plot.dots(list(range(1, most + 1)), expected.tolist(), 1, radius=3.5)
    return figure(plot.svg('loss runs'), 'Runs of lost messages; dots are what the model expects.')


def _parameters(fit: TopicFit) -> str:
    shown = {
        **fit.parameters,
        **({'correlation': fit.correlation} if fit.varies else {}),
        'clock drift, ppm': fit.clock.drift_ppm,
        'white_fm': fit.clock.white_fm,
        'random_walk_fm': fit.clock.random_walk_fm,
        'loss probability': fit.gaps.probability,
    }
    if fit.bandwidth_bps is not None:
        shown['link, Mbit/s'] = fit.bandwidth_bps.scaled(1e-6)
    rows = []
    for name, each in shown.items():
        factor = 1e3 if name.partition('.')[0].endswith('_s') else 1.0
        rows.append(
            (name, *(f'{factor * x + 0.0:.4g}' for x in (each.value, each.low, each.high)))
        )
    return table(('parameter (times in ms)', 'value', '95 % from', 'to'), rows)


def _scores(fit: TopicFit) -> str:
    assert fit.choice is not None
    ranked = sorted(fit.choice.scores.items(), key=lambda item: -item[1])
    if not ranked:
        return text('No model fits its latency; its median is taken.')
    best = ranked[0][1]
    over = ', '.join(name.replace('_', ' ') for name in fit.choice.passed_over)
    return text(
        'Models by the log density of held-out latencies, each below the best by: '
        + ', '.join(f'{name.replace("_", " ")} {best - score:.3f}' for name, score in ranked)
        + '.'
        + (
            f' Passed over, because late messages are not as late as measured: {over}.'
            if over
            else ''
        )
    )
