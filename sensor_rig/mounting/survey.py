"""What a model has that a rig file can refer to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mujoco

from rig_common.errors import RigError
from rig_common.jsonable import JsonObject
from sim_sensors.world.actuation.transmissions import Actuators
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model.model_file import compile_model
from sim_sensors.world.model.poses import keyframe_names

VERSION = 1
"""Version of the keys of `rig mount --json`."""
JOINT_TYPES = ('free', 'ball', 'slide', 'hinge')


@dataclass(frozen=True)
class Survey:
    """A compiled model and what is in it, as `--json` prints it."""

    path: Path
    model: mujoco.MjModel
    needs_outside_files: bool
    """Whether it reads files from outside its own folder."""

    def as_json(self) -> dict[str, object]:
        """Return the lists, with units in the names."""
        return {
            'version': VERSION,
            'model': str(self.path),
            'bodies': self.bodies(),
            'sites': self.sites(),
            'joints': self.joints(),
            'actuators': self.actuators(),
            'keyframes': self.keyframes(),
            'cameras': self.cameras(),
            'sensors': self.sensors(),
        }

    def bodies(self) -> list[dict[str, object]]:
        """Return every body but the world."""
        model = self.model
        return [
            {
                'name': model.body(index).name,
                'parent': model.body(int(model.body_parentid[index])).name,
                'mass_kg': float(model.body_mass[index]),
                'is_mocap': bool(model.body_mocapid[index] >= 0),
            }
            for index in range(1, model.nbody)
        ]

    def sites(self) -> list[JsonObject]:
        """Return every site."""
        model = self.model
        return [
            {
                'name': model.site(index).name,
                'body': self._body(model.site_bodyid[index]),
                'pos_m': model.site_pos[index].tolist(),
            }
            for index in range(model.nsite)
        ]

    def joints(self) -> list[dict[str, object]]:
        """Return every joint; `range` is rad or m, None without limits."""
        model = self.model
        return [
            {
                'name': model.joint(index).name,
                'body': self._body(model.jnt_bodyid[index]),
                'type': JOINT_TYPES[int(model.jnt_type[index])],
                'range': model.jnt_range[index].tolist() if model.jnt_limited[index] else None,
            }
            for index in range(model.njnt)
        ]

    def actuators(self) -> list[dict[str, object]]:
        """Return every actuator and what it takes; one without a name answers to its index."""
        known = Actuators(self.model)
        return [
            {
                'name': self.model.actuator(index).name,
                'index': index,
                'drives': known.driven[index],
                'takes': known.kinds[index],
            }
            for index in range(known.count)
        ]

    def keyframes(self) -> list[dict[str, object]]:
        """Return every keyframe; one without a name answers to its number."""
        return [
            {'name': name, 'number': number}
            for number, name in enumerate(keyframe_names(self.model))
        ]

    def cameras(self) -> list[dict[str, object]]:
        """Return every camera."""
        model = self.model
        return [
            {
                'name': model.camera(index).name,
                'body': self._body(model.cam_bodyid[index]),
                'fovy_deg': float(model.cam_fovy[index]),
            }
            for index in range(model.ncam)
        ]

    def sensors(self) -> list[JsonObject]:
        """Return every sensor that the model has of its own."""
        model = self.model
        return [
            {
                'name': model.sensor(index).name,
                'type': mujoco.mjtSensor(int(model.sensor_type[index]))
                .name.removeprefix('mjSENS_')
                .lower(),
            }
            for index in range(model.nsensor)
        ]

    def _body(self, index: Any) -> str:
        return str(self.model.body(int(index)).name)


def look_at(path: Path) -> Survey:
    """Compile the model at `path`; what it may read is what it needs, and is said."""
    if not path.is_file():
        raise RigError(f'there is no model file at {path}')
    outside = False
    try:
        model = compile_model(WorldConfig(model=str(path.absolute())), ())
    except RigError as error:
        if 'outside its own folder' not in str(error):
            raise
        outside = True
        model = compile_model(
            WorldConfig(model=str(path.absolute()), allow_outside_files=True), ()
        )
    return Survey(path, model, outside)
