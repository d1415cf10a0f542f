"""Puts sensor streams back together in time and says how well it did; needs no ROS."""
