"""How well the turns of two sensors agree when one is shifted in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.msgs.decode import read_imu
from sync_engine.cues.motion import Rotation

WIDEST_S, POINTS = 0.3, 121
"""Shifts that are tried: to either side, and how many."""
FEWEST = 20
"""Turns of a sensor below which nothing is compared."""
TRIMMED = 0.95
"""Share of the turns that are kept; a cue fails now and then by far."""


class AgreementCurve(NamedTuple):
    """How well two series of motion agree over the offset of the stamps of one."""

    offsets_s: Floats
    agreement: Floats
    """Share of one that the other explains, or a correlation; 1 is all of it."""


@dataclass
class Turning:
    """The turns of an IMU, or of a `reference` in its place, and of others, on their stamps."""

    reference: str = ''
    is_speed: bool = False
    """Whether it is not turns but ways that are compared."""
    _imu_ns: list[int] = field(default_factory=list)
    _rates: list[Sequence[float]] = field(default_factory=list)
    _turns: dict[str, list[Rotation]] = field(default_factory=dict)

    def add_imu(self, raw: bytes) -> None:
        """Take a message of the IMU."""
        try:
            rate = read_imu(raw)[0]
            self._imu_ns.append(read_stamp_ns(raw))
        except CdrError:
            return
        self._rates.append(rate)

    def add_turn(self, sensor: str, turn: Rotation) -> None:
        """Take a turn, or a way, that a cue of the sync engine measured."""
        if turn.is_way is not self.is_speed:
            return
        if sensor == self.reference and (mean := turn.mean_rate()) is not None:
            self._imu_ns.append(mean[0])
            self._rates.append(mean[1])
        self._turns.setdefault(sensor, []).append(turn)

    def curve(self, sensor: str, offset_s: float = 0.0) -> AgreementCurve | None:
        """Return how well the turns agree around an offset; None where there are too few.

        As the estimate does, each turn is compared with the gyro integrated over the same time:
        each value with a free direction in the IMU's frame, since the mounting may be unknown, or
        sizes with sizes where the cue knows no axes.
        """
        turns = [t for t in self._turns.get(sensor, []) if np.isfinite(t.values_rad).all()]
        usual = max((len(turn.values_rad) for turn in turns), default=0)
        turns = [turn for turn in turns if len(turn.values_rad) == usual]
        if len(turns) < FEWEST or len(self._imu_ns) < FEWEST:
            return None
        start_ns = self._imu_ns[0]
        times = (np.array(self._imu_ns) - start_ns) / 1e9
        order = np.argsort(times, kind='stable')
        times, rates = times[order], np.array(self._rates)[order]
        means = (rates[1:] + rates[:-1]) / 2.0
        angle = np.concatenate(
            [np.zeros((1, 3)), np.cumsum(np.diff(times)[:, None] * means, axis=0)]
        )
        begin = np.array([turn.stamp_from_ns - start_ns for turn in turns]) / 1e9
        end = np.array([turn.stamp_to_ns - start_ns for turn in turns]) / 1e9
        values = np.array([turn.values_rad for turn in turns])
        if turns[0].axes is None:
            values = np.abs(values)
        sizes_only = turns[0].axes is None
        offsets = offset_s + np.linspace(-WIDEST_S, WIDEST_S, POINTS)
        shares = []
        for each in offsets:
            turned = _at(end - each, times, angle) - _at(begin - each, times, angle)
            if sizes_only:
                turned = np.linalg.norm(turned, axis=1, keepdims=True)
            shares.append(_explained(values, turned, end - begin))
        return AgreementCurve(offsets, np.array(shares))


def _at(when: Floats, times: Floats, angle: Floats) -> Floats:
    return np.stack([np.interp(when, times, column) for column in angle.T], axis=1)


def _explained(values: Floats, turned: Floats, lasting: Floats) -> float:
    """Return the share of the turns that the gyro explains, a bias of the gyro allowed."""
    known = np.column_stack([turned, lasting])
    kept = np.ones(len(values), bool)
    for _ in range(2):
        fit = np.linalg.lstsq(known[kept], values[kept], rcond=None)[0]
        rest = np.linalg.norm(values - known @ fit, axis=1)
        kept = rest <= np.quantile(rest, TRIMMED)
    power = float((values[kept] ** 2).sum())
    return 1.0 - float((rest[kept] ** 2).sum()) / power if power > 0.0 else 0.0
