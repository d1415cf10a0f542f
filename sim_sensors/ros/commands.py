"""Commands from outside: `cmd_vel` for a driven base, `joint_commands` for any actuator."""

from __future__ import annotations

from collections.abc import Callable

from geometry_msgs.msg import Twist
from rclpy.node import Node
from sensor_msgs.msg import JointState

from rig_common.errors import RigError
from sim_sensors.naming import env_prefix
from sim_sensors.world.world import WorldBase


class Commands:
    """Takes commands for every environment. A scripted driver leaves `cmd_vel` alone."""

    def __init__(self, node: Node, world: WorldBase) -> None:
        self._node = node
        self._world = world
        for env in range(world.num_envs):
            prefix = env_prefix(env, world.num_envs)
            if world.drive is not None and world.driver is None:
                node.create_subscription(Twist, prefix + 'cmd_vel', self._on_twist(env), 10)
            node.create_subscription(JointState, prefix + 'joint_commands',
                                     self._on_joints(env), 10)

    def _on_twist(self, env: int) -> Callable[[Twist], None]:
        def take(message: Twist) -> None:
            self._try(lambda: self._world.command_twist(message.linear.x, message.angular.z, env))
        return take

    def _on_joints(self, env: int) -> Callable[[JointState], None]:
        """Take position, velocity or effort, whichever is there: the actuator knows its unit."""
        def take(message: JointState) -> None:
            values = message.position or message.velocity or message.effort
            if len(values) != len(message.name):
                self._warn(f'joint_commands has {len(message.name)} names and {len(values)} '
                           f'values; they must be as many')
                return
            self._try(lambda: self._world.command(
                dict(zip(message.name, values, strict=True)), env))
        return take

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except RigError as error:
            self._warn(str(error))

    def _warn(self, sentence: str) -> None:
        self._node.get_logger().warning(sentence, throttle_duration_sec=1.0)
