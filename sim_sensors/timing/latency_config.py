"""Latency as it is measured: a distribution, how samples are correlated, and rare stalls."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rig_common.validation import Strict
from sim_sensors.timing.units import Fraction, Latency, Positive, Probability, Span

MODEL_KEYS: dict[str, tuple[str, ...]] = {
    'delay': (),
    'uniform': ('min_s', 'max_s'),
    'normal': ('min_s', 'max_s', 'mean_s', 'sigma_s'),
    'gamma': ('min_s', 'max_s', 'mean_s', 'sigma_s'),
    'lognormal': ('min_s', 'max_s', 'mean_s', 'sigma_s'),
    'mixture': ('min_s', 'max_s', 'weights', 'means_s', 'sigmas_s'),
    'empirical': ('quantiles_s', 'probabilities'),
    'trace': ('file', 'playback', 'block_length'),
}
"""The keys that each model reads; others must keep their defaults."""
_SHARED = ('model', 'correlation', 'correlations', 'stalls')


class StallConfig(Strict):
    """Rare long latencies: nothing passes until the stall is over, then all that waited at once.

    A sample begins a stall with `probability`. It arrives later by a time drawn from
    `duration_range_s`, and no sample after it arrives before it: they come in a burst, in order.
    """

    probability: Probability = 0.0
    """Probability that a sample begins a stall."""
    duration_range_s: Span = (0.0, 0.0)
    """Length (min, max) of a stall, s, uniform."""

    @model_validator(mode='after')
    def _is_a_stall(self) -> StallConfig:
        low, high = self.duration_range_s
        if bool(self.probability) != bool(high):
            raise ValueError(
                f'probability is {self.probability} and duration_range_s is '
                f'[{low}, {high}]; a stall needs both above 0'
            )
        return self


class LatencyConfig(Strict):
    """How long a sample takes from the end of its capture to the host, drawn for each sample.

    It comes on top of the delay that `delay_range_s` draws once for an environment.
    """

    model: Literal[
        'delay', 'uniform', 'normal', 'gamma', 'lognormal', 'mixture', 'empirical', 'trace'
    ] = 'delay'
    """`delay` is the short form: `delay_range_s` and `jitter_s` alone. The others draw from a
    distribution (docs/timing.md), `trace` from a file of measured latencies."""
    min_s: Latency = 0.0
    """Least latency, s."""
    max_s: Latency = 0.0
    """Largest latency, s; 0 ends the tail where one sample in three million would be later."""
    mean_s: Latency = 0.0
    """Mean latency, s, `min_s` included; of a normal, before it is cut to `min_s` and `max_s`."""
    sigma_s: Latency = 0.0
    """Standard deviation, s; of a normal, before it is cut."""
    weights: tuple[Positive, ...] = ()
    """Mixture: weight of each mode; they need not add up to 1."""
    means_s: tuple[Latency, ...] = ()
    """Mixture: mean of each mode, s."""
    sigmas_s: tuple[Annotated[float, Field(gt=0.0, le=60.0)], ...] = ()
    """Mixture: standard deviation of each (normal) mode, s."""
    quantiles_s: tuple[Latency, ...] = ()
    """Empirical: latencies at `probabilities`, rising, s; straight in between."""
    probabilities: tuple[Fraction, ...] = ()
    """Empirical: rising from 0 to 1; evenly spaced when empty."""
    file: str = ''
    """Trace: a text file beside the rig file, a latency in s a line, or two columns (receive and
    message stamp, ns) whose difference is the latency."""
    playback: Literal['loop', 'blocks'] = 'blocks'
    """Trace: `loop` plays the file from its start, again and again; `blocks` draws where each
    piece of `block_length` samples begins."""
    block_length: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    """Trace: samples in a block; inside it they are correlated as in the file."""
    correlation: Annotated[float, Field(gt=-1.0, lt=1.0)] = 0.0
    """Correlation of the latency with the one before (lag 1). What the distribution cannot reach
    is refused; a trace has that of its file."""
    correlations: tuple[Annotated[float, Field(gt=-1.0, lt=1.0)], ...] = ()
    """The same for lag 1, lag 2, ...: for latencies with a slow or a periodic part. Beyond the
    last lag they go on as the autoregression of that order does."""
    stalls: StallConfig = StallConfig()
    """Rare long latencies, with what piles up behind them."""

    @model_validator(mode='after')
    def _keys_fit_the_model(self) -> LatencyConfig:
        used = MODEL_KEYS[self.model]
        for name, info in type(self).model_fields.items():
            if name not in (*_SHARED, *used) and getattr(self, name) != info.default:
                raise ValueError(
                    f'{name} is not a key of the model {self.model}; it reads '
                    f'{", ".join(used) or "none of the keys of latency"}'
                )
        if self.lags and self.model in ('delay', 'trace'):
            name = 'correlation' if self.correlation else 'correlations'
            raise ValueError(
                f'{name} is {getattr(self, name)}, but the model {self.model} '
                + (
                    'has that of its file'
                    if self.model == 'trace'
                    else 'draws independent jitter; uniform is the same with correlation'
                )
            )
        problem = _problem(self)
        if problem:
            raise ValueError(problem)
        return self

    @property
    def lags(self) -> tuple[float, ...]:
        """The correlations at lag 1, 2, ..., under whichever of the two names they were given."""
        return self.correlations or ((self.correlation,) if self.correlation else ())

    @model_validator(mode='after')
    def _correlation_has_one_name(self) -> LatencyConfig:
        if self.correlation and self.correlations:
            raise ValueError('correlation and correlations are both given; they mean the same')
        return self


def _problem(config: LatencyConfig) -> str:
    """Return what contradicts itself in one model's keys; empty where nothing does."""
    if config.max_s and config.max_s <= config.min_s:
        return f'max_s is {config.max_s}; it must be larger than min_s, {config.min_s}'
    match config.model:
        case 'uniform':
            if not config.max_s:
                return 'max_s is missing; a uniform latency needs min_s and max_s'
        case 'normal' | 'gamma' | 'lognormal':
            return _shape_problem(config)
        case 'mixture':
            return _mixture_problem(config)
        case 'empirical':
            return _quantile_problem(config)
        case 'trace':
            return '' if config.file else 'file is missing; a trace is read from a file'
    return ''


