"""The degrade node between a driver and a stack, by remapping alone."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import declared, degrade_node


def generate_launch_description() -> LaunchDescription:
    """Return the degrade node of the rig file named by `rig:=`."""
    return LaunchDescription(
        [
            *declared('rig', 'namespace', 'remap', 'respawn', 'log_level', 'use_sim_time', rig=''),
            degrade_node(),
        ]
    )
