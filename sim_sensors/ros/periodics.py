"""What the world publishes at rates of its own: /clock and the true odometry."""

from __future__ import annotations

from abc import ABC, abstractmethod

from nav_msgs.msg import Odometry as OdometryMessage
from rclpy.node import Node
from rosgraph_msgs.msg import Clock as ClockMessage

from rig_common import msgs
from rig_common.ros import qos
from rig_common.topics import truth_topic
from sim_sensors.interface.topics import CLOCK_TOPIC, env_prefix
from sim_sensors.timing.schedule import Schedule
from sim_sensors.world.scene.pose_messages import ODOM_RATE_HZ, TrueOdometry, schedule_of
from sim_sensors.world.world_base import WorldBase


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
    """/clock, for everybody's nodes. Our own follow `world/_tick`."""

    def __init__(self, node: Node, schedule: Schedule) -> None:
        super().__init__(schedule)
        self._template = msgs.clock()
        self._publisher = node.create_publisher(ClockMessage, CLOCK_TOPIC, qos.clock())

    def publish(self, world: WorldBase) -> None:
        """Publish the time, if somebody reads it."""
        if self._publisher.get_subscription_count():
            self._publisher.publish(self._template.fill(world.stamp_ns))


class Odometry(PeriodicTopic):
    """`truth/odom`: the base's true pose in the world and its twist in its own frame."""

    def __init__(self, node: Node, world: WorldBase) -> None:
        super().__init__(schedule_of(ODOM_RATE_HZ, world))
        topic = truth_topic('odom', hidden=world.config.hide_truth)
        self._truth = TrueOdometry(world)
        self._publishers = [
            node.create_publisher(
                OdometryMessage,
                env_prefix(env, world.num_envs) + topic,
                qos.sensor_out(ODOM_RATE_HZ),
            )
            for env in range(world.num_envs)
        ]

    def publish(self, world: WorldBase) -> None:
        """Publish the odometry of every environment that somebody reads."""
        for env, publisher in enumerate(self._publishers):
            if publisher.get_subscription_count():
                publisher.publish(self._truth.message(world, env))
