"""Rotations out of raw data: right to their own covariance, and none where there is none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.sync_feeder import MS, T0, S, config
from support.synthetic_yard import Yard, sweep

from rig_common.arrays import Floats
from rig_common.quaternions import matrix_from_wxyz, rotation_vector
from sync_engine.cues.base import Cue
from sync_engine.cues.image import ImageCue
from sync_engine.cues.inertial import OdometryCue, RateCue
from sync_engine.cues.motion import Rotation
from sync_engine.cues.scan import CloudCue, ScanCue
from sync_engine.engine import SyncEngine

YARD = Yard.of_boxes()
RAYS = 1024


def yaw(time: Floats) -> Floats:
    return 0.8 * np.sin(0.9 * time) + 0.3 * np.sin(2.3 * time + 1.0)


def pose(time: Floats) -> tuple[Floats, Floats, Floats]:
    return 1.5 * np.sin(0.5 * time), 1.2 * np.cos(0.37 * time), yaw(time)


def scan_values(ranges: Floats, sweep_s: float = 0.0) -> dict[str, Any]:
    return {
        'ranges': ranges,
        'angle_min': -np.pi,
        'angle_increment': 2.0 * np.pi / len(ranges),
        'time_increment': sweep_s / len(ranges),
        'range_min': 0.1,
        'range_max': 40.0,
    }


def seconds(stamp_ns: int) -> float:
    return (stamp_ns - T0) / 1e9


def yaw_errors(rotations: list[Rotation]) -> tuple[Floats, Floats]:
    """Return (errors in rad, errors over sigma)."""
    times = np.array([[seconds(r.stamp_from_ns), seconds(r.stamp_to_ns)] for r in rotations])
    truth = yaw(times[:, 1]) - yaw(times[:, 0])
    errors = np.array([r.values_rad[0] for r in rotations]) - truth
    return errors, errors / np.sqrt([r.variances[0] for r in rotations])


def run_scans(
    cue: ScanCue, sweep_s: float, values: Callable[[Floats], dict[str, Any]], gyro: Any = None
) -> list[Rotation]:
    rng = np.random.default_rng(0)
    found = []
    for k in range(60):
        ranges = sweep(YARD, pose, k * 0.1, RAYS, sweep_s, 0.01, rng)
        rotation = cue.feed(T0 + k * 100 * MS, values(ranges), gyro)
        if rotation is not None:
            found.append(rotation)
    return found


def test_yaw_from_scans() -> None:
    rotations = run_scans(ScanCue(), 0.0, scan_values)
    errors, scaled = yaw_errors(rotations)
    assert len(rotations) == 59
    assert np.degrees(np.median(np.abs(errors))) < 0.006
    assert 0.3 < np.std(scaled) < 1.5


def test_yaw_from_sweeps_seen_through_the_gyro() -> None:
    """Timed at the middle of the sweep, and free of distortion, with a gyro that is 5 ms off."""

    def gyro(stamp_ns: int, times_s: Floats, axis: tuple[float, ...]) -> Floats:
        start = seconds(stamp_ns) + 0.005
        return axis[2] * (yaw(start + times_s) - yaw(np.array(start)))

    rotations = run_scans(ScanCue(), 0.1, lambda ranges: scan_values(ranges, 0.1), gyro)
    errors, scaled = yaw_errors(rotations)
    assert rotations[0].stamp_from_ns - T0 == pytest.approx(50 * MS, abs=MS // 10)
    assert np.degrees(np.median(np.abs(errors))) < 0.008
    assert np.std(scaled) < 2.0


@pytest.mark.parametrize('guess_error_rad', [-0.03, 0.03])
def test_where_scans_settle_does_not_depend_on_the_guess(guess_error_rad: float) -> None:
    """The guess is the gyro's; if it showed in the yaw, a wrong clock would confirm itself."""

    def gyro(stamp_ns: int, times_s: Floats, axis: tuple[float, ...]) -> Floats:
        start = seconds(stamp_ns)
        return yaw(start + times_s) - yaw(np.array(start)) + guess_error_rad

    free = run_scans(ScanCue(), 0.0, scan_values)
    guessed = run_scans(ScanCue(), 0.0, scan_values, gyro)
    assert len(guessed) == len(free)
    for one, other in zip(guessed, free, strict=True):
        assert abs(one.values_rad[0] - other.values_rad[0]) < 0.2 * np.sqrt(one.variances[0])


