"""Recordings of others, read as if they were bags: PX4 logs, EuRoC folders, trajectories."""
