"""The conservation law, order and bounds, under everything a stream can do."""

from __future__ import annotations

import itertools
import random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.sync_feeder import MS, T0, Feeder, S, config

from sync_engine.engine import SyncEngine
from sync_engine.streams.ledger import Counts

NAMES = ('cam', 'lidar', 'imu', 'odom')

PERIODS_MS = {'cam': 33, 'lidar': 100, 'imu': 10, 'odom': 20}
ODDITIES = ('same', 'back', 'late', 'zero', 'negative', 'future', 'step', 'restart', 'none')
"""What can be wrong with one message."""
EVENTS = ('poll', 'silence', 'host_back', 'reset', 'parameter')
"""What can happen between two messages."""


def engine_of(strategy: str, estimator: str, reuse: bool, size: int) -> SyncEngine:
    inputs: dict[str, dict[str, Any]] = {
        'cam': {'reuse': reuse, 'deadline_s': 0.1},
        'lidar': {'deadline_s': 0.2},
        'imu': {'collect': True, 'stamp_source': 'host'},
        'odom': {'member': False, 'stamp_source': 'ptp'},
    }
    return SyncEngine(
        config(
            inputs,
            'lidar',
            required_sensors=['lidar', 'cam'],
            imu_sensor_id='imu',
            missing_strategy=strategy,
            estimator=estimator,
            buffer={'max_size': size, 'timeout_s': 0.5, 'max_bytes': 10 * size - 5},
        )
    )


class MixedRun:
    """Four streams at their rates, with oddities now and then; checks what must always hold."""

    def __init__(self, engine: SyncEngine, seed: int) -> None:
        self.feeder = Feeder(engine)
        self.random = random.Random(seed)
        self.now_ns = T0
        self.clock_ns = {name: k * 40 * MS - 60 * MS for k, name in enumerate(NAMES)}
        self.last_ns = dict.fromkeys(NAMES, T0)
        self.due_ns = {name: T0 + k * 3 * MS for k, name in enumerate(NAMES)}

    def play(self, messages: int) -> None:
        for _ in range(messages):
            if self.random.random() < 0.02:
                self._event(self.random.choice(EVENTS))
            name = min(NAMES, key=self.due_ns.__getitem__)
            self.due_ns[name] += PERIODS_MS[name] * MS
            odd = self.random.random() < 0.04
            self._message(name, self.random.choice(ODDITIES) if odd else '')
            self._check()

    def _check(self) -> None:
        engine = self.feeder.engine
        assert not engine.ledger.imbalance(engine.buffered())
        for name, stream in engine._streams.items():
            assert len(stream.buffer) <= engine.config.buffer.max_size, name
            assert stream.buffer.nbytes <= engine.config.buffer.max_bytes, name
            assert stream.buffer.stamps == sorted(set(stream.buffer.stamps))

    def _event(self, what: str) -> None:
        engine = self.feeder.engine
        if what == 'poll':
            self.now_ns += self.random.randrange(400) * MS
            self.feeder.poll((self.now_ns - T0) / MS)
        elif what == 'silence':
            self.now_ns += self.random.choice((300, 2_000, 15_000)) * MS
        elif what == 'host_back':
            self.now_ns -= self.random.randrange(3_000) * MS
        elif what == 'reset':
            engine.reset('test')
        else:
            engine.set_parameter('inputs.cam.deadline_s', self.random.randrange(1, 20) / 50)
        moved_ns = self.now_ns - min(self.due_ns.values())
        if moved_ns > 0 or what == 'host_back':
            self.due_ns = {name: due + moved_ns for name, due in self.due_ns.items()}

    def _message(self, name: str, odd: str) -> None:
        number = self.random.randrange(60)
        self.now_ns = max(self.now_ns, self.due_ns[name] - PERIODS_MS[name] * MS)
        if odd == 'step':
            self.clock_ns[name] += (number - 30) * 3 * MS
        elif odd == 'restart':
            self.clock_ns[name] -= number * S
        stamp: int | None = self.now_ns - 5 * MS + self.clock_ns[name]
        if odd == 'same':
            stamp = self.last_ns[name]
        elif odd in ('back', 'late'):
            stamp = self.last_ns[name] - (number + 1) * (MS if odd == 'back' else 8 * MS)
        elif odd in ('zero', 'negative'):
            stamp = 0 if odd == 'zero' else -number
        elif odd == 'future':
            stamp = self.now_ns + (number + 1) * 1000 * S
        elif odd == 'none':
            stamp = None
        else:
            self.last_ns[name] = stamp or 0
        self.feeder.push_ns(name, stamp, self.now_ns)

    def finish(self) -> None:
        """What holds for all bundles of a run."""
        bundles = self.feeder.bundles
        assert [bundle.sequence for bundle in bundles] == list(range(1, len(bundles) + 1))
        epochs = [bundle.epoch for bundle in bundles]
        assert epochs == sorted(epochs)
        for before, after in itertools.pairwise(bundles):
            assert before.epoch != after.epoch or before.stamp_ns < after.stamp_ns
        for bundle in bundles:
            for name, member in bundle.members.items():
                if not (member.missing or member.collected or member.interpolated):
                    assert abs(member.time_delta_ns) <= bundle.window_ns or name == 'imu'


