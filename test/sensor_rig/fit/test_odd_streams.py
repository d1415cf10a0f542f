"""Streams as recordings have them, however odd: a fit or one sentence, never a traceback."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.fit.fit_page import fit_page
from sensor_rig.fit.fitting import fit_stream
from sensor_rig.fit.output import as_json, datasheet
from sensor_rig.fit.times import FEWEST, StreamTimes

PERIODS_NS = (10**5, 10**6, 5 * 10**6, 10**7, 10**8, 10**9)


def odd_stream(random: np.random.Generator) -> StreamTimes:
    """Return a stream with one of twelve habits, at a random rate, offset and order."""
    count = int(random.choice([30, 31, 60, 100, 300]))
    k, period = np.arange(count), random.choice(PERIODS_NS)
    stamp = k * period
    latency = np.full(count, random.choice([0, 10**3, 10**6, 10**7, 5 * 10**7]))
    match int(random.integers(12)):
        case 1:
            latency += random.integers(0, 2, count)
        case 2:
            latency += (random.random(count) < 0.01) * 10**8
        case 3:
            latency += random.integers(0, 10**7, count)
        case 4:
            latency += random.exponential(1e7, count).astype(int)
        case 5:
            latency += (k > count // 2) * 10**8
        case 6:
            latency += k * 1000
        case 7:
            stamp = np.sort(random.integers(0, count * period, count))
        case 8:
            stamp[count // 2 :] = stamp[count // 2]
        case 9:
            latency = random.integers(-(10**8), 10**8, count) - latency
        case 10:
            stamp = stamp + random.integers(-period, period, count)
        case 11:
            latency += np.where(k % 7 == 0, 2 * 10**7, 0)
    received = stamp + latency + random.choice([0, 10**9, 1_763_478_016 * 10**9])
    if random.random() < 0.3:
        received = np.sort(received)
    sizes = (None, np.zeros(count), random.integers(0, 10**6, count).astype(float))
    return StreamTimes(
        'odd', received.astype(np.int64), stamp + 10**9, sizes=sizes[int(random.integers(3))]
    )


def tell(seed: int) -> str:
    """Return what was found, as text, or the sentence that refuses."""
    try:
        fit = fit_stream(odd_stream(np.random.default_rng(seed)))
        fit.config()
        return datasheet(fit, 'odd') + str(as_json([fit], 'odd'))
    except RigError as error:
        return str(error)


@pytest.mark.parametrize('seeds', [range(25), [1594]], ids=['many', 'delays all alike'])
def test_odd_streams(seeds: Iterable[int]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        for seed in seeds:
            assert tell(seed)


@pytest.mark.long
def test_a_thousand_odd_streams() -> None:
    fitted = sum('messages' in tell(seed) for seed in range(1000, 2000))
    assert fitted > 900


def test_a_latency_that_never_changes_is_a_fixed_delay() -> None:
    k = np.arange(100)
    fit = fit_stream(StreamTimes('fixed', k * 10**8 + 10**7, k * 10**8))
    assert fit.keys()['delay_range_s'] == [0.01, 0.01]
    assert 'latency' not in dict(fit.keys())
    assert fit.config().delay_range_s == (0.01, 0.01)


@pytest.mark.parametrize('scatter_ns', [0, 10**6])
def test_the_fewest_messages_make_a_page(scatter_ns: int) -> None:
    """Fewer than its lags; without scatter there is no model to compare either."""
    k = np.arange(FEWEST)
    scatter = np.random.default_rng(1).integers(0, 1 + scatter_ns, FEWEST)
    fit = fit_stream(StreamTimes('few', k * 10**8 + 10**7 + scatter, k * 10**8))
    page = fit_page([fit], 'few')
    assert ('does not vary' in page) is ('<svg' not in page) is (scatter_ns == 0)


def test_stamps_that_are_no_times_are_refused() -> None:
    k = np.arange(100)
    with pytest.raises(RigError, match=r'advance 0\.001 s in a second of arrivals'):
        fit_stream(StreamTimes('ms', k * 10**8 + 10**7 + k % 3, 10**6 + k * 10**5))
