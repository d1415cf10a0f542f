"""A whole rig: world, emulators and, unless `sync:=false`, sync, each a process of its own."""

from launch import LaunchDescription

from sensor_rig.running.ros.launching import whole_rig


def generate_launch_description() -> LaunchDescription:
    """Return the rig named by `rig:=`."""
    return whole_rig()
