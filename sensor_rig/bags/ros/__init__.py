"""Messages of the live ROS graph, as a recording would hold them."""
