"""The executables by name: `NAME --rig FILE`, or with `--ros-args --params-file FILE`."""

from __future__ import annotations

import sys
from collections.abc import Callable

from rclpy.node import Node

from rig_common.ros.executor import run_node
from sensor_rig.nodes.arguments import rig_from_arguments
from sensor_rig.nodes.building import make_degrade, make_emulator, make_sync, make_world
from sensor_rig.rigfile import RigConfig

EXECUTABLES: dict[str, tuple[Callable[[RigConfig], Node], str]] = {
    'world': (make_world, 'Steps the simulated world of a rig file and says what time it is.'),
    'emulator': (make_emulator, 'Publishes the streams of the simulated sensors of a rig file.'),
    'sync': (make_sync, 'Synchronises the inputs of the sync: section of a rig file.'),
    'degrade': (
        make_degrade,
        'Publishes live topics again with the faults of the streams: section of a rig file.',
    ),
}
"""What makes the node, and what `--help` says of it."""


def run(name: str) -> int:
    """Run the node of an executable until a signal ends it; return the exit code."""
    make, description = EXECUTABLES[name]
    return run_node(lambda: make(rig_from_arguments(description)), sys.argv)
