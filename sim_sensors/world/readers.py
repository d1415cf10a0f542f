"""The truth readers of a world's sensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rig_common.errors import UnavailableError
from rig_common.times import seconds_to_ns
from sim_sensors.interface import AnySensor
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.world.model.native_delay import DelayedReader
from sim_sensors.world.world_base import WorldBase


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
