"""What MuJoCo's warnings mean, as sentences that a user can act on."""

from __future__ import annotations

from typing import TypeAlias

import mujoco
import numpy as np

from rig_common.arrays import Ints32
from rig_common.errors import RigError

Warnings: TypeAlias = Ints32
"""MuJoCo's warnings by kind, [kinds, 2]: information about the last one, and how many."""

UNSTABLE = {
    mujoco.mjtWarning.mjWARN_BADQPOS: ('position', 'qpos'),
    mujoco.mjtWarning.mjWARN_BADQVEL: ('velocity', 'qvel'),
    mujoco.mjtWarning.mjWARN_BADQACC: ('acceleration', 'qacc'),
}
FULL = {
    mujoco.mjtWarning.mjWARN_CONTACTFULL: 'contacts',
    mujoco.mjtWarning.mjWARN_CNSTRFULL: 'constraints',
}
FULL_KINDS = [int(kind) for kind in FULL]


def instability(model: mujoco.MjModel, warnings: Warnings, when: str) -> RigError:
    """Return the error for the first warning in `warnings`; `when` is a time and a place."""
    for kind, (what, array) in UNSTABLE.items():
        info, count = warnings[int(kind)]
        if count:
            return RigError(
                f'the simulation became unstable at {when}: the '
                f'{what} of {_degree_of_freedom(model, array, int(info))} is not '
                f'finite or huge; use a smaller world.timestep_s or softer '
                f'contacts and gains'
            )
    for kind, what in FULL.items():
        if warnings[int(kind)][1]:
            return RigError(
                f'MuJoCo ran out of memory for {what} at {when}; '
                f'give the model more with <size memory="..."/>'
            )
    return RigError(f'the simulation was reset by MuJoCo at {when}')


def _degree_of_freedom(model: mujoco.MjModel, array: str, index: int) -> str:
    if array == 'qpos':
        joint = int(np.searchsorted(model.jnt_qposadr, index, 'right')) - 1
    else:
        joint = int(model.dof_jntid[index])
    found = model.joint(joint)
    return (
        f'joint {found.name!r}'
        if found.name
        else (f'the joint of body {model.body(int(found.bodyid[0])).name!r}')
    )
