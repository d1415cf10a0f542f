"""From simulated sensors to their pipeline: where constants lie, sizes of messages, links."""

from __future__ import annotations

from collections.abc import Mapping

from rig_common.errors import RigError
from rig_common.validation import hint
from sim_sensors.interface.config import SensorConfig
from sim_sensors.interface.sensor import AnySensor, Sample
from sim_sensors.timing.arrays.namespace import Arrays
from sim_sensors.timing.config import LinkConfig
from sim_sensors.timing.link import Link, LinkMember, LinkShare
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


def link_shares(
    sensors: Mapping[str, AnySensor],
    links: Mapping[str, LinkConfig],
    schedules: Mapping[str, Schedule],
) -> dict[str, LinkShare]:
    """Return the share of every sensor that is on a link; all of a rig's sensors are needed."""
    members: dict[str, dict[str, LinkMember]] = {name: {} for name in links}
    for name, sensor in sensors.items():
        wanted = sensor.config.link
        if wanted and wanted not in links:
            raise RigError(f'sensors.{name}.link is {wanted!r}; {hint(wanted, list(links))}')
        if wanted:
            members[wanted][name] = LinkMember(
                schedules[name], sensor.duration_ns, message_bytes(sensor)
            )
    made = {
        name: Link(name, config, members[name]) for name, config in links.items() if members[name]
    }
    return {
        name: LinkShare(made[sensor.config.link], name)
        for name, sensor in sensors.items()
        if sensor.config.link
    }


def schedule_of(name: str, config: SensorConfig, dt_ns: int) -> Schedule:
    """Return the capture schedule of an untriggered sensor."""
    return Schedule(config.rate_hz, dt_ns, config.phase_s, name=name)


def schedules_of(configs: Mapping[str, SensorConfig], dt_ns: int) -> dict[str, Schedule]:
    """Return every sensor's capture schedule; a triggered one follows the sensor it names."""
    done: dict[str, Schedule] = {}

    def resolve(name: str, waiting: tuple[str, ...]) -> Schedule:
        config = configs[name]
        if name in done:
            return done[name]
        if not config.trigger:
            done[name] = schedule_of(name, config, dt_ns)
        elif config.trigger not in configs:
            raise RigError(
                f'trigger of {name!r} is {config.trigger!r}, which is no sensor of '
                f'this rig; allowed are {", ".join(sorted(configs))}'
            )
        elif config.trigger in (*waiting, name):
            raise RigError(
                f'trigger of {name!r} is {config.trigger!r}, which waits for {name!r}: '
                'sensors cannot trigger each other in a circle'
            )
        else:
            source = resolve(config.trigger, (*waiting, name))
            done[name] = source.triggered(config.trigger_delay_s)
        return done[name]

    for name in configs:
        resolve(name, ())
    return done


def refuse_drawn_phases(configs: Mapping[str, SensorConfig]) -> None:
    """Refuse `phase_range_s` over ROS: the world must know when to capture, and draws nothing."""
    for name, config in configs.items():
        if config.phase_range_s[1]:
            raise RigError(
                f'sensors.{name}.phase_range_s is {list(config.phase_range_s)}; it is '
                'drawn in Python rigs only, over ROS give phase_s'
            )
