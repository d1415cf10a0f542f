"""A camera's turns from rendered pictures: turning on the spot, and driving past near things."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.arrays import Floats
from sync_engine.cues.base import Axis, GyroLookup
from sync_engine.cues.image import ImageCue
from sync_engine.cues.mounting import turned_by

WIDTH, HEIGHT, FOCAL_PX = 160, 120, 105.0
FRAME_S, FRAMES = 1.0 / 15.0, 90
HALF_ROOM_M, GROUND_M, LEVER_M = 6.0, 0.6, 0.46
OPTICAL = np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
"""Columns: the optical axes (right, down, ahead) in a body frame with x ahead and z up."""

_RNG = np.random.default_rng(12)
WAVES = _RNG.normal(0.0, 3.0, (14, 3))
PHASES = _RNG.uniform(0.0, 2.0 * np.pi, 14)


def texture(points: Floats) -> Floats:
    """Return the brightness (0 to 255) of points [n, 3] on the walls and the ground (m)."""
    return np.asarray(128.0 + 22.0 * np.sin(points @ WAVES.T + PHASES).sum(axis=1) / 2.0)


def picture(position: Floats, body: Floats, rng: np.random.Generator) -> Floats:
    """Return what a camera at `position` [3] sees of a square room with a ground, [h, w]."""
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    seen = np.stack(
        [
            (columns - 0.5 * (WIDTH - 1)) / FOCAL_PX,
            (rows - 0.5 * (HEIGHT - 1)) / FOCAL_PX,
            np.ones(rows.shape),
        ],
        axis=-1,
    )
    rays = seen.reshape(-1, 3) @ (body @ OPTICAL).T
    with np.errstate(divide='ignore'):
        walls = (np.sign(rays[:, :2]) * HALF_ROOM_M - position[:2]) / rays[:, :2]
        ground = np.where(rays[:, 2] < 0.0, -(position[2] + GROUND_M) / rays[:, 2], np.inf)
    far = np.minimum(walls.min(axis=1), ground)
    gray = texture(position + far[:, None] * rays).reshape(HEIGHT, WIDTH)
    return np.asarray(np.clip(gray + rng.normal(0.0, 2.0, gray.shape), 0.0, 255.0))


def pose(time_s: float, speed_m_s: float) -> tuple[Floats, Floats]:
    """Return position and attitude of a camera on something that swerves.

    It sits ahead of the axle while driving, and on it where the speed is 0: a pure rotation.
    """
    yaw = 0.5 * np.sin(2.0 * time_s) + 0.2 * np.sin(4.7 * time_s)
    tilt = np.array([0.02 * np.sin(9.0 * time_s), 0.03 * np.sin(11.0 * time_s), 0.0])
    body = turned_by(np.array([0.0, 0.0, yaw])) @ turned_by(tilt)
    # It drives where it points: the way is the integral of the heading, here by a fine sum.
    fine = np.linspace(0.0, time_s, 400)
    heading = 0.5 * np.sin(2.0 * fine) + 0.2 * np.sin(4.7 * fine)
    mean_x, mean_y = np.cos(heading).mean(), np.sin(heading).mean()
    axle = np.array([-4.0, 0.0, 0.0]) + speed_m_s * time_s * np.array([mean_x, mean_y, 0.0])
    lever_m = LEVER_M if speed_m_s else 0.0
    return axle + body @ np.array([lever_m, 0.0, 0.0]), body


def errors(
    speed_m_s: float,
    frames: int = FRAMES,
    gyro: GyroLookup | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Return error (rad), claimed sigma (rad) and change of the rate (rad/s) of every turn."""
    cue, rng = ImageCue(), np.random.default_rng(4)
    wrong, claimed, change = [], [], []
    for k in range(frames):
        here, body = pose(k * FRAME_S, speed_m_s)
        found = cue.feed(
            1 + round(k * FRAME_S * 1e9),
            {'gray': picture(here, body, rng), 'fx': FOCAL_PX, 'fy': FOCAL_PX},
            gyro,
        )
        if found is None:
            continue
        true = turn(k - 1, k, speed_m_s)
        later = turn(k - 1 + 1e-3, k + 1e-3, speed_m_s)
        wrong.append(np.array(found.values_rad) - true)
        claimed.append(np.sqrt(found.variances))
        change.append((later - true) / (1e-3 * FRAME_S))
    return np.array(wrong), np.array(claimed), np.array(change)


def gyro_at(speed_m_s: float, late_s: float) -> GyroLookup:
    """Return a gyro that is looked up `late_s` too late, on the cue's stamps."""
    at = np.arange(-2.0, FRAMES, 0.25)
    steps = [turn(k, k + 0.25, speed_m_s) for k in at[:-1]]
    angles = np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])

    def look(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats:
        times = stamp_ns / 1e9 + late_s + times_s
        return np.asarray(np.interp(times, at * FRAME_S, angles @ np.array(axis)))

    return look


def turn(start: float, end: float, speed_m_s: float) -> Floats:
    """Return the true rotation vector [3] between two frames, optical axes (rad)."""
    one, two = (pose(k * FRAME_S, speed_m_s)[1] @ OPTICAL for k in (start, end))
    between = one.T @ two
    sine = 0.5 * np.array(
        [
            between[2, 1] - between[1, 2],
            between[0, 2] - between[2, 0],
            between[1, 0] - between[0, 1],
        ]
    )
    size = float(np.linalg.norm(sine))
    return np.asarray(sine * (np.arcsin(size) / size if size > 1e-12 else 1.0))


@pytest.mark.parametrize(
    ('speed_m_s', 'worst_mrad', 'worst_lag_s'), [(0.0, 0.4, 1e-4), (1.2, 1.5, 0.9e-3)]
)
def test_turns_are_right_on_the_spot_and_while_driving(
    speed_m_s: float, worst_mrad: float, worst_lag_s: float
) -> None:
    wrong, claimed, change = errors(speed_m_s)
    assert len(wrong) >= 0.9 * (FRAMES - 1)
    spread = 1.4826 * np.median(np.abs(wrong), axis=0)
    assert (1e3 * spread < worst_mrad).all()
    assert (np.median(np.abs(wrong) / claimed, axis=0) < 2.0).all()
    weight = claimed**-2.0
    lag_s = np.sum(weight * wrong * change) / np.sum(weight * change**2)
    assert abs(lag_s) < worst_lag_s  # what the errors would make of the clock


def test_a_blank_wall_and_another_room_tell_nothing() -> None:
    rng = np.random.default_rng(5)
    here, body = pose(0.0, 0.0)
    for pictures in (
        [np.full((HEIGHT, WIDTH), 128.0)] * 2,
        [picture(here, body, rng), rng.uniform(0.0, 255.0, (HEIGHT, WIDTH))],
    ):
        cue = ImageCue()
        found = [
            cue.feed(1 + k * 10**8, {'gray': gray, 'fx': FOCAL_PX, 'fy': FOCAL_PX})
            for k, gray in enumerate([pictures[0], *pictures])
        ]
        assert found[-1] is None


def test_a_gyro_helps_to_learn_the_way_and_hardly_pulls_the_turns() -> None:
    late_s = 0.004
    alone, _, change = (each[:, 1] for each in errors(1.0, 30))
    right, late = (errors(1.0, 30, gyro_at(1.0, wrong_s))[0][:, 1] for wrong_s in (0.0, late_s))
    assert np.mean(right**2) < 0.9 * np.mean(alone**2)
    # A gyro that is looked up too late must not make the camera's clock look as late.
    pulled_s = np.sum((late - right) * change) / np.sum(change**2)
    assert abs(pulled_s) < 0.1 * late_s