def test_scans_with_holes_and_a_partial_view() -> None:
    rng = np.random.default_rng(2)

    def some(ranges: Floats) -> dict[str, Any]:
        broken = ranges.copy()
        broken[rng.random(len(broken)) < 0.1] = np.nan
        broken[rng.random(len(broken)) < 0.1] = np.inf
        part = broken[128:896]
        angle_min = -np.pi + 128 * 2.0 * np.pi / RAYS
        increment = 2.0 * np.pi / RAYS
        return {'ranges': part, 'angle_min': angle_min, 'angle_increment': increment}

    errors, _ = yaw_errors(run_scans(ScanCue(), 0.0, some))
    assert len(errors) > 50
    assert np.degrees(np.median(np.abs(errors))) < 0.02


def test_clockwise_scans() -> None:
    def reversed_values(ranges: Floats) -> dict[str, Any]:
        increment = 2.0 * np.pi / RAYS
        return scan_values(ranges[::-1]) | {
            'angle_min': np.pi - increment,
            'angle_increment': -increment,
        }

    errors, _ = yaw_errors(run_scans(ScanCue(), 0.0, reversed_values))
    assert np.degrees(np.median(np.abs(errors))) < 0.006


def test_an_empty_yard_tells_nothing() -> None:
    cue = ScanCue()
    for k in range(4):
        assert cue.feed(T0 + k * 100 * MS, scan_values(np.full(RAYS, np.inf))) is None


@pytest.mark.parametrize(
    ('columns', 'limit_deg'), [(2048, 0.02), (1024, 0.02), (640, 0.03), (512, 0.03), (360, 0.05)]
)
def test_yaw_from_clouds(columns: int, limit_deg: float) -> None:
    rng = np.random.default_rng(0)
    cue, found = CloudCue(), []
    angles = -np.pi + 2.0 * np.pi * np.arange(columns) / columns
    for k in range(40):
        flat = sweep(YARD, pose, k * 0.1, columns, 0.0, 0.01, rng)
        rings = [
            np.stack([flat * np.cos(angles), flat * np.sin(angles), flat * np.tan(e)], axis=1)
            for e in np.radians([-15.0, -1.0, 1.0, 15.0])
        ]
        ground = np.stack([2.0 * np.cos(angles), 2.0 * np.sin(angles), -0.7 + 0 * angles], axis=1)
        points = rng.permutation(np.concatenate([*rings, ground]))
        rotation = cue.feed(T0 + k * 100 * MS, {'points': points})
        if rotation is not None:
            found.append(rotation)
    errors, _ = yaw_errors(found)
    assert len(found) >= 38
    assert np.degrees(np.median(np.abs(errors))) < limit_deg


def test_a_cloud_that_becomes_denser_is_seen_at_once() -> None:
    """The first cloud came while the sensor span up, with a quarter of its columns."""
    cue = CloudCue()
    for k in range(4):
        columns = 128 if k == 0 else 512
        angles = 2.0 * np.pi * np.arange(columns) / columns
        flat = sweep(YARD, pose, k * 0.1, columns, 0.0, 0.01, np.random.default_rng(k))
        points = np.stack(
            [flat * np.cos(angles - np.pi), flat * np.sin(angles - np.pi), 0.0 * flat], axis=1
        )
        rotation = cue.feed(T0 + k * 100 * MS, {'points': points})
        assert (rotation is not None) == (k >= 2)


def picture(rng: np.random.Generator) -> Callable[[Floats], Floats]:
    """Return a camera (160 x 120, f 140 px) looking at far clouds, as a function of its turn."""
    count = 60
    directions = rng.normal(size=(count, 3)) * np.array([1.0, 0.6, 0.3]) + np.array([0, 0, 1.0])
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    sizes, lights = rng.uniform(60.0, 900.0, count), rng.uniform(-120.0, 120.0, count)
    rows, columns = np.mgrid[0:120, 0:160]
    rays = np.stack([(columns - 79.5) / 140.0, (rows - 59.5) / 140.0, np.ones((120, 160))], -1)
    rays /= np.linalg.norm(rays, axis=-1)[..., None]

    def render(vector: Floats) -> Floats:
        half = 0.5 * float(np.linalg.norm(vector))
        axis = vector / max(2.0 * half, 1e-12)
        quat = (float(np.cos(half)), *(float(v) for v in np.sin(half) * axis))
        turned = rays @ matrix_from_wxyz(quat).T
        near = np.einsum('hwi,ki->hwk', turned, directions) - 1.0
        image: Floats = 128.0 + (lights * np.exp(near * sizes)).sum(axis=-1)
        return np.clip(image + rng.normal(0.0, 2.0, image.shape), 0, 255).astype(np.uint8)

    return render


