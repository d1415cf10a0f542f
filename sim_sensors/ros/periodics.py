"""What the world publishes at rates of its own: /clock and the true odometry."""

from __future__ import annotations

from abc import ABC, abstractmethod

import mujoco
import numpy as np
from nav_msgs.msg import Odometry as OdometryMessage
from numpy.typing import NDArray
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage

from rig_common import msgs
from rig_common.ros import qos
from sim_sensors.naming import env_prefix, truth_topic
from sim_sensors.timekeeping.schedule import Schedule
from sim_sensors.world.frames import WORLD_FRAME
from sim_sensors.world.world import WorldBase


class PeriodicTopic(ABC):
    """Work at a fixed rate of simulated time."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.next_ns = schedule.time_of(0)

    def reset(self) -> None:
        """Begin a new episode at time 0."""
        self.next_ns = self._schedule.time_of(0)

    def work(self, world: WorldBase) -> None:
        """Publish the present instant."""
        self.next_ns = self._schedule.next_time(world.time_ns)
        self.publish(world)

    @abstractmethod
    def publish(self, world: WorldBase) -> None:
        """Publish the present instant, whenever it is called."""


class Clock(PeriodicTopic):
    """/clock, for everybody's nodes. Our own follow `world/tick`."""

    def __init__(self, node: Node, schedule: Schedule) -> None:
        super().__init__(schedule)
        self._template = msgs.clock()
        self._publisher = node.create_publisher(ClockMessage, '/clock', qos.clock())

    def publish(self, world: WorldBase) -> None:
        """Publish the time, if somebody reads it."""
        if self._publisher.get_subscription_count():
            self._publisher.publish(self._template.fill(world.stamp_ns))


class Odometry(PeriodicTopic):
    """`truth/odom`: the base's true pose in the world and its twist in its own frame."""

    def __init__(self, node: Node, world: WorldBase, schedule: Schedule, *, hidden: bool) -> None:
        super().__init__(schedule)
        self.body = base_body(world)
        name = world.model.body(self.body).name
        self._template = msgs.odometry(WORLD_FRAME, name)
        self._publishers = [node.create_publisher(
            OdometryMessage, env_prefix(env, world.num_envs) + truth_topic('odom', hidden=hidden),
            qos.sensor_out()) for env in range(world.num_envs)]
        self._velocity: NDArray[np.float64] = np.zeros(6)

    def publish(self, world: WorldBase) -> None:
        """Publish the odometry of every environment that somebody reads."""
        for env, publisher in enumerate(self._publishers):
            if publisher.get_subscription_count():
                data = world.data(env)
                mujoco.mj_objectVelocity(world.model, data, mujoco.mjtObj.mjOBJ_XBODY, self.body,
                                         self._velocity, 1)
                publisher.publish(self._template.fill(
                    world.stamp_ns, position=data.xpos[self.body],
                    orientation=xyzw(data.xquat[self.body]),
                    angular=self._velocity[:3], linear=self._velocity[3:]))


def base_body(world: WorldBase) -> int:
    """Return the body that moves: the driven one, else the first free one, else the first."""
    if world.drive is not None:
        return world.drive.body
    model = world.model
    free = [int(model.jnt_bodyid[j]) for j in range(model.njnt)
            if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE]
    return free[0] if free else min(1, model.nbody - 1)


def xyzw(quat_wxyz: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a quaternion in ROS order."""
    return quat_wxyz[[1, 2, 3, 0]]
