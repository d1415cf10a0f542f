"""lidar-view as a user runs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sensor_rig.cli.lidar_view import LidarPlot, _open, _scan_at
from sensor_rig.cli.main import main

RIG = """/**:
  ros__parameters:
    world: {model: rover_yard.xml}
    sensors:
      imu: {type: imu, mount: {body: rover}}
      flat: {type: lidar2d, num_rays: 90, mount: {body: rover, pos_m: [0.3, 0.0, 0.4]}}
      deep: {type: lidar3d, columns: 64, mount: {body: rover, pos_m: [0.0, 0.0, 0.8]}}
"""


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    file = tmp_path / 'rig.yaml'
    file.write_text(RIG)
    return file


@pytest.mark.parametrize(
    ('options', 'name', 'rays'),
    [([], 'flat', 90), (['--sensor', 'deep', '--at', '0.15'], 'deep', 1024)],
)
def test_a_scan_becomes_a_picture(
    rig: Path,
    tmp_path: Path,
    options: list[str],
    name: str,
    rays: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    picture = tmp_path / 'scan.png'
    assert main(['lidar-view', str(rig), '--png', str(picture), *options]) == 0
    assert picture.read_bytes().startswith(b'\x89PNG')
    said = capsys.readouterr().out
    at = '0.200' if options else '1.000'
    assert f'{name} at {at} s: ' in said
    assert f' of {rays} rays return' in said


@pytest.mark.parametrize(
    ('options', 'words'),
    [
        (['--sensor', 'imu', '--png', 'x.png'], "no LiDAR 'imu'; its LiDARs are flat, deep"),
        (
            ['--png', '/nowhere/x.png'],
            "--png is '/nowhere/x.png'; it should be in a folder that exists",
        ),
        (['--png', '/proc/x.png'], ': /proc/x.png cannot be written: no such file or directory\n'),
        (['--at', '-3', '--png', 'x.png'], "--at is '-3'; it should be a number, zero or more"),
        (['--seconds', '0'], "--seconds is '0'; it should be a number more than zero"),
    ],
)
def test_mistakes_are_one_sentence(
    rig: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['lidar-view', str(rig), *options]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count('\n') == 1


@pytest.mark.parametrize(
    'broken', ['loss: {probability: 0.999999}', 'faults: {off: {kind: dead}}', 'phase_s: 1000.0']
)
def test_a_scan_that_never_comes_is_not_waited_for(
    tmp_path: Path, broken: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'silent.yaml'
    file.write_text(RIG.replace('num_rays: 90', f'num_rays: 90, {broken}'))
    assert main(['lidar-view', str(file), '--png', str(tmp_path / 'x.png'), '--at', '0.5']) == 2
    error = capsys.readouterr().err
    assert "no scan that 'flat' took at 0.5 s or later arrived by 10.7 s of simulated" in error
    assert error.count('\n') == 1


def test_without_a_display_the_picture_is_suggested(
    rig: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv('MPLBACKEND', 'Agg')
    assert main(['lidar-view', str(rig)]) == 2
    assert 'use --png FILE' in capsys.readouterr().err


def test_the_window_follows_the_simulation(rig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    from sensor_rig.cli import lidar_view

    matplotlib.use('Agg')
    opened, sensor = lidar_view._open(str(rig), 'flat')
    plot = lidar_view.LidarPlot(sensor)
    captions = []
    monkeypatch.setattr(plot, 'wait', lambda seconds: captions.append(plot.caption))
    lidar_view._follow(opened, plot, 0.35)
    assert [each.split(':')[0] for each in captions] == [
        'flat at 0.000 s',
        'flat at 0.100 s',
        'flat at 0.200 s',
    ]


def test_a_window_without_a_scan_is_attended_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import matplotlib

    from sensor_rig.cli import lidar_view

    matplotlib.use('Agg')
    file = tmp_path / 'silent.yaml'
    file.write_text(RIG.replace('num_rays: 90', 'num_rays: 90, faults: {off: {kind: dead}}'))
    opened, sensor = lidar_view._open(str(file), 'flat')
    plot = lidar_view.LidarPlot(sensor)
    waited = []
    monkeypatch.setattr(plot, 'wait', waited.append)
    lidar_view._follow(opened, plot, 1.0)
    assert len(waited) == 4


def test_distances_have_a_unit_and_heights_one_colour_bar(rig: Path) -> None:
    import matplotlib

    matplotlib.use('Agg')
    opened, sensor = _open(str(rig), 'deep')
    plot = LidarPlot(sensor)
    for at_s in (0.0, 0.1):
        plot.show(_scan_at(opened, sensor, at_s))
    polar, *bars = plot._figure.axes
    plot._figure.canvas.draw()
    assert all(label.get_text().endswith(' m') for label in polar.get_yticklabels())
    assert [bar.get_ylabel() for bar in bars] == ['height above the sensor, m']
    plot._plt.close(plot._figure)
