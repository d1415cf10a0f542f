"""Streams whose clock steps, drawn many ways, and what a clock claims while it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from support.bad_habits import MS, Habits, Pairs, pairs, spread_ms
from sync_engine.clocks.offset import ClockEstimate
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.config import EpochConfig, InputConfig
from sync_engine.config.sync_config import AdaKFConfig

FRAMES = 700
_TOGETHER = 0.2
"""Messages that come within this share of their stamps' spacing come out of a queue."""


class Stepped(NamedTuple):
    """One stream."""

    name: str
    received: Pairs
    at: int
    """Received message that is the first after the step; beyond the last without one."""
    step_ms: float
    limit_ms: float
    """Steps above it must be noticed within three messages."""


class Watched(NamedTuple):
    """What a clock claimed."""

    wrong: int
    """Messages while `locked` beyond 5 sigma and 4 ms, from the step on. What comes out of a queue
    at one moment counts once."""
    doubtful: float
    """Share of the messages, from the first that was locked on, while not `locked`."""
    noticed_s: float | None
    """Time from the step until the state left `locked` or the error was small again."""


def drawn(count: int, seed: int = 0) -> Iterator[Stepped]:
    """Yield streams: whole periods and others, lossy, varying rates, slow messages at the step."""
    for k in range(count):
        rng = np.random.default_rng([seed, k])
        rate_hz = float(rng.choice([5.0, 10.0, 20.0, 30.0, 100.0]))
        vary = float(rng.choice([0.0, 0.0, 0.0, 0.3]))
        habits = Habits(
            rate_hz=rate_hz,
            loss=float(rng.choice([0.0, 0.1, 0.3, 0.45])),
            vary=vary,
            jitter_ms=float(rng.choice([0.3, 1.0, 3.0])),
            stamp_jitter_ms=float(rng.choice([0.05, 0.1, 1.0])),
            correlation=float(rng.choice([0.0, 0.5])),
            early=float(rng.choice([0.0, 0.0, 0.02])),
        )
        plain = pairs(habits, FRAMES, k)
        at = int(rng.integers(len(plain) // 2, 3 * len(plain) // 4))
        limit_ms = max(5.0, 3.5 * spread_ms(plain))
        period_ms = 1e3 / rate_hz
        kind = k % 4
        size_ms = (
            period_ms * float(rng.choice([1.0, 2.0, 3.0]))
            if kind < 2
            else limit_ms * float(rng.uniform(1.0, 6.0))
        )
        step_ms = size_ms * (1.0 if rng.random() < 0.5 else -1.0)
        slow = {at: float(rng.uniform(10.0, 50.0))} if kind in (0, 2) else {}
        name = f'{k}: {rate_hz:.0f} Hz loss {habits.loss} vary {vary} step {step_ms:.0f} {slow}'
        received = pairs(habits, FRAMES, k, {at: step_ms}, slow)
        yield Stepped(name, received, at, step_ms, limit_ms)


def unstepped(count: int) -> Iterator[tuple[Habits, Pairs]]:
    """Yield streams on which nothing happens."""
    for stream, k in zip(drawn(count, seed=1), range(count), strict=True):
        del stream
        rng = np.random.default_rng([2, k])
        habits = Habits(
            rate_hz=float(rng.choice([10.0, 20.0, 30.0])),
            loss=float(rng.choice([0.0, 0.1, 0.3])),
            vary=0.3 * (k % 4 == 0),
            jitter_ms=float(rng.choice([0.3, 1.0, 3.0])),
        )
        yield habits, pairs(habits, FRAMES, k)


def watch(received: Pairs, at: int, step_ms: float) -> Watched:
    """Let a clock with a latency that is known to 1 ms see the stream."""
    given = InputConfig(latency_s=0.02, latency_sigma_s=1e-3)
    clock = ClockEstimate(given, AdaKFConfig(), EpochConfig(), 1e-3)
    wrong, doubtful, since_locked, noticed = 0, 0, 0, None
    for k, (stamp_ns, arrival_ns) in enumerate(received):
        clock.observe(stamp_ns, arrival_ns)
        locked = clock.state is OffsetState.LOCKED
        since_locked += locked or since_locked > 0
        doubtful += since_locked > 0 and not locked
        if k < at:
            continue
        error_s = abs(clock.offset_ns(arrival_ns) / 1e9 - 1e-3 * step_ms)
        is_wrong = locked and error_s > max(5.0 * clock.host_sigma_s, 0.004)
        queued = arrival_ns - received[k - 1][1] < _TOGETHER * (stamp_ns - received[k - 1][0])
        wrong += is_wrong and not queued
        if noticed is None and not is_wrong:
            noticed = (arrival_ns - received[at][1]) / (1000.0 * MS)
    return Watched(wrong, doubtful / max(since_locked, 1), noticed)
