"""The loss channel against a chain that is run step by step, with the same random numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sim_sensors.timing.config import LossConfig
from sim_sensors.timing.loss import MOST_TRIES, LossChannel
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.transit import CaptureNumbers

COUNT = 400
BURSTS = {'probability': 0.2, 'burst_mean': 4.0}
FADING = {'probability': 0.1, 'burst_mean': 5.0, 'bad_probability': 0.4}


def batch(envs: Any, index: list[int]) -> CaptureNumbers:
    return CaptureNumbers(envs, np.array(index), np.zeros(len(index), np.int64))


def channel(
    keys: dict[str, float], num_envs: int = 1, size_bytes: int = 0, episode: int = 0
) -> tuple[LossChannel, RandomStreams]:
    streams = RandomStreams(7, 'test', num_envs, episode=episode)
    return LossChannel(LossConfig(**keys), streams, size_bytes), streams


def plain_chain(
    streams: RandomStreams, env: int, enter: float, stay: float, first: float, in_bad: float = 1.0
) -> list[bool]:
    """Run the two-state chain from its start; return which samples are lost."""
    bad, lost = False, []
    for k in range(COUNT):
        rows, index = np.array([env]), np.array([k])
        draw = float(streams.uniform_at('loss', rows, index, 1)[0, 0])
        bad = draw < (first if k == 0 else stay if bad else enter)
        again = float(streams.uniform_at('loss_in_bad', rows, index, 1)[0, 0])
        lost.append(bad and again < in_bad)
    return lost


# in the bad state 1/5 of the time, left with 1/4: entered with 1/4 * 0.2 / 0.8
# in the bad state 1/4 of the time, left with 1/5: entered with 1/5 * 0.25 / 0.75
# shorter bursts than independent loss has: entered and stayed in with the fraction itself
@pytest.mark.parametrize(
    ('keys', 'chain'),
    [
        (BURSTS, {'enter': 0.0625, 'stay': 0.75, 'first': 0.2}),
        (FADING, {'enter': 0.2 / 3, 'stay': 0.8, 'first': 0.25, 'in_bad': 0.4}),
        ({'probability': 0.3, 'burst_mean': 1.0}, {'enter': 0.3, 'stay': 0.3, 'first': 0.3}),
    ],
)
@pytest.mark.parametrize('num_envs', [1, 3])
def test_losses_are_those_of_the_chain(
    keys: dict[str, float], chain: dict[str, float], num_envs: int
) -> None:
    made, streams = channel(keys, num_envs)
    lazy, _ = channel(keys, num_envs)
    assert made.probability == pytest.approx(keys['probability'])
    last = num_envs - 1
    expected = plain_chain(streams, last, **chain)
    assert 0 < sum(expected) < COUNT
    for k in range(COUNT):
        every = batch(slice(None), [k] * num_envs)
        foreseen = made.lost(every)
        found = made.advance(every)
        assert found.shape == (num_envs,) and found[last] == expected[k]
        assert np.array_equal(found, foreseen)
        if k % 7 == 3:  # one environment alone, after captures that nobody made
            assert lazy.advance(batch(np.array([last]), [k])).tolist() == [expected[k]]


def test_a_reset_starts_the_new_episode_in_the_stationary_state() -> None:
    made, streams = channel(BURSTS, 2)
    for k in range(50):
        made.advance(batch(slice(None), [k, k]))
    kept, _ = channel(BURSTS, 2)
    fresh, _ = channel(BURSTS, 2, episode=1)
    streams.reset(np.array([1]))
    made.reset(np.array([1]))
    for k in range(100):
        before = kept.advance(batch(slice(None), [k, k]))
        if k >= 50:
            assert made.advance(batch(np.array([0]), [k])).tolist() == [before[0]]
        after = fresh.advance(batch(slice(None), [k, k]))
        assert made.advance(batch(np.array([1]), [k])).tolist() == [after[1]]


@pytest.mark.parametrize('again', [False, True])
def test_the_first_captures_may_be_those_that_nobody_made(again: bool) -> None:
    """The state is found by looking back, to the start where no draw in between decides it."""
    dense, _ = channel(BURSTS, 200, episode=int(again))
    lazy, streams = channel(BURSTS, 200)
    if again:
        for k in range(20):
            lazy.advance(batch(slice(None), [k] * 200))
        streams.reset(slice(None))
        lazy.reset(slice(None))
    expected = [dense.advance(batch(slice(None), [k] * 200)) for k in range(4)]
    assert np.array_equal(lazy.advance(batch(slice(None), [2] * 200)), expected[2])
    assert np.array_equal(lazy.advance(batch(slice(None), [3] * 200)), expected[3])


def test_other_probabilities_hold_from_the_next_sample_on_and_the_state_stays() -> None:
    made, _ = channel({'probability': 0.99, 'burst_mean': 1000.0})
    assert made.advance(batch(slice(None), [0])).tolist() == [True]
    made.reconfigure(LossConfig(probability=0.01, burst_mean=1e9))
    assert all(made.advance(batch(slice(None), [k]))[0] for k in range(1, 50))
    made.reconfigure(LossConfig())
    assert made.probability == 0.0
    assert made.lost(batch(slice(None), [50])).tolist() == [False]
    assert made.advance(batch(slice(None), [50])).tolist() == [False]


@pytest.mark.parametrize(('size', 'packets'), [(0, 1), (1, 1), (1472, 1), (1473, 2), (14_720, 10)])
def test_a_message_is_lost_with_any_of_its_packets(size: int, packets: int) -> None:
    made, streams = channel({'packet_probability': 0.1}, 500, size)
    assert made.probability == pytest.approx(1.0 - 0.9**packets)
    both, _ = channel({'packet_probability': 0.1, 'probability': 0.2}, 500, size)
    assert both.probability == pytest.approx(1.0 - 0.8 * 0.9**packets)
    first = streams.uniform_at('packet_loss', slice(None), np.zeros(500, np.int64), 1)[:, 0]
    assert np.array_equal(made.lost(batch(slice(None), [0] * 500)), first < 1.0 - 0.9**packets)
    for each in (made, both):
        lost = np.mean([each.advance(batch(slice(None), [k] * 500)) for k in range(20)])
        assert lost == pytest.approx(each.probability, abs=0.02)


def test_what_is_lost_is_sent_again_until_it_passes() -> None:
    made, streams = channel({'probability': 0.5}, 500)
    draws = streams.uniform_at('retransmission', slice(None), np.full(500, 5), 1)[:, 0]
    assert np.array_equal(
        made.tries(batch(slice(None), [5] * 500)),
        1 + np.minimum(np.floor(-np.log2(draws)), MOST_TRIES - 1),
    )
    tries = np.concatenate([made.tries(batch(slice(None), [k] * 500)) for k in range(40)])
    share = np.bincount(tries, minlength=MOST_TRIES + 1) / len(tries)
    assert share[0] == 0.0 and len(share) == MOST_TRIES + 1 == 9
    expected = [0.5**n for n in range(1, MOST_TRIES)]
    assert share[1:MOST_TRIES] == pytest.approx(expected, abs=0.015)
    assert share[MOST_TRIES] == pytest.approx(0.5 ** (MOST_TRIES - 1), abs=0.004)


def test_copies_come_at_their_rate() -> None:
    made, _ = channel({'duplicate_probability': 0.25}, 500)
    twice = [made.duplicated(batch(slice(None), [k] * 500)) for k in range(20)]
    assert np.mean(twice) == pytest.approx(0.25, abs=0.02)
