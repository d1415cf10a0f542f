"""Clock differences from rotations: right, sharp only where the motion is, honest sigma."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.sync_feeder import S
from support.sync_runs import make_config, run_engine
from support.sync_streams import Scenario

from sync_engine.config import MotionConfig
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import LastingErrors, MotionFix, Rotation, RotationFit
from sync_engine.cues.mounting import Mounting
from sync_engine.cues.turn_rows import TurnRows

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
    given: list[Rotation], gyro: GyroTrack, assumed_s: float = 0.1, sigma_s: float = 0.05
) -> MotionFix | None:
    fit = RotationFit(MotionConfig(min_span_s=7.0, max_span_s=10.0))
    for rotation in given:
        fit.add(rotation)
    return fit.solve(gyro, round(assumed_s * S), sigma_s)


@pytest.mark.parametrize('kind', ['vector', 'yaw', 'size'])
@pytest.mark.parametrize('assumed_s', [-0.1, 0.05, 0.12, 0.3])
def test_the_offset_is_found(kind: str, assumed_s: float) -> None:
    fix = solve(rotations(kind), track(), assumed_s, 0.1)
    assert fix is not None
    assert assumed_s + fix.correction_s == pytest.approx(OFFSET_S, abs=3e-4)
    assert fix.variance < 5e-4**2


def test_the_gyros_bias_is_fitted_along() -> None:
    for bias in (0.0, 0.02):
        fix = solve(rotations('yaw'), track(bias), 0.1)
        assert fix is not None
        assert 0.1 + fix.correction_s == pytest.approx(OFFSET_S, abs=3e-4)


def test_a_yaw_only_cue_must_be_projected() -> None:
    """Strong pitch: the size of the yaw against the size of the gyro is wrong, its axis is not."""
    gyro = track(pitch=5.0)
    fix = solve(rotations('yaw', pitch=5.0), gyro, 0.1)
    assert fix is not None
    assert abs(0.1 + fix.correction_s - OFFSET_S) < 5e-4
    wrong = solve(rotations('yaw size', pitch=5.0), gyro, 0.1)
    assert wrong is None or abs(0.1 + wrong.correction_s - OFFSET_S) > 3e-3


def test_sigmas_cover_the_errors() -> None:
    gyro = track()
    scaled = []
    for seed in range(40):
        fix = solve(rotations('yaw', sigma=2e-3, seed=seed), gyro, 0.1)
        assert fix is not None
        scaled.append((0.1 + fix.correction_s - OFFSET_S) / np.sqrt(fix.variance))
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
        rows = TurnRows(
            [
                Rotation(*at, tuple(turn), XYZ, (8e-4**2,) * 3)
                for *at, turn in zip(stamps, stamps[1:], turns, strict=False)
            ],
            0,
            np.zeros(3),
            np.full(3, 4e-4),
        )
        rows.look_at(gyro, 0.1)
        fits.append(rows.fit(0.05, 0.01, Mounting(np.eye(3))))
    scaled = [fix.delta_s / fix.sigma_s for fix in fits]
    assert np.mean(np.square(scaled)) < 2.0  # 8.6 where the noise counts as motion


def test_turns_that_are_all_too_large_cost_sharpness_and_not_the_truth() -> None:
    """A turn that rises, a tenth too large, looks like one that began earlier."""
    gyro, given = track(), rotations('yaw', sigma=5e-4, scale=1.1)[18:30]
    scaled, sigmas = [], []
    for errors in (LastingErrors(), LastingErrors(gain_sigma=0.1)):
        fit = RotationFit(MotionConfig(), errors=errors)
        for rotation in given:
            fit.add(rotation)
        fix = fit.solve(gyro, round(0.1 * S), 0.05)
        assert fix is not None
        sigmas.append(fix.variance**0.5)
        scaled.append(abs(0.1 + fix.correction_s - OFFSET_S) / sigmas[-1])
    assert scaled[0] > 4.0 and scaled[1] < 2.0
    assert sigmas[1] > sigmas[0]


def test_a_cue_with_lasting_errors_is_believed_less_until_its_residuals_speak() -> None:
    doubted = RotationFit(MotionConfig(), errors=LastingErrors(first_honesty=4.0))
    gyro = track()
    for rotation in rotations('vector'):
        doubted.add(rotation)
    assert doubted.solve(gyro, round(0.1 * S), 0.05) is not None
    assert 1.0 < doubted.honesty < 3.0  # 255 rows against the 200 of the claim


def test_outliers_are_gated() -> None:
    given = rotations('yaw')
    for k in (10, 40, 41, 70):
        bad = given[k]
        given[k] = Rotation(bad.stamp_from_ns, bad.stamp_to_ns, (0.5,), bad.axes, bad.variances)
    fix = solve(given, track(), 0.1)
    assert fix is not None
    assert 0.1 + fix.correction_s == pytest.approx(OFFSET_S, abs=1e-3)


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
    assert 0.12 + near.correction_s == pytest.approx(OFFSET_S, abs=1e-3)


def test_a_rotation_is_used_once() -> None:
    fit = RotationFit(MotionConfig(min_span_s=2.0))
    for rotation in rotations('yaw'):
        fit.add(rotation)
    gyro = track()
    assert fit.solve(gyro, round(0.1 * S), 0.05) is not None
    assert fit.solve(gyro, round(0.1 * S), 0.05) is None


@pytest.mark.parametrize('claimed', [0.2, 1.0, 5.0])
def test_the_variance_of_a_cue_is_learnt_in_both_directions(claimed: float) -> None:
    """Declared sigmas that are 5 times too large, or too small, end at the same sigma."""
    scenario = Scenario(5, duration_s=40.0)
    plain = run_engine(scenario, make_config(scenario))
    wrong = scenario.with_sensor('camera', turn_claim=claimed)
    other = run_engine(wrong, make_config(wrong))
    ratio = other.sigmas['camera'][-1] / plain.sigmas['camera'][-1]
    assert 0.6 < ratio < 1.8
