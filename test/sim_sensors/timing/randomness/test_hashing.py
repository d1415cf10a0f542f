"""Numbers made by a hash of their index: the published words, the right law, no neighbours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from sim_sensors.timing.randomness.hashing import GOLDEN, HashedNumbers, mix
from sim_sensors.timing.randomness.lanes import Lanes

EVERY = slice(None)


def numbers(
    width: int = 6,
    kind: str = 'normal',
    dtype: type = np.float32,
    names: tuple[str, ...] = ('imu',),
    num_envs: int = 50,
) -> HashedNumbers:
    return HashedNumbers(Lanes(7, names, num_envs), 'white', width, 4, kind, dtype)


def test_the_words_are_those_of_splitmix64() -> None:
    words = mix(np.arange(1, 4) * GOLDEN).view(np.uint64)  # seed 0, as in the reference code
    assert words.tolist() == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


@pytest.mark.parametrize(
    ('kind', 'dtype', 'law'),
    [
        ('normal', np.float32, 'norm'),
        ('normal', np.float64, 'norm'),
        ('uniform', np.float64, 'uniform'),
    ],
)
def test_the_law_is_right(kind: str, dtype: type, law: str) -> None:
    stream = numbers(kind=kind, dtype=dtype)
    drawn = np.stack([stream.at(EVERY, np.full(50, k)) for k in range(400)])
    assert stats.kstest(drawn.ravel(), law).pvalue > 1e-3
    centred = (drawn - drawn.mean()) / drawn.std()
    for shifted in (
        centred[1:] * centred[:-1],
        centred[:, 1:] * centred[:, :-1],
        centred[..., 1:] * centred[..., :-1],
    ):
        assert abs(shifted.mean()) < 5.0 / np.sqrt(shifted.size)


def test_normals_of_a_table_have_unit_variance_and_tails() -> None:
    stream = numbers(4, num_envs=1000)
    drawn = np.concatenate([stream.at(EVERY, np.full(1000, k)) for k in range(200)])
    assert drawn.std() == pytest.approx(1.0, abs=0.005)
    assert stats.kurtosis(drawn.ravel()) == pytest.approx(0.0, abs=0.03)
    assert np.abs(drawn).max() > 4.0


def test_blocks_and_single_indices_are_the_same_numbers() -> None:
    stream = numbers()
    block = stream.blocks(np.arange(50), np.full(50, 3))
    assert np.array_equal(block[:, 2], stream.at(EVERY, np.full(50, 14)))


def test_lanes_are_named_after_their_sensor() -> None:
    both = numbers(names=('left', 'right'), num_envs=3).at(EVERY, np.zeros(6, np.int64))
    right = numbers(names=('right',), num_envs=3).at(EVERY, np.zeros(3, np.int64))
    assert np.array_equal(both[1::2], right)
    assert len(np.unique(both)) > 30
