"""The readout time of a rolling shutter, from pictures whose rows are seen one after another."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.arrays import Floats
from sync_engine.cues.base import Axis
from sync_engine.cues.image import ImageCue
from sync_engine.cues.image_readout import ImageReadout

WIDTH, HEIGHT, FOCAL_PX, FRAME_S = 160, 120, 120.0, 1.0 / 30.0
_RNG = np.random.default_rng(5)
WAVES = _RNG.normal(0.0, 8.0, (20, 3))
PHASES = _RNG.uniform(0.0, 2.0 * np.pi, 20)


def angles(times_s: Floats) -> Floats:
    """Return the turn about x, y and z [n, 3] (rad)."""
    t = np.asarray(times_s)
    return np.stack(
        [
            0.06 * np.sin(5.0 * t),
            0.30 * np.sin(3.1 * t) + 0.05 * np.sin(9.0 * t),
            0.06 * np.sin(7.0 * t + 1.0),
        ],
        axis=-1,
    )


def picture(middle_s: float, readout_s: float, rng: np.random.Generator) -> Floats:
    """Return what a camera far from everything sees; its middle row is exposed at `middle_s`."""
    rows = middle_s + readout_s * ((np.arange(HEIGHT) + 0.5) / HEIGHT - 0.5)
    ax, ay, az = angles(rows).T[:, :, None]
    x = (np.arange(WIDTH) - 0.5 * (WIDTH - 1)) / FOCAL_PX * np.ones((HEIGHT, 1))
    y = ((np.arange(HEIGHT) - 0.5 * (HEIGHT - 1)) / FOCAL_PX)[:, None] * np.ones((1, WIDTH))
    # About y, then x, then z, each by its whole angle.
    x, y = np.cos(az) * x - np.sin(az) * y, np.sin(az) * x + np.cos(az) * y
    z = np.ones_like(x)
    y, z = np.cos(ax) * y - np.sin(ax) * z, np.sin(ax) * y + np.cos(ax) * z
    x, z = np.cos(ay) * x + np.sin(ay) * z, -np.sin(ay) * x + np.cos(ay) * z
    rays = np.stack([x, y, z], axis=-1).reshape(-1, 3)
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    gray = 128.0 + 20.0 * np.sin(rays @ WAVES.T + PHASES).sum(axis=1)
    return np.clip(gray.reshape(HEIGHT, WIDTH) + rng.normal(0.0, 2.0, (HEIGHT, WIDTH)), 0, 255)


def _integrals() -> tuple[Floats, Floats]:
    """Return times [n] (s) and the integral of the body's rate about its axes [3, n] (rad)."""
    fine = np.arange(-0.5, 5.0, 1e-3)
    ax, _, az = angles(fine).T
    dx, dy, dz = np.gradient(angles(fine), fine, axis=0).T
    # Body rates of R = Ry Rx Rz.
    about_x = np.cos(az) * dx + np.cos(ax) * np.sin(az) * dy
    about_y = -np.sin(az) * dx + np.cos(ax) * np.cos(az) * dy
    about_z = dz - np.sin(ax) * dy
    return fine, np.cumsum([about_x, about_y, about_z], axis=1) * 1e-3


TIMES_S, TURNED = _integrals()


def turned_about(times_s: Floats, axis: int) -> Floats:
    """Return the integral of the body's rate about one of its axes at times [n] (rad)."""
    return np.interp(times_s, TIMES_S, TURNED[axis])


