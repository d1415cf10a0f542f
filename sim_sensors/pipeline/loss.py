"""Samples that never arrive: a two-state (Gilbert-Elliott) channel, drawn by index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sim_sensors.randomness.noise import RandomStreams
from sim_sensors.randomness.streams import Captures
from sim_sensors.timing_config import LossConfig


class LossChannel:
    """Loses a stationary fraction of samples in runs of a mean length.

    In the bad state every sample is lost. It is left with probability 1 / burst_mean, and entered
    so often that the fraction of time in it is `probability`. Runs of independent losses are
    already 1 / (1 - probability) long, so a shorter `burst_mean` means independent losses.
    """

    def __init__(self, config: LossConfig, streams: RandomStreams) -> None:
        """Draw from `streams`, one uniform per environment and capture index."""
        num_envs = len(streams.episode)
        self._streams = streams
        self._lost = np.zeros(num_envs, np.bool_)
        self._last = np.full(num_envs, -1, np.int64)
        self.reconfigure(config)

    def reconfigure(self, config: LossConfig) -> None:
        """Take other probabilities from the next sample on; the state of the channel stays."""
        self.probability = config.probability
        leave = min(1.0 / config.burst_mean, 1.0 - config.probability)
        self._enter = config.probability * leave / (1.0 - config.probability)
        self._stay = 1.0 - leave

    def advance(self, batch: Captures) -> NDArray[np.bool_]:
        """Return which rows [n] of a batch of captures are lost."""
        envs, index = batch.envs, batch.index
        before = self._lost[envs]
        skipped = index > self._last[envs] + 1
        if skipped.any():
            before = before.copy()
            for row in skipped.nonzero()[0]:
                env = int(row) if isinstance(envs, slice) else int(envs[row])
                before[row] = self._state_at(env, int(index[row]) - 1)
        threshold = np.where(before, self._stay, self._enter)
        threshold[index == 0] = self.probability
        lost = self._streams.uniform_at('loss', envs, index, 1)[:, 0] < threshold
        self._lost[envs] = lost
        self._last[envs] = index
        return lost

    def _state_at(self, env: int, k: int) -> bool:
        """Return the state at `k` after captures nobody made, without visiting all of them.

        Most draws decide the state whatever it was before; looking back to the nearest one of
        those gives the same answer as running the chain from the start.
        """
        undecided = []
        rows = np.array([env])
        while k > 0:
            draw = float(self._streams.uniform_at('loss', rows, np.array([k]), 1)[0, 0])
            if draw < min(self._enter, self._stay):
                state = True
                break
            if draw >= max(self._enter, self._stay):
                state = False
                break
            undecided.append(draw)
            k -= 1
        else:
            draw = float(self._streams.uniform_at('loss', rows, np.zeros(1, np.int64), 1)[0, 0])
            state = draw < self.probability
        for draw in reversed(undecided):
            state = draw < (self._stay if state else self._enter)
        return state

    def reset(self, envs: slice | NDArray[np.intp]) -> None:
        """Start `envs` in the stationary state again."""
        self._lost[envs] = False
        self._last[envs] = -1
