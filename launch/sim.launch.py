"""The simulated half of a rig: world and emulators, for a sync of your own."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import declared, rig_nodes, tools


def generate_launch_description() -> LaunchDescription:
    """Return the world and emulators of the rig named by `rig:=`."""
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
            rig_nodes(world=True, sync=False),
            *tools(sync=False),
        ]
    )
