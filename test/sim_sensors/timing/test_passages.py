"""How late a sample can be, what is counted as lost, and what a reset forgets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.transits import MS, arrivals, transit

from rig_common.errors import RigError
from rig_common.times import NEVER_NS
from rig_common.validation import validated
from sim_sensors.interface.sensor import Sample
from sim_sensors.pipeline.in_flight import InFlight
from sim_sensors.timing.config import LinkConfig, TimingConfig
from sim_sensors.timing.fates import CaptureFate
from sim_sensors.timing.faults import Condition, FaultConfig, Faults
from sim_sensors.timing.link import Link, LinkMember, LinkShare
from sim_sensors.timing.loss import MOST_TRIES
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import CaptureNumbers


def share(**keys: Any) -> LinkShare:
    """Return the share of a stream of 500 bytes at 100 Hz, beside images."""
    members = {
        'camera': LinkMember(Schedule(10.0, MS), 0, 90_000),
        'test': LinkMember(Schedule(100.0, MS), 0, 500),
    }
    return LinkShare(Link('eth', LinkConfig(bandwidth_bps=20e6, **keys), members), 'test')


SLOW = {'model': 'uniform', 'min_s': 0.002, 'max_s': 0.01}
STALLS = {'probability': 0.05, 'duration_range_s': [0.02, 0.1]}


@pytest.mark.parametrize(
    ('keys', 'least_ms', 'most_ms'),
    [
        ({'delay_range_s': [0.01, 0.01]}, 10, 10),
        ({'delay_range_s': [0.01, 0.03], 'jitter_s': 0.004}, 10, 34),
        ({'delay_range_s': [0.01, 0.03], 'latency': SLOW}, 12, 40),
        ({'delay_range_s': [0.0, 0.0], 'latency': {**SLOW, 'stalls': STALLS}}, 2, 110),
        ({'delay_range_s': [0.01, 0.01], 'order': 'fifo', 'jitter_s': 0.01}, 10, 20),
    ],
)
def test_nothing_is_earlier_or_later_than_said(
    keys: dict[str, Any], least_ms: int, most_ms: int
) -> None:
    made = transit(keys, 20, duration_ns=5 * MS)
    # 10 ns: a model is a table of quantiles that ends just inside its bounds
    assert made.transit.most_latency_ns == pytest.approx((5 + most_ms) * MS, abs=10)
    assert made.transit.is_regular == (least_ms == most_ms)
    found, _ = arrivals(made, 200)
    late = found - made.schedule.times_of(np.arange(200))[:, None]
    assert (late >= made.transit.latency_ns).all()
    assert (made.transit.latency_ns >= (5 + least_ms) * MS).all()
    assert late.max() <= made.transit.most_latency_ns
    assert late.min() < (5 + least_ms + 2) * MS
    if most_ms > least_ms:
        assert late.max() > (5 + least_ms + 0.6 * (most_ms - least_ms)) * MS
        assert len(set(late[0].tolist())) > 1


@pytest.mark.parametrize(
    ('keys', 'exact'),
    [
        ({'delay_range_s': [0.03, 0.05], 'jitter_s': 0.03}, True),
        ({'latency': {'model': 'gamma', 'mean_s': 0.03, 'sigma_s': 0.03}}, True),
        ({'delay_range_s': [0.03, 0.03], 'jitter_s': 0.03, 'order': 'fifo'}, True),
        ({'latency': {**SLOW, 'stalls': STALLS}}, False),
    ],
)
def test_the_earliest_arrival_is_that_of_the_captures_to_come(
    keys: dict[str, Any], exact: bool
) -> None:
    made = transit(keys, 3)
    found, _ = arrivals(transit(keys, 3), 200)
    for k in range(100):
        for env in range(3):
            told = made.transit.earliest_arrival(env, k, made.schedule)
            truth = found[k:, env].min()
            assert told == truth if exact else told <= truth
        made.transit.send(made.capture(k))
    if exact and 'order' not in keys:
        assert (found[2:, 0] < found[:-2, 0]).any()


def test_a_link_adds_its_longest_queue_and_every_round_trip() -> None:
    plain, reliable = share(), share(reliable=True, round_trip_s=0.01)
    assert plain.most_ns > 30 * MS
    assert transit({}, link=plain).transit.most_latency_ns == plain.most_ns
    assert transit({}, link=reliable).transit.most_latency_ns == (
        plain.most_ns + (MOST_TRIES + 1) * 10 * MS
    )
    with pytest.raises(RigError, match="link of 'test' is 'eth', which is not there"):
        transit({'link': 'eth'})


def test_what_a_reliable_link_dropped_comes_a_round_trip_after_the_longest_queue() -> None:
    link = share(reliable=True, round_trip_s=0.01, queue_bytes=90_200)
    _, dropped = link.at(np.arange(200))
    assert 0 < dropped.sum() < 200
    made = transit({}, link=link)
    found, lost = arrivals(made, 200)
    late = found[:, 0] - made.schedule.times_of(np.arange(200))
    assert not lost.any()
    assert set(late[dropped].tolist()) == {link.most_ns + 10 * MS}
    assert late[~dropped].max() <= link.most_ns


def test_the_size_of_a_message_is_the_configs_or_else_the_sensors() -> None:
    loss = {'loss': {'packet_probability': 0.1}}
    for keys, size, packets in (({}, 14_720, 10), ({'size_bytes': 1000}, 14_720, 1), ({}, 0, 1)):
        _, lost = arrivals(transit({**loss, **keys}, 300, size_bytes=size), 20)
        assert lost.mean() == pytest.approx(1.0 - 0.9**packets, abs=0.02)


def test_every_lost_capture_is_counted_once() -> None:
    made = transit({'loss': {'probability': 0.3}}, 5, link=share(queue_bytes=90_200))
    lost = 0
    for k in range(300):
        condition = Condition(passing=0.8 if k >= 100 else 1.0, dead=k >= 250)
        passage = made.transit.send(made.capture(k), condition)
        assert passage.lost is not None and passage.lost.shape == (5,)
        lost += int(passage.lost.sum())
    counts = made.transit.counts
    assert counts.pop(CaptureFate.CAPTURED) == 1500
    assert set(counts) == {
        CaptureFate.LOST,
        CaptureFate.QUEUE_FULL,
        CaptureFate.FAULT_LOSS,
        CaptureFate.DEAD,
    }
    assert counts.total() == lost and min(counts.values()) > 0
    assert counts[CaptureFate.DEAD] == 250
    assert counts[CaptureFate.LOST] == pytest.approx(0.3 * 1250, abs=50)


def test_where_nothing_is_lost_no_rows_are_named() -> None:
    passage = transit({}, 2).transit.send(
        CaptureNumbers(slice(None), np.zeros(2, np.int64), np.zeros(2, np.int64))
    )
    assert passage.lost is None and passage.twice is None


def test_a_reset_environment_waits_for_nothing_of_before() -> None:
    made = transit({'order': 'fifo', 'delay_range_s': [0.01, 0.05]}, 3)
    before = made.transit.latency_ns.copy()
    made.transit.send(made.capture(0), Condition(latency_ns=500 * MS))
    made.streams.reset(np.array([1]))
    made.transit.reset(np.array([1]))
    changed = made.transit.latency_ns != before
    assert changed.tolist() == [False, True, False]
    times = np.full(3, 10 * MS)
    passage = made.transit.send(CaptureNumbers(np.arange(3), np.array([1, 0, 1]), times))
    late = np.asarray(passage.arrival_ns) - times
    assert late[1] == made.transit.latency_ns[1]
    assert (late[[0, 2]] == before[[0, 2]] + 490 * MS).all()


def slow_faults() -> Faults:
    return Faults([FaultConfig(kind='slow', at_s=0.3, duration_s=0.2, offset=0.15)])


@pytest.mark.parametrize(
    'keys',
    [
        {'order': 'fifo', 'delay_range_s': [0.0, 0.02], 'jitter_s': 0.0},
        {'latency': {**SLOW, 'stalls': STALLS}},
    ],
)
def test_captures_that_nobody_made_hold_up_the_others_with_their_faults(
    keys: dict[str, Any],
) -> None:
    def passages(chosen: list[int]) -> dict[int, list[int]]:
        made = transit(keys, 2)
        made.transit.faults = slow_faults()
        found = {}
        for k in chosen:
            batch = made.capture(k)
            late = made.transit.faults.at(int(batch.time_ns[0]))
            arrival = made.transit.send(batch, late).arrival_ns
            found[k] = np.broadcast_to(arrival, 2).tolist()
        return found

    dense = passages(list(range(100)))
    assert dense[55][0] > 700 * MS - 150 * MS  # held up by those of the fault
    for chosen in ([*range(0, 30), 52, 53, 70, 99], [49, 50, 51], [60]):
        assert passages(chosen) == {k: dense[k] for k in chosen}


# ---- on the way --------------------------------------------------------------------------------


def sample(env: int, index: int, arrival_ns: int) -> Sample:
    return Sample('imu', env, index, 0, 0, arrival_ns, np.zeros(1), np.zeros(1))


def test_samples_come_out_in_order_of_arrival_environment_and_number() -> None:
    flight = InFlight()
    assert flight.next_ns() == NEVER_NS and flight.due(10**18) == []
    for env, index, arrival in ((1, 4, 30), (0, 5, 30), (0, 4, 30), (2, 1, 10), (0, 4, 30)):
        flight.add(sample(env, index, arrival))
    assert (len(flight), flight.next_ns()) == (5, 10)
    assert flight.due(9) == []
    assert [(each.env, each.index) for each in flight.due(10)] == [(2, 1)]
    assert [(each.env, each.index) for each in flight.due(31)] == [(0, 4), (0, 4), (0, 5), (1, 4)]
    assert len(flight) == 0


def test_what_is_flushed_never_comes_and_the_rest_stays_in_order() -> None:
    flight = InFlight()
    for number in range(40):
        flight.add(sample(number % 4, number, 1000 - 7 * number % 50))
    assert flight.flush({0, 3}) == 20
    left = flight.due(1000)
    assert len(left) == 20 and {each.env for each in left} == {1, 2}
    arrivals_ns = [each.arrival_ns for each in left]
    assert arrivals_ns == sorted(arrivals_ns)
    assert flight.flush({1}) == 0


def test_a_recorded_stream_is_stamped_for_its_capture_and_sent_from_its_arrival() -> None:
    made = transit({'clock': {'offset_s': 0.5}})
    received = CaptureNumbers(slice(None), np.array([3]), np.array([90 * MS]))
    passage = made.transit.send(
        received, stamped=CaptureNumbers(slice(None), np.array([3]), np.array([30 * MS]))
    )
    assert (int(passage.stamp_ns), int(passage.arrival_ns)) == (530 * MS, 90 * MS)


def test_another_latency_and_loss_hold_from_the_next_capture_on() -> None:
    made = transit({'delay_range_s': [0.01, 0.01]}, 50)
    before, lost = arrivals(made, 20)
    assert not lost.any()
    made.transit.take(
        validated(
            TimingConfig,
            {'rate_hz': 100.0, 'delay_range_s': [0.04, 0.04], 'loss': {'probability': 0.5}},
            'test',
        )
    )
    after, lost = arrivals(made, 0, range(20, 60))
    times = made.schedule.times_of(np.arange(60))[:, None]
    assert (before - times[:20] == 10 * MS).all() and (after - times[20:] == 40 * MS).all()
    assert lost.mean() == pytest.approx(0.5, abs=0.05)
