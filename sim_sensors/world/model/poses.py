"""Keyframes and named poses: from a name in the rig file to the positions of all joints."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name

FREE, BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


def find_keyframe(model: mujoco.MjModel, name: str | int, where: str = 'world.keyframe') -> int:
    """Return the keyframe called `name`, or of that number; -1 for none."""
    name = str(name)
    if not name:
        return -1
    names = keyframe_names(model)
    if name in names:
        return names.index(name)
    if name.isdecimal() and int(name) < model.nkey:
        return int(name)
    if name.isdecimal() and model.nkey:
        raise RigError(f'{where} is {name!r}; the model has keyframes 0 to {model.nkey - 1}')
    raise RigError(unknown_name(where, 'keyframe', name, names))


def keyframe_names(model: mujoco.MjModel) -> list[str]:
    """Return the names of the keyframes, empty for those without one."""
    return [model.key(index).name for index in range(model.nkey)]


def start_qpos(model: mujoco.MjModel, keyframe: int) -> Floats:
    """Return the joint positions that a world at `keyframe` (-1: none) starts with, [nq]."""
    return np.array(model.qpos0 if keyframe < 0 else model.key_qpos[keyframe])


def find_pose(
    model: mujoco.MjModel, name: str | int, poses: Mapping[str, Mapping[str, float]], start: Floats
) -> Floats:
    """Return the joint positions [nq] of a named pose, of a keyframe, or of the start."""
    name = str(name)
    if not name:
        return start.copy()
    if name in poses:
        return posed(model, name, poses[name], start)
    if not poses or name in keyframe_names(model) or name.isdecimal():
        return start_qpos(model, find_keyframe(model, name, 'world.driver.pose'))
    raise RigError(
        unknown_name(
            'world.driver.pose', 'pose or keyframe', name, [*poses, *keyframe_names(model)]
        )
    )


def posed(model: mujoco.MjModel, name: str, joints: Mapping[str, float], start: Floats) -> Floats:
    """Return `start` [nq] with the joints of pose `name` where it says."""
    qpos = start.copy()
    names = [model.joint(index).name for index in range(model.njnt)]
    for pattern, value in joints.items():
        found = [
            index
            for index, joint in enumerate(names)
            if fnmatchcase(joint, pattern)
            or (
                int(model.jnt_type[index]) == FREE
                and pattern == model.body(int(model.jnt_bodyid[index])).name
            )
        ]
        if not found:
            raise RigError(unknown_name(f'world.poses.{name}', 'joint', pattern, names))
        for index in found:
            kind = int(model.jnt_type[index])
            if kind == BALL:
                raise RigError(
                    f'world.poses.{name}.{names[index]}: a ball joint has more than '
                    f'one position; a pose gives hinges, slides and heights'
                )
            qpos[model.jnt_qposadr[index] + (2 if kind == FREE else 0)] = value
    return qpos
