"""Colours by where a stream comes from, the same in RViz, rerun and Foxglove."""

from __future__ import annotations

RAW, SYNCED, TRUTH = (209, 73, 91), (15, 108, 189), (26, 156, 91)
"""Red, blue and green; RGB, 0 to 255."""
