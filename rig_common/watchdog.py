"""Ends a process that does not end by itself, even one that hangs inside a C library.

A thread of Python's cannot do it: what hangs may hold the interpreter's lock, as a DDS library
does that never comes back from destroying its participant. So the C library's own timers do it.
They need no lock: one prints the sentence (`warnx`), one ends the process (`_exit`).
"""

from __future__ import annotations

import ctypes
import math
import time

ENDING_S = 8.0
"""How long an end may take: before the SIGKILL of `ros2 launch`, 10 s after its SIGINT."""
_TO_READ_S = 0.1
"""From the sentence to the end."""
_SIGEV_THREAD = 2
_CLOCK_MONOTONIC = 1


class _SigEvent(ctypes.Structure):
    """`struct sigevent` for SIGEV_THREAD: `function(value)` is called in a thread of its own."""

    _fields_ = [
        ('value', ctypes.c_void_p),
        ('signo', ctypes.c_int),
        ('notify', ctypes.c_int),
        ('function', ctypes.c_void_p),
        ('attributes', ctypes.c_void_p),
        ('reserved', ctypes.c_char * 32),
    ]


class _TimerSpec(ctypes.Structure):
    """`struct itimerspec`: the interval (0: once) and the time left, each as s and ns."""

    _fields_ = [
        (name, ctypes.c_long) for name in ('interval_s', 'interval_ns', 'left_s', 'left_ns')
    ]


class Watchdog:
    """Once armed, ends this process with an exit code after `limit_s`. It is never disarmed.

    `name` is what the sentence calls the process; it may be changed until then.
    """

    def __init__(self, name: str, limit_s: float = ENDING_S) -> None:
        self.name = name
        self._limit_s = limit_s
        self._deadline_s = math.nan
        self._libc = ctypes.CDLL(None)
        self._libc.strdup.restype = ctypes.c_void_p  # text that outlives the interpreter
        self._timers: list[ctypes.c_void_p] = []

    def arm(self, code: int) -> None:
        """Have the process end with `code`; the time counts from the first call."""
        if not hasattr(self._libc, 'timer_create'):
            return  # not Linux: there is no such timer
        if math.isnan(self._deadline_s):
            self._deadline_s = time.monotonic() + self._limit_s
        left_s = max(self._deadline_s - time.monotonic(), 0.001)
        for timer in self._timers:
            self._libc.timer_delete(timer)
        sentence = (
            f'{self.name} did not end by itself within {self._limit_s:g} s: it is ended '
            f'now'.encode()
        )
        self._timers = [
            self._after(left_s, 'warnx', self._libc.strdup(sentence)),
            self._after(left_s + _TO_READ_S, '_exit', code),
        ]

    def _after(self, seconds: float, function: str, value: int) -> ctypes.c_void_p:
        """Call `function(value)` of the C library in `seconds`; return the timer."""
        address = ctypes.cast(getattr(self._libc, function), ctypes.c_void_p)
        event = _SigEvent(value, 0, _SIGEV_THREAD, address)
        timer = ctypes.c_void_p()
        self._libc.timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(timer))
        whole = int(seconds)
        spec = _TimerSpec(0, 0, whole, int((seconds - whole) * 1e9))
        self._libc.timer_settime(timer, 0, ctypes.byref(spec), None)
        return timer
