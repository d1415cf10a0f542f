"""The nodes of a rig in one process or many, watched by a monitor."""
