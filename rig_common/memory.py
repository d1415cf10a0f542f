"""Says what malloc does with freed memory: keep it for the next message, or hand it back.

An image of 640x480 in colour is 225 pages. By default glibc hands such a block back to the system
when the message is dropped, and the next message faults the same pages in again: half of what it
costs to receive a camera.
"""

from __future__ import annotations

import ctypes
import gc

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Names of the settings in glibc's malloc.h."""
LARGEST_BYTES = 32 << 20
"""Blocks up to this size come from the heap; glibc allows no more."""
USUAL_BYTES = 128 << 10
"""Of both settings, as glibc starts."""
KEPT_BYTES = 256 << 20
"""Free memory at the heap's end that is kept."""


def keep_freed_memory() -> bool:
    """Tell malloc to reuse what is freed; False where the C library has no such setting.

    What is loaded by now stays loaded, so the collector of cycles need not go through it again.
    """
    gc.freeze()
    return _set(_MMAP_THRESHOLD, LARGEST_BYTES) and _set(_TRIM_THRESHOLD, KEPT_BYTES)


def return_freed_memory() -> bool:
    """Tell malloc to hand back what is freed, and do so now; False where that cannot be said.

    For runs in which whole nodes come and go: a model of some mebibytes then has pages of its own,
    and leaves no hole in the heap that the next one does not fit into.
    """
    if not (_set(_MMAP_THRESHOLD, USUAL_BYTES) and _set(_TRIM_THRESHOLD, USUAL_BYTES)):
        return False
    ctypes.CDLL(None).malloc_trim(0)
    return True


def _set(name: int, value: int) -> bool:
    try:
        return bool(ctypes.CDLL(None).mallopt(name, value))
    except (AttributeError, OSError, TypeError):
        return False
