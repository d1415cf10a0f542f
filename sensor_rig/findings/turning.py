"""How fast two sensors turn, and how much that agrees when one is shifted in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.msgs.decode import read_imu
from sensor_rig.findings.timeline import Seconds
from sync_engine.cues.motion import Rotation

WIDEST_S, POINTS = 0.3, 121
"""Shifts that are tried: to either side, and how many."""
FEWEST = 20
"""Turns of a sensor below which nothing is compared."""


class AgreementCurve(NamedTuple):
    """Correlation of a sensor's turns with the IMU's over the offset of its stamps."""

    offsets_s: Seconds
    correlation: Seconds


@dataclass
class Turning:
    """The sizes of turns of an IMU and of other sensors, on their own stamps."""

    _imu_ns: list[int] = field(default_factory=list)
    _rates: list[float] = field(default_factory=list)
    _turns: dict[str, list[tuple[int, int, float]]] = field(default_factory=dict)

    def add_imu(self, raw: bytes) -> None:
        """Take a message of the IMU."""
        try:
            rate = float(np.linalg.norm(read_imu(raw)[0]))
            self._imu_ns.append(read_stamp_ns(raw))
        except CdrError:
            return
        self._rates.append(rate)

    def add_turn(self, sensor: str, turn: Rotation) -> None:
        """Take a turn that a cue of the sync engine measured."""
        self._turns.setdefault(sensor, []).append(
            (turn.stamp_from_ns, turn.stamp_to_ns, float(np.linalg.norm(turn.values_rad)))
        )

    def curve(self, sensor: str, offset_s: float = 0.0) -> AgreementCurve | None:
        """Return how well the turns agree around an offset; None where there are too few."""
        turns = self._turns.get(sensor, [])
        if len(turns) < FEWEST or len(self._imu_ns) < FEWEST:
            return None
        start_ns = self._imu_ns[0]
        times = (np.array(self._imu_ns) - start_ns) / 1e9
        order = np.argsort(times, kind='stable')
        times, rates = times[order], np.array(self._rates)[order]
        angle = np.concatenate([[0.0], np.cumsum(np.diff(times) * (rates[1:] + rates[:-1]) / 2)])
        begin, end, size = (
            np.array([(a - start_ns, b - start_ns, size * 1e9) for a, b, size in turns]).T / 1e9
        )
        offsets = offset_s + np.linspace(-WIDEST_S, WIDEST_S, POINTS)
        found = [
            _correlation(
                size, np.interp(end - each, times, angle) - np.interp(begin - each, times, angle)
            )
            for each in offsets
        ]
        return AgreementCurve(offsets, np.array(found))


def _correlation(x: Seconds, y: Seconds) -> float:
    """Return the correlation of two series; 0 where one does not change."""
    spread = float(x.std() * y.std())
    return float(((x - x.mean()) * (y - y.mean())).mean()) / spread if spread > 0.0 else 0.0
