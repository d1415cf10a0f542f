"""The example with mjlab: a real environment of another project observes one of our sensors.

pip install mjlab array-api-compat pydantic pyyaml scipy pytest pytest-timeout
PYTHONPATH=. python -m pytest -m long test/integration/test_mjlab.py
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import pytest
from support.places import ROOT

torch = pytest.importorskip('torch')
pytest.importorskip('mjlab', reason='mjlab is not installed')
pytest.importorskip('array_api_compat')

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ENVS, STEPS, STEP_S, EPISODE = 6, 320, 0.01, 150


@pytest.fixture(scope='module')
def found() -> dict[str, Any]:
    """Return what the environments' IMUs said over two episodes and some."""
    sys.path.insert(0, str(ROOT / 'examples'))
    try:
        return import_module('mjlab_imu').swing(ENVS, STEPS)
    finally:
        sys.path.remove(str(ROOT / 'examples'))


def test_every_environment_and_episode_has_its_own_latency(found: dict[str, Any]) -> None:
    latency_s = found['latency_s']
    assert ((latency_s >= 0.02) & (latency_s <= 0.10)).all()
    changes = (latency_s[1:] != latency_s[:-1]).any(1).nonzero()[:, 0] + 2  # steps count from 1
    assert changes.tolist() == [EPISODE, 2 * EPISODE]
    assert len(latency_s.unique()) == 3 * ENVS


def test_readings_are_as_old_as_latency_and_jitter_say(found: dict[str, Any]) -> None:
    valid, beyond_s = found['valid'], found['age_s'] - found['latency_s']
    assert (beyond_s[valid] > -1e-9).all()
    # 10 ms of jitter at most and one step: older is only what follows a lost sample (2 %)
    older = (beyond_s[valid] > 0.01 + STEP_S + 1e-9).float().mean()
    assert 0.0 < older < 0.06


def test_what_is_sensed_is_what_was_true_then(found: dict[str, Any]) -> None:
    """Each reading is the truth of its own capture, with noise of some milli-units and a bias."""
    compared = 0
    for step in range(STEPS):
        for env in found['valid'][step].nonzero()[:, 0].tolist():
            then = step - round(float(found['age_s'][step, env]) / STEP_S)
            if then >= 0:
                error = found['sensed'][step, env] - found['true'][then, env]
                assert error[:3].abs().max() < 0.2 and error[3:].abs().max() < 0.06
                compared += 1
    assert compared > 0.8 * STEPS * ENVS
    moved = (found['sensed'] - found['true'])[found['valid']].abs().amax(0)
    assert moved[4] > 0.3  # the pitch rate of now is another: lateness is seen


def test_an_episode_begins_without_the_past_of_the_last_one(found: dict[str, Any]) -> None:
    for begin in (EPISODE - 1, 2 * EPISODE - 1):
        assert not found['valid'][begin].any() and not found['sensed'][begin].any()
        assert found['valid'][begin + 15].all()


def test_observations_stay_float32(found: dict[str, Any]) -> None:
    assert found['sensed'].dtype == found['true'].dtype == torch.float32
