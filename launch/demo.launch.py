"""The demo rig with RViz."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import whole_rig


def generate_launch_description() -> LaunchDescription:
    """Return the demo rig, one emulator process for all sensors, and RViz."""
    return whole_rig(emulators='one', rviz='true')
