"""SetMatcher and SyncEngine behind the same class, on the same messages: sets, waits, cost.

    ./rig python -m bench.set_matchers [--quick] [--json FILE]

Both get stamps as they are (`estimator: none`, one window of the slop). `wait` is from the arrival
of a set's last message until the set leaves, in the time of the streams.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.command import run_as_program
from rig_common.times import NS_PER_MS
from sync_engine.config import load_config
from sync_engine.filters.engine_sets import EngineSets
from sync_engine.filters.sets import SetMatcher

SLOP_MS, QUEUE, START_NS = 20, 30, 10**15
Event = tuple[int, int, int]
"""Arrival (ns), input, stamp (ns)."""


def streams(rates_hz: tuple[float, ...], late: float, seconds: float) -> list[Event]:
    """Return messages of these rates, a share of them 25 ms late, in order of arrival."""
    rng = np.random.default_rng(1)
    return sorted(
        (
            START_NS + round(k * 1e9 / rate) + 25 * NS_PER_MS * int(rng.random() < late) + index,
            index,
            START_NS + round(k * 1e9 / rate),
        )
        for index, rate in enumerate(rates_hz)
        for k in range(round(seconds * rate))
    )


def bursts(pairs: int, count: int) -> list[Event]:
    """Return pairs 100 ms apart that arrive in any order, a microsecond from each other."""
    rng = np.random.default_rng(2)
    made: list[Event] = []
    for burst in range(count):
        start_ns = START_NS + burst * pairs * 100 * NS_PER_MS
        stamps = [start_ns + k * 100 * NS_PER_MS for k in range(pairs)]
        frames = [(index, stamp_ns) for stamp_ns in stamps for index in (0, 1)]
        rng.shuffle(frames)
        made += [(start_ns + at * 1000, int(i), int(s)) for at, (i, s) in enumerate(frames)]
    return made


def set_matcher(inputs: int) -> SetMatcher:
    """Return the matcher of `queue_size, slop`."""
    return SetMatcher([str(index) for index in range(inputs)], QUEUE, SLOP_MS * NS_PER_MS)


def engine_sets(inputs: int) -> EngineSets:
    """Return the engine with the same meaning, as far as it has keys for it."""
    names = [f'input_{index}' for index in range(inputs)]
    return EngineSets(
        load_config(
            {
                'inputs': {name: {} for name in names},
                'reference_sensor_id': names[0],
                'required_sensors': names,
                'estimator': 'none',
                'window': {'min_ms': float(SLOP_MS), 'max_ms': float(SLOP_MS)},
                'buffer': {'max_size': QUEUE, 'timeout_s': 5.0},
            }
        )
    )


MATCHERS: dict[str, Callable[[int], SetMatcher | EngineSets]] = {
    'SetMatcher': set_matcher,
    'SyncEngine': engine_sets,
}


def play(made: SetMatcher | EngineSets, events: list[Event]) -> tuple[float, int, float]:
    """Return (CPU us a message, sets, mean wait in ms)."""
    began = time.thread_time()
    sets = sum(len(made.push(index, stamp, None, at) or ()) for at, index, stamp in events)
    spent_s = time.thread_time() - began
    sets += len(made.flush())
    return spent_s / len(events) * 1e6, sets, made.waits.mean_s * 1e3


def run(quick: bool) -> dict[str, Any]:
    """Return a row for every case and matcher."""
    seconds = 20.0 if quick else 120.0
    cases = {
        '2 x 50 Hz in order': streams((50.0, 50.0), 0.0, seconds),
        '2 x 50 Hz, 10 % late': streams((50.0, 50.0), 0.1, seconds),
        '10, 200, 100, 50 Hz': streams((10.0, 200.0, 100.0, 50.0), 0.0, seconds),
        'scrambled bursts of 8 pairs': bursts(8, 200),
        'scrambled bursts of 30 pairs': bursts(30, 200),
    }
    rows = []
    for case, events in cases.items():
        inputs = 1 + max(index for _, index, _ in events)
        for name, make in MATCHERS.items():
            played = [play(make(inputs), events) for _ in range(3 if quick else 7)]
            cost, sets, wait = min(played)
            possible = sum(index == 0 for _, index, _ in events)
            row = {'case': case, 'who': name, 'us': cost, 'sets': sets, 'of': possible}
            rows.append({**row, 'wait_ms': wait})
    return {'benchmark': 'set_matchers', 'rows': rows}


def show(result: dict[str, Any]) -> None:
    """Print a line for every row."""
    for row in result['rows']:
        print(
            f'{row["case"]:30} {row["who"]:11} {row["sets"]:5} of {row["of"]:5} sets, mean wait '
            f'{row["wait_ms"]:6.2f} ms, {row["us"]:5.1f} us a message'
        )


if __name__ == '__main__':
    run_as_program(run, show)
