"""What nodes run on: rclpy's default executor too, and sockets alone unless told otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from rclpy.executors import SingleThreadedExecutor
from rclpy.utilities import get_rmw_implementation_identifier
from support.processes import Processes
from support.ros_rigs import LockstepRun, write_rig

from sensor_rig.ros import executor

SEGMENTS = """
import rclpy
from sensor_rig.ros.executor import ros_context
with ros_context([]), open('/proc/self/maps') as maps:
    node = rclpy.create_node('looks_at_its_memory')
    print('segments:', sum('/dev/shm/fast' in line for line in maps))
    node.destroy_node()
"""
"""Counts the pieces of shared memory that the middleware of a node has mapped."""


def test_the_default_executor_does_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, 'make_executor',
                        lambda context: SingleThreadedExecutor(context=context))
    rig = write_rig(tmp_path, {'baro': {'type': 'barometer', 'mount': {'body': 'plate'},
                                        'rate_hz': 50.0, 'delay_range_s': [0.02, 0.02]}})
    with LockstepRun(rig) as run:
        assert isinstance(run.spinner.executor, SingleThreadedExecutor)
        run.run(1.03)
        heard = run.recorder.heard['baro/pressure']
        assert heard.arrivals_ns[:51] == [(20 * k + 20) * 1_000_000 for k in range(51)]


def shared_segments(processes: Processes, **changes: str) -> int:
    process = processes.python('-c', SEGMENTS, **changes)
    assert process.wait() == 0, process.output
    return int(process.output.rpartition('segments:')[2])


def test_fast_dds_keeps_to_sockets_where_it_may_choose(
        processes: Processes, monkeypatch: pytest.MonkeyPatch) -> None:
    if get_rmw_implementation_identifier() != 'rmw_fastrtps_cpp':
        pytest.skip('the setting is one of Fast DDS')
    monkeypatch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'OFF')  # LOCALHOST leaves it no choice
    monkeypatch.delenv('FASTDDS_BUILTIN_TRANSPORTS', raising=False)
    assert shared_segments(processes) == 0
    assert shared_segments(processes, FASTDDS_BUILTIN_TRANSPORTS='DEFAULT') > 0
