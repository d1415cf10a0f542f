"""From the times of a recording to the timing keys of a rig file; start reading at fitting.py."""
