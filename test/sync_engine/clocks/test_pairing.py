"""The pairing residual: right on triggered rigs, a runaway elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from support.sync_feeder import MS, T0, Feeder, config

from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.pairing import PairingOffset, TriggerOffset
from sync_engine.config import AdaKFConfig
from sync_engine.engine import SyncEngine


def test_the_design_notes_filter() -> None:
    """Steady gain of its own Q and R is 0.62 once R sits on its lower clamp."""
    offset = PairingOffset(AdaKFConfig())
    for _ in range(50):
        offset.update(0.05)
    assert offset.offset_s == pytest.approx(0.05)
    assert offset.noise == pytest.approx(1e-4)
    before = offset.offset_s
    offset.update(0.15)
    assert (offset.offset_s - before) / 0.1 == pytest.approx(0.62, abs=0.01)


def test_a_trigger_offset_keeps_its_head() -> None:
    rng = np.random.default_rng(0)
    offset = TriggerOffset(0.0, 0.01)
    for _ in range(100):
        offset.update(0.004 + rng.normal(0.0, 1e-4))
    assert offset.offset_s == pytest.approx(0.004, abs=1e-4)
    offset.update(0.104)
    assert offset.offset_s == pytest.approx(0.004, abs=1e-4)
    for _ in range(5):
        offset.update(0.104)
    assert offset.offset_s == pytest.approx(0.104, abs=1e-3)


@pytest.mark.parametrize(('estimator', 'source'), [('pairing', 'device'), ('adaptive', 'trigger')])
def test_a_triggered_rig_is_paired_by_its_residual(estimator: str, source: str) -> None:
    given = {
        'a': {'latency_s': 0.01, 'latency_sigma_s': 0.004},
        'b': {'latency_s': 0.01, 'latency_sigma_s': 0.004, 'stamp_source': source},
    }
    feeder = Feeder(SyncEngine(config(given, 'a', required_sensors=['a', 'b'],
                                      estimator=estimator)))  # fmt: skip
    for k in range(60):  # captured together; b's clock is 12 ms ahead, and it is 5 ms slower
        feeder.push('a', 50 * k, 50 * k + 10)
        feeder.push('b', 50 * k + 12, 50 * k + 15)
    offset = feeder.engine.offset('b')
    assert offset.offset_ns == pytest.approx(12 * MS, abs=MS // 10)
    last = feeder.bundles[-1]
    assert last.members['b'].stamp_ns - last.members['a'].stamp_ns == 12 * MS
    assert abs(last.members['b'].time_delta_ns) < MS // 5
    if source == 'trigger':
        assert offset.state is OffsetState.LOCKED
    assert feeder.engine.status().sensors['b'].rests_on in ('pairing', 'trigger')


def test_without_a_trigger_the_design_notes_filter_measures_the_sampling_phase() -> None:
    """No clock is wrong here; b is merely sampled 14 ms after a."""
    given = {name: {'stamp_source': 'ptp', 'latency_s': 0.01} for name in 'ab'}
    offsets = {}
    for estimator in ('pairing', 'adaptive'):
        section = config(given, 'a', required_sensors=['a', 'b'], estimator=estimator)
        feeder = Feeder(SyncEngine(section))
        for k in range(60):
            feeder.push('a', 50 * k, 50 * k + 10)
            feeder.push('b', 50 * k + 14, 50 * k + 24)
        offsets[estimator] = feeder.engine.offset('b').offset_ns
    assert offsets['pairing'] == pytest.approx(14 * MS, abs=MS)
    assert abs(offsets['adaptive']) < MS // 2


def test_clock_of_shares_an_offset() -> None:
    given = {
        'cam': {'latency_s': 0.02},
        'info': {'latency_s': 0.001, 'clock_of': 'cam'},
    }
    feeder = Feeder(SyncEngine(config(given, 'cam', required_sensors=['cam', 'info'])))
    for k in range(20):
        feeder.push_ns('cam', 5 * MS + k * 50 * MS + 1, T0 + k * 50 * MS + 20 * MS)
        feeder.push_ns('info', 5 * MS + k * 50 * MS + 1, T0 + k * 50 * MS + 30 * MS)
    assert len(feeder.bundles) == 20
    assert all(b.members['info'].time_delta_ns == 0 for b in feeder.bundles)
    assert feeder.engine.offset('info').offset_ns == 0
