"""Ctrl-C while a program of ours is still importing: it ends, without a traceback.

Imported before anything large. Once a program has something to close, it takes signals itself.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

PROGRAMS = frozenset({'sensor_rig', 'sensor_rig.nodes.world', 'sensor_rig.nodes.emulator',
                      'sensor_rig.nodes.sync', 'sensor-rig', 'world', 'emulator', 'sync'})
"""Modules after `-m`, and installed executables."""


def end_quietly_on_interrupt() -> None:
    """Let SIGINT end this process at once, if the process is one of `PROGRAMS`."""
    words = sys.orig_argv[1:]
    module = words[words.index('-m') + 1] if '-m' in words[:-1] else ''
    script = Path(words[0]).name if words else ''
    if PROGRAMS & {module, script} and signal.getsignal(
            signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def interrupt_as_usual() -> None:
    """Let SIGINT raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    # No exception: half-loaded C modules swallow it, or make an error of their own of it.
    os._exit(128 + number)
