"""Replays streams to an estimator and notes what it believed at every message of the sensor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rig_common.arrays import Floats, Ints
from sensor_rig.trust.streams import Streams
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.engine import SyncEngine

_LEVEL = (0.0, 0.0, 9.8)
"""Specific force that is told (m/s^2): it drives the window of bundles, not the offsets."""


@dataclass(frozen=True)
class Track:
    """What was believed, by message of the sensor: its clock minus the IMU's."""

    arrival_ns: Ints
    offset_ns: Ints
    sigma_s: Floats
    locked: np.ndarray[tuple[int], np.dtype[np.bool_]]
    clock_steps: int
    fixes: int
    """Comparisons with the gyro that were believed."""
    refused: int

    def at(self, arrival_ns: Ints) -> tuple[Ints, Floats]:
        """Return offset (ns) and sigma (s) as they were at host times [n]."""
        index = np.clip(np.searchsorted(self.arrival_ns, arrival_ns, 'right') - 1, 0, None)
        return self.offset_ns[index], self.sigma_s[index]


Estimator = Callable[[Streams], Track]
"""What is scored: the engine, or another way to find the offset."""


def engine_track(streams: Streams) -> Track:
    """Return what the sync engine believes of these streams."""
    engine = SyncEngine(streams.config)
    notes: list[tuple[int, float, bool]] = []
    turns = iter(streams.turns)
    due = next(turns, None)
    stamps, arrivals = streams.stamp_ns.tolist(), streams.arrival_ns.tolist()
    gyro, rate_ns = streams.gyro.tolist(), streams.rate_ns.tolist()
    is_imu = streams.is_imu.tolist()
    for index, stamp_ns in enumerate(stamps):
        name = streams.imu if is_imu[index] else streams.sensor
        engine.push(name, stamp_ns, None, arrivals[index])
        if is_imu[index]:
            if engine.config.imu_sensor_id:
                engine.push_imu(rate_ns[index], gyro[index], _LEVEL)
            else:
                engine.push_velocity(rate_ns[index], gyro[index])
            continue
        while due is not None and due[0] <= index:
            turn = due[1]
            engine.add_rotation(streams.sensor, turn)
            due = next(turns, None)
        engine.run_cues()
        known = engine.offset(streams.sensor, to=streams.imu)
        notes.append((known.offset_ns, known.sigma_s, known.state is OffsetState.LOCKED))
    status = engine.status().sensors[streams.sensor]
    offsets, sigmas, locked = zip(*notes, strict=True) if notes else ((),) * 3
    return Track(
        streams.arrival_ns[~streams.is_imu],
        np.array(offsets, dtype=np.int64),
        np.array(sigmas, dtype=np.float64),
        np.array(locked, dtype=np.bool_),
        status.clock_steps,
        status.motion_fixes,
        status.motion_refused,
    )
