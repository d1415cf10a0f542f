"""One way to run nodes: the fast executor where it exists, clean signals, one-sentence errors."""

from __future__ import annotations

import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.exceptions import ParameterException
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.signals import SignalHandlerOptions
from rclpy.task import Future

from rig_common.errors import RigError, in_words
from rig_common.memory import keep_freed_memory
from rig_common.watchdog import Watchdog

TURN_S = 0.05
"""Longest time between two looks at the stop flag."""
SHORT_S = 0.001
"""A wait shorter than this is no wait: all that is ready is handled, and nobody ends it early."""
REPEAT_S = 1.0
"""Signals this close together are one: `ros2 launch` without a terminal sends SIGINT twice."""


def make_executor(context: Context | None = None) -> Any:
    """Return rclpy's EventsExecutor (about 8 times cheaper per message), else the default one."""
    try:
        from rclpy.experimental import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


class Spinner:
    """Runs nodes in the calling thread, in turns of at most `TURN_S`, until stopped.

    The EventsExecutor wakes for other processes only in timed waits, so `spin()` is never used.
    A wait on a future that never completes handles every event of a turn inside the executor;
    `spin_once` comes back to Python after each. But every wait on a future leaks 32 bytes in rclpy
    (a day in real time with 500 of them a second: 1.4 GB), so waits that are many use `spin_once`;
    with up to five events in each it is as fast.

    A node with `on_turn()` has it called after every turn, at most `TURN_S` after the last one.
    For what is done now and then that is cheaper than a timer, which wakes two threads: one of
    20 Hz costs half a per cent of a core.
    """

    def __init__(
        self, context: Context | None = None, stop: threading.Event | None = None
    ) -> None:
        """`stop` ends `run` when it is set; it may be set already."""
        self.context = context or rclpy.get_default_context()
        self.executor = make_executor(self.context)
        self._never: Future = Future(executor=self.executor)
        self._woken = False
        self._on_turn: dict[Node, Callable[[], None]] = {}
        self._stop = stop or threading.Event()

    def add(self, node: Node) -> None:
        """Handle the callbacks of `node`."""
        self.executor.add_node(node)
        if hasattr(node, 'on_turn'):
            self._on_turn[node] = node.on_turn

    def remove(self, node: Node) -> None:
        """Handle the callbacks of `node` no more; it is destroyed by its owner.

        The turn is for what the executor had taken up for it already.
        """
        self.executor.remove_node(node)
        self._on_turn.pop(node, None)
        self.turn(0.0)

    def stop(self) -> None:
        """End `run` at the next turn; safe in signal handlers, callbacks and threads."""
        self._stop.set()

    @property
    def stopped(self) -> bool:
        """Whether `run` is over, or about to be."""
        return self._stop.is_set() or not self.context.ok()

    def turn(self, timeout_s: float = TURN_S) -> None:
        """Handle what happens within `timeout_s`."""
        self.executor.spin_until_future_complete(self._never, timeout_sec=timeout_s)
        self._end_turn()

    def _end_turn(self) -> None:
        for call in self._on_turn.values():
            call()

    def run(self, every_turn: Callable[[], None] | None = None, turn_s: float = TURN_S) -> None:
        """Handle callbacks until `stop`, a shutdown, or an exception of a callback."""
        spare_the_collector()
        while not self.stopped:
            try:
                self.turn(turn_s)
            except ExternalShutdownException:
                return
            if every_turn is not None:
                every_turn()

    def drive(self, advance: Callable[[], float]) -> None:
        """Handle callbacks until `stop`; call `advance` first, on time, and after every `wake`.

        It returns how long it can wait to be called again, s.
        """
        spare_the_collector()
        while not self.stopped:
            self._woken = False
            timeout_s = min(advance(), TURN_S)
            try:
                self.wait(0.0 if self._woken else timeout_s)
            except ExternalShutdownException:
                return

    def wait(self, timeout_s: float) -> None:
        """Handle what happens within `timeout_s`, or until somebody calls `wake`."""
        if timeout_s < SHORT_S:
            self.turn(timeout_s)
            return
        self._woken = False
        until_s = time.monotonic() + timeout_s
        while not self._woken and (left_s := until_s - time.monotonic()) > 0:
            self.executor.spin_once(timeout_sec=left_s)
        self._end_turn()

    def wake(self) -> None:
        """End the present `wait`, so that `drive` calls `advance` next; for callbacks."""
        self._woken = True

    def close(self) -> None:
        """Let go of the nodes; they are destroyed by their owner."""
        for node in list(self.executor.get_nodes()):
            self.executor.remove_node(node)
        self.executor.shutdown()


