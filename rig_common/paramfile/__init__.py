"""ROS 2 parameter files, read without ROS by the rules of rcl."""
