"""Streams with several faults at once, whose truth is known, and what a clock claims of them.

Motion is stood for by pieces that tell the offset against the IMU with noise of their own, about
one a second; so a thousand streams take a minute. `support/sync_runs.py` has whole engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from rig_common.arrays import Floats
from support.bad_habits import LAWS, MS, START_NS, Habits, pairs, spread_ms
from support.lone_clock import offset_fix
from sync_engine.clocks.offset import ClockEstimate
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.steps import JUMPS
from sync_engine.config import EpochConfig, InputConfig
from sync_engine.config.sync_config import AdaKFConfig

_FIX_S, _IMU_SIGMA_S = 1.0, 1e-3
_FEW = 3
"""Messages for which a clock may be wrong before it has to leave `locked`."""
_TOGETHER_NS = MS
"""Messages that come within this time of each other come out of a queue, and count once."""
LASTS_S = 40.0


@dataclass(frozen=True)
class Trial:
    """One stream; times in ms, from its start."""

    name: str
    habits: Habits
    seed: int
    events: tuple[tuple[float, str, float], ...] = ()
    """(time, kind, size): `step` of the clock, `latency` (of all messages from then on), `pause`
    (nothing comes), `restart` (the clock begins elsewhere; size in s)."""
    swing: tuple[float, float] = (0.0, 100e3)
    """(amplitude, period): the clock wanders."""
    latency_error_ms: float = 0.0
    """By how much the declared latency is too long."""
    latency_sigma_ms: float = 8.0
    fix_sigma_ms: float = 1.5
    """Of a piece of motion; 0: nothing turns."""

    def played(self) -> tuple[list[tuple[int, int]], Floats]:
        """Return (stamp, arrival) in order of arrival, and the clock's true offset at each (s)."""
        count = int(LASTS_S * self.habits.rate_hz)
        received = pairs(replace(self.habits, quantum_ms=0.0, drift_ppm=0.0), count, self.seed)
        stamp, arrival = ((np.array(side) - START_NS) / MS for side in zip(*received, strict=True))
        offset = 1e-6 * self.habits.drift_ppm * stamp
        offset = offset + self.swing[0] * np.sin(2.0 * np.pi * stamp / self.swing[1])
        kept = np.ones(len(stamp), np.bool_)
        capture = stamp
        for at, kind, size in self.events:
            behind = capture >= at
            if kind == 'latency':
                arrival = arrival + np.where(behind, size, 0.0)
            elif kind == 'pause':
                kept &= ~behind | (capture > at + size)
            else:
                offset = offset + np.where(behind, size * (1e3 if kind == 'restart' else 1.0), 0.0)
        stamp = stamp + offset
        if self.habits.quantum_ms:
            stamp = np.round(stamp / self.habits.quantum_ms) * self.habits.quantum_ms
        if not self.habits.overtaking:
            arrival = np.maximum.accumulate(arrival)
        order = np.argsort(arrival, kind='stable')
        order = order[kept[order]]
        made = zip(stamp[order].tolist(), arrival[order].tolist(), strict=True)
        return (
            [(START_NS + round(s * MS), START_NS + round(a * MS)) for s, a in made],
            1e-3 * offset[order],
        )


@dataclass
class Claims:
    """What the clock claimed of one trial."""

    wrong: int = 0
    """Most messages in a row while `locked` and wrong."""
    error_ms: float = 0.0
    """Of the worst of these, with its sigma and time."""
    sigma_ms: float = 0.0
    at_s: float = 0.0
    locked: int = 0
    messages: int = 0
    doubtful: int = 0
    """Of those from the first that was locked on, the ones not `locked`."""
    total: int = 0
    """All messages while `locked` and wrong."""
    jumps: int = 0
    """Steps and restarts that were told."""
    nees: list[float] = field(default_factory=list)


