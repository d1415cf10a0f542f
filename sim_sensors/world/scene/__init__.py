"""What viewers are shown: frames, markers, poses."""
