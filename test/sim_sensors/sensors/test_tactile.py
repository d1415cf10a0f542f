"""Tactile pads against the geometry of a ball, and the elastomer against its own laws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.sensor_run import decode, make_sensor, run

from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.timing.arrays.layout import Array

TURN = Rotation.from_euler('xyz', [0.3, -0.5, 0.8])
QUAT = ' '.join(map(str, np.roll(TURN.as_quat(), 1)))
SPEED_M_S = np.array([0.02, -0.01])
"""Of the ball along the pad's y and z."""
DEPTH_M, RADIUS_M = 0.004, 0.05


def bench(pad: str = '') -> str:
    """A pad that is turned somehow, and a ball that is pressed on it and slides along it."""
    return f"""
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="hand" pos="1 2 3" quat="{QUAT}">
      <body name="finger">
        {pad}
        <geom name="pad" type="box" size="0.01 0.04 0.04" pos="-0.01 0 0" condim="1"/>
      </body>
      <body name="ball" pos="{RADIUS_M - DEPTH_M} 0.002 -0.001">
        <joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
        <geom name="ball" type="sphere" size="{RADIUS_M}" mass="1" condim="1"/>
      </body>
    </body>
  </worldbody>
  <keyframe><key name="sliding" qvel="{SPEED_M_S[0]} {SPEED_M_S[1]}"/></keyframe>
</mujoco>
"""


def pad(**keys: Any) -> dict[str, Any]:
    return {
        'type': 'tactile',
        'mount': {'body': 'finger'},
        'rows': 5,
        'columns': 7,
        'height_m': 0.05,
        'width_m': 0.07,
        'thickness_m': 0.01,
        'noise': 0.0,
        'spread_m': 0.0,
        'rate_hz': 50.0,
        **keys,
    }


def cells() -> Array:
    """Return the taxels [rows, columns, 3] in the pad's frame, rows from +z, columns from +y."""
    z, y = np.meshgrid(np.linspace(0.02, -0.02, 5), np.linspace(0.03, -0.03, 7), indexing='ij')
    return np.stack([np.zeros_like(y), y, z], axis=-1)


def inside_ball(moved_m: Array) -> Array:
    """Return how deep each taxel lies in the ball that has moved along by (y, z)."""
    centre = np.array([RADIUS_M - DEPTH_M, 0.002 + moved_m[0], -0.001 + moved_m[1]])
    return np.maximum(RADIUS_M - np.linalg.norm(cells() - centre, axis=-1), 0.0)


@pytest.mark.parametrize('moving', ['', '<joint type="slide" axis="1 0 0" armature="1e9"/>'])
def test_depth_is_that_of_the_ball(tmp_path: Path, moving: str) -> None:
    done = run(tmp_path, bench(moving), {'pad': pad(shear=False, recovery_s=0.0)}, 0.1)
    field = done.values('pad', 'data')
    np.testing.assert_allclose(field[0], inside_ball(np.zeros(2)), atol=2e-6)
    assert (field[0] > 0.0).sum() > 4
    message = decode('sensor_msgs/msg/Image', done.messages('pad')[0]['tactile/image_raw'])
    assert (message.encoding, message.height, message.width) == ('32FC1', 5, 7)


def test_what_slides_drags_the_surface_along(tmp_path: Path) -> None:
    keys = pad(friction=100.0, recovery_s=0.0, truth_rate_hz=0.0)
    done = run(tmp_path, bench(), {'pad': keys}, 0.1, keyframe='sliding')
    time_s = done.times_s('pad')
    for t, field in zip(time_s, done.values('pad', 'data'), strict=True):
        depth = inside_ball(SPEED_M_S * t)
        np.testing.assert_allclose(field[..., 0], depth, atol=3e-6)
        always = (depth > 0.0) & (inside_ball(np.zeros(2)) > 0.0)
        dragged = field[always][:, 1:]
        np.testing.assert_allclose(
            dragged, np.tile(SPEED_M_S * (t + 1e-3), (len(dragged), 1)), atol=2e-6
        )
    message = decode('sensor_msgs/msg/Image', done.messages('pad')[0]['tactile/image_raw'])
    assert (message.encoding, message.step) == ('32FC3', 7 * 12)


