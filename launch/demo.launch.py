"""The demo rig with RViz."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import declared, rig_nodes, tools


def generate_launch_description() -> LaunchDescription:
    """Return the demo rig, one emulator process for all sensors, and RViz."""
    return LaunchDescription(
        [
            *declared(
                'rig',
                'namespace',
                'emulators',
                'real_time_factor',
                'lockstep',
                'respawn',
                'log_level',
                'rviz',
                'record',
                emulators='one',
                rviz='true',
            ),
            rig_nodes(world=True, sync=True),
            *tools(),
        ]
    )
