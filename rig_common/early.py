"""Ends a program of ours that is still importing: on Ctrl-C, or when its parent is gone.

Imported before anything large, and importing little itself: until then an interrupt is Python's.
Once a program has something to close, it takes signals itself.
"""

from __future__ import annotations

import os
import signal
import sys

COMMANDS = frozenset({'sensor_rig', 'sensor-rig'})
NODES = frozenset({'world', 'emulator', 'sync', 'degrade'})
"""Installed executables, and modules of `sensor_rig.nodes` after `-m`."""
PARENT_VARIABLE = 'SENSOR_RIG_PARENT'
"""Process whose end is also the end of the process that has this in its environment."""
_PDEATHSIG = 1
"""Name of the setting in Linux' prctl.h."""


def end_quietly_on_interrupt() -> None:
    """Let SIGINT end this process at once, if the process is one of ours.

    A node ends with 0, on SIGTERM too: being told to end is no failure of a node.
    """
    words = sys.orig_argv[1:]
    module = words[words.index('-m') + 1] if '-m' in words[:-1] else ''
    program = {
        module.removeprefix('sensor_rig.nodes.'),
        os.path.basename(words[0]) if words else '',
    }
    now = signal.getsignal(signal.SIGINT)
    if program & NODES and now in (signal.default_int_handler, signal.SIG_IGN):
        # A shell has background processes ignore SIGINT; `ros2 launch` sends it all the same.
        signal.signal(signal.SIGINT, _end_node)
        signal.signal(signal.SIGTERM, _end_node)
    elif program & COMMANDS and now is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def end_with_parent() -> None:
    """End this process when the one that started it ends, if that asked for it.

    A parent that is killed cannot end its children. Linux sends them a signal; on other
    systems they stay.
    """
    parent = os.environ.pop(PARENT_VARIABLE, '')
    if not parent:
        return
    import ctypes

    try:
        ctypes.CDLL(None).prctl(_PDEATHSIG, int(signal.SIGTERM))
    except (AttributeError, OSError, TypeError):
        return
    if os.getppid() != int(parent):  # it ended before it could be watched
        os._exit(0)


def interrupt_as_usual() -> None:
    """Let SIGINT raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _end:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _end(number: int, frame: object) -> None:
    # No exception: half-loaded C modules swallow it, or make an error of their own of it.
    os._exit(128 + number)


def _end_node(number: int, frame: object) -> None:
    os._exit(0)
