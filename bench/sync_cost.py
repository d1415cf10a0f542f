"""What one message costs, from push to bundle, against the number of streams and queued frames.

    ./rig python -m bench.sync_cost [--quick] [--json FILE]

Every case is played to the engine (filter updates counted, cues not), to a plain sorted list with
nearest search (no offsets, no ledger, no deadlines: a floor), to AdaptiveTimeSynchronizer with
`queue_size, slop` and, where it is installed, to message_filters' ApproximateTimeSynchronizer, in
turns. The last two get decoded messages from filters and call back. `ratio` is a player's time
over the engine's in the same round; for ApproximateTimeSynchronizer over ours. Microseconds are of
this machine, in CPU time of this thread: once `_alarm` is set, the process's clock is coarse.
"""

from __future__ import annotations

import contextlib
import signal
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.command import Result, run_as_program
from bench.figures import Figure, absent, greatest, least
from bench.sync_baselines import approximate_time_class
from rig_common.times import NS_PER_S
from sync_engine.config import load_config
from sync_engine.engine import SyncEngine
from sync_engine.filters import AdaptiveTimeSynchronizer

STREAMS = (3, 5, 10)
QUEUES = (10, 100, 1000)
WIDTH = 160
"""Columns of the table at least: where the output is no terminal, rich takes 80 and cuts names."""
GOAL_US = 10.0
CLASS_GOAL_US, PEER_GOAL = 5.0, 2.0
"""Of the class that users import: us a message, and how many times cheaper than the peer."""
OURS, PEER = 'AdaptiveTimeSynchronizer', 'ApproximateTimeSynchronizer'
_PEER_LIMIT_S = 1.0
"""The peer is stopped after this much time on one case; its worst case is seconds a message."""
_LATENCY_S = 0.01
_JITTER_S = 0.002

Event = tuple[int, int, int]
"""(arrival, stream, stamp) in ns."""


@dataclass(frozen=True)
class Case:
    """One load."""

    kind: str
    """mixed: rates from 10 to 200 Hz, the reference late; equal: all at 30 Hz, the reference late;
    dead: mixed, with one stream that never comes; worst: dense streams late against two slow."""
    streams: int
    queue: int
    """Frames of the densest stream that wait at any time."""
    seconds: float

    def rates(self) -> list[float]:
        """Return the rate of every stream; the first is the reference."""
        if self.kind == 'equal':
            return [30.0] * self.streams
        if self.kind == 'worst':
            return [5.0, 5.0] + [200.0] * (self.streams - 2)
        return [10.0] + [(200.0, 100.0, 50.0, 30.0, 20.0)[k % 5] for k in range(self.streams - 1)]

    def events(self) -> list[Event]:
        """Return the messages in order of arrival."""
        rng = np.random.default_rng(5)
        rates = self.rates()
        lag_s = self.queue / max(rates)
        made: list[Event] = []
        for index, rate in enumerate(rates):
            if self.kind == 'dead' and index == self.streams - 1:
                continue
            slow = index < 2 if self.kind == 'worst' else index > 0
            stamps = 1000.0 + rng.uniform(0.0, 1.0 / rate)
            stamps = stamps + np.arange(int(self.seconds * rate)) / rate
            arrivals = stamps + _LATENCY_S + rng.uniform(0.0, _JITTER_S, len(stamps))
            arrivals += 0.0 if slow else lag_s
            made += [
                (round(a * 1e9), index, round(s * 1e9))
                for a, s in zip(arrivals, stamps, strict=True)
            ]
        return sorted(made)

    def engine(self) -> SyncEngine:
        """Return an engine for this load."""
        names = [str(index) for index in range(self.streams)]
        alive = names[:-1] if self.kind == 'dead' else names
        lag_s = self.queue / max(self.rates())
        return SyncEngine(
            load_config(
                {
                    'inputs': {
                        name: {'latency_s': _LATENCY_S, 'stamp_source': 'ptp',
                               'deadline_s': 0.2 + lag_s}
                        for name in names
                    },
                    'reference_sensor_id': names[0],
                    'required_sensors': alive,
                    'buffer': {'max_size': self.queue + 50, 'timeout_s': 1.0 + 2.0 * lag_s},
                }
            )
        )  # fmt: skip


