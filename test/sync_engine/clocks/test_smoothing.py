"""A recording looked at twice: every offset uses all of it, and pairs are right from the start."""

from __future__ import annotations

import numpy as np
import pytest
from support.sync_runs import Run, make_config, run_engine, run_twice
from support.sync_streams import Scenario

from sync_engine.clocks.offset_state import OffsetState


def wrong_pairs(run: Run, scenario: Scenario) -> int:
    """Count LiDAR frames that got another camera frame than the nearest, by more than 2 sigma."""
    camera = np.array([m.capture_s for m in scenario.messages() if m.sensor_id == 'camera'])
    wrong = 0
    for (lidar_s, camera_s), sigma_s in zip(run.pairs, run.pair_sigmas, strict=True):
        best = np.abs(camera - lidar_s).min()
        wrong += abs(camera_s - lidar_s) - best > 2.0 * sigma_s
    return wrong


@pytest.fixture(scope='module')
def scenario() -> Scenario:
    return Scenario(6, duration_s=25.0, prior_sigma_s=0.02)


@pytest.fixture(scope='module')
def twice(scenario: Scenario) -> Run:
    return run_twice(scenario, make_config(scenario))


def test_the_start_is_known_as_well_as_the_end(scenario: Scenario, twice: Run) -> None:
    once = run_engine(scenario, make_config(scenario))
    for sensor in ('camera', 'lidar'):
        early = twice.times < 4.0
        assert np.abs(twice.errors[sensor][early]).max() < 0.003
        assert np.abs(once.errors[sensor][early]).max() > 0.002
        scaled = np.abs(twice.errors[sensor] / twice.sigmas[sensor])
        assert scaled.max() < 4.0
        assert twice.sigmas[sensor].max() < 1.5 * once.sigmas[sensor][-1] + 1e-4
        assert twice.states[sensor] is OffsetState.LOCKED


def test_no_partner_is_wrong_from_the_first_bundle_on(scenario: Scenario, twice: Run) -> None:
    assert len(twice.pairs) > 200
    assert wrong_pairs(twice, scenario) == 0


def test_a_step_splits_the_run_and_both_sides_are_smoothed() -> None:
    stepped = Scenario(2, duration_s=30.0).with_sensor('camera', clock_step=(15.0, 0.05))
    run = run_twice(stepped, make_config(stepped))
    apart = np.abs(run.times - 15.0) > 0.1
    assert np.abs(run.errors['camera'][apart]).max() < 0.004
    assert np.abs(run.errors['camera'][run.times < 15.0]).max() < 0.004
