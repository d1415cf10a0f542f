"""A cart that rolls at a constant speed, and sensors that read where it is at known times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rig_common import msgs
from sim_sensors.interface.config import SensorConfig
from sim_sensors.interface.sensor import Sample, Sensor, Topic
from sim_sensors.interface.truth import WorldView
from sim_sensors.rig import Rig
from sim_sensors.timing.arrays.layout import Array, Layout
from sim_sensors.world.config.world import WorldConfig

MS = 1_000_000
SPEED_M_S = 3.0
MODEL = f"""
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody><body name="cart"><joint type="slide" axis="1 0 0"/><geom size="0.1"/></body>
  </worldbody>
  <keyframe><key name="rolling" qvel="{SPEED_M_S}"/></keyframe>
</mujoco>
"""


class PlaceReader:
    """Reads the cart's place once a part, m, as one would know it in milliseconds of travel."""

    def __init__(self, parts_ns: Sequence[int]) -> None:
        self.parts_ns = parts_ns
        self.calls: list[tuple[int, list[int], int]] = []

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        self.calls.append((view.time_ns, list(envs), part))
        for row, env in enumerate(envs):
            out[row, part] = view.data(env).xpos[1, 0] / SPEED_M_S * 1e3


class Place(Sensor[SensorConfig]):
    """Where the cart was at each part of a capture; parts are 0 ms, 4 ms, 8 ms after its start."""

    parts_ms: tuple[int, ...] = (0,)
    duration_ms = 0

    def __init__(self, name: str, config: SensorConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'position': (len(self.parts_ms),)}, np.float64)

    @property
    def duration_ns(self) -> int:
        return self.duration_ms * MS

    def mount(self, spec: Any) -> None:
        pass

    def reader(self, view: WorldView) -> PlaceReader:
        return PlaceReader([part * MS for part in self.parts_ms])

    def truth_template(self) -> Any:
        template = msgs.joint_state([str(part) for part in self.parts_ms])
        return template.type_name, template

    def topics(self) -> Sequence[Topic]:
        return (Topic('place', 'sensor_msgs/msg/JointState'),)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        template = self.truth_template()[1]
        return [(self.topics()[0], template.fill(sample.stamp_ns, position=sample.values))]


class SweepingPlace(Place):
    """A capture of three parts in 10 ms."""

    parts_ms = (0, 4, 8)
    duration_ms = 10


def cart_rig(
    folder: Path, *sensors: Sensor[Any], num_envs: int = 1, seed: int = 1, **keys: Any
) -> Rig:
    """Return a rig of the rolling cart at 1 ms steps."""
    (folder / 'cart.xml').write_text(MODEL)
    world = WorldConfig(
        model='cart.xml',
        keyframe='rolling',
        num_envs=num_envs,
        **{key: keys.pop(key) for key in ('skip_unavailable', 'timestep_s') if key in keys},
    )
    return Rig(world, sensors, seed=seed, base_dir=folder, **keys)


def place(name: str = 'place', kind: type[Place] = Place, **keys: Any) -> Place:
    """Return a sensor that reads the cart's place."""
    return kind(name, SensorConfig(type='place', **keys))