def play_engine(case: Case, events: list[Event]) -> tuple[float, int, int]:
    """Return (CPU s, bundles, most frames ever held by one stream)."""
    engine = case.engine()
    names = [str(index) for index in range(case.streams)]
    push = engine.push
    bundles = 0
    half = len(events) // 2
    start = time.thread_time()
    for arrival, index, stamp in events[:half]:
        bundles += len(push(names[index], stamp, None, arrival, 100))
    spent = time.thread_time() - start
    held = max(engine.buffered().values())
    start = time.thread_time()
    for arrival, index, stamp in events[half:]:
        bundles += len(push(names[index], stamp, None, arrival, 100))
    spent += time.thread_time() - start
    return spent, bundles, held


def play_list(case: Case, events: list[Event]) -> tuple[float, int, int]:
    """A sorted list per stream; a reference frame takes the nearest of each once all are past."""
    lists: list[list[int]] = [[] for _ in range(case.streams)]
    bundles = 0
    start = time.thread_time()
    for _, index, stamp in events:
        queue = lists[index]
        if not queue or stamp > queue[-1]:
            queue.append(stamp)
        else:
            queue.insert(bisect_left(queue, stamp), stamp)
        del queue[: max(0, len(queue) - case.queue - 50)]
        reference = lists[0]
        while reference and all(queue and queue[-1] >= reference[0] for queue in lists[1:]):
            target = reference.pop(0)
            for queue in lists[1:]:
                at = bisect_left(queue, target)
                if at and target - queue[at - 1] < queue[at] - target:
                    at -= 1
                del queue[: at + 1]
            bundles += 1
    return time.thread_time() - start, bundles, 0


class _Filter:
    """An input of a synchronizer."""

    def __init__(self) -> None:
        self._callbacks: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def registerCallback(self, cb: Callable[..., None], *args: Any) -> int:  # noqa: N802
        self._callbacks.append((cb, args))
        return len(self._callbacks) - 1

    def signal(self, message: Any) -> None:
        for cb, args in self._callbacks:
            cb(message, *args)


def play_class(case: Case, events: list[Event]) -> tuple[float, int, int]:
    """AdaptiveTimeSynchronizer with `queue_size, slop`, as a user calls it."""
    return _play_synchronizer(AdaptiveTimeSynchronizer, case, events)


def play_peer(case: Case, events: list[Event]) -> tuple[float, int, int] | None:
    """ApproximateTimeSynchronizer on the same messages; None where it is not installed.

    If it was stopped, its time is scaled to all messages, which is less than it would take.
    """
    made = approximate_time_class()
    return None if made is None else _play_synchronizer(made, case, events)


