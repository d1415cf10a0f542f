"""How long a rolling shutter takes from the first row to the last, from the pictures themselves.

The rows of a picture are exposed one after another, so between two pictures the last row turns by
the camera's turn as it was `readout` later than the first row's:

    turn(last row) - turn(first row) = readout (rate at the second picture - rate at the first)

The left side is what the cue sees beside the turn of the middle row (`sweep`), the rates are the
gyro's. What goes with the turn itself (near ground in the lower rows) is fitted out. A focal
length that is wrong scales both sides about x and y, so the turns tell it along.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, GyroLookup

_HALF_S = 0.01
"""Half of the time over which a rate is averaged."""
_WAITING = 64
_LEAST_PAIRS = 30
_CORRELATED = 2.0
"""Neighbouring pairs share a picture, and their errors are no independent ones."""


class ReadoutTime(NamedTuple):
    """Time from the first row to the last, and its sigma (s)."""

    readout_s: float
    sigma_s: float


class _Pair(NamedTuple):
    from_ns: int
    to_ns: int
    turn: Floats
    sweep: Floats
    information: Floats
    """[3] of the sweep (1 / rad^2)."""


class ImageReadout:
    """Regresses the sweep of every pair on the change of the gyro's rate."""

    def __init__(self) -> None:
        self._waiting: deque[_Pair] = deque(maxlen=_WAITING)
        self._sums: Floats = np.zeros((3, 4, 4))
        """Per axis: products of (change of rate, gyro's turn, sweep, own turn), weighted."""
        self.pairs = 0

    def clear(self) -> None:
        """Forget the pairs that wait; their stamps are void."""
        self._waiting.clear()

    def add(
        self, from_ns: int, to_ns: int, turn: Floats, sweep: Floats, variances: Floats
    ) -> None:
        """Take what a pair of pictures showed, `variances` [3] of the sweep."""
        self._waiting.append(_Pair(from_ns, to_ns, turn, sweep, 1.0 / variances))

    def compare(self, gyro: GyroLookup) -> None:
        """Lay the pairs that wait over the gyro, as far as it has come."""
        while self._waiting:
            pair = self._waiting[0]
            last_s = (pair.from_ns - pair.to_ns) / NS_PER_S
            times_s = np.array([last_s - _HALF_S, last_s, last_s + _HALF_S,
                                -_HALF_S, 0.0, _HALF_S])  # fmt: skip
            found = [gyro(pair.to_ns, times_s, axis) for axis in XYZ_AXES]
            angles = [each for each in found if each is not None]
            if len(angles) < len(found):
                return
            self._waiting.popleft()
            self._take(pair, np.array(angles))

    def _take(self, pair: _Pair, angles: Floats) -> None:
        """Add one pair; `angles` [3, 6] of the gyro around both pictures."""
        change = (angles[:, 5] - angles[:, 3] - angles[:, 2] + angles[:, 0]) / (2.0 * _HALF_S)
        rows = np.stack([change, angles[:, 4] - angles[:, 1], pair.sweep, pair.turn], axis=1)
        self._sums += rows[:, :, None] * rows[:, None, :] * pair.information[:, None, None]
        self.pairs += 1

    def found(self) -> ReadoutTime | None:
        """Return the readout time; None before there is anything to tell it from."""
        if self.pairs < _LEAST_PAIRS:
            return None
        sums = self._sums
        # Without the part of change and sweep that goes with the turn, axis by axis.
        turned = np.maximum(sums[:, 1, 1], 1e-12)
        changes = sums[:, 0, 0] - sums[:, 0, 1] ** 2 / turned
        shown = sums[:, 0, 2] - sums[:, 0, 1] * sums[:, 1, 2] / turned
        left = sums[:, 2, 2] - sums[:, 1, 2] ** 2 / turned
        scale = float(sums[:2, 1, 3].sum() / max(float(sums[:2, 1, 1].sum()), 1e-12))
        scales = np.array([scale, scale, 1.0])
        information = float(scales**2 @ changes)
        if scale < 0.1 or information <= 0.0:
            return None
        readout_s = float(scales @ shown) / information
        freedom = 3 * self.pairs - 4
        error = float(left.sum()) - readout_s**2 * information
        return ReadoutTime(readout_s, sqrt(_CORRELATED * max(error / freedom, 0.01) / information))