def test_rotation_from_images() -> None:
    """All three angles, at every size of turn up to a quarter of the view, with its own sigma."""
    render = picture(np.random.default_rng(1))
    errors, scaled = [], []
    for turn in ([0.0, 0.03, 0.0], [0.02, -0.15, 0.0], [0.0, 0.0, 0.03], [-0.05, 0.1, -0.02]):
        cue, vector = ImageCue(), np.array(turn)
        for k, at in enumerate((np.zeros(3), np.zeros(3), vector)):
            values = {'gray': render(at), 'fx': 140.0, 'fy': 140.0}
            rotation = cue.feed(T0 + k * 33 * MS, values)
        assert rotation is not None
        error = np.array(rotation.values_rad) - vector
        errors.append(error)
        scaled.append(error / np.sqrt(rotation.variances))
    assert np.abs(errors).max() < 2e-3
    assert np.sqrt(np.mean(np.square(scaled))) < 2.0


def test_an_image_is_reduced_and_may_lack_a_focal_length() -> None:
    render = picture(np.random.default_rng(1))
    cue, vector = ImageCue(), np.array([0.0, 0.05, 0.0])
    for k, at in enumerate((np.zeros(3), np.zeros(3), vector)):
        large = np.kron(render(at), np.ones((4, 4), dtype=np.uint8))
        rotation = cue.feed(T0 + k * 33 * MS, {'gray': large, 'fx': 560.0, 'fy': 560.0})
    assert rotation is not None
    assert rotation.values_rad[1] == pytest.approx(0.05, abs=1e-3)
    assert rotation.scale_sigmas == (0.1, 0.1, 0.0)
    unknown = ImageCue()  # 0.6 of the width, 384 px, is taken for the 560 px
    for k, at in enumerate((np.zeros(3), vector)):
        large = np.kron(render(at), np.ones((4, 4), dtype=np.uint8))
        rotation = unknown.feed(T0 + k * 33 * MS, {'gray': large, 'fx': 0.0, 'fy': 0.0})
    assert rotation is not None
    assert rotation.values_rad[1] == pytest.approx(0.05 * 560.0 / 384.0, abs=3e-3)
    assert rotation.scale_sigmas == (0.5, 0.5, 0.0)


def test_a_repeated_picture_is_passed_over() -> None:
    """A driver that shows a picture twice does not say that the camera stood still."""
    render = picture(np.random.default_rng(1))
    cue, found = ImageCue(), []
    pictures = [render(np.array([0.0, turn, 0.0])) for turn in (0.0, 0.02, 0.06)]
    for k, gray in enumerate((pictures[0], pictures[1], pictures[1], pictures[2])):
        found.append(cue.feed(T0 + k * 33 * MS, {'gray': gray, 'fx': 140.0, 'fy': 140.0}))
    assert found[2] is None
    assert found[3] is not None
    assert (found[3].stamp_from_ns, cue.counts.repeated) == (T0 + 33 * MS, 1)
    assert found[3].values_rad[1] == pytest.approx(0.04, abs=1e-3)


def test_exposure_may_change_from_picture_to_picture() -> None:
    render = picture(np.random.default_rng(1))
    turns = []
    for gain, level in ((1.0, 0.0), (0.7, 30.0)):
        cue, vector = ImageCue(), np.array([0.01, 0.04, 0.0])
        cue.feed(T0, {'gray': render(np.zeros(3)), 'fx': 140.0, 'fy': 140.0})
        gray = np.clip(gain * render(vector) + level, 0, 255).astype(np.uint8)
        rotation = cue.feed(T0 + 33 * MS, {'gray': gray, 'fx': 140.0, 'fy': 140.0})
        assert rotation is not None
        turns.append(rotation.values_rad)
    assert turns[1] == pytest.approx(turns[0], abs=5e-4)


