"""The nodes run on rclpy's default executor too, where the fast one does not exist."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import TimeReference
from support.ros_rigs import LockstepRun, write_rig

from rig_common.ros import executor
from rig_common.ros.executor import Spinner, ros_context

pytestmark = pytest.mark.ros


def test_the_default_executor_does_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        executor, 'make_executor', lambda context: SingleThreadedExecutor(context=context)
    )
    rig = write_rig(
        tmp_path,
        {
            'baro': {
                'type': 'barometer',
                'mount': {'body': 'plate'},
                'rate_hz': 50.0,
                'delay_range_s': [0.02, 0.02],
            }
        },
    )
    with LockstepRun(rig) as run:
        assert isinstance(run.spinner.executor, SingleThreadedExecutor)
        run.run(1.03)
        heard = run.recorder.heard['baro/pressure']
        assert heard.arrivals_ns[:51] == [(20 * k + 20) * 1_000_000 for k in range(51)]


def test_waits_do_not_take_memory() -> None:
    """A wait on a future leaves 32 bytes in rclpy, and a rig waits 500 times a second."""
    with ros_context([]) as context:
        spinner = Spinner(context)
        for _ in range(50):
            spinner.wait(executor.SHORT_S)
        before = sys.getallocatedblocks()
        for _ in range(300):
            spinner.wait(executor.SHORT_S)
        grown = sys.getallocatedblocks() - before
        spinner.close()
    assert grown < 150


def test_a_node_has_its_turns_until_it_is_removed() -> None:
    class Counting(Node):
        turns = 0

        def on_turn(self) -> None:
            self.turns += 1

    with ros_context([]) as context:
        spinner, node = Spinner(context), Counting('counting')
        spinner.add(node)
        spinner.turn(0.0)
        spinner.wait(2.0 * executor.SHORT_S)
        assert node.turns == 2
        spinner.remove(node)
        spinner.turn(0.0)
        assert node.turns == 2
        spinner.close()
        node.destroy_node()


@pytest.mark.parametrize('timeout_s', [0.0, 10.0])
def test_a_wait_handles_all_that_is_ready_or_ends_when_it_is_woken(timeout_s: float) -> None:
    with ros_context([]) as context:
        spinner, node = Spinner(context), Node('waiting')
        heard: list[bytes] = []

        def take(raw: bytes) -> None:
            heard.append(raw)
            if len(heard) == 20:
                spinner.wake()

        publisher = node.create_publisher(TimeReference, 'many', 100)
        node.create_subscription(TimeReference, 'many', take, 100, raw=True)
        spinner.add(node)
        while not publisher.get_subscription_count():
            spinner.turn(0.01)
        for _ in range(20):
            publisher.publish(TimeReference())
        begun = time.monotonic()
        spinner.wait(timeout_s)
        assert len(heard) == 20
        assert time.monotonic() - begun < 5.0
        spinner.close()
        node.destroy_node()