def gyro(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats:
    return turned_about(stamp_ns / 1e9 - 1.0 + times_s, int(np.argmax(axis)))


@pytest.mark.parametrize('readout_s', [0.0, 0.012, 0.025])
def test_the_readout_time_and_its_sigma(readout_s: float) -> None:
    cue, rng, wrong = ImageCue(), np.random.default_rng(2), []
    for k in range(120):
        at_s = 0.2 + k * FRAME_S
        values = {
            'gray': picture(at_s, readout_s, rng).astype(np.uint8),
            'fx': FOCAL_PX,
            'fy': FOCAL_PX,
        }
        found = cue.feed(round((1.0 + at_s) * 1e9), values, gyro)
        if found is not None:
            ends = np.array([at_s - FRAME_S, at_s])
            true = [float(np.diff(turned_about(ends, axis))[0]) for axis in range(3)]
            wrong.append(np.array(found.values_rad) - true)
    estimate = cue.readout.found(gyro)
    assert estimate is not None
    assert abs(estimate.readout_s - readout_s) < max(3.0 * estimate.sigma_s, 1e-3)
    assert estimate.sigma_s < 2e-3
    assert np.sqrt(np.mean(np.square(wrong))) < 1.5e-3  # the turn is the middle row's


def test_a_declared_readout_moves_the_time_of_the_turn() -> None:
    rng, found = np.random.default_rng(2), []
    for readout_s in (0.0, 0.02):
        cue = ImageCue()
        for k in range(2):
            gray = picture(k * FRAME_S, 0.0, rng).astype(np.uint8)
            values = {'gray': gray, 'fx': FOCAL_PX, 'fy': FOCAL_PX, 'readout_s': readout_s}
            found.append(cue.feed(round((1.0 + k * FRAME_S) * 1e9), values))
    assert found[1] is not None and found[3] is not None
    assert found[3].stamp_to_ns - found[1].stamp_to_ns == 10_000_000


def test_without_turning_it_is_not_known() -> None:
    cue, rng = ImageCue(), np.random.default_rng(2)

    def still(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats:
        return np.zeros(len(times_s))

    for k in range(60):
        values = {'gray': picture(0.2, 0.02, rng).astype(np.uint8), 'fx': FOCAL_PX, 'fy': FOCAL_PX}
        cue.feed(round((1.0 + k * FRAME_S) * 1e9), values, still)
    found = cue.readout.found(still)
    assert found is None or found.sigma_s > 0.01


def told(near: float, late_s: float = 0.0, count: int = 400) -> ImageReadout:
    """Return what 20 ms of readout show where near ground adds `near` times as much about x and y.

    While the pairs come the gyro is looked up `late_s` wrong.
    """
    readout, rng, sigma = ImageReadout(), np.random.default_rng(3), 1e-3
    for k in range(count):
        start_s = 0.2 + k * FRAME_S / 4.0
        ends_ns = [round((1.0 + at_s) * 1e9) for at_s in (start_s, start_s + FRAME_S)]
        beside = np.array([[-0.01, 0.01], [0.0, 0.0]])
        rows = np.array([turned_about(start_s + np.array([0.0, FRAME_S])[:, None, None] + beside,
                                      axis) for axis in range(3)])  # fmt: skip
        change = np.diff(np.diff(rows[:, :, 0], axis=2)[..., 0], axis=1)[:, 0] / 0.02
        turn = np.diff(rows[:, :, 1, 0], axis=1)[:, 0]
        sweep = 0.02 * change * [1.0 + near, 1.0 + near, 1.0] + rng.normal(0.0, sigma, 3)

        def look(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats:
            return gyro(stamp_ns + round(late_s * 1e9), times_s, axis)

        readout.add((ends_ns[0], ends_ns[1]), turn, sweep, np.full(3, sigma**2), look)
    return readout


@pytest.mark.parametrize(('near', 'late_s'), [(0.0, 0.0), (2.0, 0.0), (0.0, 0.03)])
def test_neither_near_ground_nor_a_clock_that_was_wrong_counts(near: float, late_s: float) -> None:
    def begun(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats | None:
        """Look up a gyro that began later than the camera."""
        return gyro(stamp_ns, times_s, axis) if stamp_ns / 1e9 + times_s.min() > 1.5 else None

    found = told(near, late_s).found(begun)
    assert found is not None
    assert abs(found.readout_s - 0.02) < 2.5 * found.sigma_s
    assert found.sigma_s < 2e-3
