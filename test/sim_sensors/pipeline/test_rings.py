"""The rings, held against the worked example in their own documentation."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.times import NEVER_NS
from sim_sensors.pipeline.layout import Layout
from sim_sensors.pipeline.rings import ALL, SampleRing

MS = 1_000_000
A, B = 0, 1
CAPTURES = [
    # time, index of (A, B), arrivals of (A, B), B lost, newest of (A, B) at that time
    (0, (0, 0), (15, 20), False, (None, None)),
    (10, (1, 1), (38, 28), False, (None, None)),
    (20, (2, 2), (35, 45), True, (0, 0)),
    (30, (0, 3), (50, 49), False, (None, 1)),
    (40, (1, 4), (60, 62), False, (None, 1)),
    (50, (2, 5), (70, 70), False, (0, 3)),
]
"""The table in the docstring of `SampleRing`."""


def newest(ring: SampleRing, time_ms: int) -> tuple[int | None, int | None]:
    found = ring.arrived(ALL, ring.newest.copy(), time_ms * MS, spread=4)
    indices = ring.take(ring.values, found.place)[:, 0]
    return tuple(int(index) if valid else None  # type: ignore[return-value]
                 for index, valid in zip(indices, found.valid, strict=True))


def test_the_example_of_the_documentation() -> None:
    ring = SampleRing(8, 2, Layout({'index': (1,)}, np.float64))
    for time_ms, index, arrival_ms, b_is_lost, expected in CAPTURES:
        if time_ms == 30:
            ring.reset(np.array([A]))
        indices, times = np.array(index), np.full(2, time_ms * MS)
        ring.push(ALL, indices, indices[:, None].astype(float), times, times,
                  np.array(arrival_ms) * MS, np.array([False, b_is_lost]))
        assert newest(ring, time_ms) == expected, time_ms


def test_without_the_reset_the_search_goes_back_over_what_was_overtaken() -> None:
    ring = SampleRing(8, 2, Layout({'index': (1,)}, np.float64))
    for time_ms, index, arrival_ms, _, _ in CAPTURES[:3]:
        indices, times = np.array(index), np.full(2, time_ms * MS)
        ring.push(ALL, indices, indices[:, None].astype(float), times, times,
                  np.array(arrival_ms) * MS, None)
    assert newest(ring, 34)[A] == 0
    assert newest(ring, 36)[A] == 2
    assert newest(ring, 39)[A] == 2


def test_a_first_sample_that_is_lost_is_no_sample() -> None:
    ring = SampleRing(4, 1, Layout({'index': (1,)}, np.float64))
    zero = np.zeros(1, np.int64)
    ring.push(ALL, zero, np.zeros((1, 1)), zero, zero, zero, np.array([True]))
    assert ring.holes
    assert ring.arrival_ns.min() == NEVER_NS
    assert not ring.at_index(ALL, zero).valid.any()


@pytest.mark.parametrize('slots', [1, 4, 5, 9])
def test_a_larger_ring_keeps_every_sample(slots: int) -> None:
    ring = SampleRing(4, 2, Layout({'index': (1,)}, np.float64))
    for k in range(6):
        index = np.full(2, k)
        ring.push(ALL, index, index[:, None] * 1.0, index, index, index, None)
    grown = ring.grow(slots)
    assert (grown is ring) == (slots <= 4)
    for k in range(2, 6):
        found = grown.at_index(ALL, np.full(2, k))
        assert found.valid.all()
        np.testing.assert_array_equal(grown.take(grown.values, found.place)[:, 0], k)
    assert not grown.at_index(ALL, np.full(2, 1)).valid.any(), 'it had left the smaller ring'
