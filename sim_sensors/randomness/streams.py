"""Random numbers by index: (seed, sensor, stream, environment, episode, k) gives the same bits.

Nothing is drawn in passing. A counter-based generator (Philox) is set to the block that holds
index k and fills it whole, so skipping captures, adding environments, resetting some of them or
running in another process changes no number.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sim_sensors.pipeline.layout import Array

Rows = slice | NDArray[np.intp]
Indices = NDArray[np.int64]
Kind = Literal['normal', 'uniform']

VALUES_PER_BLOCK = 1024
"""Large enough to hide what it takes to set the generator, small enough for the cache."""
MAX_BLOCK = 256
GROUP = 32
"""Neighbouring environments whose blocks begin together."""


class Captures(Protocol):
    """Which numbers are asked for: one row a capture."""

    @property
    def envs(self) -> Rows:
        """Select the rows' environments."""

    @property
    def index(self) -> Indices:
        """Capture index k of each row, [n]."""

    @property
    def time_ns(self) -> Indices:
        """True time of each capture, ns [n]."""


class NoiseStream:
    """Standard normals or uniforms [0, 1) of one width, by (environment, episode, index).

    One block of consecutive indices is kept per environment. Block borders are staggered over
    groups of environments, so that a batch stepping together refills a few of them at every step
    rather than all of them now and then. Indices lie outermost: neighbours are read together.
    """

    def __init__(self, seed: int, sensor: str, stream: str, width: int, episode: Indices,
                 kind: Kind = 'normal', dtype: DTypeLike = np.float64,
                 values_per_block: int = VALUES_PER_BLOCK) -> None:
        """Make stream `stream` of `sensor`; `episode` [num_envs] is shared, not copied."""
        num_envs = len(episode)
        self._episode = episode
        self._shift = _block_shift(width, values_per_block)
        self._mask = (1 << self._shift) - 1
        self._dtype = np.dtype(dtype)
        self._blocks = np.empty((self._mask + 1, num_envs, width), self._dtype)
        self._rows = self._blocks.reshape(-1, width)
        self._envs = np.arange(num_envs)
        self._stagger = (self._envs // GROUP) & self._mask
        self._held = np.full(num_envs, -1, np.int64)
        self._philox = np.random.Philox(key=_key(seed, sensor, stream))
        self._state: Any = dict(self._philox.state)
        self._counter = np.zeros(4, np.uint64)
        self._state['state'] = {**self._state['state'], 'counter': self._counter}
        generator = np.random.Generator(self._philox)
        self._draw: Any = generator.standard_normal if kind == 'normal' else generator.random

    def at(self, envs: Rows, k: Indices) -> Array:
        """Return the numbers of index `k` [n] of `envs`, [n, width], the caller's own."""
        if len(self._held) == 1:
            return self._at_one(k.item())
        place = k + self._stagger[envs]
        block = place >> self._shift
        stale = block != self._held[envs]
        if stale.any():
            rows = stale.nonzero()[0]
            self._refill(rows if isinstance(envs, slice) else envs[rows], block[rows])
        place &= self._mask
        place *= len(self._held)
        place += self._envs[envs]
        return self._rows.take(place, axis=0)

    def first(self, envs: Rows) -> Array:
        """Return the numbers of index 0, of a stream that is asked for no other."""
        if len(self._held) == 1:
            return self._at_one(0)
        stale = self._held[envs] != 0
        if stale.any():
            rows = stale.nonzero()[0]
            self._refill(rows if isinstance(envs, slice) else envs[rows], np.zeros_like(rows))
        return self._blocks[0, envs].copy()

    def _at_one(self, k: int) -> Array:
        """Answer for the only environment there is, without arrays of indices."""
        block = k >> self._shift
        if block != self._held.item():
            self._refill(self._envs, np.array([block]))
        row = k & self._mask
        return self._rows[row:row + 1].copy()

    def _refill(self, envs: NDArray[np.intp], blocks: Indices) -> None:
        """Bring block `blocks` [n] of `envs` [n] (no slice here) into the cache."""
        for start in range(0, len(envs), GROUP):
            group = envs[start:start + GROUP]
            drawn = self._drawn(group, blocks[start:start + GROUP])
            self._blocks[:, group] = drawn.transpose(1, 0, 2)
        self._held[envs] = blocks

    def _drawn(self, envs: NDArray[np.intp], blocks: Indices) -> Array:
        """Return block `blocks` [n] of `envs` [n], drawn anew, [n, size, width]."""
        out = np.empty((len(envs), self._mask + 1, self._rows.shape[1]), self._dtype)
        counter, draw, dtype = self._counter, self._draw, self._dtype
        for row, (env, block) in enumerate(zip(envs.tolist(), blocks.tolist(), strict=True)):
            counter[1], counter[2], counter[3] = block, env, self._episode[env]
            self._philox.state = self._state
            draw(dtype=dtype, out=out[row])
        return out

    def reset(self, envs: Rows) -> None:
        """Forget the blocks of `envs`, whose episode has changed."""
        self._held[envs] = -1


def _key(seed: int, sensor: str, stream: str) -> NDArray[np.uint64]:
    """Return Philox's key; a sensor's numbers depend on its name, never on its place in a list."""
    digest = sha256(f'{seed}\0{sensor}\0{stream}'.encode()).digest()
    return np.frombuffer(digest[:16], '<u8').astype(np.uint64)


def _block_shift(width: int, values_per_block: int) -> int:
    """Return log2 of the number of indices in a block."""
    return max(0, min(MAX_BLOCK, values_per_block // max(width, 1)).bit_length() - 1)
