"""Clock differences from rotations: right, sharp only where the motion is, honest sigma."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from support.lone_clock import LonePair
from support.sync_feeder import S
from support.sync_runs import make_config, run_engine
from support.sync_streams import Scenario

from sync_engine.config import MotionConfig
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import CueTraits, Rotation, RotationFit
from sync_engine.cues.mounting import Mounting

XYZ = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
OFFSET_S = 0.123
START = 50 * S


def angle(time: NDArray[np.float64] | float, pitch: float = 0.3) -> NDArray[np.float64]:
    t = np.asarray(time)
    yaw = 0.5 * np.sin(1.3 * t) + 0.15 * np.sin(4.1 * t + 1.0)
    tilt = 0.15 * pitch * np.sin(2.0 * t) + 0.2 * pitch * np.sin(5.3 * t)
    return np.stack([0.4 * tilt, tilt, yaw], axis=-1)


def track(bias: float = 0.0, pitch: float = 0.3) -> GyroTrack:
    gyro, step = GyroTrack(60.0), 1e-4
    for k in range(2400):
        t = k * 0.005
        rate = (angle(t + step, pitch) - angle(t - step, pitch)) / (2 * step) + bias
        gyro.add(START + round(t * S), *(float(value) for value in rate))
    return gyro


def rotations(
    kind: str, sigma: float = 1e-4, seed: int = 0, pitch: float = 0.3, scale: float = 1.0
) -> list[Rotation]:
    rng = np.random.default_rng(seed)
    made = []
    for k in range(85):
        t = 1.0 + k * 0.1
        turn = scale * (angle(t + 0.1, pitch) - angle(t, pitch)) + rng.normal(0.0, sigma, 3)
        stamps = [START + round((at + OFFSET_S) * S) for at in (t, t + 0.1)]
        if kind == 'vector':
            made.append(Rotation(*stamps, tuple(turn), XYZ, (sigma**2,) * 3))
        elif kind == 'yaw':
            made.append(Rotation(*stamps, (float(turn[2]),), XYZ[2:], (sigma**2,)))
        else:
            size = abs(turn[2]) if kind == 'yaw size' else np.linalg.norm(turn)
            made.append(Rotation(*stamps, (float(size),), None, (sigma**2,)))
    return made


def solve(
    given: list[Rotation],
    gyro: GyroTrack,
    assumed_s: float = 0.1,
    sigma_s: float = 0.05,
    errors: CueTraits | None = None,
) -> tuple[float, float] | None:
    """Return (offset, sigma) in the end (s), None where motion told nothing."""
    found = LonePair(assumed_s, sigma_s).follow(
        RotationFit(MotionConfig(), traits=errors), gyro, given
    )
    return found[-1] if found else None


@pytest.mark.parametrize('kind', ['vector', 'yaw', 'size'])
@pytest.mark.parametrize('assumed_s', [-0.1, 0.05, 0.12, 0.3])
def test_the_offset_is_found(kind: str, assumed_s: float) -> None:
    fix = solve(rotations(kind), track(), assumed_s, 0.1)
    assert fix is not None
    assert fix[0] == pytest.approx(OFFSET_S, abs=3e-4)
    assert fix[1] < 6e-4


def test_the_gyros_bias_is_fitted_along() -> None:
    for bias in (0.0, 0.02):
        fix = solve(rotations('yaw'), track(bias), 0.1)
        assert fix is not None
        assert fix[0] == pytest.approx(OFFSET_S, abs=3e-4)


def test_a_yaw_only_cue_must_be_projected() -> None:
    """Strong pitch: the size of the yaw against the size of the gyro is wrong, its axis is not."""
    gyro = track(pitch=5.0)
    fix = solve(rotations('yaw', pitch=5.0), gyro, 0.1)
    assert fix is not None
    assert abs(fix[0] - OFFSET_S) < 5e-4
    wrong = solve(rotations('yaw size', pitch=5.0), gyro, 0.1)
    assert wrong is None or abs(wrong[0] - OFFSET_S) > 3e-3


def test_sigmas_cover_the_errors() -> None:
    gyro = track()
    scaled = []
    for seed in range(40):
        fix = solve(rotations('yaw', sigma=2e-3, seed=seed), gyro, 0.1)
        assert fix is not None
        scaled.append((fix[0] - OFFSET_S) / fix[1])
    assert 0.6 < np.std(scaled) < 1.3
    assert abs(np.mean(scaled)) < 0.5


def test_noise_of_the_gyro_is_no_motion() -> None:
    """Little motion: slopes of the gyro's noise must not make the offset look sharp."""
    fits = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        gyro = GyroTrack(60.0)
        for k in range(2000):
            rate = 0.06 * np.cos(3.0 * k * 0.005) + rng.normal(0.0, 0.01, 3)
            gyro.add(START + k * S // 200, *rate.tolist())
        turned = 0.02 * np.sin(3.0 * np.arange(1.0, 9.0, 1 / 30))
        turns = np.diff(turned)[:, None] + rng.normal(0.0, 8e-4, (len(turned) - 1, 3))
        stamps = [START + round((1.0 + k / 30) * S) for k in range(len(turned))]
        given = [
            Rotation(*at, tuple(turn), XYZ, (8e-4**2,) * 3)
            for *at, turn in zip(stamps, stamps[1:], turns, strict=False)
        ]
        fits.append(LonePair(0.0, 0.02).follow(RotationFit(MotionConfig()), gyro, given)[-1])
    scaled = [offset_s / sigma_s for offset_s, sigma_s in fits]
    assert np.mean(np.square(scaled)) < 2.0  # far more where the noise counts as motion


def test_turns_that_are_all_too_large_cost_sharpness_and_not_the_truth() -> None:
    """A turn that rises, a tenth too large, looks like one that began earlier."""
    gyro, given = track(), rotations('yaw', sigma=5e-4, scale=1.1)[18:34]
    plain = solve(given, gyro)
    allowed = solve(given, gyro, errors=CueTraits(scale_sigma=0.1, scale_walk=0.03))
    assert plain is not None and allowed is not None
    assert abs(plain[0] - OFFSET_S) > 4.0 * plain[1]
    assert abs(allowed[0] - OFFSET_S) < 2.0 * allowed[1]


@pytest.mark.parametrize('scale', [1.0, 1.27, 0.8])
def test_a_scale_that_is_not_known_is_found_with_the_offset(scale: float) -> None:
    fit = RotationFit(MotionConfig())  # the turns themselves say that their scale is not known
    given = [replace(each, scale_sigmas=(0.5,) * 3) for each in rotations('vector', scale=scale)]
    found = LonePair(0.1, 0.05).follow(fit, track(), given)
    assert found[-1][0] == pytest.approx(OFFSET_S, abs=4.0 * found[-1][1] + 1e-4)
    assert fit.scale == pytest.approx(scale - 1.0, abs=4.0 * fit.scale_sigma + 1e-3)
    assert fit.scale_sigma < 0.01


def test_a_cue_with_lasting_errors_is_believed_less_until_its_residuals_speak() -> None:
    doubted = RotationFit(MotionConfig(), traits=CueTraits(first_honesty=4.0))
    assert doubted.honesty == 4.0
    LonePair(0.1, 0.05).follow(doubted, track(), rotations('vector'))
    assert 1.0 < doubted.honesty < 3.0  # some eight pieces against the five of the claim


def test_outliers_are_gated() -> None:
    given = rotations('yaw')
    for k in (10, 40, 41, 70):
        bad = given[k]
        given[k] = Rotation(bad.stamp_from_ns, bad.stamp_to_ns, (0.5,), bad.axes, bad.variances)
    fix = solve(given, track(), 0.1)
    assert fix is not None
    assert fix[0] == pytest.approx(OFFSET_S, abs=1e-3)


def test_too_little_motion_is_no_observation() -> None:
    gyro = GyroTrack(60.0)
    for k in range(2400):
        gyro.add(START + k * 5_000_000, 0.0, 0.0, 0.2)
    rng = np.random.default_rng(1)
    given = [
        Rotation(r.stamp_from_ns, r.stamp_to_ns, (0.02 + rng.normal(0, 1e-3),), r.axes, (1e-6,))
        for r in rotations('yaw')
    ]
    assert solve(given, gyro, 0.1) is None


def test_periodic_motion_is_ambiguous_and_refused() -> None:
    gyro = GyroTrack(60.0)
    for k in range(2400):
        gyro.add(START + k * 5_000_000, 0.0, 0.0, np.cos(2 * np.pi * 5.0 * k * 0.005))
    given = []
    for k in range(85):
        t0, t1 = 1.0 + k * 0.1 + 0.013 * (k % 3), 1.0 + (k + 1) * 0.1 + 0.013 * ((k + 1) % 3)
        turn = (np.sin(10 * np.pi * t1) - np.sin(10 * np.pi * t0)) / (10 * np.pi)
        stamps = [START + round((at + OFFSET_S) * S) for at in (t0, t1)]
        given.append(Rotation(*stamps, (float(turn),), XYZ[2:], (1e-8,)))
    assert solve(given, gyro, 0.1, 0.2) is None
    near = solve(given, gyro, 0.12, 0.01)  # a prior that knows the valley makes it usable
    assert near is not None
    assert near[0] == pytest.approx(OFFSET_S, abs=1e-3)


def test_a_rotation_is_used_once() -> None:
    fit, pair = RotationFit(MotionConfig()), LonePair(0.1, 0.05)
    pieces = len(pair.follow(fit, track(), rotations('yaw')))
    assert pieces >= 4
    assert fit.solve(track(), pair.clock, pair.imu) == 0


def test_the_offset_does_not_depend_on_what_arrivals_seem_to_say() -> None:
    """Three invented latencies, of which two are wrong by more than a sigma."""
    given = rotations('vector', sigma=2e-3)
    found = [solve(given, track(), OFFSET_S + wrong_s, 0.02) for wrong_s in (0.0, 0.03, 0.08)]
    assert all(each is not None for each in found)
    for offset_s, sigma_s in (each for each in found if each is not None):
        assert abs(offset_s - OFFSET_S) < 3.0 * sigma_s
    offsets = [each[0] for each in found if each is not None]
    assert max(offsets) - min(offsets) < 1e-3


def test_why_nothing_was_found_is_said() -> None:
    rng = np.random.default_rng(2)
    other = [
        Rotation(r.stamp_from_ns, r.stamp_to_ns, tuple(rng.normal(0, 0.02, 3)), XYZ, (1e-6,) * 3)
        for r in rotations('vector')
    ]
    fit = RotationFit(MotionConfig(), Mounting(), CueTraits(scale_sigma=0.5))
    assert LonePair(0.1, 0.05).follow(fit, track(), other) == []
    assert 'do not follow the gyro' in fit.refusal()


@pytest.mark.parametrize('claimed', [0.2, 1.0, 5.0])
def test_the_variance_of_a_cue_is_learnt_in_both_directions(claimed: float) -> None:
    """Declared sigmas that are 5 times too large, or too small, end at the same sigma."""
    scenario = Scenario(5, duration_s=40.0)
    plain = run_engine(scenario, make_config(scenario))
    wrong = scenario.with_sensor('camera', turn_claim=claimed)
    other = run_engine(wrong, make_config(wrong))
    ratio = other.sigmas['camera'][-1] / plain.sigmas['camera'][-1]
    assert 0.6 < ratio < 1.9


def test_residuals_show_the_claimed_noise_where_the_claim_is_right() -> None:
    gyro, shown = track(), []
    for seed in range(8):
        fit = RotationFit(MotionConfig())
        LonePair(0.1, 0.05).follow(fit, gyro, rotations('vector', 1e-3, seed))
        shown.append(fit.honesty)
    assert np.mean(shown) == pytest.approx(1.0, abs=0.14)
