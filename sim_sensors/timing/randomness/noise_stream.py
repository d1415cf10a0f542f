"""Random numbers by index: (seed, sensor, stream, environment, episode, k) gives the same bits.

Nothing is drawn in passing. A counter-based generator (Philox) is set to the block that holds
index k and fills it whole, so skipping captures, adding environments, resetting some of them or
running in another process changes no number.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike

from rig_common.arrays import Ids, Ints
from sim_sensors.timing.arrays import Array, Rows
from sim_sensors.timing.randomness.hashing import HashedNumbers
from sim_sensors.timing.randomness.lanes import Lanes

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
    def index(self) -> Ints:
        """Capture index k of each row, [n]."""

    @property
    def time_ns(self) -> Ints:
        """True time of each capture, ns [n]."""


class PhiloxNumbers:
    """Blocks of numbers drawn by NumPy's Philox on the host, with the bits that it has there."""

    def __init__(
        self, lanes: Lanes, stream: str, width: int, size: int, kind: Kind, dtype: DTypeLike
    ) -> None:
        """Draw `size` indices of `width` numbers at once."""
        self._lanes, self._shape, self._dtype = lanes, (size, width), np.dtype(dtype)
        self._keys = lanes.keys(stream)
        self._philox = np.random.Philox(key=self._keys[0])
        self._state: Any = dict(self._philox.state)
        self._counter = np.zeros(4, np.uint64)
        self._key = self._keys[0].copy()
        self._state['state'] = {'counter': self._counter, 'key': self._key}
        generator = np.random.Generator(self._philox)
        self._draw: Any = generator.standard_normal if kind == 'normal' else generator.random

    def blocks(self, lanes: Ids, blocks: Ints) -> Array:
        """Return block `blocks` [n] of `lanes` [n], [n, size, width]."""
        out = np.empty((len(lanes), *self._shape), self._dtype)
        counter, draw, dtype, members = self._counter, self._draw, self._dtype, len(self._keys)
        addresses = zip(
            out,
            lanes.tolist(),
            blocks.tolist(),
            self._lanes.envs[lanes].tolist(),
            self._lanes.episode[lanes].tolist(),
            strict=True,
        )
        for row, lane, *counter[1:] in addresses:
            if members > 1:
                self._key[:] = self._keys[lane % members]
            self._philox.state = self._state
            draw(dtype=dtype, out=row)
        return self._lanes.xp.asarray(out)

    def reset(self, envs: Rows) -> None:
        """Nothing is remembered: the episode is looked up."""


class NoiseStream:
    """Standard normals or uniforms [0, 1) of one width, by (environment, episode, index).

    One block of consecutive indices is kept per lane. Block borders are staggered over groups of
    environments, so that a batch stepping together refills a few of them at every step rather than
    all of them now and then. Indices lie outermost: neighbours are read together.
    """

    def __init__(
        self,
        lanes: Lanes,
        stream: str,
        width: int,
        kind: Kind = 'normal',
        dtype: DTypeLike = np.float64,
        values_per_block: int = VALUES_PER_BLOCK,
    ) -> None:
        """Make stream `stream` of `lanes`."""
        self._xp = xp = lanes.xp
        count = len(lanes)
        self._shift = _block_shift(width, values_per_block)
        self._mask = (1 << self._shift) - 1
        self._blocks = xp.empty((self._mask + 1, count, width), dtype)
        self._rows = self._blocks.reshape(-1, width)
        self._lanes = xp.arange(count)
        self._stagger = (lanes.envs // GROUP) & self._mask
        self._held = xp.full(count, -1, np.int64)
        self._numbers = (PhiloxNumbers if lanes.xp.draws_on_host else HashedNumbers)(
            lanes, stream, width, self._mask + 1, kind, dtype
        )

    def at(self, envs: Rows, k: Ints) -> Array:
        """Return the numbers of index `k` [n] of `envs`, [n, width], the caller's own."""
        if len(self._held) == 1:
            return self._at_one(k.item()) if len(k) == 1 else self._at_many(k)
        place = k + self._stagger[envs]
        block = place >> self._shift
        stale = block != self._held[envs]
        if stale.any():
            rows = self._xp.indices(stale)
            self._refill(rows if isinstance(envs, slice) else envs[rows], block[rows])
        place &= self._mask
        place *= len(self._held)
        place += self._lanes[envs]
        return self._xp.take(self._rows, place)

    def first(self, envs: Rows) -> Array:
        """Return the numbers of index 0, of a stream that is asked for no other; do not write."""
        if len(self._held) == 1 and not self._held.item():
            return self._rows[:1]
        stale = self._held[envs] != 0
        if stale.any():
            rows = self._xp.indices(stale)
            self._refill(
                rows if isinstance(envs, slice) else envs[rows],
                self._xp.zeros(len(rows), np.int64),
            )
        return self._blocks[0, envs]

    def _at_one(self, k: int) -> Array:
        """Answer for the only lane there is, without arrays of indices."""
        self._hold(k >> self._shift)
        row = k & self._mask
        return self._xp.copy(self._rows[row : row + 1])

    def _at_many(self, k: Ints) -> Array:
        """Answer for several indices of the only lane there is, block after block."""
        parts = []
        for part in np.split(k, np.flatnonzero(np.diff(k >> self._shift)) + 1):
            self._hold(int(part[0]) >> self._shift)
            parts.append(self._xp.take(self._rows, part & self._mask))
        return self._xp.concat(parts, 0)

    def _hold(self, block: int) -> None:
        if block != self._held.item():
            self._refill(self._lanes, self._xp.asarray(np.array([block])))

    def _refill(self, lanes: Ids, blocks: Ints) -> None:
        """Bring block `blocks` [n] of `lanes` [n] (no slice here) into the cache."""
        for start in range(0, len(lanes), GROUP):
            group = lanes[start : start + GROUP]
            drawn = self._drawn(group, blocks[start : start + GROUP])
            first, last = int(group[0]), int(group[-1])
            # neighbours, as nearly always, lie in one piece
            place = slice(first, last + 1) if last - first == len(group) - 1 else group
            self._blocks[:, place] = drawn.swapaxes(0, 1)
        self._held[lanes] = blocks

    def _drawn(self, lanes: Ids, blocks: Ints) -> Array:
        """Return block `blocks` [n] of `lanes` [n], drawn again, [n, size, width]."""
        return self._numbers.blocks(lanes, blocks)

    def reset(self, envs: Rows) -> None:
        """Forget the blocks of `envs`, whose episode has changed."""
        self._held[envs] = -1
        self._numbers.reset(envs)


def _block_shift(width: int, values_per_block: int) -> int:
    """Return log2 of the number of indices in a block."""
    return max(0, min(MAX_BLOCK, values_per_block // max(width, 1)).bit_length() - 1)
