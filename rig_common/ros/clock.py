"""The clock that timers of ours run on, and how to start one."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Signature

from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from rclpy.timer import Timer


def steady_clock() -> Clock:
    """Return a clock that neither a simulation nor a date can stop or turn back."""
    return Clock(clock_type=ClockType.STEADY_TIME)


def steady_timer(node: Node, period_s: float, call: Callable[[], object]) -> Timer:
    """Have `node` do `call` every `period_s` of wall time, whatever the simulation does."""
    return node.create_timer(period_s, _Call(call), clock=steady_clock())


class _Call:
    """A callback that says what arguments it takes.

    The EventsExecutor inspects the signature of a timer's callback whenever it calls it. Looking
    into a bound method costs more than most callbacks do; what stands in `__signature__` does not.
    """

    __signature__ = Signature()

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def __call__(self) -> None:
        self._call()
