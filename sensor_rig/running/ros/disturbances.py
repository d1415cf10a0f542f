"""What goes wrong in a soak run: one thing at a time, drawn from a seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from rclpy.node import Node

from rig_common.memory import return_freed_memory
from rig_common.ros import qos
from rig_common.ros.types import message_class
from rig_common.times import NS_PER_S
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.ros.one_process import OneProcess
from sim_sensors.timing.faults import FaultConfig

MEAN_PAUSE_S = 8.0
"""Mean simulated time between two faults."""
LONGEST_FAULT_S = 5.0
FLOOD = 50
"""Messages of a flood."""

SENSOR_FAULTS: dict[str, dict[str, float]] = {
    'dead': {},
    'stuck': {},
    'wrong': {'scale': 1.5, 'offset': 0.3},
    'noisy': {'scale': 20.0},
    'slow': {'offset': 0.3},
    'clock_step': {'offset': 0.7},
    'loss_burst': {'scale': 0.5},
}


class Disturbances:
    """Does something to a running rig now and then."""

    def __init__(self, rig: RigConfig, nodes: OneProcess, seed: int) -> None:
        """Draw everything from `seed`: what, to whom, for how long, and when next."""
        self._rig, self._nodes = rig, nodes
        self._random = random.Random(seed)
        self._next_s = self._pause_s()
        self.done: Counter[str] = Counter()
        """How often each thing was done."""
        self._stranger = Node('stranger')
        nodes.add(self._stranger)
        self._inputs = {
            sensor.topics()[0].of(name): message_class(sensor.topics()[0].type_name)
            for name, sensor in rig.make_sensors().items()
        }
        self._acts: list[tuple[str, Callable[[], None]]] = [
            *((f'sensor {kind}', partial(self._fault, kind)) for kind in SENSOR_FAULTS),
            ('emulator restarted', nodes.restart_emulator),
            ('world restarted', nodes.restart_world),
            ('world reset', self._reset_world),
            ('garbage bytes', partial(self._inject, _garbage, 3)),
            ('zero stamps', partial(self._inject, _zero_stamps, 3)),
            ('stamps of the future', partial(self._inject, _future, 3)),
            ('flood', partial(self._inject, _zero_stamps, FLOOD)),
        ]
        if nodes.sync is not None:
            self._acts += [
                ('sync restarted', nodes.restart_sync),
                ('sync reset', self._reset_sync),
            ]

    def attend(self, elapsed_s: float) -> None:
        """Do what is due at `elapsed_s` of simulated time since the start."""
        if elapsed_s < self._next_s:
            return
        self._next_s = elapsed_s + self._pause_s()
        name, act = self._random.choice(self._acts)
        act()
        if name.endswith('restarted'):
            return_freed_memory()
        self.done[name] += 1

    def _pause_s(self) -> float:
        return self._random.expovariate(1.0 / MEAN_PAUSE_S)

    # ---- sensors and nodes ----------------------------------------------------------------------

    def _fault(self, kind: Any) -> None:
        channel = self._nodes.emulator.channels[self._random.choice(list(self._rig.sensors))]
        channel.pipeline.inject(
            FaultConfig(
                kind=kind,
                at_s=max(self._nodes.world.world.time_ns, 0) / NS_PER_S,
                duration_s=self._random.uniform(0.5, LONGEST_FAULT_S),
                **SENSOR_FAULTS[kind],
            )
        )

    def _reset_world(self) -> None:
        self._nodes.world.loop.reset(0, self._random.randrange(2**31))

    def _reset_sync(self) -> None:
        if self._nodes.sync is not None:
            self._nodes.sync.engine.reset('a soak run asked for it')

    # ---- a stranger on the rig's topics ---------------------------------------------------------

    def _inject(self, make: Callable[[random.Random, int], bytes], count: int) -> None:
        """Publish what no sensor would on a sensor's topic."""
        topic = self._random.choice(list(self._inputs))
        publisher = self._stranger.create_publisher(self._inputs[topic], topic, qos.sensor_out())
        for _ in range(count):
            publisher.publish(make(self._random, self._nodes.world.world.stamp_ns))
        self._stranger.destroy_publisher(publisher)


def _garbage(draw: random.Random, now_ns: int) -> bytes:
    return b'\0\1\0\0' + draw.randbytes(draw.randrange(64))


def _zero_stamps(draw: random.Random, now_ns: int) -> bytes:
    return b'\0\1\0\0' + bytes(8) + draw.randbytes(32)


def _future(draw: random.Random, now_ns: int) -> bytes:
    sec = now_ns // NS_PER_S + draw.randrange(100, 10**6)
    return b'\0\1\0\0' + sec.to_bytes(4, 'little') + bytes(36)
