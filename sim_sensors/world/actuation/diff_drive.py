"""How a model is driven: from a twist of its base to speeds of its wheels.

The rig file says so (`world.drive`), or the model itself, in `<custom>`: a text `drive` (the base
body), tuples `drive_left` and `drive_right` (actuators of each side), a numeric `drive_geometry_m`
(wheel radius and track). Wheels with velocity servos get their speeds as they are; torque motors
get a velocity loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.timing.arrays import ALL, EnvIndex
from sim_sensors.world.actuation.commands import Actuation
from sim_sensors.world.actuation.transmissions import Actuators
from sim_sensors.world.config.additions import DriveConfig

Twist = tuple[float, float]
"""Forward speed m/s and yaw rate rad/s of a base, in its own frame."""


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

    def write(
        self, twists: Iterable[Sequence[float]], actuation: Actuation, envs: EnvIndex = ALL
    ) -> None:
        """Want the wheel speeds of the `twists` (m/s, rad/s) of `envs`, one each."""
        servo = actuation.servo
        is_held = servo is not None and self.left[0] in servo.row
        wanted = actuation.rates if is_held else actuation.ctrl
        column = servo.row if servo is not None and is_held else range(actuation.actuators.count)
        per_turn = 0.5 * self.track_m / self.radius_m
        rows = wanted[envs].reshape(-1, wanted.shape[1])
        for (forward_m_s, turn_rad_s), row in zip(twists, rows, strict=True):
            forward, turn = forward_m_s / self.radius_m, turn_rad_s * per_turn
            for wheel in self.left:
                row[column[wheel]] = forward - turn
            for wheel in self.right:
                row[column[wheel]] = forward + turn
        wanted[envs] = rows.reshape(wanted[envs].shape)


def find_drive(
    model: mujoco.MjModel, actuators: Actuators, config: DriveConfig | None
) -> DiffDrive | None:
    """Return the drive that the rig file or `model` describes, None if neither does."""
    if config is not None:
        body, where = config.body, 'world.drive.body'
        left, right = (
            [index for name in names for index in actuators.of(name, f'world.drive.{key}')]
            for key, names in (('left', config.left), ('right', config.right))
        )
        radius_m, track_m = config.wheel_radius_m, config.track_m
    elif (own := custom_text(model, 'drive')) is not None:
        body, where = own, "the model's custom text 'drive'"
        left, right = (_actuators(model, name) for name in ('drive_left', 'drive_right'))
        geometry = custom_numbers(model, 'drive_geometry_m')
        if geometry is None or len(geometry) != 2 or min(geometry) <= 0.0:
            raise RigError(
                "the model's custom numeric 'drive_geometry_m' must be two positive "
                'numbers: wheel radius and track, m'
            )
        radius_m, track_m = geometry.tolist()
    else:
        return None
    drive = DiffDrive(_body(model, body, where), left, right, radius_m, track_m)
    kinds = {actuators.kinds[wheel] for wheel in (*drive.left, *drive.right)}
    if len(kinds) > 1 or not kinds <= {'velocity', 'effort'}:
        raise RigError(
            f'the wheels of the drive have {" and ".join(sorted(kinds))} actuators; '
            f'they should all be velocity servos, or all torque motors'
        )
    return drive


def _body(model: mujoco.MjModel, name: str, where: str) -> int:
    body: int = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, name)
    if body < 0:
        raise RigError(
            unknown_name(where, 'body', name, (model.body(i).name for i in range(model.nbody)))
        )
    return body


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
        raise RigError(
            f"the model has a custom text 'drive' but no custom tuple {name!r} that "
            f'lists its actuators'
        )
    start, size = int(model.tuple_adr[index]), int(model.tuple_size[index])
    kinds = model.tuple_objtype[start : start + size]
    if size == 0 or (kinds != int(mujoco.mjtObj.mjOBJ_ACTUATOR)).any():
        raise RigError(f"the model's custom tuple {name!r} must list actuators only")
    found: list[int] = model.tuple_objid[start : start + size].tolist()
    return found
