from __future__ import annotations

from math import radians
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.places import ROOT
from support.sensor_run import make_sensor

from rig_common.paramfile import reader as paramfile
from sensor_rig.rigfile import load_rig

FOLDER = ROOT / 'datasheets'
FILES = sorted(FOLDER.glob('*.yaml'))
SOURCES = ('maker', 'typical', 'chosen', 'published', 'fitted', 'how ROS')
"""Words of which one stands beside every figure."""
MUST_BE_GIVEN = {'joint_state': {'joints': ['a']}}
G = 9.80665


def keys_of(name: str) -> dict[str, Any]:
    keys = paramfile.read(FOLDER / f'{name}.yaml')
    if name.startswith('timing_'):  # of any sensor
        keys = {'type': 'imu', 'rate_hz': 10.0, **keys}
    return {**MUST_BE_GIVEN.get(keys['type'], {}), **keys}


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.stem)
def test_file_is_a_sensor(file: Path) -> None:
    sensor = make_sensor('s', **keys_of(file.stem))
    assert sensor.topics()


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.stem)
def test_every_figure_has_its_source_beside_it(file: Path) -> None:
    loaded = paramfile.load(file)
    text = file.read_text().splitlines()
    bare = []
    for key, number in loaded.lines.items():
        line = text[number - 1]
        is_map = line.rstrip().endswith(':')
        if (
            not is_map
            and key != 'type'
            and not any(word in line.partition('#')[2] for word in SOURCES)
        ):
            bare.append(f'line {number}: {key}')
    assert not bare, f'{file.name} does not say where these come from: {bare}'


def test_a_rig_extends_a_datasheet(tmp_path: Path) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text("""
/**:
  ros__parameters:
    world: {model: rover_yard.xml}
    sensors:
      imu:
        extends: datasheets/imu_consumer.yaml
        rate_hz: 100.0
        gyro: {range: 4.0}
        mount: {body: rover}
""")
    config: Any = load_rig(file).sensors['imu']
    assert (config.type, config.rate_hz, config.mount.body) == ('imu', 100.0, 'rover')
    assert config.gyro.range == 4.0
    assert config.gyro.noise_density == (1.75e-4,) * 3


@pytest.mark.parametrize(
    ('name', 'figures'),
    [
        (
            'imu_bosch_bmi088',
            {
                'gyro.noise_density': radians(0.014),
                'gyro.bias_instability': radians(2.0) / 3600,
                'gyro.turn_on_bias': radians(1.0),
                'gyro.temperature_bias': radians(0.015),
                'gyro.range': radians(2000),
                'gyro.resolution': radians(1 / 16.384),
                'accel.noise_density': [160e-6 * G, 160e-6 * G, 190e-6 * G],
                'gyro.g_sensitivity': radians(0.1) / G,
                'accel.turn_on_bias': 0.02 * G,
                'accel.temperature_bias': 0.2e-3 * G,
                'accel.range': 12 * G,
                'accel.resolution': 24 * G / 65536,
            },
        ),
        (
            'imu_adi_adis16470',
            {
                'gyro.noise_density': radians(0.008),
                'gyro.bias_instability': radians(8) / 3600,
                'accel.bias_instability': 13e-6 * G,
                'accel.range': 40 * G,
            },
        ),
        (
            'imu_adi_adis16495',
            {
                'gyro.noise_density': radians(0.09) / 60,
                'gyro.bias_instability': radians(0.8) / 3600,
                'accel.bias_instability': 3.2e-6 * G,
                'gyro.range': radians(125),
                'accel.range': 8 * G,
            },
        ),
        (
            'imu_xsens_mti1',
            {
                'gyro.noise_density': radians(0.007),
                'gyro.bias_instability': radians(10) / 3600,
                'accel.noise_density': 120e-6 * G,
                'accel.bias_instability': 0.03e-3 * G,
            },
        ),
        ('magnetometer_st_lis3mdl', {'noise': 3.2e-7, 'resolution': 1e-4 / 6842}),
    ],
)
def test_figures_are_the_maker_s_in_our_units(name: str, figures: dict[str, Any]) -> None:
    keys = keys_of(name)
    for path, expected in figures.items():
        value: Any = keys
        for part in path.split('.'):
            value = value[part]
        assert value == pytest.approx(expected, rel=3e-3), path


@pytest.mark.parametrize(('name', 'cep_m'), [('gnss_ublox_f9p', 0.01), ('gnss_ublox_m8n', 2.5)])
def test_white_and_slow_error_together_make_the_maker_s_cep(name: str, cep_m: float) -> None:
    keys = keys_of(name)
    sigma = np.hypot(keys['horizontal_noise_m'], keys['horizontal_drift_m'])
    assert sigma * np.sqrt(2.0 * np.log(2.0)) == pytest.approx(cep_m, rel=0.01)


def test_the_classes_that_rigs_ask_for_are_there() -> None:
    names = {file.stem for file in FILES}
    assert names >= {
        'imu_consumer',
        'imu_industrial',
        'imu_tactical',
        'gnss_plain',
        'gnss_rtk',
        'camera_global_shutter',
        'camera_rolling_shutter',
        'lidar3d_spinning_16',
        'lidar3d_solid_state',
        'lidar2d_safety_scanner',
    }


def test_the_list_names_every_file() -> None:
    page = (FOLDER / 'README.md').read_text()
    assert [file.stem for file in FILES if f'`{file.stem}`' not in page] == []
