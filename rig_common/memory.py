"""Keeps the memory of large messages in the process instead of fetching it anew for each.

An image of 640x480 in colour is 225 pages. By default glibc hands such a block back to the system
when the message is dropped, and the next message faults the same pages in again: half of what it
costs to receive a camera.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of the settings in glibc's malloc.h."""
LARGEST_BYTES = 32 << 20
"""Blocks up to this size come from the heap; glibc allows no more."""
KEPT_BYTES = 256 << 20
"""Free memory at the heap's end that is kept."""


def keep_freed_memory() -> bool:
    """Tell malloc to reuse what is freed; False where the C library has no such setting."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BYTES) and mallopt(_TRIM_THRESHOLD, KEPT_BYTES))
