"""Several rates of wander side by side: the trace of the module's text, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest

from sync_engine.clocks import wander
from sync_engine.clocks.wander import MODELS, Wander

MS = 1e-3


def _tell(found: Wander, fixes: list[float], known: float = 0.0) -> tuple[float, float]:
    """Hand over fixes (s, sigma 1 ms, one a second); return where the mixture is, its variance."""
    variance = found.ahead(0.0)[1]
    for fix in fixes:
        (now, now_var), (then, then_var) = found.ahead(0.0), found.ahead(1.0)
        known += then - now
        found.carry(1.0, variance + then_var - now_var)
        mean, variance = found.observe(fix - known, MS**2)
        known += mean
        found.settle(mean, variance)
    return known, variance


def test_the_trace_in_the_text_is_what_happens():
    rows = [line.split('|') for line in (wander.__doc__ or '').splitlines() if '|' in line][1:]
    found = Wander((10.0 * MS) ** 2, 0.4)
    assert [float(part) for part in rows[0][1].split()] == [
        round(100.0 * belief) for belief in found.beliefs
    ]
    still = [0.3, -1.1, 0.8, 0.2, -0.4, 1.2, -0.9, 0.1, -0.6, 0.5] * 2
    known, _ = _tell(found, [each * MS for each in still])
    for row, fixes in ((rows[1], []), (rows[2], [1.9, 2.7, 1.4, 2.2])):
        known, variance = _tell(found, [each * MS for each in fixes], known)
        assert [float(part) for part in row[1].split()] == pytest.approx(
            [100.0 * belief for belief in found.beliefs], abs=0.6
        )
        mean, sigma = (float(part) for part in row[2].split('+-'))
        assert known / MS == pytest.approx(mean, abs=0.006)
        assert variance**0.5 / MS == pytest.approx(sigma, abs=0.006)
        assert found.rate * 1e6 == pytest.approx(float(row[3]), abs=0.6)


@pytest.mark.parametrize(('rate_ppm', 'steady'), [(0.0, True), (40.0, False)])
def test_belief_goes_to_what_foresees_the_fixes(rate_ppm, steady):
    rng = np.random.default_rng(3)
    true = rate_ppm * 1e-6 * np.arange(1.0, 121.0)
    found = Wander((10.0 * MS) ** 2, 0.4)
    known, variance = _tell(found, (true + rng.normal(0.0, MS, 120)).tolist())
    assert (found.beliefs[0] > 0.7) is steady
    assert (found.beliefs[1] > 0.5) is not steady
    assert found.rate * 1e6 == pytest.approx(rate_ppm, abs=10.0)
    assert abs(known - true[-1]) < 3.0 * variance**0.5
    assert variance**0.5 < 0.3 * MS


def test_sigma_holds_what_it_claims_on_streams_that_drift():
    rng = np.random.default_rng(4)
    nees = {0.0: [], 20.0: []}
    for rate_ppm, squares in nees.items():
        for _ in range(60):
            true = rate_ppm * 1e-6 * np.arange(1.0, 91.0)
            found = Wander((10.0 * MS) ** 2, 0.4)
            known, variance = _tell(found, (true + rng.normal(0.0, MS, 90)).tolist())
            squares.append((known - true[-1]) ** 2 / variance)
    assert 0.2 < np.mean(nees[0.0]) < 1.2
    assert np.mean(nees[20.0]) < 2.0  # 50 with a single walk of 1e-5


def test_no_chance_is_one_plain_filter():
    found = Wander((10.0 * MS) ** 2, 0.0)
    _, variance = _tell(found, [0.5 * MS] * 30)
    assert found.beliefs == (1.0, 0.0, 0.0, 0.0, 0.0)
    assert found.ahead(2.0)[1] - variance == pytest.approx(2.0 * MODELS[0].walk_s ** 2)


def test_the_future_of_the_mixture_is_where_it_goes():
    """Carried in one go or in parts, a drift ends at the same place."""
    found, parts = Wander((10.0 * MS) ** 2, 0.4), Wander((10.0 * MS) ** 2, 0.4)
    fixes = [0.05 * MS * k for k in range(40)]
    for each in (found, parts):
        _tell(each, fixes)
    mean, variance = found.ahead(3.0)
    found.carry(3.0, 0.0)
    for _ in range(3):
        parts.carry(1.0, 0.0)
    assert mean > 0.1 * MS
    assert found.ahead(0.0)[1] == pytest.approx(variance, rel=0.02)
    assert parts.ahead(0.0)[1] == pytest.approx(variance, rel=0.02)
