"""How long a rolling shutter takes from the first row to the last, from the pictures themselves.

The rows of a picture are exposed one after another, so between two pictures the last row turns by
the camera's turn as it was `readout` later than the first row's:

    turn(last row) - turn(first row) = readout (rate at the second picture - rate at the first)

The left side is what the cue sees beside the turn of the middle row (`sweep`), the rates are the
gyro's. What goes with the turn itself is fitted out, and a focal length that is wrong, or a lens
that bends, scales both alike, so the turns tell it along.

Near ground in the lower rows looks like a sweep about the other axes while a camera drives, in
step with the turn's change and up to four times as large, but never like one about the optical
axis. So that one is the judge: the others count as far as they agree with it.

Pairs are laid over the gyro as late as possible: a clock difference or a mounting that is still
wrong makes the readout time too short.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, GyroLookup

_BESIDE_S = np.array([-0.01, 0.0, 0.01])
"""A rate is averaged over this time around a picture."""
_KEPT_NS, _TOO_OLD_NS = 20 * NS_PER_S, 25 * NS_PER_S
"""The oldest pairs are added up down to the first age when they reach the second one."""
_LEAST_PAIRS = 30
_AT_ONCE = 16
"""Pairs that are looked up together; the gyro's track must cover all of them."""
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
        self._told = np.zeros((3, 4, 4)), 0
        """Per axis: products of (change of rate, gyro's turn, sweep, own turn), weighted; and of
        how many pairs."""

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
        self._told = self._with(old, gyro)

    def found(self, gyro: GyroLookup | None) -> ReadoutTime | None:
        """Return the readout time; None before there is anything to tell it from."""
        sums, pairs = self._with([*self._kept], gyro)
        if pairs < _LEAST_PAIRS:
            return None
        # Without the part of change and sweep that goes with the turn, axis by axis.
        turned = np.maximum(sums[:, 1, 1], 1e-12)
        left = sums - sums[:, :, 1, None] * sums[:, 1, None, :] / turned[:, None, None]
        scales = sums[:, 1, 3] / turned
        information = np.maximum(scales**2 * left[:, 0, 0], 1e-9)
        each_s = scales * left[:, 0, 2] / information
        noise = (left[:, 2, 2] - each_s**2 * information) / (pairs - 2)
        variances = _CORRELATED * np.maximum(noise, 0.01) / information
        weights = 1.0 / (variances + (each_s - each_s[2]) ** 2)
        return ReadoutTime(float(weights @ each_s / weights.sum()), float(weights.sum() ** -0.5))

    def _with(self, pairs: list[_Pair], gyro: GyroLookup | None) -> tuple[Floats, int]:
        """Return what is told, with that of more pairs as far as the gyro's track goes."""
        sums, count = self._told
        for k in range(0, len(pairs), _AT_ONCE):
            part = pairs[k : k + _AT_ONCE]
            if gyro is not None and (more := _products(part, gyro)) is not None:
                sums, count = sums + more, count + len(part)
        return sums, count


def _products(pairs: list[_Pair], gyro: GyroLookup) -> Floats | None:
    """Return what some pairs add to the sums; None where the gyro's track does not cover them."""
    ends_ns, turns, sweeps, weights = (np.array(each) for each in zip(*pairs, strict=True))
    last_ns = int(ends_ns[-1, 1])
    times_s = (ends_ns - last_ns)[:, :, None] / NS_PER_S + _BESIDE_S
    found = [gyro(last_ns, times_s.ravel(), axis) for axis in XYZ_AXES]
    angles = [each.reshape(times_s.shape) for each in found if each is not None]
    if len(angles) < len(found):
        return None
    steps = np.diff(np.stack(angles, axis=1), axis=2)[:, :, 0]
    change = (steps[..., 2] - steps[..., 0]) / (_BESIDE_S[2] - _BESIDE_S[0])
    rows = np.stack([change, steps[..., 1], sweeps, turns])
    products: Floats = np.einsum('ink,jnk,nk->kij', rows, rows, weights)
    return products
