"""The truth readers of a world's sensors, and captures that are read part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rig_common.errors import UnavailableError
from rig_common.times import seconds_to_ns
from sim_sensors.pipeline.layout import Array
from sim_sensors.sensors.base import AnySensor
from sim_sensors.world.base import WorldBase
from sim_sensors.world.native_delay import DelayedReader
from sim_sensors.world.truth import TruthReader, WorldView


def truth_reader(sensor: AnySensor, view: WorldView) -> TruthReader:
    """Return the reader of `sensor`, which waits where MuJoCo delays what it reads."""
    reader = sensor.reader(view)
    if sensor.config.delay_backend != 'mujoco':
        return reader
    dt_ns = seconds_to_ns(view.model.opt.timestep)
    return DelayedReader(reader, sensor.config.delay_range_s[0], dt_ns)


def truth_readers(
    sensors: Iterable[AnySensor], world: WorldBase, warn: Callable[[str], object]
) -> dict[str, TruthReader]:
    """Return the readers by sensor name.

    A sensor that cannot work here (a camera with no renderer) is an error, or, where
    `skip_unavailable` is set, left out with a warning.
    """
    readers = {}
    for sensor in sensors:
        try:
            sensor.validate(world)
            readers[sensor.name] = truth_reader(sensor, world)
        except UnavailableError as error:
            if not world.config.skip_unavailable:
                raise
            warn(f'running without sensor {sensor.name!r}: {error}')
    return readers


@dataclass(slots=True)
class Capture:
    """A capture under way.

    A sweep of 100 ms in four parts that begins at 200 ms has `parts_ns` 0, 33, 67 and 100 ms: its
    truth is read at 200, 233, 267 and 300 ms, and is complete then.
    """

    parts_ns: Sequence[int]
    """When each part is read, ns after `time_ns`."""
    time_ns: int
    """When it began; its message carries this time."""
    envs: Sequence[int]
    rows: Array
    """Truth [len(envs), width], filled part by part."""
    part: int = 0
    """The part to read next."""

    @property
    def due_ns(self) -> int:
        """When the next part is read, ns."""
        return self.time_ns + self.parts_ns[self.part]

    @property
    def is_complete(self) -> bool:
        """Whether every part was read."""
        return self.part == len(self.parts_ns)

    def read(self, reader: TruthReader, view: WorldView) -> None:
        """Read the next part."""
        reader.read(view, self.envs, self.part, self.rows)
        self.part += 1
