"""Commands from outside: twists, joints, joint trajectories and poses of bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from rig_common.errors import RigError
from rig_common.ros.clock import steady_timer
from rig_common.ros.types import is_installed, message_class
from rig_common.times import join_ns
from sim_sensors.interface.topics import env_prefix
from sim_sensors.world.actuation.path_following import JointPath
from sim_sensors.world.scene.pose_messages import world_frame
from sim_sensors.world.world_base import WorldBase

TRAJECTORY_TYPE = 'trajectory_msgs/msg/JointTrajectory'
FIELDS = ('position', 'velocity', 'effort')
LOOK_PERIOD_S = 0.5
"""Time between two looks at which type `cmd_vel` is published with (wall time)."""
MOST_BODIES = 64
"""Bodies of one environment that get a topic for their pose."""


class Commands:
    """Takes commands for every environment. A driver that steers leaves `cmd_vel` alone."""

    def __init__(self, node: Node, world: WorldBase, on_command: Callable[[str], None]) -> None:
        """Call `on_command(topic)` after each command, whether it was taken or not."""
        self._node = node
        self._on_command = on_command
        self.topics: list[str] = []
        """What is listened to, relative."""
        self._world, self._frame = world, world_frame(world)
        self._twists: dict[str, tuple[type, Any]] = {}
        """Type and subscription of every `cmd_vel`."""
        trajectory = _trajectory_type(node)
        bodies = [*world.placing.mocap, *world.placing.free]
        if len(bodies) > MOST_BODIES:
            self._warn(
                f'only the first {MOST_BODIES} of {len(bodies)} mocap and free bodies take '
                f'pose commands'
            )
        for env in range(world.num_envs):
            prefix = env_prefix(env, world.num_envs)
            if world.drive is not None and world.driver is None:
                topic = prefix + 'cmd_vel'
                self._twists[topic] = Twist, self._listen(Twist, topic, self._on_twist(env))
            self._listen(JointState, prefix + 'joint_commands', self._on_joints(env))
            if trajectory is not None:
                self._listen(trajectory, prefix + 'joint_trajectory', self._on_trajectory(env))
            for body in bodies[:MOST_BODIES]:
                self._listen(
                    PoseStamped, f'{prefix}pose_commands/{_token(body)}', self._on_pose(env, body)
                )

        if self._twists:
            self._timer = steady_timer(node, LOOK_PERIOD_S, self._follow_twists)

    def _follow_twists(self) -> None:
        """Take TwistStamped where that is published: one node cannot take two types of a topic."""
        stamped = 'geometry_msgs/msg/TwistStamped'
        for env, (topic, (kind, subscription)) in enumerate(self._twists.items()):
            name = self._node.resolve_topic_name(topic)
            types = {info.topic_type for info in self._node.get_publishers_info_by_topic(name)}
            wanted = TwistStamped if types == {stamped} else Twist
            if subscription is None:
                self._twists[topic] = kind, self._listen(kind, topic, self._on_twist(env))
            elif types and wanted is not kind:
                # It goes at the end of this turn; until then the topic keeps its type.
                self._node.destroy_subscription(subscription)
                self._twists[topic] = wanted, None

    def _listen(self, kind: Any, topic: str, take: Callable[[Any], None]) -> Any:
        """Return a subscription; None where this process has the topic with another type."""

        def hear(message: object) -> None:
            take(message)
            self._on_command(topic)

        if topic not in self.topics:
            self.topics.append(topic)
        try:
            return self._node.create_subscription(kind, topic, hear, 10)
        except RuntimeError as error:
            self._warn(f'{topic} cannot be taken as {kind.__name__}: {error}')
            return None

    def _on_twist(self, env: int) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            twist = getattr(message, 'twist', message)
            self._try(lambda: self._world.command_twist(twist.linear.x, twist.angular.z, env))

        return take

    def _on_joints(self, env: int) -> Callable[[JointState], None]:
        """Take position, velocity and effort, each for the actuators that take it."""

        def take(message: JointState) -> None:
            self._try(lambda: self._world.command_joints(_fields(message), env))

        return take

    def _on_trajectory(self, env: int) -> Callable[[object], None]:
        def take(message: Any) -> None:
            stamp_ns = join_ns(message.header.stamp.sec, message.header.stamp.nanosec)
            start_ns = self._world.time_base.run_ns(stamp_ns) if stamp_ns else None
            self._try(lambda: self._world.command_trajectory(_path(message), env, start_ns))

        return take

    def _on_pose(self, env: int, body: str) -> Callable[[PoseStamped], None]:
        def take(message: PoseStamped) -> None:
            frame, at, turn = (
                message.header.frame_id,
                message.pose.position,
                (message.pose.orientation),
            )
            if frame not in ('', self._frame):
                self._warn(
                    f'the pose command of {body!r} is in the frame {frame!r}; it should '
                    f'be in {self._frame!r}'
                )
                return
            self._try(
                lambda: self._world.command_pose(
                    body, (at.x, at.y, at.z), (turn.w, turn.x, turn.y, turn.z), env
                )
            )

        return take

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except RigError as error:
            self._warn(str(error))

    def _warn(self, sentence: str) -> None:
        self._node.get_logger().warning(sentence, throttle_duration_sec=1.0)


def _fields(message: JointState) -> dict[str, dict[str, float]]:
    """Return what a JointState gives of each joint."""
    values: dict[str, dict[str, float]] = {name: {} for name in message.name}
    if len(values) != len(message.name):
        raise RigError('joint_commands names a joint twice')
    given = [field for field in FIELDS if len(getattr(message, field))]
    if not given:
        raise RigError('joint_commands has no position, velocity or effort')
    for field in given:
        column = getattr(message, field)
        if len(column) != len(message.name):
            raise RigError(
                f'joint_commands has {len(message.name)} names and {len(column)} '
                f'values of {field}; they must be as many'
            )
        for name, value in zip(message.name, column, strict=True):
            values[name][field] = float(value)
    return values


def _path(message: Any) -> JointPath | None:
    """Return the path of a JointTrajectory, None for one without points: stop."""
    points = message.points
    if not points:
        return None
    times = [each.time_from_start.sec + each.time_from_start.nanosec * 1e-9 for each in points]
    width = len(message.joint_names)
    if any(len(each.positions) != width for each in points):
        raise RigError(
            f'joint_trajectory has {width} joints; every point must have as many positions'
        )
    speeds = None
    if all(len(each.velocities) == width for each in points):
        speeds = np.array([each.velocities for each in points], float).reshape(-1, width)
    return JointPath(
        tuple(message.joint_names),
        np.array(times),
        np.array([each.positions for each in points], float).reshape(-1, width),
        speeds,
    )


def _trajectory_type(node: Node) -> object:
    if is_installed(TRAJECTORY_TYPE):
        return message_class(TRAJECTORY_TYPE)
    node.get_logger().info(
        'trajectory_msgs is not installed, so joint_trajectory is not listened to'
    )
    return None


def _token(name: str) -> str:
    """Return a body's name as a part of a topic's."""
    token = ''.join(letter if letter.isalnum() else '_' for letter in name)
    return token if token[0].isalpha() else f'body_{token}'
