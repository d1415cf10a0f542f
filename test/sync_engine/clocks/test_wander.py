"""Several rates of wander side by side: the trace of the module's text, and what it is for."""

from __future__ import annotations

import numpy as np
import pytest

from sync_engine.clocks import wander
from sync_engine.clocks.wander import WALKS_S, Wander

MS = 1e-3


def _tell(found: Wander, fixes: list[float], known: float = 0.0) -> float:
    """Hand over fixes (s, sigma 1 ms, one a second); return where the mixture is."""
    variance = found.variance
    for fix in fixes:
        found.carry(1.0, variance + found.walk_var)
        found.observe(fix - known, MS**2)
        known += found.mean
        variance = found.variance
        found.settle(variance)
    return known


def test_the_trace_in_the_text_is_what_happens():
    rows = [line.split('|') for line in (wander.__doc__ or '').splitlines() if '|' in line][1:]
    found = Wander((10.0 * MS) ** 2, 0.4)
    assert [float(part) for part in rows[0][1].split()] == [
        round(100.0 * belief) for belief in found.beliefs]
    still = [0.3, -1.1, 0.8, 0.2, -0.4, 1.2, -0.9, 0.1, -0.6, 0.5] * 2
    known = _tell(found, [each * MS for each in still])
    for row, fixes in ((rows[1], []), (rows[2], [1.9, 2.7, 1.4, 2.2])):
        known = _tell(found, [each * MS for each in fixes], known)
        assert [float(part) for part in row[1].split()] == pytest.approx(
            [100.0 * belief for belief in found.beliefs], abs=0.6)
        mean, sigma = (float(part) for part in row[2].split('+-'))
        assert known / MS == pytest.approx(mean, abs=0.006)
        assert found.variance**0.5 / MS == pytest.approx(sigma, abs=0.006)


@pytest.mark.parametrize(('rate_ppm', 'steady'), [(0.0, True), (40.0, False)])
def test_belief_goes_to_what_foresees_the_fixes(rate_ppm, steady):
    rng = np.random.default_rng(3)
    true = rate_ppm * 1e-6 * np.arange(1.0, 121.0)
    found = Wander((10.0 * MS) ** 2, 0.4)
    known = _tell(found, (true + rng.normal(0.0, MS, 120)).tolist())
    assert (found.beliefs[0] > 0.7) is steady
    assert abs(known - true[-1]) < 3.0 * found.variance**0.5
    assert found.variance**0.5 < (0.3 if steady else 0.8) * MS


def test_sigma_holds_what_it_claims_on_streams_that_drift():
    rng = np.random.default_rng(4)
    nees = {0.0: [], 20.0: []}
    for rate_ppm, squares in nees.items():
        for _ in range(60):
            true = rate_ppm * 1e-6 * np.arange(1.0, 91.0)
            found = Wander((10.0 * MS) ** 2, 0.4)
            known = _tell(found, (true + rng.normal(0.0, MS, 90)).tolist())
            squares.append((known - true[-1]) ** 2 / found.variance)
    assert 0.2 < np.mean(nees[0.0]) < 1.2
    assert np.mean(nees[20.0]) < 2.0  # 50 with a single walk of 1e-5


def test_no_chance_is_one_plain_filter():
    found = Wander((10.0 * MS) ** 2, 0.0)
    _tell(found, [0.5 * MS] * 30)
    assert found.beliefs == (1.0, 0.0, 0.0, 0.0)
    assert found.walk_var == pytest.approx(WALKS_S[0] ** 2)
