"""Everything there is to simulate, as a rig file says it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sim_sensors.interface import AnySensor, SensorConfig
from sim_sensors.registry import sensor_class
from sim_sensors.timing.config import LinkConfig
from sim_sensors.world.config.world import WorldConfig


@dataclass(frozen=True)
class Simulation:
    """What there is to simulate: a world, the sensors in it, and the seed of all their noise."""

    world: WorldConfig
    sensors: Mapping[str, SensorConfig]
    """By name."""
    seed: int = 0
    links: Mapping[str, LinkConfig] = field(default_factory=dict)
    """Lines that sensors share, by name."""
    folder: Path | None = None
    """Where the model is looked up first."""

    def make_sensors(self) -> dict[str, AnySensor]:
        """Return the sensor objects by name."""
        always = {} if self.world.lazy_sensor_update else {'eager': True}
        return {
            name: sensor_class(config.type)(name, config.model_copy(update=always))
            for name, config in self.sensors.items()
        }

    def in_namespace(self, namespace: str) -> Simulation:
        """Return this with the names of frames that nodes in `namespace` use: `robot1/odom`."""
        prefix = (self.world.frame_prefix or f'{namespace.strip("/")}/').lstrip('/')
        if not prefix:
            return self
        world = self.world.model_copy(update={'frame_prefix': prefix})
        sensors = {name: _prefixed(each, prefix) for name, each in self.make_sensors().items()}
        return replace(self, world=world, sensors=sensors)


def _prefixed(sensor: AnySensor, prefix: str) -> SensorConfig:
    """Return the configuration of `sensor` with `prefix` in front of every frame."""
    config = sensor.config
    keys = [key for key in type(config).model_fields if key.endswith('frame_id')]
    frames = {key: prefix + getattr(config, key) for key in keys}
    return config.model_copy(update={**frames, 'frame_id': prefix + sensor.frame_id})
