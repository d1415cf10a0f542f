"""The sync node alone, for a real robot or a bag that is played."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import declared, rig_nodes


def generate_launch_description() -> LaunchDescription:
    """Return the sync node of the rig named by `rig:=`."""
    return LaunchDescription(
        [
            *declared(
                'rig',
                'namespace',
                'remap',
                'respawn',
                'log_level',
                'use_sim_time',
                respawn='true',
            ),
            rig_nodes(world=False),
        ]
    )
