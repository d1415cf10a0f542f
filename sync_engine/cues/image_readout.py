"""How long a rolling shutter takes from the first row to the last, from the pictures themselves.

The rows of a picture are exposed one after another, so between two pictures the last row turns by
the camera's turn as it was `readout` later than the first row's:

    turn(last row) - turn(first row) = readout (rate at the second picture - rate at the first)

The left side is what the cue sees beside the turn of the middle row (`sweep`), the rates are the
gyro's. What goes with the turn itself (near ground in the lower rows) is fitted out. A focal
length that is wrong, or a lens that bends, scales both sides alike, so the turns tell it along.

Pairs are laid over the gyro as late as possible: a clock difference or a mounting that is still
wrong makes the readout time too short.
"""

from __future__ import annotations

from collections import deque
from math import sqrt
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, GyroLookup

_BESIDE_S = np.array([-0.01, 0.0, 0.01])
"""A rate is averaged over this time around a picture."""
_KEPT_NS, _TOO_OLD_NS = 20 * NS_PER_S, 25 * NS_PER_S
"""The oldest pairs are added up down to the first age when they reach the second one."""
_FRESH_NS = NS_PER_S // 2
"""Younger pairs wait for the gyro."""
_LEAST_PAIRS = 30
_CORRELATED = 2.0
"""Neighbouring pairs share a picture, and their errors are no independent ones."""


class ReadoutTime(NamedTuple):
    """Time from the first row to the last, and its sigma (s)."""

    readout_s: float
    sigma_s: float


class _Pair(NamedTuple):
    ends_ns: tuple[int, int]
    turn: Floats
    sweep: Floats
    information: Floats
    """[3] of the sweep (1 / rad^2)."""


class ImageReadout:
    """Regresses the sweep of every pair on the change of the gyro's rate."""

    def __init__(self) -> None:
        self._kept: deque[_Pair] = deque()
        self._sums, self._pairs = np.zeros((3, 4, 4)), 0
        """Per axis: products of (change of rate, gyro's turn, sweep, own turn), weighted."""

    def clear(self) -> None:
        """Forget the pairs that wait; their stamps are void."""
        self._kept.clear()

    def add(
        self,
        ends_ns: tuple[int, int],
        turn: Floats,
        sweep: Floats,
        variances: Floats,
        gyro: GyroLookup | None,
    ) -> None:
        """Take what a pair of pictures showed, `variances` [3] of the sweep."""
        self._kept.append(_Pair(ends_ns, turn, sweep, 1.0 / variances))
        if ends_ns[1] - self._kept[0].ends_ns[0] < _TOO_OLD_NS:
            return
        old: list[_Pair] = []
        while ends_ns[1] - self._kept[0].ends_ns[0] > _KEPT_NS:
            old.append(self._kept.popleft())
        if (sums := _products(old, gyro)) is not None:
            self._sums, self._pairs = self._sums + sums, self._pairs + len(old)

    def found(self, gyro: GyroLookup | None) -> ReadoutTime | None:
        """Return the readout time; None before there is anything to tell it from."""
        last_ns = self._kept[-1].ends_ns[1] if self._kept else 0
        ready = [pair for pair in self._kept if pair.ends_ns[1] <= last_ns - _FRESH_NS]
        sums, pairs = self._sums, self._pairs
        if (more := _products(ready, gyro)) is not None:
            sums, pairs = sums + more, pairs + len(ready)
        if pairs < _LEAST_PAIRS:
            return None
        # Without the part of change and sweep that goes with the turn, axis by axis.
        turned = np.maximum(sums[:, 1, 1], 1e-12)
        changes = sums[:, 0, 0] - sums[:, 0, 1] ** 2 / turned
        shown = sums[:, 0, 2] - sums[:, 0, 1] * sums[:, 1, 2] / turned
        left = sums[:, 2, 2] - sums[:, 1, 2] ** 2 / turned
        scales = sums[:, 1, 3] / turned
        information = float(scales**2 @ changes)
        if information <= 0.0:
            return None
        readout_s = float(scales @ shown) / information
        error = float(left.sum()) - readout_s**2 * information
        freedom = 3 * pairs - 6
        return ReadoutTime(readout_s, sqrt(_CORRELATED * max(error / freedom, 0.01) / information))


def _products(pairs: list[_Pair], gyro: GyroLookup | None) -> Floats | None:
    """Return what some pairs add to the sums; None where the gyro's track does not cover them."""
    if not pairs or gyro is None:
        return None
    ends_ns = np.array([pair.ends_ns for pair in pairs])
    last_ns = int(ends_ns[-1, 1])
    times_s = (ends_ns - last_ns)[:, :, None] / NS_PER_S + _BESIDE_S
    found = [gyro(last_ns, times_s.ravel(), axis) for axis in XYZ_AXES]
    angles = [each.reshape(times_s.shape) for each in found if each is not None]
    if len(angles) < len(found):
        return None
    before, after = np.stack(angles, axis=1).swapaxes(0, 2)
    span_s = _BESIDE_S[2] - _BESIDE_S[0]
    change = (after[..., 2] - after[..., 0] - before[..., 2] + before[..., 0]) / span_s
    turned = after[..., 1] - before[..., 1]
    turns, sweeps, weights = (np.array(each) for each in list(zip(*pairs, strict=True))[1:])
    rows = np.stack([change.T, turned.T, sweeps, turns])
    products: Floats = np.einsum('ink,jnk,nk->kij', rows, rows, weights)
    return products
