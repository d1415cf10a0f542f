"""Samples that never arrive: a two-state (Gilbert-Elliott) channel and lost packets, by index."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Flags, Ints
from sim_sensors.timing.arrays import Rows
from sim_sensors.timing.config import LossConfig
from sim_sensors.timing.randomness.noise_stream import Captures
from sim_sensors.timing.randomness.random_streams import RandomStreams

MOST_TRIES = 8
"""Times that a reliable link sends a message again, at most."""


class LossChannel:
    """Loses a stationary fraction of samples, in the bad state of a two-state channel.

    The bad state is left with probability 1 / burst_mean, and entered so often that the fraction
    lost is `probability`; in it a sample is lost with `bad_probability`. Runs of independent
    losses are already 1 / (1 - probability) long, so a shorter `burst_mean` means independent
    losses. In addition, a message of several packets is lost with any of them.
    """

    def __init__(self, config: LossConfig, streams: RandomStreams, size_bytes: int = 0) -> None:
        """Draw from `streams`, by environment and capture index; messages have `size_bytes`."""
        num_envs = len(streams.lanes)
        self._streams, self._xp = streams, streams.xp
        self._size_bytes = size_bytes
        self._bad = streams.xp.zeros(num_envs, np.bool_)
        self._last = streams.xp.full(num_envs, -1, np.int64)
        self.reconfigure(config)

    def reconfigure(self, config: LossConfig) -> None:
        """Take other probabilities from the next sample on; the state of the channel stays."""
        self._in_bad = config.bad_probability
        self._fraction = bad = config.probability / config.bad_probability
        leave = min(1.0 / config.burst_mean, 1.0 - bad)
        self._enter = bad * leave / (1.0 - bad)
        self._stay = 1.0 - leave
        packets = max(1, -(-self._size_bytes // config.packet_bytes))
        self._packet = 1.0 - (1.0 - config.packet_probability) ** packets
        self.probability = 1.0 - (1.0 - config.probability) * (1.0 - self._packet)
        """Fraction lost altogether."""
        self.duplicate_probability = config.duplicate_probability

    def lost(self, batch: Captures) -> Flags:
        """Return which rows [n] of captures that come next are lost; nothing is remembered."""
        return (
            self._lost(batch, self._bad_state(batch))
            if self.probability
            else self._xp.zeros(len(batch.index), np.bool_)
        )

    def advance(self, batch: Captures) -> Flags:
        """Return which rows [n] of a batch of captures are lost, and go on from there."""
        bad = self._bad_state(batch)
        newest = slice(-1, None) if len(self._last) == 1 else slice(None)
        self._bad[batch.envs], self._last[batch.envs] = bad[newest], batch.index[newest]
        return self._lost(batch, bad)

    def tries(self, batch: Captures) -> Ints:
        """Return how often lost messages [n] are sent again until one passes."""
        draw = self._streams.draw('retransmission', batch)
        passed = self._xp.log(self._xp.maximum(draw, 1e-300)) / float(np.log(self.probability))
        return 1 + self._xp.minimum(self._xp.astype(passed, np.int64), MOST_TRIES - 1)

    def duplicated(self, batch: Captures) -> Flags:
        """Return which rows [n] arrive twice."""
        draw = self._streams.draw('duplicate', batch)
        return draw < self.duplicate_probability

    def _lost(self, batch: Captures, lost: Flags) -> Flags:
        if self._in_bad < 1.0:
            draw = self._streams.draw('loss_in_bad', batch)
            lost = lost & (draw < self._in_bad)
        if self._packet:
            draw = self._streams.draw('packet_loss', batch)
            lost = lost | (draw < self._packet)
        return lost

    def _bad_state(self, batch: Captures) -> Flags:
        """Return which rows [n] are in the bad state."""
        envs, index = batch.envs, batch.index
        if not self._fraction:
            return self._xp.zeros(len(index), np.bool_)
        if len(self._last) == 1 and index[0] == self._last[0] + 1:
            return self._run(batch)
        before = self._bad[envs]
        skipped = index > self._last[envs] + 1
        if skipped.any():
            before = self._xp.copy(before)
            for row in self._xp.indices(skipped).tolist():
                env = row if isinstance(envs, slice) else int(envs[row])
                before[row] = self._state_at(env, int(index[row]) - 1)
        draw = self._streams.draw('loss', batch)
        bad = self._xp.where(before, draw < self._stay, draw < self._enter)
        return self._xp.where(index == 0, draw < self._fraction, bad)

    def _run(self, batch: Captures) -> Flags:
        """Return the states of captures of the only environment that follow each other."""
        bad, first, found = bool(self._bad[0]), int(batch.index[0]), []
        draws = self._streams.draw('loss', batch)
        for index, draw in enumerate(draws.tolist(), first):
            bad = draw < (self._fraction if not index else self._stay if bad else self._enter)
            found.append(bad)
        return self._xp.asarray(np.array(found))

    def _state_at(self, env: int, k: int) -> bool:
        """Return the state at `k` after captures nobody made, without visiting all of them.

        Most draws decide the state whatever it was before; looking back to the nearest one of
        those gives the same answer as running the chain from the start.
        """
        undecided, rows = [], self._xp.asarray(np.array([env]))
        while True:
            here = self._xp.asarray(np.array([k]))
            draw = float(self._streams.uniform_at('loss', rows, here, 1)[0, 0])
            state = draw < (self._enter if k else self._fraction)
            if state == (draw < (self._stay if k else self._fraction)):
                break
            undecided.append(draw)
            k -= 1
        for draw in reversed(undecided):
            state = draw < (self._stay if state else self._enter)
        return state

    def reset(self, envs: Rows) -> None:
        """Start `envs` in the stationary state again: capture 0 draws it."""
        self._last[envs] = -1
