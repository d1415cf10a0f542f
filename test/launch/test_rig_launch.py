"""The launch files with the real launch: graph, rates, bundles, respawn, clean shutdown.

    launch_test test/launch/test_rig_launch.py     # the launch test itself
    pytest test/launch/test_rig_launch.py          # starts that; skips where something is missing

The plugin of launch_testing is not used: it does not load in pytest 9.
"""

from __future__ import annotations

import os
import signal
import sys
import unittest
from pathlib import Path
from typing import Any

import pytest

sys.path.extend(str(Path(__file__).resolve().parents[level]) for level in (1, 2))
from support.installed import ros_package

launch_testing = ros_package('launch_testing')
ros_package('launch_ros')

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_share_directory,
)
from launch import LaunchDescription
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
from launch_testing.actions import ReadyToTest
from support.live_rig import pid_of, watching
from support.processes import Processes

from sensor_rig.rigfile import load_rig
from sensor_rig.running.node_plan import planned_nodes

RIG = Path(__file__).with_name('rig.yaml')


def test_a_rig_with_the_real_launch(processes: Processes) -> None:
    try:
        get_package_share_directory('sensor_rig')
    except PackageNotFoundError:
        pytest.skip('the package sensor_rig is not installed; colcon build and source it first')
    process = processes.python('-m', 'launch_testing.launch_test', __file__)
    assert process.wait(100.0) == 0


def generate_test_description() -> LaunchDescription:
    """Start the rig as a user would, with respawn."""
    file = Path(get_package_share_directory('sensor_rig')) / 'launch' / 'rig.launch.py'
    return LaunchDescription(
        [
            IncludeLaunchDescription(
                AnyLaunchDescriptionSource(str(file)),
                launch_arguments={'rig': str(RIG), 'respawn': 'true'}.items(),
            ),
            ReadyToTest(),
        ]
    )


class TestRunningRig(unittest.TestCase):
    """While everything runs."""

    __test__ = False  # for launch_test alone

    def test_rig(self) -> None:
        """The graph comes up, rates are right, bundles flow, a killed emulator returns."""
        rig = load_rig(RIG)
        with watching(rig) as watcher:
            watcher.assert_graph_comes_up({node.name for node in planned_nodes(rig)})
            watcher.assert_rates_are_right()
            watcher.assert_bundles_flow()
            watcher.assert_returns_after(
                'wheels/odom',
                lambda: os.kill(pid_of('__node:=emulator_wheels', str(RIG)), signal.SIGKILL),
            )


@launch_testing.post_shutdown_test()
class TestAfterShutdown(unittest.TestCase):
    """After launch has ended everything."""

    __test__ = False

    def test_exit_codes(self, proc_info: Any) -> None:
        """Every process ended cleanly, but for the one that was killed."""
        codes = {info.process_name: info.returncode for info in proc_info}
        killed = [name for name, code in codes.items() if code == -signal.SIGKILL]
        assert len(killed) <= 1, codes
        assert all(code == 0 for name, code in codes.items() if name not in killed), codes
