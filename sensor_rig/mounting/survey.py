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
from sim_sensors.world.model.model_file import SUFFIXES, compile_model, read_spec
from sim_sensors.world.model.poses import keyframe_names

VERSION = 1
"""Version of the keys of `rig mount --json`."""
JOINT_TYPES = ('free', 'ball', 'slide', 'hinge')


@dataclass(frozen=True)
class Survey:
    """A compiled model and what is in it, as `--json` prints it."""

    path: Path
    model: mujoco.MjModel
    timestep_s: float
    """Physics step that the model asks for."""
    needs_outside_files: bool
    """Whether it reads files from outside its own folder."""

    def as_json(self) -> dict[str, object]:
        """Return the lists, with units in the names."""
        model = self.model
        known = Actuators(model)
        return {
            'version': VERSION,
            'model': str(self.path),
            'bodies': [
                {
                    'name': body.name,
                    'parent': model.body(int(body.parentid[0])).name,
                    'mass_kg': float(body.mass[0]),
                    'is_mocap': bool(body.mocapid[0] >= 0),
                }
                for body in map(model.body, range(1, model.nbody))
            ],
            'sites': self.sites(),
            'joints': [
                {
                    'name': joint.name,
                    'body': self._body(joint.bodyid),
                    'type': JOINT_TYPES[int(joint.type[0])],
                    'range': joint.range.tolist() if joint.limited[0] else None,
                }
                for joint in map(model.joint, range(model.njnt))
            ],
            'actuators': [
                {
                    'name': model.actuator(index).name,
                    'index': index,
                    'drives': known.driven[index],
                    'takes': known.kinds[index],
                }
                for index in range(known.count)
            ],
            'keyframes': [
                {'name': name, 'number': number}
                for number, name in enumerate(keyframe_names(model))
            ],
            'cameras': [
                {
                    'name': camera.name,
                    'body': self._body(camera.bodyid),
                    'fovy_deg': float(camera.fovy[0]),
                }
                for camera in map(model.camera, range(model.ncam))
            ],
            'sensors': [
                {
                    'name': sensor.name,
                    'type': mujoco.mjtSensor(int(sensor.type[0]))
                    .name.removeprefix('mjSENS_')
                    .lower(),
                }
                for sensor in map(model.sensor, range(model.nsensor))
            ],
        }

    def sites(self) -> list[JsonObject]:
        """Return every site."""
        return [
            {'name': site.name, 'body': self._body(site.bodyid), 'pos_m': site.pos.tolist()}
            for site in map(self.model.site, range(self.model.nsite))
        ]

    def _body(self, index: Any) -> str:
        return str(self.model.body(int(index[0])).name)


def look_at(path: Path) -> Survey:
    """Compile the model at `path`; what it may read is what it needs, and is said."""
    if not path.is_file():
        raise RigError(f'there is no model file at {path}')
    if path.suffix.lower() not in SUFFIXES:
        raise RigError(f'{path} should be an MJCF file (.xml) or a URDF file (.urdf)')
    config = WorldConfig(model=str(path.absolute()))
    try:
        spec, _ = read_spec(config, None)
    except RigError as error:
        if 'outside its own folder' not in str(error):
            raise
        config = config.model_copy(update={'allow_outside_files': True})
        spec, _ = read_spec(config, None)
    return Survey(
        path,
        compile_model(config, ()),
        float(spec.option.timestep),
        config.allow_outside_files,
    )
