"""How a model is driven: from a twist of its base to speeds of its wheels.

A model says so itself, in `<custom>`: a text `drive` (the base body), tuples `drive_left` and
`drive_right` (velocity actuators of each side), a numeric `drive_geometry_m` (wheel radius and
track).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np
from numpy.typing import NDArray

from rig_common.errors import RigError
from sim_sensors.world.mounts import unknown_name

Floats = NDArray[np.float64]
Twist = tuple[float, float]
"""Forward speed m/s and yaw rate rad/s of a base, in its own frame."""

JOINT_TRANSMISSIONS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))


@dataclass(frozen=True, slots=True)
class DiffDrive:
    """A differential drive: two sides of wheels, one radius."""

    body: int
    """Id of the base body; its x axis points forward and its origin lies on the drive axle."""
    left: list[int]
    """Actuator ids of the left wheels."""
    right: list[int]
    """Actuator ids of the right wheels."""
    radius_m: float
    track_m: float

    def write(self, twists: Iterable[Sequence[float]], ctrl: Floats) -> None:
        """Write the wheel speeds [rad/s] of E `twists` (m/s, rad/s) into `ctrl` [E, nu]."""
        per_turn = 0.5 * self.track_m / self.radius_m
        for (forward_m_s, turn_rad_s), row in zip(twists, ctrl, strict=True):
            forward, turn = forward_m_s / self.radius_m, turn_rad_s * per_turn
            for wheel in self.left:
                row[wheel] = forward - turn
            for wheel in self.right:
                row[wheel] = forward + turn


def find_drive(model: mujoco.MjModel) -> DiffDrive | None:
    """Return the drive that `model` describes, None if it describes none."""
    name = custom_text(model, 'drive')
    if name is None:
        return None
    body = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
    if body < 0:
        raise RigError(unknown_name("the model's custom text 'drive'", 'body', name,
                                    (model.body(i).name for i in range(model.nbody))))
    geometry = custom_numbers(model, 'drive_geometry_m')
    if geometry is None or len(geometry) != 2 or min(geometry) <= 0.0:
        raise RigError("the model's custom numeric 'drive_geometry_m' must be two positive "
                       'numbers: wheel radius and track, m')
    return DiffDrive(body, _actuators(model, 'drive_left'), _actuators(model, 'drive_right'),
                     float(geometry[0]), float(geometry[1]))


def command_names(model: mujoco.MjModel) -> dict[str, int]:
    """Return actuator ids by the names commands may use.

    An actuator answers to its own name and to that of the joint it drives, where that joint has
    no other actuator: many models name their joints only.
    """
    drives: dict[str, list[int]] = {}
    for index in range(model.nu):
        if model.actuator_trntype[index] in JOINT_TRANSMISSIONS:
            joint = model.joint(int(model.actuator_trnid[index, 0])).name
            drives.setdefault(joint, []).append(index)
    names = {joint: ids[0] for joint, ids in drives.items() if joint and len(ids) == 1}
    own = {model.actuator(index).name: index for index in range(model.nu)}
    return names | {name: index for name, index in own.items() if name}


def custom_text(model: mujoco.MjModel, name: str) -> str | None:
    """Return the custom text `name`, None if there is none."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TEXT, name)
    if index < 0:
        return None
    start = int(model.text_adr[index])
    return bytes(model.text_data[start:]).split(b'\0')[0].decode()


def custom_numbers(model: mujoco.MjModel, name: str) -> Floats | None:
    """Return the custom numeric `name` [n], None if there is none."""
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_NUMERIC, name)
    return None if index < 0 else np.array(model.numeric(index).data, dtype=np.float64)


def _actuators(model: mujoco.MjModel, name: str) -> list[int]:
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_TUPLE, name)
    if index < 0:
        raise RigError(f"the model has a custom text 'drive' but no custom tuple {name!r} that "
                       f'lists its actuators')
    start, size = int(model.tuple_adr[index]), int(model.tuple_size[index])
    kinds = model.tuple_objtype[start:start + size]
    if size == 0 or (kinds != int(mujoco.mjtObj.mjOBJ_ACTUATOR)).any():
        raise RigError(f"the model's custom tuple {name!r} must list actuators only")
    return [int(index) for index in model.tuple_objid[start:start + size]]
