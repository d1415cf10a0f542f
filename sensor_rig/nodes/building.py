"""The nodes of a rig file: what its sections say, handed to the node classes of the two halves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sensor_rig.rigfile import RigConfig

if TYPE_CHECKING:
    from sensor_rig.degrade.ros.degrade_node import DegradeNode
    from sim_sensors.nodes.emulator import EmulatorNode
    from sim_sensors.nodes.world import WorldNode
    from sync_engine.nodes.sync import SyncNode


def make_world(rig: RigConfig, **options: Any) -> WorldNode:
    """Return the world node of `rig`; lockstep waits for its sync node where it runs one."""
    from sim_sensors.nodes.world import WorldNode

    return WorldNode(rig.simulation, collectors=['sync'] if rig.runs_sync else [], **options)


def make_emulator(rig: RigConfig, sensors: Sequence[str] = (), **options: Any) -> EmulatorNode:
    """Return an emulator node for some sensors of `rig`, or for all of them."""
    from sim_sensors.nodes.emulator import EmulatorNode

    return EmulatorNode(rig.simulation, sensors, **options)


def make_sync(rig: RigConfig, **options: Any) -> SyncNode:
    """Return the sync node of `rig`; a rig without sensors needs no simulator installed."""
    from sync_engine.nodes.sync import SyncNode

    return SyncNode(
        rig.required_sync,
        follows_world=rig.world is not None,
        simulated_topics=rig.published_topics(),
        **options,
    )


def make_degrade(rig: RigConfig, **options: Any) -> DegradeNode:
    """Return the node that degrades the live topics of `rig.streams`."""
    from sensor_rig.degrade.ros.degrade_node import DegradeNode
    from sim_sensors.ros.fault_service import FaultService

    node = DegradeNode(rig, **options)
    FaultService(node, list(rig.streams), node.inject, node.elapsed_s)
    return node
