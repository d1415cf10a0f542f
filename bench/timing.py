"""How precisely messages leave in real time: wall-clock error of the emulator and of a bare timer.

    ./rig python -m bench.timing [--quick]

All nodes of the demo rig without its camera run in one process at a factor of 1. The error of a
sample is the wall time at which it is published minus the wall time of its arrival on the world's
clock. Beside it, within the same run of this program: a node that does nothing but an rclpy timer
of the same period. What counts is the ratio; both suffer from the same machine.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np

from bench.figures import Figure
from bench.realtime import without
from sensor_rig.cli.support.progress import note
from sensor_rig.rigfile import RigConfig, load_rig
from sensor_rig.running.middleware import prepare_middleware

QUANTILES = {'p50': 0.5, 'p90': 0.9, 'p99': 0.99, 'max': 1.0}
TIMER_HZ = 200.0


def run(quick: bool = False) -> dict[str, Any]:
    """Return the errors in milliseconds, and the emulator's p99 over the timer's."""
    seconds = 3.0 if quick else 15.0
    timers, emulators = [], []
    for _ in range(1 if quick else 2):
        timers.append(timer_errors_s(seconds))
        emulators.append(emulator_errors_s(demo_rig(), seconds))
    timer, emulator = (_figures(np.concatenate(each)) for each in (timers, emulators))
    return {
        'rclpy timer (ms)': timer,
        'emulator (ms)': emulator,
        'ratio p50': emulator['p50'] / timer['p50'],
        'ratio p99': emulator['p99'] / timer['p99'],
    }


def demo_rig() -> RigConfig:
    """Return the demo rig without its camera, in real time."""
    rig = without(load_rig('demo'), cameras=True)
    return rig.with_world(real_time_factor=1.0)


def timer_errors_s(seconds: float) -> np.ndarray:
    """Return how late an idle rclpy timer of `TIMER_HZ` fires, s."""
    from rclpy.node import Node

    from rig_common.ros.executor import Spinner, close_node, ros_context

    with ros_context([]) as context:
        spinner = Spinner(context)
        node = Node('bench_timer')
        fired: list[float] = []
        began = time.monotonic()
        node.create_timer(1.0 / TIMER_HZ, lambda: fired.append(time.monotonic()))
        spinner.add(node)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            spinner.turn(0.05)
        spinner.close()
        close_node(node)
    # A timer that misses a turn leaves it out, so each is compared with the turn before it.
    return np.mod(np.array(fired[20:]) - began, 1.0 / TIMER_HZ)


def emulator_errors_s(rig: RigConfig, seconds: float) -> np.ndarray:
    """Return how late every sample of every sensor is published, s of wall time."""
    from rig_common.ros.executor import Spinner, ros_context
    from sensor_rig.running.ros.one_process import OneProcess

    errors: list[float] = []
    with ros_context([]) as context:
        nodes = OneProcess(rig, Spinner(context), [lambda: _listener(rig)])
        pacer = nodes.world.loop.pacer
        for channel in nodes.emulator.channels.values():

            def add(sample: Any, now_ns: int, then: Any = channel.stats.add) -> None:
                arrival_ns = sample.arrival_ns - sample.start_ns
                errors.append(time.monotonic() - pacer.wall_at(arrival_ns))
                then(sample, now_ns)

            channel.stats.add = add  # type: ignore[method-assign]
        nodes.run(seconds)
        nodes.close()
    return np.array(errors[200:])


def _listener(rig: RigConfig) -> Any:
    """Return a node that reads every sensor, so that none is idle."""
    from rclpy.node import Node

    from rig_common.ros import qos
    from rig_common.ros.types import is_installed, message_class

    node = Node('bench_listener')
    for name, sensor in rig.make_sensors().items():
        for topic in filter(lambda topic: is_installed(topic.type_name), sensor.topics()):
            node.create_subscription(
                message_class(topic.type_name),
                topic.of(name),
                lambda raw: None,
                qos.sensor_in(100.0),
                raw=True,
            )
    return node


def _figures(errors_s: np.ndarray) -> dict[str, float]:
    return {name: float(np.quantile(errors_s, q) * 1e3) for name, q in QUANTILES.items()}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    return [
        Figure(
            'publish error over that of an idle rclpy timer, p99',
            result['ratio p99'],
            'x',
            better='lower',
        ),
        Figure(
            'publish error, p50',
            result['emulator (ms)']['p50'],
            'ms',
            better='lower',
            kind='absolute',
        ),
        Figure(
            'publish error, p99',
            result['emulator (ms)']['p99'],
            'ms',
            better='lower',
            kind='absolute',
        ),
        Figure(
            'error of the idle timer, p99',
            result['rclpy timer (ms)']['p99'],
            'ms',
            better='lower',
            kind='absolute',
        ),
    ]


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description='wall-clock precision in real time')
    parser.add_argument('--quick', action='store_true')
    prepare_middleware(note)
    print(json.dumps(run(parser.parse_args().quick), indent=2))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