@settings(max_examples=25, deadline=None)
@example(1421, 'empty', 'pairing', False, 2)  # the reference starts over soon after a partner
@given(
    st.integers(0, 2**32),
    st.sampled_from(['drop', 'empty', 'interpolate']),
    st.sampled_from(['adaptive', 'pairing', 'none']),
    st.booleans(),
    st.integers(2, 12),
)
def test_nothing_is_lost_without_a_name(
    seed: int, strategy: str, estimator: str, reuse: bool, size: int
) -> None:
    run = MixedRun(engine_of(strategy, estimator, reuse, size), seed)
    run.play(400)
    run.finish()


def test_mixed_runs_meet_every_fate() -> None:
    """The law would hold of an engine that does nothing; these runs make it do everything."""
    total, bundles = Counts(), 0
    for seed, estimator in enumerate(('adaptive', 'pairing', 'none', 'adaptive')):
        run = MixedRun(engine_of('empty', estimator, reuse=False, size=12), seed)
        run.play(1500)
        run.finish()
        bundles += len(run.feeder.bundles)
        for name in NAMES:
            for key, count in run.feeder.engine.ledger[name].as_dict().items():
                setattr(total, key, getattr(total, key) + count)
    assert total.received == 6000
    assert bundles > 150
    assert {key for key, count in total.as_dict().items() if not count} == set()


arrivals = st.lists(
    st.tuples(st.sampled_from('ab'), st.integers(1, 30), st.integers(0, 40)), max_size=80
)


@settings(max_examples=100, deadline=None)
@example([('a', 1, 0), ('b', 1, 0), ('b', 1, 2), ('a', 1, 4)], [0, 0, 0, 1])
@given(arrivals, st.lists(st.integers(0, 3), max_size=80))
def test_polling_more_often_changes_no_bundle(
    messages: list[tuple[str, int, int]], polls: list[int]
) -> None:
    """Deadlines are decided by the times handed in, not by when somebody asked."""
    results = []
    for extra in ([], polls):
        inputs = {name: {'stamp_source': 'ptp', 'deadline_s': 0.05} for name in 'ab'}
        engine = SyncEngine(config(inputs, 'a', missing_strategy='empty', estimator='none'))
        feeder, now = Feeder(engine), 0
        for k, (name, gap, lag) in enumerate(messages):
            for part in range(extra[k] if k < len(extra) else 0):
                feeder.poll(now + gap * (part + 1) / 4)
            now += gap
            feeder.push(name, now - lag, now)
        feeder.poll(now + 10_000)
        results.append(
            [
                (b.stamp_ns, {n: (m.stamp_ns, m.missing, m.reason) for n, m in b.members.items()})
                for b in feeder.bundles
            ]
        )
    assert results[0] == results[1]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=60),
    st.lists(st.integers(1, 60), min_size=1, max_size=60),
    st.integers(0, 30),
)
def test_streams_in_order_pair_as_a_scan_would(
    gaps_a: list[int], gaps_b: list[int], lag: int
) -> None:
    """With reuse and no deadline in the way, every bundle holds the nearest frame there is."""
    times = {'a': _sums(gaps_a), 'b': _sums(gaps_b)}
    inputs = {name: {'stamp_source': 'ptp', 'deadline_s': 9.0} for name in 'ab'}
    inputs['b']['reuse'] = True
    engine = SyncEngine(
        config(
            inputs,
            'a',
            required_sensors=['a', 'b'],
            estimator='none',
            buffer={'timeout_s': 99.0},
        )
    )
    feeder = Feeder(engine)
    messages = [(t + (lag if n == 'a' else 0), n, t) for n, ts in times.items() for t in ts]
    for arrival, name, stamp in sorted(messages):
        feeder.push(name, stamp, arrival)
    feeder.push('b', 10_000, 10_000)
    feeder.poll(30_000)
    expected = []
    for target in times['a']:
        near = [(abs(v - target), v) for v in times['b'] if abs(v - target) <= 100]
        if near:
            expected.append((target, min(near)[1]))
    got = [
        ((b.members['a'].stamp_ns - T0) // MS, (b.members['b'].stamp_ns - T0) // MS)
        for b in feeder.bundles
    ]
    assert got == expected


def _sums(gaps: list[int]) -> list[int]:
    total, sums = 0, []
    for gap in gaps:
        total += gap
        sums.append(total)
    return sums
