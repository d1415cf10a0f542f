"""The net contact force on a body, from MuJoCo's own contact sensor, in the sensor's frame."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import NDArray

from sensor_rig.errors import RigError
from sim_sensors.layout import Array
from sim_sensors.mounts import find_body
from sim_sensors.sensors.native import add_native, native_name
from sim_sensors.truth import WorldView

_NET_FORCE = 3
"""Contact reduction that sums all contacts into one wrench at their force-weighted centre."""
_FIELDS = ('FORCE', 'TORQUE', 'POS')


def add_net_force(spec: mujoco.MjSpec, name: str, against: str) -> None:
    """Add a contact sensor for the body of site `name` (its own geoms) and the site's frame."""
    site = spec.site(name)
    body = site.parent
    if body.name == 'world':
        raise RigError(f'sensor {name!r}: mount.body is world, which has no contacts of its own; '
                       f'name the body whose contacts it should feel')
    sensor = spec.add_sensor(name=native_name(name, 'contact'),
                             type=mujoco.mjtSensor.mjSENS_CONTACT,
                             objtype=mujoco.mjtObj.mjOBJ_BODY, objname=body.name)
    if against:
        other = find_body(spec, name, against, 'against')
        sensor.reftype, sensor.refname = mujoco.mjtObj.mjOBJ_BODY, other.name
    bits = sum(1 << int(getattr(mujoco.mjtConDataField, f'mjCONDATA_{field}'))
               for field in _FIELDS)
    sensor.intprm[:3] = (bits, _NET_FORCE, 1)
    add_native(spec, name, 'framepos')
    add_native(spec, name, 'framequat')


class NetForceReader:
    """Reads the wrench that the rest of the world exerts on the body, about the sensor's origin.

    MuJoCo gives the wrench that the body exerts, in world axes at the centre of the contacts.
    """

    parts_ns: Sequence[int] = (0,)

    def __init__(self, model: mujoco.MjModel, name: str, *, with_torque: bool) -> None:
        """Find the columns of the three native sensors."""
        self.with_torque = with_torque
        self._contact = _columns(model, native_name(name, 'contact'))
        self._position = _columns(model, native_name(name, 'framepos'))
        self._orientation = _columns(model, native_name(name, 'framequat'))

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write force [3] N and, if asked for, torque [3] N m, in the sensor's axes."""
        data = view.sensordata[np.asarray(envs)]
        contact = data[:, self._contact]
        force, torque, centre = -contact[:, :3], -contact[:, 3:6], contact[:, 6:9]
        axes = _matrices(data[:, self._orientation])
        out[:, :3] = np.einsum('nij,ni->nj', axes, force)
        if self.with_torque:
            touching = np.any(contact[:, :6] != 0.0, axis=1)
            arm = np.where(touching[:, None], centre - data[:, self._position], 0.0)
            out[:, 3:] = np.einsum('nij,ni->nj', axes, torque + np.cross(arm, force))


def _columns(model: mujoco.MjModel, name: str) -> slice:
    native = model.sensor(name)
    start = int(native.adr[0])
    return slice(start, start + int(native.dim[0]))


def _matrices(quat_wxyz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return rotation matrices [n, 3, 3] of unit quaternions [n, 4]."""
    w, x, y, z = quat_wxyz.T
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], axis=-1).reshape(-1, 3, 3)
