"""Random numbers as a hash of their index: no state, no order, any device.

    word(lane, k, j) = mix(base(lane) + (k * words + j) * GOLDEN)        SplitMix64, 64 bits

`base` is a hash of key, environment and episode. A uniform is made of one word, a float64 normal
of two (Box and Muller), and float32 normals are looked up four to a word in a table of 65536
quantiles: exact means of equal slices of the normal distribution, of unit variance, none beyond
4.3. The words are the same on every device, and so are uniforms and float32 normals.

Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import DTypeLike

from rig_common.arrays import Ints
from sim_sensors.timing.arrays import Array, Arrays, Rows, arrays_holding
from sim_sensors.timing.randomness.lanes import Lanes

GOLDEN = -7046029254386353131
"""2^64 / golden ratio, as a signed number: torch knows no unsigned ones."""
ROUNDS, LAST_SHIFT = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)), 31
"""Shifts and factors of the finaliser of SplitMix64, and the shift that ends it."""
LEVELS = 65536
FEW_WORDS = 8
"""Words an index up to which NumPy adds a row to every row slowly, so that sums are kept."""


def mix(words: Ints) -> Ints:
    """Return the finaliser of SplitMix64 of signed `words`, in place."""
    if arrays_holding(words).is_numpy:  # unsigned shifts are several times faster there
        unsigned = words.view(np.uint64)
        for shift, factor in ROUNDS:
            unsigned ^= unsigned >> np.uint64(shift)
            unsigned *= np.uint64(factor)
        unsigned ^= unsigned >> np.uint64(LAST_SHIFT)
        return words
    for shift, factor in ROUNDS:
        words ^= (words >> shift) & ((1 << 64 - shift) - 1)  # a shift brings in zeros
        words *= factor - 2**64
    words ^= (words >> LAST_SHIFT) & ((1 << 64 - LAST_SHIFT) - 1)
    return words


class HashedNumbers:
    """The numbers of one stream, of whichever indices are asked for."""

    def __init__(
        self,
        lanes: Lanes,
        stream: str,
        width: int,
        size: int = 1,
        kind: str = 'normal',
        dtype: DTypeLike = np.float64,
    ) -> None:
        """Make `width` numbers an index; `size` is how many indices `blocks` returns at once."""
        self._lanes, self._xp = lanes, lanes.xp
        self._width, self._size, self._kind = width, size, kind
        self._single = np.dtype(dtype) == np.float32 and kind == 'normal'
        self._words = (
            -(-width // 4) if self._single else width if kind == 'uniform' else 2 * -(-width // 2)
        )
        self._stride = (self._words * GOLDEN + 2**63) % 2**64 - 2**63
        self._steps = lanes.xp.arange(self._words) * GOLDEN
        self._table = lanes.xp.asarray(_table()) if self._single else None
        keys = lanes.keys(stream)[:, 0].astype(np.int64)
        self._key = lanes.xp.asarray(np.tile(keys, lanes.num_envs))
        self._base = lanes.xp.zeros(len(lanes), np.int64)
        self._first: Ints | None = None
        """The words' sums of index 0, [lanes, words], where they are few."""
        if lanes.xp.is_numpy and self._words <= FEW_WORDS:
            self._first = np.zeros((len(lanes), self._words), np.int64)
        self.reset(slice(None))

    def reset(self, envs: Rows) -> None:
        """Begin the present episode of `envs`."""
        lanes = self._lanes
        base = mix(self._key[envs] + (lanes.envs[envs] + 1) * GOLDEN)
        self._base[envs] = mix(base + (lanes.episode[envs] + 1) * GOLDEN)
        if self._first is not None:
            self._first[envs] = self._base[envs][:, None] + self._steps

    def at(self, envs: Rows, k: Ints) -> Array:
        """Return the numbers of index `k` [n] of `envs`, [n, width], the caller's own."""
        if self._first is not None and isinstance(envs, slice) and (k == k[0]).all():
            start = k[:1] * self._stride  # all at one index, as nearly always
            return self._made(mix(self._first + start[0]))
        start = k * self._stride + self._base[envs]
        return self._made(mix(start[:, None] + self._steps))

    def blocks(self, envs: Rows, blocks: Ints) -> Array:
        """Return block `blocks` [n] of `envs` [n], [n, size, width]."""
        index = (blocks * self._size)[:, None] + self._xp.arange(self._size)
        words = (index * self._stride)[..., None] + self._base[envs][:, None, None] + self._steps
        return self._made(mix(words))

    def _made(self, words: Ints) -> Array:
        """Turn words [..., words] into numbers [..., width]."""
        if self._table is not None:
            return _looked_up(self._xp, self._table, words, self._width)
        fraction = self._xp.astype((words >> 11) & 0x1FFFFFFFFFFFFF, np.float64) * 2.0**-53
        if self._kind == 'uniform':
            return fraction
        half = self._words // 2
        radius = self._xp.sqrt(-2.0 * self._xp.log(1.0 - fraction[..., :half]))
        angle = 2.0 * np.pi * fraction[..., half:]
        both = [radius * self._xp.cos(angle), radius * self._xp.sin(angle)]
        return self._xp.concat(both, -1)[..., : self._width]


def _looked_up(xp: Arrays, table: Array, words: Ints, width: int) -> Array:
    """Return float32 normals [..., width], four of them from a word."""
    if xp.is_numpy:
        return table.take(words.view(np.uint16)[..., :width])
    parts = [((words >> shift) & 0xFFFF)[..., None] for shift in (0, 16, 32, 48)]
    return table[xp.concat(parts, -1).reshape(*words.shape[:-1], -1)[..., :width]]


@lru_cache
def _table() -> Array:
    """Return the means of LEVELS equal slices of the normal distribution, scaled to variance 1."""
    from scipy import special

    edges = special.ndtri(np.linspace(0.0, 1.0, LEVELS + 1))
    density = np.exp(-edges * edges / 2.0) / np.sqrt(2.0 * np.pi)
    means = (density[:-1] - density[1:]) * LEVELS
    return np.asarray(means / np.sqrt((means * means).mean()), np.float32)
