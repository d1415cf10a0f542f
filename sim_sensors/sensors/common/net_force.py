"""The net contact force on a body, from MuJoCo's own contact sensor, in the sensor's frame."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rig_common.errors import RigError
from sim_sensors.interface.mounts import add_native, find_body
from sim_sensors.interface.truth import ColumnReader, WorldView
from sim_sensors.sensors.common.rotations import cross
from sim_sensors.timing.arrays import Array

_NET_FORCE = 3
"""Contact reduction that sums all contacts into one wrench at their force-weighted centre."""
_FIELDS = ('FORCE', 'TORQUE', 'POS')
_FRAME = ('framepos', 'framexaxis', 'frameyaxis', 'framezaxis')


def add_net_force(spec: mujoco.MjSpec, name: str, against: str) -> None:
    """Add a contact sensor for the body of site `name` (its own geoms) and the site's frame."""
    site = spec.site(name)
    body = site.parent
    if body.name == 'world':
        raise RigError(
            f'sensor {name!r}: mount.body is world, which has no contacts of its own; '
            f'name the body whose contacts it should feel'
        )
    sensor = spec.add_sensor(
        name=f'{name}/contact',
        type=mujoco.mjtSensor.mjSENS_CONTACT,
        objtype=mujoco.mjtObj.mjOBJ_BODY,
        objname=body.name,
    )
    if against:
        other = find_body(spec, name, against, 'against')
        sensor.reftype, sensor.refname = mujoco.mjtObj.mjOBJ_BODY, other.name
    bits = sum(
        1 << int(getattr(mujoco.mjtConDataField, f'mjCONDATA_{field}')) for field in _FIELDS
    )
    sensor.intprm[:3] = (bits, _NET_FORCE, 1)
    for kind in _FRAME:
        add_native(spec, name, kind)


class NetForceReader:
    """Reads the wrench that the rest of the world exerts on the body, about the sensor's origin.

    MuJoCo gives the wrench that the body exerts, in world axes at the centre of the contacts.
    """

    parts_ns: Sequence[int] = (0,)

    def __init__(self, model: mujoco.MjModel, name: str, *, with_torque: bool) -> None:
        """Find the columns of the native sensors."""
        self.with_torque = with_torque
        names = [f'{name}/{kind}' for kind in ('contact', *_FRAME)]
        self._columns = ColumnReader(model, names).columns

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write force [3] N and, if asked for, torque [3] N m, in the sensor's axes."""
        data = view.sensordata[np.asarray(envs)[:, None], self._columns]
        wrench = -data[:, :6]
        if not wrench.any():
            out[:] = 0.0
            return
        axes = data[:, 12:].reshape(-1, 3, 3)  # each row is one of the sensor's axes
        if self.with_torque:
            touching = np.any(wrench != 0.0, axis=1)
            arm = data[:, 6:9] - data[:, 9:12]
            wrench[touching, 3:] += cross(arm[touching], wrench[touching, :3])
            out[:, 3:] = (axes @ wrench[:, 3:, None])[..., 0]
        out[:, :3] = (axes @ wrench[:, :3, None])[..., 0]
