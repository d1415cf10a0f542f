"""One stream's whole fit: rate, losses, clock, link, latency, and what cannot be told."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.validation import validated
from sensor_rig.fit.choosing import NOISELESS_S, ChosenModel, choose
from sensor_rig.fit.clock import ClockFit, fit_clock
from sensor_rig.fit.fitted import PROBABILITIES, Fitted
from sensor_rig.fit.gaps import GapFit, fit_gaps
from sensor_rig.fit.statistics import (
    Estimate,
    lag_one,
    mean_estimate,
    normal_scores,
    order_of,
    quantile_estimate,
    slope_estimate,
    weakened,
)
from sensor_rig.fit.times import FEWEST, StreamTimes
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.latency_config import LatencyConfig
from sim_sensors.timing.marginals import latency_correlation, marginal_of, reachable

QUANTILES = {'p5_s': 0.05, 'p50_s': 0.5, 'p95_s': 0.95, 'p99_s': 0.99}
LONGEST_S = 60.0
"""Largest latency of a rig file."""
MOST_DRIFT_PPM = 1000.0
"""Largest drift of a rig file."""
LINK_Z = 5.0
"""Standard errors from which on large messages are taken to be later."""
SIZE_SPREAD = 0.02
"""Sizes that vary less (of their mean) tell no bandwidth."""


@dataclass(frozen=True)
class KnownClock:
    """What another source knows of a clock: the sync engine, or the person who asks."""

    offset_s: float
    """Sensor clock minus host clock, s."""
    sigma_s: float
    by: str


@dataclass(frozen=True)
class TopicFit:
    """Everything that was found for one stream."""

    times: StreamTimes
    gaps: GapFit
    clock: ClockFit
    latency_s: Floats
    """Latencies, s [n], as far as they can be told from the offset."""
    choice: ChosenModel | None
    """None where stamps tell no latency."""
    parameters: dict[str, Estimate]
    """Parameters of the latency model, by their keys."""
    figures: dict[str, Estimate]
    """Mean, standard deviation and quantiles of the latency, whatever the model."""
    correlation: Estimate
    lags: tuple[float, ...]
    """Correlations at lag 1, 2, ... as far as the data ask for an autoregression; fewer than two
    where one lag says it all."""
    offset_s: float
    """Clock minus host that is written."""
    bandwidth_bps: Estimate | None
    notes: list[str] = field(default_factory=list)
    """What cannot be told, and what was taken for it: a sentence each."""

    @property
    def varies(self) -> bool:
        """Whether the latency is more than one constant."""
        return self.choice is not None and float(self.latency_s.std()) >= NOISELESS_S

    def keys(self) -> dict[str, Any]:
        """Return the timing keys of a rig file."""
        found: dict[str, Any] = {'rate_hz': _round_rate(self.gaps.rate_hz.value)}
        if self.choice is not None and self.choice.fitted.model == 'fixed':
            found['delay_range_s'] = [_rounded(float(self.choice.fitted.values[0]))] * 2
        elif self.choice is not None:
            found['latency'] = _rounded(self.choice.fitted.keys())
            found['latency'].update(self._correlation_keys(found['latency']))
        clock = self._clock_keys()
        if clock:
            found['clock'] = clock
        loss = self._loss_keys()
        if loss:
            found['loss'] = loss
        if self.clock.steps:
            found['faults'] = {
                f'step_{i}': {
                    'kind': 'clock_step',
                    'at_s': float(f'{step.at_s:.3f}'),
                    'offset': float(f'{step.offset_s:.6g}'),
                }
                for i, step in enumerate(self.clock.steps, 1)
            }
        return found

    def config(self) -> TimingConfig:
        """Return the same as a config, as a rig file with these keys gives it."""
        return validated(TimingConfig, self.keys(), self.times.name)

    def _correlation_keys(self, keys: dict[str, Any]) -> dict[str, Any]:
        """Return what is there beyond doubt, inside what the model can reach."""
        table = marginal_of(validated(LatencyConfig, keys, self.times.name))
        low, high = reachable(table)
        if len(self.lags) > 1:
            lags = weakened(
                self.lags,
                (low, high),
                lambda found: validated(LatencyConfig, {**keys, 'correlations': found}, 'latency'),
            )
            if lags:
                return {'correlations': lags}
        if self.correlation.low <= 0.0 <= self.correlation.high:
            return {}
        inside = min(max(self.correlation.value, low + 1e-3), high - 1e-3)
        return {'correlation': float(f'{inside:.4f}')}

    def _clock_keys(self) -> dict[str, Any]:
        clock = self.clock
        if self.times.host_stamped or self.times.has_no_arrivals:
            return {'stamp_at': 'arrival'}
        digits = {
            'offset_s': (self.offset_s, 9),
            'drift_ppm': (clock.drift_ppm.value * clock.has_drift, 4),
            'white_fm': (clock.white_fm.value, 3),
            'random_walk_fm': (clock.random_walk_fm.value, 3),
        }
        found = _told(digits)
        if clock.resolution_s:
            found['resolution_s'] = clock.resolution_s
        if clock.counter_bits:
            found['counter_bits'] = clock.counter_bits
        return found

    def _loss_keys(self) -> dict[str, Any]:
        gaps = self.gaps
        lost = gaps.probability.value
        return _told(
            {
                'probability': (lost, 4),
                'burst_mean': (gaps.burst_mean.value * bool(lost), 4),
                'duplicate_probability': (gaps.duplicates.value, 4),
            }
        )


def _told(found: dict[str, tuple[float, int]]) -> dict[str, Any]:
    """Return the figures that are not 0, each with so many digits."""
    return {key: float(f'{value:.{digits}g}') for key, (value, digits) in found.items() if value}


@np.errstate(divide='ignore', over='ignore', invalid='ignore')  # models that do not fit at all
def fit_stream(
    times: StreamTimes, *, model: str = '', known: KnownClock | None = None
) -> TopicFit:
    """Return the fit of a stream; `model` tries one kind of latency only."""
    notes: list[str] = []
    times, given = times.without_strays(), len(times)
    if not times.is_enough:
        raise RigError(
            f'{times.name} has {len(times)} messages; a fit needs {FEWEST} or more, '
            'received and stamped at different times'
        )
    if len(times) < given:
        notes.append(
            f'{given - len(times)} messages with times more than a year away from the '
            'others are left out'
        )
    gaps = fit_gaps(times.stamp_ns, times.receive_ns)
    if not gaps.regular:
        notes.append('its intervals vary too much to see losses')
    clock = fit_clock(times.receive_ns, times.stamp_ns)
    if clock.has_drift and abs(clock.drift_ppm.value) > MOST_DRIFT_PPM:
        raise RigError(
            f'the stamps of {times.name} advance {1.0 + clock.drift_ppm.value * 1e-6:.4g} s in a '
            f'second of arrivals; a clock is at most {MOST_DRIFT_PPM:g} ppm off, so they are no '
            'times that can be fitted (rig inspect says what is wrong with them)'
        )
    if clock.steps:
        notes.append(
            f'{len(clock.steps)} jumps of arrival minus stamp are taken for steps of the '
            'clock; a lasting change of the latency looks the same'
        )
    if times.host_stamped or times.has_no_arrivals:
        notes.append(
            'its receive times are copies of its stamps, so they tell no latency'
            if times.has_no_arrivals
            else 'the host stamps it, so its stamps tell no latency'
        )
        return TopicFit(
            times,
            gaps,
            clock,
            clock.delay_s,
            None,
            {},
            {},
            Estimate(0.0, 0.0, 0.0),
            (),
            0.0,
            None,
            notes,
        )
    delay_s, bandwidth = _without_size(clock.delay_s, times.sizes, notes)
    if known is not None and clock.has_drift:  # it is as of the end; delays are as of the start
        grown_s = clock.drift_ppm.value * 1e-6 * (times.receive_ns[-1] - times.receive_ns[0]) / 1e9
        known = replace(known, offset_s=known.offset_s - float(grown_s))
    offset_s = _offset(delay_s, known, notes)
    latency_s = delay_s + offset_s - _sweep(delay_s + offset_s, times.sweep_s, notes)
    choice = choose(latency_s, model)
    fitted = choice.fitted
    parameters = fitted.intervals(latency_s)
    if fitted.model == 'empirical':
        for name, p in zip(fitted.names[1:-1], PROBABILITIES[1:-1].tolist(), strict=True):
            parameters[name] = quantile_estimate(latency_s, p)
    correlation = _correlation(latency_s, fitted, gaps.follows, times.name)
    return TopicFit(
        times,
        gaps,
        clock,
        latency_s,
        choice,
        parameters,
        _figures(latency_s),
        correlation,
        order_of(latency_s, gaps.follows),
        offset_s,
        bandwidth,
        notes,
    )


def _correlation(x: Floats, fitted: Fitted, follows: NDArray[np.bool_], name: str) -> Estimate:
    """Return the lag-1 correlation of latencies.

    Few samples of a heavy tail tell it badly, and how badly, too. Ranks tell it well where the
    latency is what the model says; the interval holds both.
    """
    direct = lag_one(x, follows)
    if fitted.model == 'fixed':
        return direct
    table = marginal_of(validated(LatencyConfig, _rounded(fitted.keys()), name))
    ranks = lag_one(normal_scores(x), follows)
    low, high = (latency_correlation(table, end) for end in (ranks.low, ranks.high))
    return Estimate(direct.value, min(direct.low, low), max(direct.high, high))


def _figures(x: Floats) -> dict[str, Estimate]:
    middle = mean_estimate(x)
    squares = mean_estimate((x - x.mean()) ** 2)
    sigma = Estimate(*(float(np.sqrt(max(each, 0.0))) for each in squares))
    return {
        'mean_s': middle,
        'sigma_s': sigma,
        **{name: quantile_estimate(x, p) for name, p in QUANTILES.items()},
    }


def _offset(delay_s: Floats, known: KnownClock | None, notes: list[str]) -> float:
    """Return the offset to write: known, needed to make latencies possible, or none."""
    if known is not None:
        notes.append(
            f'offset {known.offset_s * 1e3:.3f} ms +- {known.sigma_s * 1e3:.3f} ms by '
            f'{known.by}; the latency is right to the same'
        )
        offset_s = known.offset_s
        if delay_s.min() + offset_s >= 0.0:
            return offset_s
        notes.append('with it some latencies would be negative; it was raised to make them 0')
        return float(-delay_s.min())
    if delay_s.min() >= 0.0 and delay_s.max() <= LONGEST_S:
        notes.append(
            'a constant offset of the clock cannot be told from latency; the clocks are '
            'taken for synchronised (offset 0), so all of the delay is latency'
        )
        return 0.0
    spread_s = float(np.median(delay_s) - delay_s.min())
    notes.append(
        f'arrival minus stamp is {float(np.median(delay_s)):.6g} s, so the clock is '
        'another; what of it is offset cannot be told from latency, and the least '
        f'latency is taken for {spread_s * 1e3:.3g} ms, the median above the least'
    )
    return spread_s - float(delay_s.min())


def _sweep(latency_s: Floats, sweep_s: float, notes: list[str]) -> float:
    if not sweep_s or float(latency_s.min()) < sweep_s:
        return 0.0
    notes.append(
        f'its sweep of {sweep_s * 1e3:.3g} ms is part of arrival minus stamp and is no '
        'part of the latency that is written'
    )
    return sweep_s


def _without_size(
    delay_s: Floats, sizes: Floats | None, notes: list[str]
) -> tuple[Floats, Estimate | None]:
    """Return the delays without the time that bytes take, and the bandwidth where sizes tell."""
    if sizes is None or sizes.std() < SIZE_SPREAD * sizes.mean():
        why = 'not known' if sizes is None else 'all alike'
        notes.append(f'the sizes of its messages are {why}, so they tell nothing of a link')
        return delay_s, None
    slope = slope_estimate(sizes, delay_s)
    if slope.low <= 0.0 or slope.value < LINK_Z * (slope.high - slope.value) / 1.96:
        notes.append('larger messages are not later, so nothing is known of a link')
        return delay_s, None
    bandwidth = Estimate(8.0 / slope.value, 8.0 / slope.high, 8.0 / slope.low)
    return delay_s - slope.value * sizes, bandwidth


def _round_rate(rate_hz: float) -> float:
    """Return a rate as its maker means it: 10 for 9.9999, which is the crystal's error."""
    plain = float(f'{rate_hz:.3g}')
    return plain if abs(plain / rate_hz - 1.0) < 1e-4 else float(f'{rate_hz:.6g}')


def _rounded(value: Any) -> Any:
    """Return numbers with seven digits: as exact as any fit, and readable."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f'{value:.7g}') if isinstance(value, float) else value