def claims(trial: Trial, sigmas: float = 3.0, floor_ms: float = 2.0) -> Claims:
    """Let a clock see the trial; wrong is beyond `sigmas` and `floor_ms`."""
    rng = np.random.default_rng([trial.seed, 5])
    received, truth = trial.played()
    latency_ms = max(0.0, _least_ms(received, truth) + trial.latency_error_ms)
    given = InputConfig(
        latency_s=1e-3 * latency_ms, latency_sigma_s=1e-3 * trial.latency_sigma_ms, cue_wander=0.02
    )
    clock = ClockEstimate(given, AdaKFConfig(), EpochConfig(), _IMU_SIGMA_S)
    imu_s = float(rng.normal(0.0, _IMU_SIGMA_S))
    found, row, came_ns, resets = Claims(), 0, 0, 0
    waiting: list[float] = []
    fix_ns = received[0][1]
    for (stamp_ns, arrival_ns), true_s in zip(received, truth.tolist(), strict=True):
        verdict = clock.observe(stamp_ns, arrival_ns)
        found.jumps += verdict in JUMPS
        if verdict in JUMPS or clock.resets > resets:
            resets = clock.resets
            waiting.clear()
        waiting.append(true_s)
        if clock.steps.in_doubt:
            pass
        elif arrival_ns - fix_ns > _FIX_S * 1e9:
            fix_ns = arrival_ns
            if trial.fix_sigma_ms and clock.filter is not None:
                noise_s = float(rng.normal(0.0, 1e-3 * trial.fix_sigma_ms))
                shown_s = float(np.median(waiting)) + imu_s + noise_s
                fix = offset_fix(shown_s - clock.base_ns / 1e9, 1e-3 * trial.fix_sigma_ms)
                fix = fix._replace(time_ns=arrival_ns, is_found=clock.filter.motion_count == 0)
                clock.observe_motion(fix, 0.0)
            waiting.clear()
        locked = clock.state is OffsetState.LOCKED
        found.messages += 1
        found.locked += locked
        found.doubtful += found.locked > 0 and not locked
        if locked:
            error_s, sigma_s = _error(clock, arrival_ns, true_s, imu_s)
            is_wrong = abs(error_s) > max(sigmas * sigma_s, 1e-3 * floor_ms)
            found.total += is_wrong
            together = arrival_ns - came_ns < _TOGETHER_NS
            row = (row + (not together or row == 0)) if is_wrong else 0
            if row > found.wrong:
                found.wrong, found.at_s = row, (arrival_ns - START_NS) / 1e9
                found.error_ms, found.sigma_ms = 1e3 * error_s, 1e3 * sigma_s
        else:
            row = 0
        came_ns = arrival_ns
    return found


def _least_ms(received: list[tuple[int, int]], truth: Floats) -> float:
    """Return the smallest delay of about a second, as it is usual in the first ten."""
    stamp, arrival = np.array(received).T
    delay = (arrival - stamp) / MS + 1e3 * truth
    second = (arrival - arrival[0]) // (1000 * MS)
    return float(np.median([delay[second == k].min() for k in range(10) if (second == k).any()]))


def _error(
    clock: ClockEstimate, arrival_ns: int, true_s: float, imu_s: float
) -> tuple[float, float]:
    """Return error and sigma (s) against host or IMU, whichever the clock is surer of."""
    assert clock.variances is not None
    error_s = clock.offset_ns(arrival_ns) / 1e9 - true_s
    if clock.variances[1] < clock.variances[0]:
        error_s -= clock.anchor_ns / 1e9 + imu_s
    return error_s, clock.sigma_s


def trials(count: int, seed: int, kinds: tuple[str, ...] = ()) -> Iterator[Trial]:
    """Yield trials with several faults each; `kinds`: with these and no others."""
    for k in range(count):
        rng = np.random.default_rng([seed, 11, k])
        yield _trial(rng, k, seed, kinds)


FAULTS = (
    'overtaking', 'batches', 'loss', 'vary', 'quantum', 'drift', 'swing', 'step', 'small step',
    'latency', 'pause', 'restart', 'lie', 'stalls', 'early', 'no motion', 'slow',
)  # fmt: skip


