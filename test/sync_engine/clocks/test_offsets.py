"""The whole engine on streams with known truth: what it learns, and what it says about it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.sync_feeder import MS, T0, Feeder, S, config
from support.sync_runs import Run, give_rotation, make_config, run_engine
from support.sync_streams import Scenario

from rig_common.errors import RigError
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.engine import SyncEngine


@pytest.fixture(scope='module')
def fused() -> Run:
    scenario = Scenario(3, duration_s=30.0)
    return run_engine(scenario, make_config(scenario))


def test_offsets_are_found_and_locked(fused: Run) -> None:
    for sensor in ('camera', 'lidar'):
        assert np.median(fused.late(sensor, 15.0)) < 1.5
        assert fused.settled_s(sensor, 0.006) < 8.0
        assert fused.states[sensor] is OffsetState.LOCKED


def test_pairs_are_the_nearest_in_true_capture_time(fused: Run) -> None:
    gaps = np.array([abs(a - b) for a, b in fused.pairs if a > 12.0])
    assert len(gaps) > 150
    assert gaps.max() < 0.5 / 30.0 + 0.003


def test_sigma_covers_the_error_while_it_converges(fused: Run) -> None:
    for key in ('camera', 'lidar', 'camera-lidar', 'camera/host', 'lidar/host'):
        scaled = np.abs(fused.errors[key] / fused.sigmas[key])[fused.times > 1.0]
        assert np.percentile(scaled, 95) < 3.0, key


def test_hardly_any_motion_is_not_locked() -> None:
    scenario = Scenario(1, duration_s=15.0, motion_scale=0.02)
    run = run_engine(scenario, make_config(scenario))
    for sensor in ('camera', 'lidar'):
        assert run.states[sensor] is not OffsetState.LOCKED
        scaled = np.abs(run.errors[sensor] / run.sigmas[sensor])
        assert scaled[run.times > 1.0].max() < 3.0


@pytest.mark.parametrize('sensor', ['camera', 'lidar'])
def test_a_clock_step_is_followed_at_once(sensor: str) -> None:
    scenario = Scenario(2, duration_s=20.0).with_sensor(sensor, clock_step=(15.0, 0.05))
    run = run_engine(scenario, make_config(scenario))
    before = run.errors[sensor][(run.times > 14.0) & (run.times < 14.9)].mean()
    after = run.errors[sensor][(run.times > 15.5) & (run.times < 16.5)].mean()
    assert abs(after - before) < 0.0015


def turn(engine: SyncEngine, start_ms: int, end_ms: int, last_off_ms: dict[str, int]) -> int:
    """Play a body that sways; the last stamps are `last_off_ms` off. Return the fixes so far."""
    for ms in range(start_ms, end_ms, 5):
        is_last = ms == end_ms - 5
        off_ms = {name: is_last * last_off_ms.get(name, 0) for name in ('a', 'imu')}
        stamp_ns = T0 + (ms + off_ms['imu']) * MS
        engine.push('imu', stamp_ns, None, T0 + ms * MS)
        engine.push_imu(stamp_ns, (0.0, 0.0, np.sin(0.004 * ms)), (0.0, 0.0, 9.8))
        if is_last or ms % 100 == 95:
            since_ns, stamp_ns = T0 + (ms - 100) * MS, T0 + (ms + off_ms['a']) * MS
            angle = (np.cos(0.004 * (ms - 100)) - np.cos(0.004 * ms)) / 4.0
            engine.push('a', stamp_ns, None, T0 + ms * MS)
            engine.push_rotation('a', since_ns, stamp_ns, angle, (0.0, 0.0, 1.0))
    engine.run_cues()
    return engine.status().sensors['a'].motion_fixes


@pytest.mark.parametrize('in_doubt', ['a', 'imu'])
def test_turns_are_not_compared_while_a_clock_may_have_stepped(in_doubt: str) -> None:
    """A turn from before a step to after it would be wrong by the step."""
    inputs = {
        'a': {'latency_s': 0.0, 'imu_quat_wxyz': (1.0, 0.0, 0.0, 0.0)},
        'imu': {'latency_s': 0.0, 'member': False},
    }
    engine = SyncEngine(config(inputs, 'a', imu_sensor_id='imu'))
    assert turn(engine, 0, 3000, {in_doubt: -40}) == 0
    assert turn(engine, 3000, 3500, {}) >= 1  # it was a glitch, and the others wait no longer


def test_a_latency_step_leaves_the_offset_alone() -> None:
    plain = Scenario(2, duration_s=20.0)
    slower = plain.with_sensor('camera', latency_step=(15.0, 0.015))
    one, two = (run_engine(each, make_config(each)) for each in (plain, slower))
    count = min(len(one.times), len(two.times))
    change = two.errors['camera'][:count] - one.errors['camera'][:count]
    assert np.abs(change[one.times[:count] > 15.0]).max() < 0.001


def test_restart_with_saved_offsets_starts_locked() -> None:
    scenario = Scenario(4, duration_s=25.0)
    section = make_config(scenario)
    engine = SyncEngine(section)
    messages, last = scenario.messages(), {}
    fresh = SyncEngine(section)
    for message in messages:
        name = message.sensor_id
        target = engine if message.capture_s < 22.0 else fresh
        if target is fresh and not fresh.ledger['imu'].received:
            saved = json.loads(json.dumps(engine.clocks.snapshot(), allow_nan=False))
            assert sorted(fresh.clocks.restore(saved)) == ['camera', 'imu', 'lidar']
        target.push(name, message.stamp_ns, None, message.arrival_ns)
        if name == 'imu':
            target.push_imu(message.stamp_ns, message.gyro, message.accel)
        elif message.turn:
            give_rotation(target, scenario, message, last[name])
        last[name] = message.stamp_ns
        target.run_cues()
    for name in ('camera', 'lidar'):
        before, after = engine.offset(name, to='imu'), fresh.offset(name, to='imu')
        assert before.state is after.state is OffsetState.LOCKED
        assert abs(before.offset_ns - after.offset_ns) < 1 * MS


def test_saved_offsets_of_another_boot_are_not_believed() -> None:
    section = config({'a': {}}, 'a')
    engine = SyncEngine(section)
    for k in range(40):
        engine.push('a', T0 + k * 100 * MS, None, T0 + k * 100 * MS + 20 * MS)
    fresh = SyncEngine(section)
    fresh.clocks.restore(engine.clocks.snapshot())
    for k in range(40):  # this time its clock counts from its power-up
        fresh.push('a', 5 * S + k * 100 * MS, None, T0 + k * 100 * MS + 20 * MS)
    assert fresh.offset_to_host('a').offset_ns == pytest.approx(5 * S - T0, abs=30 * MS)


def test_broken_snapshots_are_one_sentence() -> None:
    engine = SyncEngine(config({'a': {}}, 'a'))
    for broken in ({}, {'version': 1}, {'version': 1, 'clocks': {'a': {'x': 'no'}}}):
        with pytest.raises(RigError):
            engine.clocks.restore(broken)


def test_a_clock_from_power_up_is_corrected_to_the_host() -> None:
    feeder = Feeder(SyncEngine(config({'a': {'latency_s': 0.02}}, 'a')))
    for k in range(30):
        feeder.push_ns('a', 7 * S + k * 100 * MS, T0 + k * 100 * MS + 20 * MS)
    last = feeder.bundles[-1]
    assert last.stamp_ns == pytest.approx(T0 + 29 * 100 * MS, abs=1 * MS)


def test_an_unobservable_offset_corrects_nothing() -> None:
    feeder = Feeder(SyncEngine(config({'a': {'latency_sigma_s': 0.5}}, 'a')))
    for k in range(30):
        feeder.push('a', 100 * k, 100 * k + 250)
    assert feeder.engine.offset('a').state is OffsetState.UNOBSERVABLE
    assert feeder.bundles[-1].stamp_ns == T0 + 2900 * MS


def test_host_stamps_lag_by_the_latency() -> None:
    given = {'a': {'stamp_source': 'host', 'latency_s': 0.03, 'latency_sigma_s': 0.005}}
    feeder = Feeder(SyncEngine(config(given, 'a')))
    for k in range(30):
        feeder.push('a', 100 * k + 30, 100 * k + 30)
    assert feeder.bundles[-1].stamp_ns == pytest.approx(T0 + 2900 * MS, abs=1 * MS)


def test_a_looped_bag_is_one_epoch_a_loop() -> None:
    given = {name: {'latency_s': 0.005} for name in 'ab'}
    feeder = Feeder(SyncEngine(config(given, 'a', required_sensors=['a', 'b'])))
    for loop in range(3):
        for k in range(40):
            now = 4000 * loop + 100 * k
            feeder.push('b', 100 * k + 3, now + 8)
            feeder.push('a', 100 * k, now + 6 + 4)
    epochs = [bundle.epoch for bundle in feeder.bundles]
    assert [epochs.count(epoch) >= 36 for epoch in range(3)] == [True] * 3
    assert max(epochs) == 2
    out = [bundle.stamp_ns for bundle in feeder.bundles]
    assert out == sorted(out)  # host time went on, and so do the corrected stamps


@pytest.mark.parametrize('ahead_s', [0.617, 1e6])
def test_a_single_far_stamp_is_invalid_and_harmless(ahead_s: float) -> None:
    given = {name: {'latency_s': 0.005} for name in 'ab'}
    feeder = Feeder(SyncEngine(config(given, 'a', required_sensors=['a', 'b'])))
    for k in range(40):
        feeder.push('b', 100 * k + 3, 100 * k + 8)
        if k == 20:
            now_ns = T0 + 100 * k * MS + 9 * MS
            feeder.push_ns('b', now_ns + round(ahead_s * S), now_ns)
            assert feeder.engine.buffered()['b'] >= 1
        feeder.push('a', 100 * k, 100 * k + 10)
    assert feeder.engine.ledger['b'].invalid == 1
    assert feeder.engine.epochs.number == 0
    assert len(feeder.bundles) >= 38


def test_a_long_silence_learns_the_clock_anew() -> None:
    feeder = Feeder(SyncEngine(config({'a': {'latency_s': 0.01}}, 'a')))
    for k in range(20):
        feeder.push('a', 100 * k, 100 * k + 10)
    for k in range(20):
        feeder.push('a', 60_000 + 100 * k - 400, 60_000 + 100 * k + 10)
    assert feeder.engine.status().sensors['a'].resets == 1
    assert feeder.engine.offset_to_host('a').offset_ns == pytest.approx(-400 * MS, abs=2 * MS)


@pytest.mark.parametrize('step_ms', [-700, -650, 700])
def test_a_clock_that_steps_back_onto_stamps_of_its_past_is_followed(step_ms: int) -> None:
    given = {name: {'latency_s': 0.01} for name in 'ab'}
    feeder = Feeder(SyncEngine(config(given, 'a', required_sensors=['a', 'b'])))
    for k in range(120):
        feeder.push('b', 100 * k + (step_ms if k >= 60 else 0), 100 * k + 10)
        if k % 20 == 0:  # a slow reference, so that stamps of `b` wait where they can be met again
            feeder.push('a', 100 * k, 100 * k + 11)
    status = feeder.engine.status().sensors['b']
    assert (status.clock_steps, status.latency_steps) == (1, 0)
    assert feeder.engine.offset_to_host('b').offset_ns == pytest.approx(step_ms * MS, abs=2 * MS)
    assert feeder.bundles[-1].stamp_ns > T0 + 9_000 * MS


def test_a_stamp_that_does_not_move_is_a_duplicate_each_time() -> None:
    feeder = Feeder(SyncEngine(config({'a': {'latency_s': 0.01}}, 'a')))
    for k in range(40):
        feeder.push('a', 100 * min(k, 20), 100 * k + 10)
    assert feeder.engine.ledger['a'].duplicate == 19
    assert feeder.engine.status().sensors['a'].clock_steps == 0


@pytest.mark.parametrize('step_ms', [-700, 700])
def test_a_clock_step_is_seen_through_arrivals_that_jitter_by_half_a_period(step_ms: int) -> None:
    given = {name: {'latency_s': 0.06} for name in 'ab'}
    feeder = Feeder(SyncEngine(config(given, 'a', required_sensors=['a', 'b'])))
    for k in range(240):
        late_ms = 60 if k % 4 == 0 else 110
        feeder.push('b', 100 * k + (step_ms if k >= 121 else 0), 100 * k + late_ms)
        if k % 4 == 0:
            feeder.push('a', 100 * k, 100 * k + 60)
    status = feeder.engine.status().sensors['b']
    assert status.clock_steps == 1
    assert feeder.engine.offset_to_host('b').offset_ns == pytest.approx(step_ms * MS, abs=20 * MS)
