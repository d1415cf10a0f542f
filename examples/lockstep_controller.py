"""A closed loop in lockstep: turns the rover to a heading, from its wheel odometry alone.

The world waits for this node at every tick, so the loop runs as fast as both can, and every run
does the same, on a loaded machine too:

    ./rig python examples/lockstep_controller.py &
    ./rig run examples/lockstep_controller.yaml --seconds 6
    kill %1                             # ends the controller

The second line can be repeated: the controller starts over with every run and says the same each
time. The rig file says `lockstep: true` and `wait_for: [controller]`; for another rig with such
an odometry, `./rig run RIG --lockstep --wait-for controller` does the same.
"""

from __future__ import annotations

import math
from hashlib import blake2b

from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.serialization import deserialize_message

from rig_common.lockstep.messages import SETTLED_TOPIC, Tick
from rig_common.ros.executor import run_node
from rig_common.ros.follower import Follower
from rig_common.times import NEVER_NS

ODOMETRY = 'wheels/odom'
GOAL_RAD = 1.2
GAIN_1_S = 1.5
REPORT_AFTER = 100
"""Messages after which it says where it is."""


class Controller(Node):
    """Answers every odometry message with a turn, in the tick in which the message arrives."""

    def __init__(self) -> None:
        """Listen, command, and follow the world's time."""
        super().__init__('controller')
        self._begin()
        self._odometry = self.create_subscription(Odometry, ODOMETRY, self._on_odometry, 10)
        self._command = self.create_publisher(Twist, 'cmd_vel', 10)
        self._follower = Follower(
            self,
            self._on_time,
            topic=SETTLED_TOPIC,
            ready=self._ready,
            on_episode=self._begin,
            deliver=lambda _, raw: self._on_odometry(deserialize_message(raw, Odometry)),
        )
        self._follower.counted = {ODOMETRY}

    def _begin(self, tick: Tick | None = None) -> None:
        """Forget what was: a run begins, or the world was reset."""
        self._fresh: list[Odometry] = []
        self._heard = 0
        self._digest = blake2b(digest_size=8)

    def _ready(self) -> bool:
        """Whether both connections stand; the node joins when they do."""
        return bool(
            self._odometry.get_publisher_count() and self._command.get_subscription_count()
        )

    def _on_odometry(self, message: Odometry) -> None:
        self._fresh.append(message)
        self._follower.received(ODOMETRY)  # calls _on_time once all of the tick is here

    def _on_time(self, now_ns: int) -> int:
        """Act on what arrived at this tick; return when to be called without a message."""
        for message in self._fresh:
            turn = message.pose.pose.orientation
            heading_rad = 2.0 * math.atan2(turn.z, turn.w)
            command = Twist()
            command.angular.z = GAIN_1_S * (GOAL_RAD - heading_rad)
            self._command.publish(command)
            self._follower.sent('cmd_vel')  # the world waits for it
            self._note(now_ns, heading_rad)
        self._fresh.clear()
        return NEVER_NS

    def _note(self, now_ns: int, heading_rad: float) -> None:
        self._heard += 1
        self._digest.update(f'{now_ns} {heading_rad!r};'.encode())
        if self._heard == REPORT_AFTER:
            print(
                f'heading {heading_rad:.3f} rad after {REPORT_AFTER} messages, '
                f'digest {self._digest.hexdigest()}',
                flush=True,
            )


if __name__ == '__main__':
    raise SystemExit(run_node(Controller))