def test_pictures_of_a_fast_camera_are_thinned_out() -> None:
    cue, see = ImageCue(), scene(ImageCue)
    found = [cue.feed(T0 + k * 5 * MS, see(0 if k % 3 else k // 3)) for k in range(12)]
    assert sum(each is not None for each in found) == 3
    assert cue.counts.pictures == 4


def test_a_gray_wall_tells_nothing() -> None:
    cue = ImageCue()
    for k in range(3):
        values = {'gray': np.full((120, 160), 99, dtype=np.uint8), 'fx': 140.0, 'fy': 140.0}
        assert cue.feed(T0 + k * 33 * MS, values) is None


def test_rates_are_integrated_between_stamps() -> None:
    cue = RateCue()
    assert cue.feed(T0, {'angular_velocity': [0.1, 0.0, 0.2]}) is None
    rotation = cue.feed(T0 + 20 * MS, {'angular_velocity': [0.3, 0.0, 0.2]})
    assert rotation is not None
    assert rotation.values_rad == pytest.approx((0.004, 0.004))
    assert rotation.axes == ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))  # y was never measured
    assert cue.feed(T0 + 2 * S, {'angular_velocity': [0.3, 0.0, 0.2]}) is None


def test_orientations_give_body_frame_turns() -> None:
    half = np.array([0.0, 0.0, np.sin(0.4), np.cos(0.4)])
    more = np.array([0.0, 0.0, np.sin(0.45), np.cos(0.45)])
    cue = OdometryCue()
    cue.feed(T0, {'orientation': half})
    rotation = cue.feed(T0 + 50 * MS, {'orientation': -more})  # the same orientation
    assert rotation is not None
    assert rotation.values_rad == pytest.approx((0.1,))
    assert cue.feed(T0 + 90 * MS, {'orientation': np.zeros(4)}) is None
    assert rotation_vector(half, half) == pytest.approx(np.zeros(3))


def scene(kind: type[Cue]) -> Callable[[int], dict[str, Any]]:
    """Return what a sensor of that cue sees at frame `k`, ten a second."""
    rng = np.random.default_rng(0)
    angles = -np.pi + 2.0 * np.pi * np.arange(RAYS) / RAYS
    render = picture(np.random.default_rng(1)) if kind is ImageCue else None

    def ranges(k: int) -> Floats:
        return sweep(YARD, pose, k * 0.1, RAYS, 0.0, 0.01, rng)

    def cloud(k: int) -> Floats:
        flat = ranges(k)
        return np.concatenate(
            [
                np.stack([flat * np.cos(angles), flat * np.sin(angles), flat * height], axis=1)
                for height in (-0.02, 0.02)
            ]
        )

    turn = 0.05
    seen: dict[type[Cue], Callable[[int], dict[str, Any]]] = {
        ScanCue: lambda k: scan_values(ranges(k)),
        CloudCue: lambda k: {'points': cloud(k)},
        ImageCue: lambda k: {
            'gray': render(np.array([0.0, turn * k, 0.0])),  # type: ignore[misc]
            'fx': 140.0,
            'fy': 140.0,
        },
        RateCue: lambda k: {'angular_velocity': [0.0, 0.0, 0.2]},
        OdometryCue: lambda k: {
            'orientation': np.array([0.0, 0.0, np.sin(turn * k / 2), np.cos(turn * k / 2)])
        },
    }
    return seen[kind]


@pytest.mark.parametrize('kind', [ScanCue, CloudCue, ImageCue, RateCue, OdometryCue])
def test_every_cue_forgets(kind: type[Cue]) -> None:
    """After a reset no turn reaches back to what was seen before it."""
    cue, see = kind(), scene(kind)
    before = [cue.feed(T0 + k * 100 * MS, see(k)) for k in range(4)]
    assert before[-1] is not None
    cue.reset()
    after = [cue.feed(T0 + k * 100 * MS, see(k)) for k in range(4, 8)]
    assert after[0] is None
    turns = [turn for turn in after if turn is not None]
    assert turns and min(turn.stamp_from_ns for turn in turns) >= T0 + 400 * MS


def test_the_engine_runs_cues_when_asked_and_survives_a_broken_payload() -> None:
    def read(payload: Any) -> dict[str, Any]:
        if payload is None:
            raise ValueError('truncated')
        return {'angular_velocity': payload}

    section = config(
        {'imu': {'member': False}, 'odom': {'cue': 'rate'}}, 'odom', imu_sensor_id='imu'
    )
    engine = SyncEngine(section, readers={'odom': read})
    for k in range(12):
        engine.push('odom', T0 + k * 20 * MS, [0.0, 0.0, 0.1], T0 + k * 20 * MS + 5 * MS)
    assert engine.run_cues(max_jobs=1) == 7  # of 12 the last 8 waited, one is done
    assert engine.status().cues_skipped == 4
    engine.push('odom', T0 + 240 * MS, None, T0 + 245 * MS)
    assert engine.run_cues() == 0
    assert engine.status().cue_failures == {'odom': 'ValueError: truncated'}
