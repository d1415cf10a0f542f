"""Findings about one topic's clock: who writes the stamps, how fast it runs, how it wanders."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sensor_rig.bags.inspect import COPIED_S, TopicFacts
from sensor_rig.findings.domains import CRYSTAL_PPM, OWN_EPOCH_S
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, lasting
from sensor_rig.findings.timeline import TimeLine
from sensor_rig.findings.trend import trend_of

DRIFT_PPM = 8.0
"""Below this a crystal is as good as they come."""
LEAST_SIGMA_PPM = 0.1
"""No slope is known better than this: the least delay itself changes with load and temperature."""
SIGMAS = 6.0
"""Of the slope: delays hang together, so that their scatter makes it look too sure."""
CLEAR = 2.0
"""Of the noise of the least delays, that a drift must come to over the recording."""
WANDER_S = 0.0008
"""Slow changes below this are those of an idle network."""
LONG_ENOUGH_S = 20.0
FUTURE_S, FUTURE_WRONG_S = 0.001, 0.005


def arrivals_tell(line: TimeLine) -> bool:
    """Return whether receive times are times of arrivals, and not copies of the stamps."""
    return not line.count or float(np.abs(line.delays_s).max()) > COPIED_S


def source_findings(name: str, facts: TopicFacts) -> Iterator[Finding]:
    """Yield who writes the stamps, where it is the host, or where they are of the future."""
    evidence = {
        'arrival_jitter_ms': facts.arrival_jitter_s * 1e3,
        'stamp_jitter_ms': facts.stamp_jitter_s * 1e3,
        'delay_ms': facts.delay_s * 1e3,
    }
    if facts.source == 'host':
        yield found(
            'host_stamps',
            INFO,
            name,
            f'stamped by the host when it arrives, jitter {facts.stamp_jitter_s * 1e3:.2f} ms',
            evidence,
        )
    if facts.source == 'device' and -OWN_EPOCH_S < facts.delay_s < -FUTURE_S:
        yield found(
            'future_stamps',
            WRONG if facts.delay_s < -FUTURE_WRONG_S else WARNING,
            name,
            f'stamped {-facts.delay_s * 1e3:.1f} ms after it arrives',
            evidence,
        )


def trend_findings(name: str, line: TimeLine, grain_s: float) -> Iterator[Finding]:
    """Yield a clock that drifts, or that wanders: a line is drift, what leaves it is wander.

    Arrivals that come in batches beat with the stamps by up to `grain_s`.
    """
    trend = trend_of(line)
    slope_ppm, wander_s = trend.slope_ppm, trend.wander_s
    if trend.span_s < LONG_ENOUGH_S:
        return
    sigma_ppm = max(trend.sigma_ppm, LEAST_SIGMA_PPM)
    drifted_s = abs(slope_ppm) * 1e-6 * trend.span_s
    on_average = (
        f'its clock runs {"fast" if slope_ppm < 0 else "slow"} by {abs(slope_ppm):.0f} ppm on '
        f'average, {lasting(drifted_s)} in all; beside that '
        if drifted_s > 2.0 * wander_s
        else ''
    )
    if wander_s > max(WANDER_S, 2.5 * trend.wander_sigma_s, 0.06 * drifted_s, grain_s):
        yield found(
            'clock_wander',
            WARNING,
            name,
            f'{on_average}arrival minus stamp wanders slowly by {lasting(wander_s)}',
            {
                'wander_ms': wander_s * 1e3,
                'drift_ppm': -slope_ppm,
                'at_start_ms': trend.bend_s[0] * 1e3,
                'at_middle_ms': trend.bend_s[1] * 1e3,
                'at_end_ms': trend.bend_s[2] * 1e3,
            },
            spans=[line.span],
        )
    elif abs(slope_ppm) > max(DRIFT_PPM, SIGMAS * trend.sigma_ppm) and drifted_s > max(
        grain_s, CLEAR * trend.noise_s
    ):
        counted = abs(slope_ppm) > CRYSTAL_PPM
        nominal = ': no crystal does, so stamps may be counted up at a nominal rate'
        yield found(
            'clock_drift',
            WRONG if counted else WARNING,
            name,
            f'its clock runs {"fast" if slope_ppm < 0 else "slow"} by {abs(slope_ppm):.0f} ppm '
            f'(sigma {sigma_ppm:.1f} ppm), {lasting(abs(slope_ppm) * 6e-4)} in ten minutes'
            f'{nominal if counted else ""}',
            {'drift_ppm': -slope_ppm, 'sigma_ppm': sigma_ppm, 'wander_ms': wander_s * 1e3},
            change='stamp samples when they are measured' if counted else None,
            spans=[line.span],
        )
