"""Sensors of one class, computed together: one pipeline, one pass through every stage.

    left, right, top: imu, equal but for mount and frame_id  ->  one pipeline of 3 lanes each
    spare: imu with another noise                            ->  one of its own

Every numpy call costs about a microsecond whatever it works on, so 64 alike cost little more than
one. Nothing else changes: every number is drawn by the name of its sensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rig_common.arrays import Ids
from sim_sensors.interface import AnySensor
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.timing.arrays import Array
from sim_sensors.timing.schedule import Schedule

OWN_KEYS = {'mount', 'frame_id'}
"""Keys that may differ within one class: no stage reads them."""


def classes_of(
    sensors: Mapping[str, AnySensor],
    schedules: Mapping[str, Schedule],
    readers: Mapping[str, TruthReader],
) -> list[tuple[str, ...]]:
    """Return the names of sensors that can share a pipeline, in the order of the first of each."""
    found: dict[object, list[str]] = {}
    for name, sensor in sensors.items():
        config = sensor.config
        alone = bool(
            sensor.heavy or config.link or config.faults or tuple(readers[name].parts_ns) != (0,)
        )
        schedule = schedules[name]
        key = (
            name
            if alone
            else (
                type(sensor),
                config.model_dump_json(exclude=OWN_KEYS),
                schedule.rate,
                schedule.phase_ns,
            )
        )
        found.setdefault(key, []).append(name)
    return [tuple(names) for names in found.values()]


class ClassReader:
    """Truth of the sensors of one class, lane by lane (see `Lanes`)."""

    def __init__(self, readers: Sequence[TruthReader]) -> None:
        """Read with `readers`, one a sensor; columns of sensordata are taken all at once."""
        self._readers = readers
        self._alike = _alike(readers)
        if self._alike is not None:
            self._all = ColumnReader(self._alike.model, ())
            self._all.columns = np.concatenate(
                [each.columns for each in readers if isinstance(each, ColumnReader)]
            )

    def read(self, view: WorldView, lanes: Ids, out: Array) -> None:
        """Write the truth of `lanes` into `out` [len(lanes), width]."""
        count = len(self._readers)
        if self._alike is not None and len(lanes) == view.num_envs * count:
            columns = self._all.values(view, range(view.num_envs))
            self._alike.write(columns.reshape(len(lanes), -1), out)
            return
        envs, members = np.divmod(lanes, count)
        for member in np.unique(members).tolist():
            chosen = members == member
            rows = np.empty((int(chosen.sum()), out.shape[1]), out.dtype)
            self._readers[member].read(view, envs[chosen].tolist(), 0, rows)
            out[chosen] = rows


def _alike(readers: Sequence[TruthReader]) -> ColumnReader | None:
    """Return the first of `readers` if all turn their columns into rows in the same way."""
    first = readers[0]
    if not isinstance(first, ColumnReader) or type(first).read is not ColumnReader.read:
        return None
    return first if all(type(each) is type(first) for each in readers) else None
