"""Recordings for other viewers: rerun, Foxglove, evo."""
