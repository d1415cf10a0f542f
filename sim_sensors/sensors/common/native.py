"""MuJoCo's own sensors, added to a model before it is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.interface.truth import ColumnReader
from sim_sensors.timing.arrays import Array


class LinearReader(ColumnReader):
    """Truth that is linear in sensordata columns: units, averages, sums."""

    def __init__(
        self, model: mujoco.MjModel, sensor_names: Sequence[str], matrix: ArrayLike
    ) -> None:
        """Multiply the columns [n, c] of `sensor_names` by `matrix` [c, width]."""
        super().__init__(model, sensor_names)
        self._matrix: Floats = np.asarray(matrix, float)

    def write(self, columns: Array, out: Array) -> None:
        """Write the product."""
        np.matmul(columns, self._matrix, out=out)


def add_joint_native(spec: mujoco.MjSpec, sensor: str, kind: str, joint: str) -> None:
    """Add native sensor `kind` ('jointpos', 'jointvel' ...), `sensor/kind/joint`, on `joint`."""
    found = spec.joint(joint)
    if found is None:
        raise RigError(
            unknown_name(
                f'sensor {sensor!r}: joint', 'joint', joint, (each.name for each in spec.joints)
            )
        )
    if found.type not in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
        raise RigError(
            f'sensor {sensor!r}: joint {joint!r} is neither a hinge nor a slide; '
            f'an encoder measures one angle or one length'
        )
    spec.add_sensor(
        name=f'{sensor}/{kind}/{joint}',
        type=getattr(mujoco.mjtSensor, f'mjSENS_{kind.upper()}'),
        objtype=mujoco.mjtObj.mjOBJ_JOINT,
        objname=joint,
    )
