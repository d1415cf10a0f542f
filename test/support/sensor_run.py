"""Runs sensors in a small world, step by step, over the same wire form as every way of running."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.typesys import Stores, get_typestore

from rig_common.times import NEVER_NS
from sim_sensors.interface.sensor import Sample, Sensor
from sim_sensors.interface.truth import WorldView
from sim_sensors.pipeline.assembly import schedules_of
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.pipeline.sources import Source, make_source
from sim_sensors.registry import sensor_class
from sim_sensors.timing.arrays.layout import Array
from sim_sensors.world.batch import BatchWorld
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import World
from sim_sensors.world.world_base import WorldBase


def make_sensor(name: str, **keys: Any) -> Sensor[Any]:
    """Return sensor `name` from the keys of its entry in a rig file."""
    found = sensor_class(keys['type'])
    return found(name, found.config_class.model_validate(keys))


@dataclass
class Run:
    """What came out of a run, samples in order of arrival."""

    world: WorldBase
    sensors: dict[str, Sensor[Any]]
    samples: dict[str, list[Sample]]

    def values(self, name: str, field: str, env: int = 0) -> Array:
        """Return the measured `field` of every sample, [n, *shape]."""
        layout = self.sensors[name].return_layout
        return np.array(
            [layout.view(each.values, field) for each in self.samples[name] if each.env == env]
        )

    def truth(self, name: str, field: str, env: int = 0) -> Array:
        """Return the true `field` of every sample, [n, *shape]."""
        layout = self.sensors[name].return_layout
        return np.array(
            [layout.view(each.truth, field) for each in self.samples[name] if each.env == env]
        )

    def times_s(self, name: str, env: int = 0) -> Array:
        """Return the capture times, s."""
        return np.array([each.capture_ns for each in self.samples[name] if each.env == env]) / 1e9

    def messages(self, name: str) -> list[dict[str, bytes]]:
        """Return the messages of every sample by topic suffix."""
        return [
            {topic.suffix: data for topic, data in self.sensors[name].encode(sample)}
            for sample in self.samples[name]
        ]


def run(
    folder: Path,
    model: str | Path,
    sensors: Mapping[str, Mapping[str, Any]],
    seconds: float,
    *,
    timestep_s: float = 0.001,
    num_envs: int = 1,
    seed: int = 1,
    keyframe: str = '',
    on_step: Callable[[WorldBase], None] | None = None,
) -> Run:
    """Run `sensors` for `seconds` in `model`, a file or the text of one."""
    file = model if isinstance(model, Path) else folder / 'model.xml'
    if isinstance(model, str):
        file.write_text(model)
    made = {name: make_sensor(name, **keys) for name, keys in sensors.items()}
    config = WorldConfig(
        model=str(file), timestep_s=timestep_s, num_envs=num_envs, keyframe=keyframe
    )
    world = (World if num_envs == 1 else BatchWorld)(config, list(made.values()))
    schedules = schedules_of({name: each.config for name, each in made.items()}, world.dt_ns)
    pipelines: list[Pipeline] = []
    sources: list[Source] = []
    for name, sensor in made.items():
        sensor.validate(world)
        pipelines.append(
            Pipeline(
                sensor,
                RunSetup(
                    num_envs=num_envs, seed=seed, dt_ns=world.dt_ns, messages=True, arrays=False
                ),
                schedule=schedules[name],
            )
        )
        sources.append(make_source(world, [Wired(sensor, world)], pipelines[-1]))
    for _ in range(round(seconds / timestep_s) + 1):
        if on_step is not None:
            on_step(world)
        world.step()
        for source in sources:
            source.advance(world.time_ns)
    return Run(world, made, {each.sensor.name: each.due(NEVER_NS) for each in pipelines})


class Wired:
    """Fills truth rows from a world; once complete they go through the bytes of their message."""

    def __init__(self, sensor: Sensor[Any], world: WorldBase) -> None:
        self._sensor, self._reader = sensor, sensor.reader(world)
        self.parts_ns = self._reader.parts_ns

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        self._reader.read(view, envs, part, out)
        if part < len(self.parts_ns) - 1:
            return
        template = self._sensor.truth_template()[1]
        for row in out:
            message = template.fill(view.stamp_ns, **self._sensor.truth_to_blocks(row))
            stamp_ns, blocks = template.read(message)
            assert stamp_ns == view.stamp_ns
            row[:] = 0
            self._sensor.blocks_to_truth(blocks, row)


def feed(
    sensor: Sensor[Any], rows: Array, *, period_s: float, num_envs: int = 1, seed: int = 1
) -> Array:
    """Return what `sensor` makes of truth `rows` [n, width] at its rate, [n, num_envs, width]."""
    dt_ns = round(period_s * 1e9)
    pipeline = Pipeline(sensor, RunSetup(num_envs=num_envs, seed=seed, dt_ns=dt_ns))
    out = np.empty((len(rows), num_envs, sensor.return_layout.width))
    for tick, row in enumerate(rows):
        pipeline.tick(None, tick * dt_ns, np.tile(row, (num_envs, 1)))
        out[tick] = pipeline.read(tick * dt_ns).values
    return out


def decode(type_name: str, data: bytes) -> Any:
    """Return a message decoded by rosbags, which shares no code with ours."""
    return _typestore().deserialize_cdr(data, type_name)


@cache
def _typestore() -> Any:
    return get_typestore(Stores.ROS2_KILTED)
