"""Temperature grids against the solutions of their heat equation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.sensor_run import decode, make_sensor, run

from rig_common.errors import RigError
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.timing.arrays.layout import Array

OVEN = """
<mujoco>
  <worldbody>
    <body name="panel" pos="0 0 1" euler="0 0 90"><geom type="box" size="0.01 0.1 0.1"/></body>
    <body name="hot" pos="0.05 0.2 1.04"><geom type="sphere" size="0.02"/></body>
    <body name="cold" pos="-0.05 0.2 0.96"><geom type="sphere" size="0.02"/></body>
  </worldbody>
</mujoco>
"""


def grid(**keys: Any) -> dict[str, Any]:
    return {'type': 'temperature_grid', 'rows': 4, 'columns': 6, 'noise': 0.0, **keys}


def warmed(sensor: Any, exposed: Array, seconds: float, rate_hz: float) -> tuple[Array, Array]:
    """Return measured and true cells [n, rows, columns] under a constant exposure."""
    dt_ns = round(1e9 / rate_hz)
    pipeline = Pipeline(sensor, RunSetup(seed=1, dt_ns=dt_ns))
    row = sensor.truth_layout.pack(exposed=exposed)[None]
    measured, true = [], []
    for tick in range(round(seconds * rate_hz) + 1):
        pipeline.tick(None, tick * dt_ns, row)
        measured.append(pipeline.read(tick * dt_ns).values[0])
        true.append(pipeline.read_ground_truth().values[0])
    shape = (-1, *sensor.return_layout.shapes['data'])
    return np.reshape(measured, shape), np.reshape(true, shape)


def test_cells_and_thermometers_follow_exponentially() -> None:
    sensor = make_sensor(
        't',
        **grid(rate_hz=50.0, truth_rate_hz=50.0, ambient_c=20.0, time_constant_s=2.0, lag_s=0.5),
    )
    measured, true = warmed(sensor, np.full((4, 6), 70.0), 6.0, 50.0)
    time_s = np.arange(len(true)) / 50.0
    np.testing.assert_allclose(true[:, 0, 0], 70.0 - 50.0 * np.exp(-time_s / 2.0), atol=1e-3)
    two_lags = 70.0 - 50.0 * (2.0 * np.exp(-time_s / 2.0) - 0.5 * np.exp(-time_s / 0.5)) / 1.5
    np.testing.assert_allclose(measured[:, 3, 5], two_lags, atol=0.2)
    assert true.std(axis=(1, 2)).max() < 1e-3


@pytest.mark.parametrize('mode', [1, 3])
def test_heat_spreads_as_the_diffusion_equation_says(mode: int) -> None:
    columns, diffusivity, tau = 24, 2e-4, 4.0
    sensor = make_sensor(
        't',
        **grid(
            columns=columns,
            width_m=0.24,
            rate_hz=100.0,
            lag_s=0.0,
            truth_rate_hz=100.0,
            ambient_c=20.0,
            time_constant_s=tau,
            diffusivity_m2_s=diffusivity,
        ),
    )
    shape = np.cos(np.pi * mode * (np.arange(columns) + 0.5) / columns)
    _, true = warmed(sensor, 20.0 + 10.0 * np.tile(shape, (4, 1)), 5.0, 100.0)
    amplitude = (true - 20.0).mean(axis=1) @ shape * 2.0 / columns
    wavenumber = np.pi * mode / 0.24
    rate = 1.0 / tau + diffusivity * wavenumber**2
    time_s = np.arange(len(true)) / 100.0
    expected = 10.0 / (tau * rate) * (1.0 - np.exp(-rate * time_s))
    np.testing.assert_allclose(amplitude, expected, atol=0.02 * expected[-1])
    assert rate * tau > 1.1, 'diffusion would not be noticed'


def test_exposure_falls_with_the_distance_to_each_source(tmp_path: Path) -> None:
    sources = {
        'h': {'body': 'hot', 'temperature_c': 90.0, 'reach_m': 0.15},
        'c': {'body': 'cold', 'temperature_c': -10.0, 'reach_m': 0.05},
    }
    keys = grid(
        mount={'body': 'panel', 'pos_m': [0.01, 0.0, 0.0]},
        sources=sources,
        time_constant_s=1e-3,
        diffusivity_m2_s=0.0,
        lag_s=0.0,
        ambient_c=20.0,
        rows=3,
        columns=5,
        height_m=0.12,
        width_m=0.1,
    )
    done = run(tmp_path, OVEN, {'t': keys}, 0.3)
    # the panel is turned by 90 degrees: its +y is the world's -x, its face looks along +y
    cells = np.array(
        [
            [[0.0 - y, 0.01, 1.0 + z] for y in (0.04, 0.02, 0.0, -0.02, -0.04)]
            for z in (0.04, 0.0, -0.04)
        ]
    )
    to_hot = np.linalg.norm(cells - [0.05, 0.2, 1.04], axis=-1)
    to_cold = np.linalg.norm(cells - [-0.05, 0.2, 0.96], axis=-1)
    expected = 20.0 + 70.0 * np.exp(-to_hot / 0.15) - 30.0 * np.exp(-to_cold / 0.05)
    np.testing.assert_allclose(done.truth('t', 'data')[-1], expected, atol=1e-3)
    assert expected[0, 4] == expected.max()
    image = decode('sensor_msgs/msg/Image', done.messages('t')[-1]['temperature/image_raw'])
    assert (image.encoding, image.height, image.width) == ('32FC1', 3, 5)
    mean = decode('sensor_msgs/msg/Temperature', done.messages('t')[-1]['temperature'])
    assert mean.temperature == pytest.approx(expected.mean(), abs=1e-3)


def test_noise_is_on_the_readings_only() -> None:
    sensor = make_sensor('t', **grid(rows=40, columns=40, noise=0.5, rate_hz=10.0))
    measured, true = warmed(sensor, np.full((40, 40), 22.0), 1.0, 10.0)
    assert (measured - true).std() == pytest.approx(0.5, rel=0.05)
    np.testing.assert_allclose(true, 22.0)


def test_an_unknown_source_is_named(tmp_path: Path) -> None:
    keys = grid(mount={'body': 'panel'}, sources={'h': {'body': 'hott'}})
    with pytest.raises(RigError, match=r"sources\.h\.body is 'hott'.*did you mean 'hot'"):
        run(tmp_path, OVEN, {'t': keys}, 0.0)
