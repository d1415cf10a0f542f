"""The clock that timers of ours run on."""

from __future__ import annotations

from rclpy.clock import Clock, ClockType


def steady_clock() -> Clock:
    """Return a clock that neither a simulation nor a date can stop or turn back."""
    return Clock(clock_type=ClockType.STEADY_TIME)
