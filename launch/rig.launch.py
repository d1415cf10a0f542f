"""A whole rig: world, emulators and sync, each a process of its own."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import declared, rig_nodes, tools


def generate_launch_description() -> LaunchDescription:
    """Return the rig named by `rig:=`."""
    return LaunchDescription(
        [
            *declared(
                'rig',
                'namespace',
                'emulators',
                'only',
                'real_time_factor',
                'lockstep',
                'respawn',
                'log_level',
                'rviz',
                'record',
            ),
            rig_nodes(world=True, sync=True),
            *tools(),
        ]
    )
