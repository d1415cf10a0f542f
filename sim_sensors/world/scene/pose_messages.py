"""Where things truly are, as messages: odometry of the base, frames, the robot's description.

One place for both ways of running: the world node publishes these, a recording holds them.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from rig_common import msgs
from rig_common.arrays import Floats
from rig_common.msgs import Transform
from sim_sensors.interface import AnySensor
from sim_sensors.timing.schedule import Schedule
from sim_sensors.world.model.model_file import find_model
from sim_sensors.world.model.stance import free_bodies
from sim_sensors.world.scene.frames import (
    UNTURNED,
    WORLD_FRAME,
    Base,
    FrameTree,
    PlacedFrame,
    base_frame,
)
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
        self.body = base_of(world).body
        self._template = msgs.odometry(
            world_frame(world), base_frame(world.model, world.config, base_of(world))
        )
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

    A frame has one parent (REP 105): with hidden truth, what moves and the origins of poses stay
    away, so that a localisation under test can own them.
    """

    def __init__(self, world: WorldBase, sensors: Sequence[AnySensor]) -> None:
        description = robot_description(world)
        self.tree = frame_tree(world, sensors, all_bodies=description is not None)
        self._root = [] if description is None else _fused_root(world, description)
        self._start_ns = world.time_base.stamp_ns(0)
        self.can_move = self.tree.can_move and not world.config.hide_truth
        """Whether `moving` has frames to publish."""

    def begin(self, world: WorldBase) -> None:
        """Begin an episode: odometry counts from here."""
        self.tree.begin(world.data(0))

    def static(self) -> bytes:
        """Return the frames that stay where they are on their parents."""
        return _tf_message(self._start_ns, [*self._root, *self.tree.fixed()])

    def moving(self, world: WorldBase) -> bytes:
        """Return the frames that move."""
        return _tf_message(world.stamp_ns, self.tree.moving(world.data(0)))


def frame_tree(
    world: WorldBase, sensors: Sequence[AnySensor], *, all_bodies: bool = False
) -> FrameTree:
    """Return the frames of `world` with `sensors`."""
    return FrameTree(world.model, sensors, world.config, base_of(world), all_bodies=all_bodies)


def world_frame(world: WorldBase) -> str:
    """Return the frame that truth, markers and commanded poses are in."""
    return world.config.frame_prefix.lstrip('/') + WORLD_FRAME


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
        PlacedFrame(
            world_frame(world), world.config.frame_prefix.lstrip('/') + name, [0.0] * 3, UNTURNED
        )
        for name in roots
        if name and name not in bodies
    ]


def base_of(world: WorldBase) -> Base:
    """Return the base of a robot: the driven body, else the first free one, else the first."""
    model = world.model
    if world.drive is not None:
        return Base(world.drive.body, is_mobile=bool(model.body(world.drive.body).name))
    for body in free_bodies(model):
        return Base(body, is_mobile=bool(model.body(body).name))
    return Base(min(1, model.nbody - 1), is_mobile=False)


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
