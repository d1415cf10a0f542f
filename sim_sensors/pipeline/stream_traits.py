"""What the pipeline of a sensor needs to know of it: arrays, schedule, sizes of its messages."""

from __future__ import annotations

from rig_common.errors import RigError
from sim_sensors.interface import AnySensor, Sample, SensorConfig
from sim_sensors.timing.arrays import Arrays
from sim_sensors.timing.link import LinkShare
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import StreamTraits


def on_arrays(sensor: AnySensor, xp: Arrays) -> AnySensor:
    """Return `sensor` with its constants where `xp` has its numbers."""
    if not xp.is_numpy and not sensor.on_tensors:
        raise RigError(
            f'{sensor.name!r} is a {sensor.config.type}, whose stages are written for '
            'NumPy alone; it does not run on tensors'
        )
    return sensor.on(xp)


def message_bytes(sensor: AnySensor) -> int:
    """Return the size of what one sample of `sensor` is sent as, all its topics, bytes."""
    if sensor.config.size_bytes:
        return int(sensor.config.size_bytes)
    row = sensor.return_layout.zeros(1)[0]
    sample = Sample(sensor.name, 0, 0, 0, 0, 0, row, row)
    return sum(len(data) for _, data in sensor.encode(sample))


def stream_of(
    sensor: AnySensor, schedule: Schedule, link: LinkShare | None, start_ns: int
) -> StreamTraits:
    """Return what the transit of `sensor` must know."""
    config = sensor.config
    size_bytes = message_bytes(sensor) if config.loss.packet_probability else 0
    return StreamTraits(
        sensor.duration_ns, sensor.stamp_points_ns, schedule, size_bytes, link, start_ns
    )


def schedule_of(name: str, config: SensorConfig, dt_ns: int) -> Schedule:
    """Return the capture schedule of an untriggered sensor."""
    return Schedule(config.rate_hz, dt_ns, config.phase_s, name=name)
