"""Rosbag2 recordings (sqlite3 and MCAP), read and written without ROS."""
