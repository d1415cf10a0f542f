"""Random numbers by index: (seed, sensor, stream, environment, episode, k) gives the same bits.

Nothing is drawn in passing. A counter-based generator (Philox) is set to the block that holds
index k and fills it whole, so skipping captures, adding environments, resetting some of them or
running in another process changes no number. What accumulates (random walks, Gauss-Markov biases)
advances through every period that elapsed, read or not.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sim_sensors.layout import Array

if TYPE_CHECKING:
    from sim_sensors.imperfections import Generic
    from sim_sensors.sensors.base import Batch

Rows = slice | NDArray[np.intp]
Indices = NDArray[np.int64]
Kind = Literal['normal', 'uniform']

VALUES_PER_BLOCK = 1024
"""Large enough to hide the 3 us it takes to set the generator, small enough for the cache."""
MAX_BLOCK = 256


class NoiseStream:
    """Standard normals or uniforms [0, 1) of one width, by (environment, episode, index).

    One block of consecutive indices is kept per environment. Block borders are staggered over
    environments, so that a batch stepping together refills a few of them at every step rather than
    all of them now and then.
    """

    def __init__(self, seed: int, sensor: str, stream: str, width: int, episode: Indices,
                 kind: Kind = 'normal', dtype: DTypeLike = np.float64) -> None:
        """Make stream `stream` of `sensor`; `episode` [num_envs] is shared, not copied."""
        num_envs = len(episode)
        self.width = width
        self._episode = episode
        self._shift = _block_shift(width)
        self._mask = (1 << self._shift) - 1
        self._dtype = np.dtype(dtype)
        self._values = np.empty((num_envs << self._shift, width), self._dtype)
        env = np.arange(num_envs)
        self._by_env = self._values.reshape(num_envs, -1, width)
        self._first = env << self._shift
        self._stagger = env & self._mask
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
            return self._at_one(int(k[0]))
        place = k + self._stagger[envs]
        block = place >> self._shift
        stale = block != self._held[envs]
        if stale.any():
            rows = stale.nonzero()[0]
            self._refill(rows if isinstance(envs, slice) else envs[rows], block[rows])
        place &= self._mask
        place += self._first[envs]
        return self._values.take(place, axis=0)

    def _at_one(self, k: int) -> Array:
        """Answer for the only environment there is, without arrays of indices."""
        block = k >> self._shift
        if block != self._held[0]:
            self._refill(np.zeros(1, np.intp), np.array([block]))
        row = k & self._mask
        return self._values[row:row + 1].copy()

    def _refill(self, envs: NDArray[np.intp], blocks: Indices) -> None:
        """Bring block `blocks` [n] of `envs` [n] (no slice here) into the cache."""
        counter, size = self._counter, self._mask + 1
        for env, block in zip(envs.tolist(), blocks.tolist(), strict=True):
            counter[0], counter[1], counter[2], counter[3] = 0, block, env, self._episode[env]
            self._philox.state = self._state
            start = env * size
            self._draw(dtype=self._dtype, out=self._values[start:start + size])
        self._held[envs] = blocks

    def reset(self, envs: Rows) -> None:
        """Forget the blocks of `envs`, whose episode has changed."""
        self._held[envs] = -1


class MarkovStream(NoiseStream):
    """Independent first-order processes x_k = decay * x_(k-1) + gain * n_k, by index.

    Decay 1 is a random walk. The recurrence always runs in order from index 0, block after block,
    so a value does not depend on which indices were asked for before. Indices may be skipped, but
    within an episode they never go back to an earlier block.
    """

    def __init__(self, seed: int, sensor: str, stream: str, episode: Indices, *, decay: Array,
                 gain: Array, start: Array) -> None:
        """Make `len(decay)` processes that begin (k = 0) at `start` times a standard normal."""
        super().__init__(seed, sensor, stream, len(decay), episode)
        self._decay, self._gain, self._start = decay, gain, start
        self._is_walk = bool((decay == 1.0).all())

    def _refill(self, envs: NDArray[np.intp], blocks: Indices) -> None:
        if (blocks < self._held[envs]).any():
            raise ValueError('a random walk was asked for an index of an earlier block')
        while len(envs):
            following = self._held[envs] + 1
            last = self._by_env[envs, -1]
            last[following == 0] = 0.0
            super()._refill(envs, following)
            self._by_env[envs] = self._recur(last, self._by_env[envs], envs, following)
            behind = following < blocks
            envs, blocks = envs[behind], blocks[behind]

    def _recur(self, x: Array, normals: Array, envs: NDArray[np.intp], blocks: Indices) -> Array:
        """Return the processes over one block [n, size, width], given their last value `x`."""
        steps = self._gain * normals
        for row in (blocks == 0).nonzero()[0]:  # index 0 lies `stagger` places into block 0
            origin = self._stagger[envs[row]]
            steps[row, :origin] = 0.0
            steps[row, origin] = self._start * normals[row, origin]
        steps[:, 0] += self._decay * x
        if self._is_walk:
            return np.cumsum(steps, axis=1)
        for j in range(1, steps.shape[1]):
            steps[:, j] += self._decay * steps[:, j - 1]
        return steps


class DriftSpec(NamedTuple):
    """What a drift is made of: first-order processes that step at every `every`th capture."""

    every: int
    decay: Array
    """Per group of `width` processes, [groups]; so are `gain` and `start`."""
    gain: Array
    start: Array
    width: int


class DriftStream:
    """A slow drift: processes that step at knots, every so many captures, straight in between.

    A bias that wanders over seconds needs no new numbers at 1 kHz. The output is a weighted sum of
    `groups` processes per column. Knots are staggered over environments like blocks are.
    """

    def __init__(self, seed: int, sensor: str, stream: str, episode: Indices,
                 spec: DriftSpec) -> None:
        """Make the processes of `spec`."""
        num_envs = len(episode)
        decay, gain, start = (np.repeat(each, spec.width)
                              for each in (spec.decay, spec.gain, spec.start))
        self._processes = MarkovStream(seed, sensor, stream, episode, decay=decay, gain=gain,
                                       start=start)
        self._every, self._width = spec.every, spec.width
        self._stagger: Indices = np.arange(num_envs) % spec.every
        self._knot: Indices = np.full(num_envs, -2, np.int64)
        self._low, self._high = np.zeros((2, num_envs, spec.width))
        self._ids = np.arange(num_envs)

    def at(self, envs: Rows, k: Indices, weights: Array) -> Array:
        """Return the drift [n, width] at capture `k` [n]; `weights` is [groups, width]."""
        knot, part = np.divmod(k + self._stagger[envs], self._every)
        stale = knot != self._knot[envs]
        if stale.any():
            self._move(self._ids[envs][stale], knot[stale], weights)
        low = self._low[envs]
        return np.asarray(low + (self._high[envs] - low) * (part / self._every)[:, None])

    def _move(self, envs: NDArray[np.intp], knot: Indices, weights: Array) -> None:
        """Put `envs` between `knot` and the one after it."""
        jumped = knot != self._knot[envs] + 1
        self._low[envs] = self._high[envs]
        if jumped.any():
            late = envs[jumped]
            self._low[late] = self._sum(late, knot[jumped], weights)
        self._high[envs] = self._sum(envs, knot + 1, weights)
        self._knot[envs] = knot

    def _sum(self, envs: NDArray[np.intp], knot: Indices, weights: Array) -> Array:
        values = self._processes.at(envs, knot)
        total: Array = values[:, :self._width] * weights[0]
        for group in range(1, len(weights)):  # in order: a reduction's order may depend on shapes
            total += values[:, group * self._width:(group + 1) * self._width] * weights[group]
        return total

    def reset(self, envs: Rows) -> None:
        """Start `envs` again, in their new episode."""
        self._processes.reset(envs)
        self._knot[envs] = -2


class NoiseSource:
    """All random streams of one sensor, made on first use and named by their purpose."""

    def __init__(self, seed: int, sensor: str, num_envs: int, generic: Generic,
                 dtype: DTypeLike = np.float64) -> None:
        """Serve `num_envs` environments of `sensor`; white noise comes in `dtype`."""
        self.generic = generic
        self.seed, self.sensor = seed, sensor
        self.episode: Indices = np.zeros(num_envs, np.int64)
        """Episode of each environment; see `reset`."""
        self.gain = 1.0
        """Factor on white noise, for the `noisy` fault."""
        wanted = np.dtype(dtype)
        self._dtype = wanted if wanted == np.float32 else np.dtype(np.float64)
        self._streams: dict[str, NoiseStream] = {}
        self._markov: dict[str, MarkovStream] = {}
        self._drifts: dict[str, DriftStream] = {}

    def normal(self, stream: str, batch: Batch, width: int, *, per_tick: bool = False) -> Array:
        """Return white standard normals [n, width] of each row's capture, the caller's own.

        `per_tick` indexes by truth tick instead, for `physics_imperfections`, which also runs
        between captures.
        """
        values = self._stream(stream, 'normal', width, self._dtype).at(
            batch.envs, batch.tick if per_tick else batch.index)
        return values if self.gain == 1.0 else values * values.dtype.type(self.gain)

    def uniform(self, stream: str, batch: Batch, width: int) -> Array:
        """Return uniforms [0, 1) [n, width] of each row's capture, the caller's own."""
        return self.uniform_at(stream, batch.envs, batch.index, width)

    def uniform_at(self, stream: str, envs: Rows, k: Indices, width: int) -> Array:
        """Return uniforms [0, 1) [n, width] of index `k` [n] of `envs`, the caller's own."""
        return self._stream(stream, 'uniform', width, np.float64).at(envs, k)

    def constant(self, stream: str, envs: Rows, width: int, kind: Kind = 'normal') -> Array:
        """Return numbers [n, width] that hold for an episode (a turn-on bias, a misalignment)."""
        count = len(self.episode[envs])
        return self._stream(stream, kind, width, np.float64).at(envs, np.zeros(count, np.int64))

    def walk(self, stream: str, batch: Batch, width: int) -> Array:
        """Return unit random walks [n, width]: a standard normal per capture so far, summed."""
        return self.walk_at(stream, batch.envs, batch.index, width)

    def walk_at(self, stream: str, envs: Rows, k: Indices, width: int) -> Array:
        """Return unit random walks [n, width] of `envs` after captures 0..k."""
        one = np.ones(width)
        return self.markov(stream, decay=one, gain=one, start=one).at(envs, k)

    def markov(self, stream: str, *, decay: Array, gain: Array, start: Array) -> MarkovStream:
        """Return the first-order processes `stream`; see `MarkovStream`."""
        found = self._markov.get(stream)
        if found is None:
            found = MarkovStream(self.seed, self.sensor, stream, self.episode,
                                 decay=decay, gain=gain, start=start)
            self._markov[stream] = found
        return found

    def drift(self, stream: str, spec: Callable[[], DriftSpec]) -> DriftStream:
        """Return the slow drift `stream`, made of `spec()` on first use."""
        found = self._drifts.get(stream)
        if found is None:
            found = DriftStream(self.seed, self.sensor, stream, self.episode, spec())
            self._drifts[stream] = found
        return found

    def reset(self, envs: Rows) -> None:
        """Begin the next episode of `envs`: every number they get is new."""
        self.episode[envs] += 1
        for streams in (self._streams, self._markov, self._drifts):
            for stream in streams.values():
                stream.reset(envs)

    def apply_generic(self, values: Array, batch: Batch) -> None:
        """Apply the `noise`, `bias`, `random_walk` and `resolution` every sensor has, in place."""
        self.generic.apply(values, batch)

    def _stream(self, stream: str, kind: Kind, width: int, dtype: DTypeLike) -> NoiseStream:
        found = self._streams.get(stream)
        if found is None:
            found = NoiseStream(self.seed, self.sensor, stream, width, self.episode, kind, dtype)
            self._streams[stream] = found
        return found


def _key(seed: int, sensor: str, stream: str) -> NDArray[np.uint64]:
    """Return Philox's key; a sensor's numbers depend on its name, never on its place in a list."""
    digest = sha256(f'{seed}\0{sensor}\0{stream}'.encode()).digest()
    return np.frombuffer(digest[:16], '<u8').astype(np.uint64)


def _block_shift(width: int) -> int:
    """Return log2 of the number of indices in a block."""
    return max(0, min(MAX_BLOCK, VALUES_PER_BLOCK // max(width, 1)).bit_length() - 1)
