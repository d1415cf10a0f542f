"""The parts of the sync node that know ROS."""
