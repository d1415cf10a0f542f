"""From the sensors of a rig to their pipelines: schedules, shares of links, pipelines."""

from __future__ import annotations

from collections.abc import Mapping

from rig_common.errors import RigError
from rig_common.times import TimeBase
from rig_common.validation import hint
from sim_sensors.interface import AnySensor, SensorConfig
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.pipeline.stream_traits import message_bytes, schedule_of
from sim_sensors.timing.config import LinkConfig
from sim_sensors.timing.link import Link, LinkMember, LinkShare
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.stamp_limits import require_stamps


class PipelineMaker:
    """Makes the pipelines of a rig; it knows all sensors, as they trigger and delay each other."""

    def __init__(
        self,
        sensors: Mapping[str, AnySensor],
        links: Mapping[str, LinkConfig],
        dt_ns: int,
        base: TimeBase,
    ) -> None:
        """Lay out the captures of `sensors` and their shares of `links`."""
        self._sensors, self._base = sensors, base
        self.schedules = schedules_of({name: each.config for name, each in sensors.items()}, dt_ns)
        """When each sensor captures, by name."""
        self._shares = link_shares(sensors, links, self.schedules)

    def check_stamps(self, name: str, where: str, config: SensorConfig | None = None) -> None:
        """Raise RigError where a stamp of sensor `name` would not fit into ROS time."""
        config = config or self._sensors[name].config
        require_stamps(where, config, self.schedules[name], self._base)

    def pipeline(
        self, names: tuple[str, ...], run: RunSetup, sensor: AnySensor | None = None
    ) -> Pipeline:
        """Return a fresh pipeline of the sensors `names`, which are alike.

        `sensor` takes the place of the first, where its config has changed since.
        """
        first = names[0]
        return Pipeline(
            sensor or self._sensors[first],
            run,
            schedule=self.schedules[first],
            link=self._shares.get(first),
            names=names,
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
