"""What accumulates: random walks, Gauss-Markov processes and slow drifts, by index.

They advance through every period that elapsed, whether anybody read them or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ids, Ints
from sim_sensors.timing.arrays import Array, Rows
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import GROUP, NoiseStream


class MarkovStream(NoiseStream):
    """Independent first-order processes x_k = decay * x_(k-1) + gain * n_k, by index.

    Decay 1 is a random walk. The recurrence always runs in order from index 0, block after block,
    so a value does not depend on which indices were asked for before. Indices may be skipped, but
    within an episode they never go back to an earlier block.
    """

    def __init__(
        self, lanes: Lanes, stream: str, *, decay: Array, gain: Array, start: Array
    ) -> None:
        """Make `len(decay)` processes that begin (k = 0) at `start` times a standard normal."""
        super().__init__(lanes, stream, len(decay))
        powers = decay ** np.arange(self._mask + 1)[:, None]
        self._is_walk = bool((decay == 1.0).all())
        self._is_slow = bool((powers[-1] > 1e-3).all())
        self._decay, self._gain, self._start, self._powers = (
            lanes.xp.asarray(each) for each in (decay, gain, start, powers)
        )

    def _refill(self, lanes: Ids, blocks: Ints) -> None:
        if (blocks < self._held[lanes]).any():
            raise ValueError('a random walk was asked for an index of an earlier block')
        while len(lanes):
            following = self._held[lanes] + 1
            last = self._blocks[-1, lanes]
            last[following == 0] = 0.0
            values = self._recur(last, self._drawn(lanes, following), lanes, following)
            self._blocks[:, lanes] = values.swapaxes(0, 1)
            self._held[lanes] = following
            behind = following < blocks
            lanes, blocks = lanes[behind], blocks[behind]

    def _recur(self, x: Array, normals: Array, lanes: Ids, blocks: Ints) -> Array:
        """Return the processes over one block [n, size, width], given their last value `x`."""
        steps = self._gain * normals
        begins = self._xp.indices(blocks == 0)
        if len(begins):  # index 0 lies `stagger` places into block 0
            origin = self._stagger[lanes[begins]]
            first = steps[begins]
            first[self._before(origin)] = 0.0
            row = self._xp.arange(len(begins))
            first[row, origin] = self._start * normals[begins, origin]
            steps[begins] = first
        steps[:, 0] += self._decay * x
        if self._is_walk:
            return self._xp.cumulative_sum(steps, 1)
        if self._is_slow:  # the same sum with the decay taken out, in one go
            steps /= self._powers
            return self._xp.cumulative_sum(steps, 1) * self._powers
        for j in range(1, steps.shape[1]):
            steps[:, j] += self._decay * steps[:, j - 1]
        return steps

    def _before(self, origin: Ints) -> Flags:
        """Return which places of a block lie before `origin` [n], [n, size]."""
        return self._xp.arange(self._mask + 1) < origin[:, None]


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

    def __init__(self, lanes: Lanes, stream: str, spec: DriftSpec) -> None:
        """Make the processes of `spec`."""
        xp, count = lanes.xp, len(lanes)
        decay, gain, start = (
            np.repeat(each, spec.width) for each in (spec.decay, spec.gain, spec.start)
        )
        self._processes = MarkovStream(lanes, stream, decay=decay, gain=gain, start=start)
        self._every, self._width = spec.every, spec.width
        self._xp = xp
        self._stagger: Ints = lanes.envs // GROUP % spec.every
        self._knot: Ints = xp.full(count, -2, np.int64)
        self._from: Ints = -2 * spec.every - self._stagger
        """The capture of `_knot`, whatever it is."""
        self._low, self._high, self._slope = xp.zeros((3, count, spec.width))
        self._ids = xp.arange(count)

    def at(self, envs: Rows, k: Ints, weights: Array) -> Array:
        """Return the drift [n, width] at capture `k` [n]; `weights` is [groups, width]."""
        if len(self._ids) == 1:
            return self._at_one(k.item(), weights)
        part = k - self._from[envs]
        stale = (part < 0) | (part >= self._every)
        if stale.any():  # the others need no division
            late = self._ids[envs][stale]
            knot, part[stale] = self._xp.divmod(k[stale] + self._stagger[late], self._every)
            self._move(late, knot, weights)
        out: Array = self._slope[envs] * self._xp.astype(part, np.float64)[:, None]
        out += self._low[envs]
        return out

    def _at_one(self, k: int, weights: Array) -> Array:
        """Answer for the only environment there is, without arrays of indices."""
        knot, part = divmod(k, self._every)
        if knot != self._knot.item():
            self._move(self._ids, self._xp.asarray(np.array([knot])), weights)
        out: Array = self._slope * part
        out += self._low
        return out

    def _move(self, envs: Ids, knot: Ints, weights: Array) -> None:
        """Put `envs` between `knot` and the one after it."""
        jumped = knot != self._knot[envs] + 1
        self._low[envs] = self._high[envs]
        if jumped.any():
            late = envs[jumped]
            self._low[late] = self._sum(late, knot[jumped], weights)
        self._high[envs] = high = self._sum(envs, knot + 1, weights)
        self._slope[envs] = (high - self._low[envs]) / self._every
        self._knot[envs] = knot
        self._from[envs] = knot * self._every - self._stagger[envs]

    def _sum(self, envs: Ids, knot: Ints, weights: Array) -> Array:
        values = self._processes.at(envs, knot)
        total: Array = values[:, : self._width] * weights[0]
        for group in range(1, len(weights)):  # in order: a reduction's order may depend on shapes
            total += values[:, group * self._width : (group + 1) * self._width] * weights[group]
        return total

    def reset(self, envs: Rows) -> None:
        """Start `envs` again, in their new episode."""
        self._processes.reset(envs)
        self._knot[envs] = -2
        self._from[envs] = -2 * self._every - self._stagger[envs]
