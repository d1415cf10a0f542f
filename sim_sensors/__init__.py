"""Makes the streams: MuJoCo truth, imperfect sensors, delayed and stamped samples; no ROS."""