def _shape_problem(config: LatencyConfig) -> str:
    if not config.sigma_s:
        return f'sigma_s is missing; a {config.model} latency needs mean_s and sigma_s'
    if config.mean_s <= config.min_s:
        return f'mean_s is {config.mean_s}; it must be larger than min_s, {config.min_s}'
    if config.max_s and config.mean_s >= config.max_s:
        return f'mean_s is {config.mean_s}; it must be smaller than max_s, {config.max_s}'
    if config.model != 'normal' and config.sigma_s > 10.0 * (config.mean_s - config.min_s):
        return (
            f'sigma_s is {config.sigma_s}; of a {config.model} it can be at most 10 times '
            f'mean_s - min_s, {config.mean_s - config.min_s:g}'
        )
    return ''


def _mixture_problem(config: LatencyConfig) -> str:
    sizes = {len(config.weights), len(config.means_s), len(config.sigmas_s)}
    if len(sizes) > 1 or not config.weights:
        return (
            f'weights has {len(config.weights)} values, means_s {len(config.means_s)} and '
            f'sigmas_s {len(config.sigmas_s)}; a mixture needs one of each for every mode'
        )
    for mean_s in config.means_s:
        if mean_s < config.min_s or (config.max_s and mean_s > config.max_s):
            return f'means_s has {mean_s}, which lies outside min_s and max_s'
    return ''


def _quantile_problem(config: LatencyConfig) -> str:
    values: Any = config.quantiles_s
    if len(values) < 2:
        return f'quantiles_s has {len(values)} values; an empirical latency needs two or more'
    if any(b < a for a, b in pairwise(values)) or values[0] == values[-1]:
        return 'quantiles_s must rise'
    given = config.probabilities
    if not given:
        return ''
    if len(given) != len(values):
        return f'probabilities has {len(given)} values and quantiles_s {len(values)}'
    if given[0] != 0.0 or given[-1] != 1.0 or any(b <= a for a, b in pairwise(given)):
        return 'probabilities must rise from 0 to 1'
    return ''
