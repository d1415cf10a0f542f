"""The smallest arrival - stamp of a block, where messages are late by chance and where early."""

from __future__ import annotations

import numpy as np
import pytest

from sync_engine.clocks.arrivals import ArrivalBlocks

US = 1000


def levels(delays_us: np.ndarray, block: int = 30) -> tuple[list[float], ArrivalBlocks]:
    blocks, found = ArrivalBlocks(), []
    for k, delay in enumerate(delays_us.tolist()):
        blocks.add(round(delay * US))
        if k % block == block - 1:
            found.append(blocks.close() / US)
    return found, blocks


def test_the_smallest_is_taken_where_messages_are_late_by_chance() -> None:
    rng = np.random.default_rng(1)
    found, blocks = levels(20_000 + rng.exponential(3000.0, 3000))
    assert blocks.rank == 0.0
    assert np.mean(found) == pytest.approx(20_100, abs=50)


@pytest.mark.parametrize('seed', range(5))
def test_the_median_is_taken_where_messages_are_early_by_chance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    early = np.where(rng.random(6000) < 0.05, rng.exponential(4000.0, 6000), 0.0)
    found, blocks = levels(20_000 + rng.normal(0.0, 100.0, 6000) - early)
    assert blocks.rank > 0.0
    settled = np.array(found[40:])
    assert settled.std() < 60.0  # the smallest of a block scatters by 3 ms
    assert blocks.variance_s2 == pytest.approx(settled.var() * 1e-12, rel=1.0)


def test_what_is_taken_does_not_jump_when_the_measure_changes() -> None:
    rng = np.random.default_rng(3)
    late = 20_000 + rng.exponential(500.0, 1500)
    early = (
        20_000
        + rng.exponential(500.0, 6000)
        - np.where(rng.random(6000) < 0.05, rng.exponential(6000.0, 6000), 0.0)
    )
    found, blocks = levels(np.concatenate([late, early]))
    assert blocks.rank > 0.0
    assert np.median(found[-60:]) > 13_000


@pytest.mark.parametrize('seed', range(5))
def test_a_rank_in_between_is_taken_where_a_few_are_early_and_the_others_late(seed: int) -> None:
    rng = np.random.default_rng(seed)
    early = np.where(rng.random(6000) < 0.02, rng.uniform(0.0, 4000.0, 6000), 0.0)
    delays = 20_000 + rng.exponential(2000.0, 6000) - early
    found, blocks = levels(delays)
    assert 0.0 < blocks.rank < 0.5
    by_rank = np.sort(delays.reshape(-1, 30)[40:], axis=1)
    taken = np.array(found[40:])
    assert np.diff(taken).std() < 0.7 * np.diff(by_rank[:, 0]).std()
    assert np.diff(taken).std() < 0.7 * np.diff(by_rank[:, 15]).std()
