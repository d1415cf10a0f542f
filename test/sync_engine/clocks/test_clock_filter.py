"""The offset filter: consistent with its own sigmas, and right about what jumped."""

from __future__ import annotations

import numpy as np
import pytest
from support.lone_clock import offset_fix

from sync_engine.clocks.channel import GateResult
from sync_engine.clocks.clock_filter import ClockFilter, ClockPrior
from sync_engine.config import AdaKFConfig

CONFIG = AdaKFConfig()
LATENCY_SIGMA, ANCHOR_SIGMA, SKEW_SIGMA = 0.008, 0.001, 3e-5


def prior(offset_s: float = 0.0, latency_s: float = 0.02) -> ClockPrior:
    return ClockPrior(
        offset_s=offset_s,
        offset_sigma_s=0.001,
        latency_s=latency_s,
        latency_sigma_s=LATENCY_SIGMA,
        skew_sigma=SKEW_SIGMA,
        anchor_sigma_s=ANCHOR_SIGMA,
        is_anchor=False,
        tied=True,
        wander_chance=0.02,
    )


class World:
    """A clock drawn from the prior, walking as the filter's model says it may."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        latency = 0.02 + self.rng.normal(0.0, LATENCY_SIGMA)
        offset = latency - 0.02 + self.rng.normal(0.0, 0.001)
        anchor = self.rng.normal(0.0, ANCHOR_SIGMA)
        self.x = np.array([offset, self.rng.normal(0.0, SKEW_SIGMA), latency, anchor])

    def walk(self, dt: float) -> None:
        walks = (CONFIG.offset_walk_s, CONFIG.skew_walk, CONFIG.latency_walk_s)
        self.x[0] += self.x[1] * dt
        self.x[:3] += self.rng.normal(0.0, walks) * np.sqrt(dt)

    def arrival(self, sigma: float = 0.0008) -> float:
        return float(self.x[0] - self.x[2] + self.rng.normal(0.0, sigma))

    def motion(self, sigma: float = 0.003) -> float:
        return float(self.x[0] - self.x[3] + self.rng.normal(0.0, sigma))


def tell(clock: ClockFilter, offset_s: float, sigma_s: float) -> GateResult:
    """Hand over a piece of motion that tells the offset alone."""
    return clock.observe_motion(offset_fix(offset_s, sigma_s), clock.time_s, 0.0)


def play(world: World, clock: ClockFilter, seconds: int, motion: bool = True) -> list[float]:
    nis = []
    clock.set_arrival_noise(0.0008**2)
    for _ in range(seconds):
        world.walk(1.0)
        clock.predict(clock.time_s + 1.0)
        z = world.arrival()
        expected = clock.arrival_var + clock.arrival_noise
        nis.append((z - clock.offset_s + clock.latency_s) ** 2 / expected)
        clock.observe_arrival(z)
        if motion:
            tell(clock, world.motion(), 0.003)
    return nis


def nees(world: World, clock: ClockFilter) -> float:
    error = clock.state[:4] - world.x
    return float(error @ np.linalg.solve(clock.covariance[:4, :4], error))


@pytest.mark.parametrize('motion', [True, False])
def test_errors_are_as_large_as_the_covariance_says(motion: bool) -> None:
    """Mean NEES of 4 states over 60 clocks: 4 if consistent; 3 sigma of that mean is 1.1."""
    values = []
    for seed in range(60):
        world, clock = World(seed), ClockFilter(prior(), CONFIG)
        play(world, clock, 60, motion)
        values.append(nees(world, clock))
    assert 2.5 < np.mean(values) < 5.5


def test_innovations_are_as_large_as_expected() -> None:
    """Mean NIS is 1 if consistent; the noise itself is estimated, so a little slack."""
    nis = [v for seed in range(20) for v in play(World(seed), ClockFilter(prior(), CONFIG), 120)]
    assert 0.75 < np.mean(nis) < 1.25


def test_arrival_alone_leaves_the_latency_prior_in_the_sigma() -> None:
    world, clock = World(1), ClockFilter(prior(), CONFIG)
    play(world, clock, 120, motion=False)
    assert clock.sigma_s == pytest.approx(LATENCY_SIGMA, rel=0.1)
    assert abs(clock.offset_s - clock.latency_s - (world.x[0] - world.x[2])) < 0.0005


def test_motion_pins_the_offset_to_the_imu_and_keeps_the_hosts_sigma() -> None:
    world, clock = World(2), ClockFilter(prior(), CONFIG)
    play(world, clock, 120)
    assert clock.sigma_s < 0.001
    assert np.sqrt(clock.known().offset_var) == pytest.approx(ANCHOR_SIGMA, rel=0.3)
    found = clock.offset_s - clock.state[3]
    assert abs(found - (world.x[0] - world.x[3])) < 0.0015


def test_skew_is_found() -> None:
    clock = ClockFilter(prior(), CONFIG)
    for second in range(1, 120):
        clock.predict(float(second))
        clock.observe_arrival(-0.02 + 25e-6 * second)
    assert clock.known().skew == pytest.approx(25e-6, abs=1e-6)


def settled(seed: int = 3) -> tuple[World, ClockFilter]:
    world, clock = World(seed), ClockFilter(prior(), CONFIG)
    play(world, clock, 60)
    return world, clock


def test_one_outlier_is_rejected_and_changes_nothing() -> None:
    world, clock = settled()
    before = clock.offset_s
    clock.predict(clock.time_s + 1.0)
    assert tell(clock, world.motion() + 0.05, 0.003) is GateResult.REJECTED
    assert abs(clock.offset_s - before) < 1e-4


def test_a_latency_step_moves_the_latency_and_not_the_offset() -> None:
    world, clock = settled()
    before = clock.offset_s
    world.x[2] += 0.015
    outcomes = []
    for _ in range(5):
        world.walk(1.0)
        clock.predict(clock.time_s + 1.0)
        outcomes.append(clock.observe_arrival(world.arrival()))
    assert outcomes[:3] == [GateResult.REJECTED, GateResult.JUMP, GateResult.ACCEPTED]
    assert abs(clock.offset_s - before) < 0.0005
    assert clock.latency_s == pytest.approx(world.x[2], abs=0.002)


def test_motion_that_insists_moves_offset_and_latency_together() -> None:
    world, clock = settled()
    world.x[0] += 0.02
    world.x[2] += 0.02  # what arrival sees stays the same
    for _ in range(8):
        world.walk(1.0)
        clock.predict(clock.time_s + 1.0)
        assert clock.observe_arrival(world.arrival()) is not GateResult.JUMP
        tell(clock, world.motion(), 0.003)
    assert abs(clock.offset_s - clock.state[3] - (world.x[0] - world.x[3])) < 0.004


def test_honest_motion_after_a_quiet_stretch_is_no_jump() -> None:
    """Forty fixes that happened to be good make no fix better than it claims to be."""
    _, clock = settled()
    claimed_s = 0.003
    for _ in range(40):
        clock.predict(clock.time_s + 1.0)
        tell(clock, clock.offset_s - clock.state[3], claimed_s)
    before = clock.offset_s
    for _ in range(2):
        clock.predict(clock.time_s + 1.0)
        z = clock.offset_s - clock.state[3] + 2.5 * claimed_s
        assert tell(clock, z, claimed_s) is GateResult.ACCEPTED
    assert abs(clock.offset_s - before) < 2.0 * clock.sigma_s


def test_a_step_that_was_seen_moves_the_offset_at_once() -> None:
    world, clock = settled()
    sure = clock.sigma_s
    clock.step_clock(0.05, 0.0003)
    world.x[0] += 0.05
    assert abs(clock.offset_s - clock.state[3] - (world.x[0] - world.x[3])) < 0.002
    assert sure < clock.sigma_s < sure + 0.0004


def test_dump_and_load() -> None:
    _, clock = settled()
    other = ClockFilter(prior(), CONFIG)
    other.load(clock.dump())
    assert other.state[:4] == pytest.approx(clock.state[:4])
    assert other.sigma_s == pytest.approx(clock.sigma_s)
    with pytest.raises(ValueError, match='finite'):
        other.load({**clock.dump(), 'x': [float('nan'), 0.0, 0.0, 0.0]})
