"""The world's services: pause, resume, step and reset. Arguments are parameters."""

from __future__ import annotations

from rcl_interfaces.msg import IntegerRange, ParameterDescriptor
from rclpy.node import Node

from rig_common.ros.services import offer
from rig_common.times import NS_PER_S
from sim_sensors.timekeeping.world_loop import WorldLoop

KEEP_SEED = -1


class WorldServices:
    """`~/pause`, `~/resume`, `~/step` (parameter `step_count`), `~/reset` (`reset_seed`)."""

    def __init__(self, node: Node, loop: WorldLoop, seed: int) -> None:
        self._node = node
        self._loop = loop
        self._episode, self._seed = 0, seed
        node.declare_parameter(
            'step_count',
            1,
            ParameterDescriptor(
                description='Physics steps that ~/step takes.',
                integer_range=[IntegerRange(from_value=1, to_value=2**31, step=1)],
            ),
        )
        node.declare_parameter(
            'reset_seed',
            KEEP_SEED,
            ParameterDescriptor(
                description='Seed of the episode that ~/reset begins; -1 keeps the present one.',
                integer_range=[IntegerRange(from_value=KEEP_SEED, to_value=2**63 - 1, step=1)],
            ),
        )
        offer(node, pause=self._pause, resume=self._resume, step=self._step, reset=self._reset)

    def _pause(self) -> str:
        self._loop.pause()
        return f'paused at {self._now_s():.3f} s'

    def _resume(self) -> str:
        self._loop.resume()
        return f'goes on from {self._now_s():.3f} s'

    def _step(self) -> str:
        count = self._node.get_parameter('step_count').value
        self._loop.step(count)
        return f'takes {count} steps from {self._now_s():.3f} s, then pauses'

    def _reset(self) -> str:
        """Begin a new episode of the old seed, or of another seed, as `Rig.reset` does."""
        seed = self._node.get_parameter('reset_seed').value
        self._episode = self._episode + 1 if seed == KEEP_SEED else 0
        self._seed = self._seed if seed == KEEP_SEED else seed
        self._loop.reset(self._episode, self._seed)
        return f'episode {self._episode} begins with seed {self._seed}'

    def _now_s(self) -> float:
        return self._loop.world.time_ns / NS_PER_S
