"""Where things truly are, as messages: odometry of the base, frames, the robot's description.

One place for both ways of running: the world node publishes these, a recording holds them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable

import mujoco
import numpy as np

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.msgs import Transform
from sim_sensors.interface.sensor import AnySensor
from sim_sensors.timing.schedule import Schedule
from sim_sensors.world.model.model_file import find_model
from sim_sensors.world.scene.frames import UNTURNED, WORLD_FRAME, FrameTree, PlacedFrame
from sim_sensors.world.world_base import WorldBase

ODOM_RATE_HZ = 50.0
SCENE_RATE_HZ = 20.0
"""Of moving frames and markers."""
ODOM_TYPE = 'nav_msgs/msg/Odometry'
TF_TYPE = 'tf2_msgs/msg/TFMessage'
DESCRIPTION_TOPIC = 'robot_description'
DESCRIPTION_TYPE = 'std_msgs/msg/String'


def schedule_of(rate_hz: float, world: WorldBase) -> Schedule:
    """Return when something at `rate_hz` is due, at most at every physics step."""
    return Schedule(min(rate_hz, 1e9 / world.dt_ns), world.dt_ns)


class TrueOdometry:
    """The base's true pose in the world and its twist in its own frame."""

    def __init__(self, world: WorldBase) -> None:
        self.body = base_body(world)
        self._template = msgs.odometry(WORLD_FRAME, world.model.body(self.body).name)
        self._velocity: Floats = np.zeros(6)
        self._jacobians: Floats = np.zeros((2, 3, world.model.nv))

    def message(self, world: WorldBase, env: int) -> bytes:
        """Return the Odometry of `env` at the present instant."""
        data = world.data(env)
        mujoco.mj_objectVelocity(
            world.model, data, mujoco.mjtObj.mjOBJ_XBODY, self.body, self._velocity, 1
        )
        if (after := world.next_velocity) is not None:  # see interface/velocities.py
            along, around = self._jacobians
            mujoco.mj_jacBody(world.model, data, along, around, self.body)
            twist = np.stack([around, along]) @ after[env] @ data.xmat[self.body].reshape(3, 3)
            self._velocity += 0.5 * (twist.ravel() - self._velocity)
        return self._template.fill(
            world.stamp_ns,
            position=data.xpos[self.body],
            orientation=xyzw(data.xquat[self.body]),
            angular=self._velocity[:3],
            linear=self._velocity[3:],
        )


class FrameMessages:
    """The bytes of /tf and /tf_static, of environment 0; see `FrameTree`.

    A frame has one parent (REP 105): `hidden`, what moves and the origins of poses stay away, so
    that a localisation under test can own them.
    """

    def __init__(self, world: WorldBase, sensors: Iterable[AnySensor], *, hidden: bool) -> None:
        description = robot_description(world)
        self._tree = FrameTree(world.model, sensors, all_bodies=description is not None)
        self._root = [] if description is None else _fused_root(world, description)
        self.conflicts = self._tree.conflicts
        self._hidden = hidden
        self._start_ns = world.time_base.stamp_ns(0)
        self._begun = False

    def reset(self) -> None:
        """Begin a new episode: odometry counts from its start."""
        self._begun = False

    def static(self) -> bytes:
        """Return the frames that stay where they are on their parents."""
        return _tf_message(self._start_ns, [*self._root, *self._tree.fixed(hidden=self._hidden)])

    @property
    def can_move(self) -> bool:
        """Whether `moving` may ever have frames to publish."""
        return not self._hidden and self._tree.can_move

    def moving(self, world: WorldBase, *, wanted: bool = True) -> bytes | None:
        """Return the frames that move; None where there are none, or nobody `wanted` them."""
        data = world.data(0)
        if not self._begun:
            self._tree.begin(data)
            self._begun = True
        if self._hidden or not wanted:
            return None
        placed = self._tree.moving(data)
        return _tf_message(world.stamp_ns, placed) if placed else None


def robot_description(world: WorldBase) -> str | None:
    """Return the URDF that the model was made of, as it stands in its file; None of an MJCF."""
    file = find_model(world.config.model, world.base_dir)
    return file.read_text(encoding='utf-8') if file.suffix.lower() == '.urdf' else None


def _fused_root(world: WorldBase, description: str) -> list[PlacedFrame]:
    """Return the frame of a URDF's root link where MuJoCo made it one with the world."""
    robot = ElementTree.fromstring(description)
    children = {child.get('link') for child in robot.iterfind('joint/child')}
    roots = [
        link.get('name', '') for link in robot.iterfind('link') if link.get('name') not in children
    ]
    bodies = {world.model.body(body).name for body in range(world.model.nbody)}
    return [
        PlacedFrame(WORLD_FRAME, name, [0.0, 0.0, 0.0], UNTURNED)
        for name in roots
        if name and name not in bodies
    ]


def base_body(world: WorldBase) -> int:
    """Return the body that moves: the driven one, else the first free one, else the first."""
    if world.drive is not None:
        return world.drive.body
    model = world.model
    free = [
        int(model.jnt_bodyid[j])
        for j in range(model.njnt)
        if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE
    ]
    return free[0] if free else min(1, model.nbody - 1)


def xyzw(quat_wxyz: Floats) -> Floats:
    """Return a quaternion in ROS order."""
    return quat_wxyz[[1, 2, 3, 0]]


def _tf_message(stamp_ns: int, placed: Iterable[PlacedFrame]) -> bytes:
    return msgs.tf_message(
        Transform(
            stamp_ns, each.parent, each.child, each.pos_m, xyzw(np.array(each.quat_wxyz)).tolist()
        )
        for each in placed
    )
