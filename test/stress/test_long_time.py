"""Ten years of uptime, a thousand million messages, stamps at the end of int32."""

from __future__ import annotations

import numpy as np
import pytest
from support.sync_feeder import MS, S, exact

from rig_common import msgs
from rig_common.cdr import CdrError, read_stamp_ns, with_stamp_ns
from rig_common.lockstep.messages import Ack, Tick
from rig_common.times import MAX_STAMP_NS, seconds_to_ns
from sim_sensors.timing.schedule import Schedule
from sync_engine.engine import SyncEngine
from sync_engine.streams.ledger import Counts, Ledger, Outcome

YEAR_S = 365 * 86400
TEN_YEARS_NS = 10 * YEAR_S * S


@pytest.mark.parametrize('rate_hz', [400.0, 29.97, 1000.0, 0.1, 200.0, 59.94])
def test_a_schedule_is_exact_after_ten_years(rate_hz: float) -> None:
    schedule = Schedule(rate_hz, MS, phase_s=0.017)
    k = schedule.index_before(TEN_YEARS_NS)
    assert k == pytest.approx(10 * YEAR_S * rate_hz, abs=100 + 1e-9 * k)
    time_ns = schedule.time_of(k)
    assert time_ns % MS == 0 and abs(time_ns - 17 * MS - k / rate_hz * 1e9) <= 0.5 * MS + 200
    assert schedule.index_at(time_ns) == k
    assert schedule.next_time(time_ns) == schedule.time_of(k + 1) > time_ns
    indices = np.array([k - 1, k, k + 1])
    times = schedule.times_of(indices)
    assert times.dtype == np.int64 and times.tolist() == [schedule.time_of(n) for n in indices]
    assert schedule.indices_at(times).tolist() == indices.tolist()


def test_times_keep_their_nanosecond() -> None:
    assert seconds_to_ns(10 * YEAR_S + 0.5) == TEN_YEARS_NS + S // 2
    for time_ns in (TEN_YEARS_NS + 1, MAX_STAMP_NS, MAX_STAMP_NS - 1):
        assert Tick.decode(Tick(time_ns, time_ns).encode()).time_ns == time_ns
        assert Ack.decode(Ack('/a', time_ns).encode()).time_ns == time_ns


def test_stamps_up_to_the_last_second_of_int32() -> None:
    template = msgs.imu('imu')
    for stamp_ns in (MAX_STAMP_NS, MAX_STAMP_NS - S + 1, TEN_YEARS_NS + 123_456_789):
        raw = template.fill(stamp_ns)
        assert read_stamp_ns(raw) == stamp_ns
        assert read_stamp_ns(with_stamp_ns(raw, stamp_ns - 1)) == stamp_ns - 1
    with pytest.raises(CdrError, match='does not fit the int32 seconds'):
        template.fill(MAX_STAMP_NS + 1)


@pytest.mark.parametrize('start_ns', [TEN_YEARS_NS, MAX_STAMP_NS - 100 * S])
def test_the_engine_pairs_to_the_nanosecond_late_in_time(start_ns: int) -> None:
    engine = SyncEngine(exact('a b'))
    bundles = []
    for k in range(50):
        stamp_ns = start_ns + k * 100 * MS
        bundles += engine.push('b', stamp_ns + 1, b'', stamp_ns + 2 * MS, 0)
        bundles += engine.push('a', stamp_ns, b'', stamp_ns + 3 * MS, 0)
    assert len(bundles) >= 48
    for bundle in bundles:
        assert bundle.members['b'].stamp_ns - bundle.members['a'].stamp_ns == 1
    assert not engine.ledger.imbalance(engine.buffered())


def test_counters_of_a_thousand_million_messages() -> None:
    counts = Counts(received=10**9)
    counts.add(Outcome.BUNDLED, 10**9 - 1)
    counts.add(Outcome.LATE)
    assert counts.settled() == 10**9
    ledger = Ledger(['a'])
    ledger['a'].received = 10**12
    ledger['a'].add(Outcome.COLLECTED, 10**12 - 3)
    assert ledger.imbalance({'a': 3}) == {}
    assert Tick.decode(Tick(0, sent={'imu': 10**9}).encode()).sent == {'imu': 10**9}