def test_beyond_friction_it_slips(tmp_path: Path) -> None:
    done = run(tmp_path, bench(), {'pad': pad(friction=0.1)}, 0.2, keyframe='sliding')
    field = done.values('pad', 'data')[-1]
    shear = np.linalg.norm(field[..., 1:], axis=-1)
    touched = field[..., 0] > 1e-4
    assert (shear[touched] <= 3 * 0.1 * field[..., 0][touched] * (1 + 1e-5)).all()
    middle = np.unravel_index(field[..., 0].argmax(), touched.shape)
    assert shear[middle] == pytest.approx(0.3 * field[middle][0], rel=1e-4)
    direction = field[middle][1:] / shear[middle]
    np.testing.assert_allclose(direction, SPEED_M_S / np.linalg.norm(SPEED_M_S), atol=1e-4)


@pytest.mark.parametrize('num_envs', [1, 3])
def test_every_environment_has_its_own_pad(tmp_path: Path, num_envs: int) -> None:
    done = run(
        tmp_path, bench(), {'pad': pad(friction=100.0)}, 0.1, keyframe='sliding', num_envs=num_envs
    )
    for env in range(num_envs):
        assert np.abs(done.values('pad', 'data', env)[-1][..., 1:]).max() > 1e-3


# ---- the elastomer ------------------------------------------------------------------------------


def play(presses: Array, **keys: Any) -> Array:
    """Return the fields [n, rows, columns, ...] of a pad pressed as `presses` says, at 100 Hz."""
    sensor: Any = make_sensor('pad', **pad(rate_hz=100.0, truth_rate_hz=100.0, **keys))
    pipeline = Pipeline(sensor, RunSetup(seed=1, dt_ns=10_000_000))
    out = []
    for tick, pressed in enumerate(presses):
        pipeline.tick(None, tick * 10_000_000, sensor.truth_layout.pack(pressed=pressed)[None])
        out.append(pipeline.read(tick * 10_000_000).values[0])
    return np.reshape(out, (-1, *sensor.return_layout.shapes['data']))


def test_it_is_pressed_at_once_and_recovers_with_its_time_constant() -> None:
    presses = np.zeros((30, 5, 7))
    presses[5:10, 2, 3] = 0.002
    field = play(presses, shear=False, recovery_s=0.05)[:, 2, 3]
    np.testing.assert_array_equal(field[:5], 0.0)
    np.testing.assert_allclose(field[5:10], 0.002)
    np.testing.assert_allclose(
        field[10:], 0.002 * np.exp(-np.arange(1, 21) * 0.01 / 0.05), rtol=1e-4
    )


def test_shear_recovers_once_it_is_free() -> None:
    presses = np.zeros((20, 5, 7, 3))
    presses[:10, 2, 3] = [0.002, 0.01, -0.02]
    shear = play(presses, recovery_s=0.05)[:, 2, 3, 1:]
    np.testing.assert_allclose(shear[9], [0.001, -0.002], rtol=1e-4)
    left = np.exp(-np.arange(1, 11) * 0.01 / 0.05)
    np.testing.assert_allclose(shear[10:], np.outer(left, [0.001, -0.002]), rtol=1e-4)


def test_it_is_no_deeper_than_thick() -> None:
    field = play(np.full((1, 5, 7), 0.5), shear=False, thickness_m=0.004)
    np.testing.assert_allclose(field, 0.004)


def test_the_surface_beside_a_contact_is_pulled_along() -> None:
    presses = np.zeros((1, 5, 7))
    presses[0, 1, 2], presses[0, 3, 6] = 0.003, 0.001
    field = play(presses, shear=False, spread_m=0.008)[0]
    expected = np.zeros((5, 7))
    for row, column in np.ndindex(5, 7):  # pitch 10 mm
        expected[row, column] = max(
            0.003 * np.exp(-(abs(row - 1) + abs(column - 2)) * 0.01 / 0.008),
            0.001 * np.exp(-(abs(row - 3) + abs(column - 6)) * 0.01 / 0.008),
        )
    np.testing.assert_allclose(field, expected, rtol=1e-5)


def test_noise_is_not_in_the_memory() -> None:
    presses = np.zeros((50, 5, 7))
    presses[:, 2, 3] = 0.002
    sensor_noise = play(presses, shear=False) - play(presses, shear=False, bias=0.0005)
    np.testing.assert_allclose(sensor_noise, -0.0005, rtol=1e-4)