def spare_the_collector() -> None:
    """Take what setting up has left out of the garbage collector's rounds (5 % of the time)."""
    gc.collect()
    gc.freeze()


@contextmanager
def ros_context(args: Sequence[str] | None = None) -> Iterator[Context]:
    """Initialise rclpy and shut it down after.

    Signals stay ours: rclpy's own handlers would shut the context under a node that still has a
    ledger to publish.
    """
    keep_freed_memory()
    rclpy.init(
        args=None if args is None else list(args), signal_handler_options=SignalHandlerOptions.NO
    )
    try:
        yield rclpy.get_default_context()
    finally:
        rclpy.try_shutdown()


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on SIGINT, SIGTERM, SIGHUP while inside.

    A SIGINT within `REPEAT_S` of the first signal is the same one; a later SIGINT interrupts at
    once. The rule holds for SIGINT after the end as well, once a signal has come.
    """
    first_s: float | None = None

    def handle(number: int, frame: object) -> None:
        nonlocal first_s
        if first_s is None:
            first_s = time.monotonic()
            stop()
        elif number == signal.SIGINT and time.monotonic() - first_s > REPEAT_S:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, handle)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        if first_s is not None:
            del before[signal.SIGINT]
        for number, handler in before.items():
            signal.signal(number, handler)


def run_node(factory: Callable[[], Node], args: Sequence[str] | None = None) -> int:
    """Run one node as a process: the whole `main` of every node of the rig.

    `factory` builds the node. A node with `advance()` is driven by it and gets a `wake` (see
    `Spinner.drive`); its optional `close()` is called before it is destroyed. A mistake of the
    user's ends with its sentence on stderr and exit code 2. A node that does not end although it
    should is ended by a watchdog.
    """
    watchdog = Watchdog(Path(sys.argv[0]).stem)
    asked = threading.Event()

    def stop() -> None:
        watchdog.arm(0)
        asked.set()

    try:
        with stop_on_signals(stop), ros_context(args) as context:
            code = _run_until_stopped(factory, Spinner(context, asked), watchdog)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it is ending: nothing is left to be stopped
    return code


def _run_until_stopped(factory: Callable[[], Node], spinner: Spinner, watchdog: Watchdog) -> int:
    """Build the node, run it until its end, destroy it; return the exit code."""
    node: Node | None = None
    code = 1
    try:
        node = factory()
        watchdog.name = node.get_name()
        spinner.add(node)
        if hasattr(node, 'advance'):
            setattr(node, 'wake', spinner.wake)  # noqa: B010
            spinner.drive(node.advance)
        else:
            spinner.run()
        code = 0
    except (RigError, ParameterException, MemoryError) as error:
        print(f'error: {in_words(error)}', file=sys.stderr, flush=True)
        code = RigError.EXIT_CODE
    finally:
        watchdog.arm(code)
        if node is not None:
            spinner.close()
            close_node(node)
    return code


def close_node(node: Node) -> None:
    """Let a node publish its last diagnostics, then destroy it."""
    close = getattr(node, 'close', None)
    try:
        if callable(close):
            close()
    finally:
        with suppress(Exception):  # handles may be gone after an external shutdown
            node.destroy_node()
