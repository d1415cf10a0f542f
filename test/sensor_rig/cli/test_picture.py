"""Pictures that explain: what they show is what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sensor_rig.cli.main import main
from sensor_rig.pictures.before_after import fuse
from sensor_rig.rigfile import RigConfig, rig_from_parameters


def rig(clock_s: float, **sync: Any) -> RigConfig:
    """A turning rover whose LiDAR's clock is wrong by `clock_s`."""
    sensors = {
        'lidar': {
            'type': 'lidar2d',
            'rate_hz': 10.0,
            'num_rays': 180,
            'mount': {'body': 'rover', 'pos_m': [0.3, 0.0, 0.4]},
            'clock': {'offset_s': clock_s},
            'delay_range_s': [0.02, 0.03],
        },
        'wheels': {
            'type': 'wheel_odometry',
            'rate_hz': 25.0,
            'mount': {'body': 'rover'},
            'left_joints': ['wheel_rear_left'],
            'right_joints': ['wheel_rear_right'],
            'wheel_radius_m': 0.12,
            'track_m': 0.48,
            'clock': {'stamp_at': 'arrival'},
        },
    }
    given = {
        'world': {'model': 'rover_yard.xml', 'driver': 'figure_eight'},
        'sensors': sensors,
        'sync': {'reference_sensor_id': 'lidar', **sync},
    }
    return rig_from_parameters(given)


def test_synced_scans_are_nearer_to_the_truth() -> None:
    maps = fuse(rig(-0.2), seconds=2.0, lead_s=3.0)
    assert maps.scans >= 15
    assert maps.clock_ms == pytest.approx(-200.0, abs=0.1)
    assert abs(maps.synced_ms) < 40.0  # what the arrivals alone tell
    assert len(maps.true) == len(maps.raw) == len(maps.synced)
    assert np.median(maps.away['raw']) > 3 * np.median(maps.away['synced'])


def test_a_true_clock_puts_every_point_at_its_place() -> None:
    maps = fuse(rig(0.0), seconds=0.5, lead_s=0.5)
    np.testing.assert_allclose(maps.raw, maps.true)


def test_the_command_writes_two_maps(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('sensor_rig.rigfile.load_rig', lambda _: rig(-0.2))
    out = tmp_path / 'map.png'
    assert main(['picture', 'before-after', str(out), '--seconds', '1', '--after', '2']) == 0
    assert 'with raw stamps' in capsys.readouterr().out
    picture = np.asarray(Image.open(out).convert('RGB'), int)
    half = picture.shape[1] // 2
    red, blue = (picture[:, :half], picture[:, half:])
    assert (red[..., 0] - red[..., 2] > 60).sum() > 500
    assert (blue[..., 2] - blue[..., 0] > 60).sum() > 500


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['before-after', 'map.bmp'], 'should end in .png, .svg, .pdf'),
        (['before-after', 'nowhere/map.png'], 'there is no folder nowhere'),
        (['before-after', 'map.png', '--sensor', 'imu'], 'its LiDARs are front_lidar'),
        (['before-after', 'map.png', '--rig', 'hand'], 'it has no LiDAR'),
        (['after-before', 'map.png'], 'before-after'),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['picture', *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert 'Traceback' not in said


def test_a_rig_without_sync_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = rig_from_parameters(
        {
            'world': {'model': 'rover_yard.xml'},
            'sensors': {'lidar': {'type': 'lidar2d', 'num_rays': 90, 'mount': {'body': 'rover'}}},
        }
    )
    monkeypatch.setattr('sensor_rig.rigfile.load_rig', lambda _: bare)
    assert main(['picture', 'before-after', 'map.png']) == 2
    assert 'does not sync lidar/scan' in capsys.readouterr().err
