"""The page's ROS shell."""