def _trial(rng: np.random.Generator, k: int, seed: int, kinds: tuple[str, ...]) -> Trial:
    chosen = kinds or tuple(rng.choice(FAULTS, int(rng.integers(1, 5)), replace=False))
    fast = 'overtaking' in chosen and 'slow' not in chosen
    rate_hz = float(rng.uniform(50.0, 240.0) if fast else rng.choice([10.0, 20.0, 30.0, 100.0]))
    rate_hz = float(rng.choice([1.0, 2.0, 5.0])) if 'slow' in chosen else rate_hz
    period_ms = 1e3 / rate_hz
    jitter_ms = float(np.exp(rng.uniform(np.log(0.3), np.log(5.0))))
    jitter_ms *= period_ms if fast else 1.0
    habits = Habits(
        rate_hz=rate_hz,
        loss=float(rng.choice([0.05, 0.1, 0.3, 0.45])) if 'loss' in chosen else 0.0,
        vary=float(rng.uniform(0.05, 0.4)) if 'vary' in chosen else 0.0,
        stamp_jitter_ms=float(rng.choice([0.0, 0.05, 0.2, 1.0])),
        jitter_ms=jitter_ms,
        law=str(rng.choice(['exponential', *LAWS])),
        overtaking='overtaking' in chosen,
        early=0.03 if 'early' in chosen else 0.0,
        stalls=int(rng.integers(1, 5)) if 'stalls' in chosen else 0,
        batch=int(rng.integers(2, 9)) if 'batches' in chosen else 1,
        quantum_ms=float(rng.choice([1.0, 4.0, 10.0])) if 'quantum' in chosen else 0.0,
        drift_ppm=float(rng.uniform(-60.0, 60.0)) if 'drift' in chosen else 0.0,
    )
    events: list[tuple[float, str, float]] = []
    limit_ms = max(5.0, 3.5 * spread_ms(pairs(habits, 600, seed + k)))
    sign = rng.choice([-1.0, 1.0])
    if 'step' in chosen:
        whole = rng.random() < 0.4
        size_ms = period_ms * float(rng.integers(1, 4)) if whole else limit_ms
        size_ms = max(size_ms, limit_ms) * (1.0 if whole else float(rng.uniform(1.0, 6.0)))
        events.append((float(rng.uniform(15e3, 30e3)), 'step', sign * size_ms))
    elif 'small step' in chosen:
        size_ms = limit_ms * float(rng.uniform(0.2, 1.0))
        events.append((float(rng.uniform(15e3, 30e3)), 'step', sign * size_ms))
    if 'latency' in chosen and not {'no motion', 'restart'} <= set(chosen):
        size_ms = float(rng.choice([5.0, 20.0, 100.0]))
        size_ms *= float(rng.choice([1.0, 1.0, -0.15]))
        events.append((float(rng.uniform(5e3, 35e3)), 'latency', size_ms))
    if 'pause' in chosen and not {'no motion', 'latency'} <= set(chosen):  # else it starts anew
        events.append(
            (float(rng.uniform(5e3, 25e3)), 'pause', float(rng.choice([1e3, 4e3, 12e3])))
        )
    if 'restart' in chosen:
        size_s = float(rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(0.2, 4.0))
        events.append((float(rng.uniform(5e3, 35e3)), 'restart', size_s))
    lies = 'lie' in chosen and 'no motion' not in chosen
    sigma_ms = 1.0 if 'no motion' in chosen else 2.0 if lies else 8.0
    error_ms = float(rng.uniform(-20.0, 80.0) if lies else rng.normal(0.0, sigma_ms))
    swing = (float(rng.uniform(1.0, 5.0)), float(rng.uniform(100e3, 400e3)))
    return Trial(
        f'{k}: {" + ".join(chosen)}', habits, seed * 10_000 + k, tuple(sorted(events)),
        swing if 'swing' in chosen else (0.0, 100e3), error_ms, sigma_ms,
        0.0 if 'no motion' in chosen else float(rng.choice([0.7, 1.5, 4.0])),
    )  # fmt: skip