def _play_synchronizer(made: Any, case: Case, events: list[Event]) -> tuple[float, int, int]:
    try:
        from builtin_interfaces.msg import Time
    except ImportError:
        Time = SimpleNamespace
    filters = [_Filter() for _ in range(case.streams)]
    synchronizer = made(filters, case.queue, 0.1)
    count = [0]
    synchronizer.registerCallback(lambda *_: count.__setitem__(0, count[0] + 1))
    frames = [
        (filters[index].signal,
         SimpleNamespace(header=SimpleNamespace(
             stamp=Time(sec=stamp // NS_PER_S, nanosec=stamp % NS_PER_S))))
        for _, index, stamp in events
    ]  # fmt: skip
    done = 0
    start = time.thread_time()
    with contextlib.suppress(_TooLong), _alarm(_PEER_LIMIT_S):
        for send, frame in frames:
            send(frame)
            done += 1
    spent = time.thread_time() - start
    return spent * len(frames) / min(done + 1, len(frames)), count[0], 0


class _TooLong(Exception):  # noqa: N818 - it is no error
    pass


@contextlib.contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    """Interrupt the block after `limit_s` of CPU: a single message may take the peer minutes."""

    def ring(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


Player = Callable[[Case, list[Event]], tuple[float, int, int] | None]
PLAYERS: dict[str, Player] = {
    'engine': play_engine,
    'sorted list': play_list,
    OURS: play_class,
    PEER: play_peer,
}


def _measure(case: Case, rounds: int) -> list[dict[str, Any]]:
    events = case.events()
    costs: dict[str, list[float]] = {name: [] for name in PLAYERS}
    facts: dict[str, tuple[float, int, int]] = {}
    for index in range(rounds):
        for name, play in PLAYERS.items():
            if name == PEER and index >= 2:
                continue  # it is slow, and far from close
            played = play(case, events)
            if played is not None:
                costs[name].append(played[0] / len(events) * 1e6)
                facts[name] = played
    rows = []
    for name, values in costs.items():
        if not values:
            continue
        over = costs[OURS if name == PEER else 'engine']
        ratios = np.array(values) / np.array(over[: len(values)])
        low, high = np.percentile(values, [25, 75])
        rows.append(
            {
                'case': f'{case.kind}, {case.streams} streams, queue {case.queue}',
                'who': name,
                'unit': 'us',
                'median': float(np.median(values)),
                'best': float(np.min(values)),
                'spread': float(high - low),
                'ratio': float(np.median(ratios)),
                'bundles': facts[name][1],
                'held': facts[name][2],
                'messages': len(events),
            }
        )
    return rows


def _flatness(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return, per kind, the dearest over the cheapest case of the engine, and the dearest."""
    found = []
    for kind in ('mixed', 'equal', 'dead', 'worst'):
        costs = [r['best'] for r in rows if r['who'] == 'engine' and r['case'].startswith(kind)]
        if not costs:
            continue
        found.append(
            {
                'case': f'{kind}: dearest over cheapest, all streams and queues',
                'who': 'engine',
                'unit': '',
                'median': max(costs) / min(costs),
                'ratio': max(costs) / min(costs),
                'goal': '<= 2',
                'met': max(costs) <= 2.0 * min(costs),
            }
        )
        if kind == 'equal':
            continue  # every third message makes a bundle here: shown, but another load
        found.append(
            {
                'case': f'{kind}: dearest case',
                'who': 'engine',
                'unit': 'us',
                'median': max(costs),
                'goal': f'<= {GOAL_US:.0f}',
                'met': max(costs) <= GOAL_US,
            }
        )
    return found


def run(quick: bool) -> dict[str, Any]:
    """Return the rows of all cases."""
    rows: list[dict[str, Any]] = []
    streams = (3, 10) if quick else STREAMS
    cases = [
        Case(kind, count, queue, max(8.0, 2.5 * queue / 200.0))
        for kind in ('mixed', 'equal', 'dead', 'worst')
        for count in streams
        for queue in QUEUES
        if not (kind == 'equal' and queue == 1000)  # would be half a minute of waiting
    ]
    for case in track(cases, description='cost a message', transient=True):
        rows += _measure(case, 3 if quick else 7)
    return {
        'benchmark': 'sync_cost',
        'message_filters': 'used' if approximate_time_class() else 'not installed',
        'rows': rows + _flatness(rows),
    }


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    rows = result['rows']

    def ratios(who: str) -> list[float]:
        return [row['ratio'] for row in rows if row['who'] == who and 'messages' in row]

    cells = [
        row
        for row in rows
        if row['case'].startswith(('mixed', 'equal')) and not row['case'].endswith('1000')
    ]
    peer = [row['ratio'] for row in cells if row['who'] == PEER]
    title = 'cost of ApproximateTimeSynchronizer over ours, queues 10 and 100'
    return [
        greatest(
            'a message through AdaptiveTimeSynchronizer, queues 10 and 100, dearest case',
            [row['best'] for row in cells if row['who'] == OURS],
            unit='us',
            target=CLASS_GOAL_US,
            kind='absolute',
        ),
        least(title, peer, unit='x', target=PEER_GOAL)
        if peer
        else absent(title, 'message_filters is not installed', unit='x'),
        greatest(
            'dearest message over the cheapest, streams 3 to 10, queues 10 to 1000',
            [row['ratio'] for row in rows if 'dearest over cheapest' in row['case']],
            unit='x',
            target=2.0,
        ),
        greatest(
            'a message from push to bundle, dearest case',
            [row['median'] for row in rows if row['case'].endswith('dearest case')],
            unit='us',
            target=GOAL_US,
            kind='absolute',
        ),
        Figure(
            'cost over a plain sorted list (no offsets, no ledger), worst case',
            1.0 / min(ratios('sorted list')),
            'x',
            better='lower',
        ),
    ]


def show(result: Result) -> None:
    """Print the result."""
    table = Table(title='sync_cost: CPU a message, push to bundle')
    columns = ('case', 'who', 'unit', 'median', 'best', 'spread', 'ratio', 'bundles', 'held',
               'goal', 'met')  # fmt: skip
    for column in columns:
        table.add_column(column, justify='left' if column in ('case', 'who') else 'right')
    for row in result['rows']:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    Console(width=max(Console().width, WIDTH)).print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ''
    if isinstance(value, bool):
        return 'yes' if value else 'NO'
    return f'{value:.3g}' if isinstance(value, float) else str(value)


if __name__ == '__main__':
    run_as_program(run, show, quick='fewer cases and rounds')
