"""(stamp, arrival) pairs of streams with the habits of real ones: loss, throttles, varying rates,
stamps off the grid, arrivals that are skewed, correlated, held up, overtaken or in batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MS = 1_000_000
START_NS = 10**15

Pairs = list[tuple[int, int]]


@dataclass(frozen=True)
class Habits:
    """How a stream behaves; times in ms."""

    rate_hz: float = 30.0
    loss: float = 0.0
    """Share of the frames that get lost."""
    keep_every: int = 1
    """A throttle behind the loss: of what is left every so-manieth goes on."""
    vary: float = 0.0
    """Spacings vary uniformly by this share."""
    stamp_jitter_ms: float = 0.1
    jitter_ms: float = 3.0
    """Mean of the exponential delay on top of the latency."""
    correlation: float = 0.0
    """Lag-1 correlation of that delay."""
    early: float = 0.0
    """Share of messages that are early instead: a tail to the other side."""
    stalls: int = 0
    """Times that the transport stops, up to 0.6 s, and lets go of everything at once."""
    batch: int = 1
    """Messages that are sent together."""
    latency_ms: float = 20.0
    law: str = 'exponential'
    """Of the delay, with `jitter_ms` as its spread; `LAWS` has others, without correlation."""
    overtaking: bool = False
    """Messages arrive in the order in which they are done, not in that of their captures."""
    quantum_ms: float = 0.0
    """Stamps are rounded to whole multiples of it."""
    drift_ppm: float = 0.0


LAWS = ('lognormal', 'gamma', 'bursts', 'wifi', 'uniform')

HABITS = {
    'plain': Habits(),
    'half is lost': Habits(loss=0.5),
    'slow': Habits(rate_hz=5.0, loss=0.1),
    'throttled': Habits(loss=0.3, keep_every=2),
    'thinned out': Habits(rate_hz=20.0, loss=0.1, keep_every=3),
    'varying rate': Habits(rate_hz=20.0, vary=0.3),
    'stamps jitter by 2 ms': Habits(stamp_jitter_ms=2.0),
    'stalls': Habits(stalls=5),
    'batches': Habits(rate_hz=200.0, batch=4),
    'correlated': Habits(correlation=0.8),
    'early outliers': Habits(early=0.1),
    'all of it': Habits(loss=0.3, vary=0.3, stamp_jitter_ms=1.5, stalls=3, correlation=0.5),
}
"""Streams by what they are like."""


def frames_of(habits: Habits) -> int:
    """Return how many frames make a stream in whose second half a step has time to last."""
    return max(600, round(8.0 * habits.rate_hz))


def pairs(
    habits: Habits,
    count: int,
    seed: int,
    steps_ms: dict[int, float] | None = None,
    slow_ms: dict[int, float] | None = None,
) -> Pairs:
    """Return what a host receives of `count` frames; the clock steps at frame k that gets through.

    `slow_ms`: frames that take longer by so much.
    """
    rng = np.random.default_rng(seed)
    period = 1e3 / habits.rate_hz
    capture = np.cumsum(period * (1.0 + habits.vary * rng.uniform(-1.0, 1.0, count)))
    stamp = capture + rng.normal(0.0, habits.stamp_jitter_ms, count)
    arrival = capture + habits.latency_ms + _delays(habits, count, rng)
    for _ in range(habits.stalls):
        start, lasts = rng.uniform(capture[0], capture[-1]), rng.uniform(20.0, 600.0)
        held = (arrival > start) & (arrival < start + lasts)
        arrival = np.where(held, start + lasts, arrival)
    starts = np.arange(0, count, habits.batch)
    arrival = np.maximum.reduceat(arrival, starts)[np.arange(count) // habits.batch]
    if not habits.overtaking:
        arrival = np.maximum.accumulate(arrival)
    kept = np.flatnonzero(rng.random(count) >= habits.loss)[:: habits.keep_every]
    stamp, arrival = stamp[kept], arrival[kept] + 1e-3 * (np.arange(len(kept)) % 64)
    stamp = stamp + 1e-6 * habits.drift_ppm * stamp
    for at, size_ms in (steps_ms or {}).items():
        stamp[at:] += size_ms
    for at, late_ms in (slow_ms or {}).items():
        arrival[at] += late_ms
    if habits.quantum_ms:
        stamp = np.round(stamp / habits.quantum_ms) * habits.quantum_ms
    if not habits.overtaking:
        arrival = np.maximum.accumulate(arrival)
    order = np.argsort(arrival, kind='stable')
    return [
        (START_NS + round(s * MS), START_NS + round(a * MS))
        for s, a in zip(stamp[order].tolist(), arrival[order].tolist(), strict=True)
    ]


def _delays(habits: Habits, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    spread = habits.jitter_ms
    if habits.law == 'lognormal':
        return spread * rng.lognormal(-0.2, 0.7, count)
    if habits.law == 'gamma':
        return rng.gamma(2.0, 0.7 * spread, count)
    if habits.law == 'uniform':
        return rng.uniform(0.0, 3.5 * spread, count)
    if habits.law == 'wifi':  # some are sent once more
        again = np.where(rng.random(count) < 0.15, 2.5 * spread, 0.0)
        return again + rng.exponential(0.1 * spread, count)
    if habits.law == 'bursts':
        delays, at = rng.exponential(0.2 * spread, count), 0
        while (at := at + int(rng.exponential(60.0)) + 1) < count:
            delays[at : at + int(rng.integers(1, 8))] += rng.uniform(1.0, 3.0) * spread
        return delays
    fresh = rng.exponential(habits.jitter_ms, count)
    delays = np.empty(count)
    last = habits.jitter_ms
    for k, value in enumerate(fresh.tolist()):
        last = delays[k] = habits.correlation * last + (1.0 - habits.correlation) * value
    early = rng.random(count) < habits.early
    return np.where(early, -delays, delays)


def spread_ms(received: Pairs) -> float:
    """Return the standard deviation of arrival - stamp."""
    return float(np.std([arrival - stamp for stamp, arrival in received])) / MS
