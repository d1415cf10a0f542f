"""Time is an `int` of nanoseconds everywhere but at MuJoCo's edge and inside filters."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

TimeT = TypeVar('TimeT', int, NDArray[np.int64])

NS_PER_S = 1_000_000_000
NS_PER_MS = 1_000_000

MAX_STAMP_NS = (2**31 - 1) * NS_PER_S + NS_PER_S - 1
"""Latest time a builtin_interfaces/Time can hold (int32 seconds)."""
NEVER_NS = MAX_STAMP_NS
"""Time of what does not happen: later than any time there is, and it fits into a message."""
LONG_AGO_NS = -NEVER_NS
"""Time of what has not happened yet: earlier than any time there is."""


def seconds_to_ns(seconds: float) -> int:
    """Return the nearest whole nanosecond of `seconds`."""
    return round(Fraction(seconds) * NS_PER_S) if abs(seconds) > 4e6 else round(seconds * 1e9)


def in_seconds(time_ns: int) -> str:
    """Return a time for people, to the microsecond: `1000.250000 s`."""
    return f'{time_ns / NS_PER_S:.6f} s'


@dataclass(frozen=True, slots=True)
class TimeBase:
    """Where the times of a simulated run begin for everybody outside it.

    Inside (world, schedules, noise, faults) a run counts from 0. What leaves it, and what comes
    back (stamps, /clock, ticks, arrival times), counts from `start_ns`: a stamp of 0 means "none"
    to many nodes, and ROS time has no negative ones.
    """

    start_ns: int = 0

    def stamp_ns(self, run_ns: TimeT) -> TimeT:
        """Return a time of the run as stamps and /clock say it, ns."""
        return run_ns + self.start_ns

    def run_ns(self, stamp_ns: TimeT) -> TimeT:
        """Return the time since the start of the run, ns."""
        return stamp_ns - self.start_ns


def split_ns(time_ns: int) -> tuple[int, int]:
    """Return (sec, nanosec) as builtin_interfaces/Time wants them, 0 <= nanosec < 1e9."""
    return divmod(time_ns, NS_PER_S)


def join_ns(sec: int, nanosec: int) -> int:
    """Return the nanoseconds of a builtin_interfaces/Time."""
    return sec * NS_PER_S + nanosec


def rational_rate(rate_hz: float) -> Fraction:
    """Return `rate_hz` as the simple fraction its writer meant (29.97 -> 2997/100).

    A float holds 0.1 as 0.1000000000000000055; a schedule built on that drifts. The shortest
    decimal that reads back as the same float is what stood in the file.
    """
    return Fraction(repr(float(rate_hz)))
