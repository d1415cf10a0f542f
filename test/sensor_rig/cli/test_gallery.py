"""The picture sheet: one panel for every type, drawn from a short run of every sensor."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.rendering import needs_renderer

from sensor_rig.cli.main import main
from sensor_rig.pictures import gallery_images as gallery_pictures
from sensor_rig.pictures.gallery import record
from sensor_rig.pictures.gallery_panels import PANELS
from sensor_rig.rigfile import load_rig, rig_from_parameters
from sim_sensors.registry import BUILT_IN


def test_every_type_has_its_own_panel() -> None:
    assert set(PANELS) == set(BUILT_IN)


@needs_renderer
def test_a_sheet_of_everything(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / 'sheet.png'
    assert main(['gallery', str(out), '--seconds', '0.5', '--after', '0']) == 0
    assert 'written' in capsys.readouterr().out
    width, height = struct.unpack('>II', out.read_bytes()[16:24])
    assert (width, height) > (1500, 1500)
    sheet = np.asarray(Image.open(out).convert('RGB'))
    count = len(load_rig('everything').sensors)
    edges = np.linspace(150, height, -(-count // 4) + 1).astype(int)
    for number in range(count):  # no cell of the sheet is empty
        row, column = divmod(number, 4)
        cell = sheet[edges[row] : edges[row + 1], column * width // 4 : (column + 1) * width // 4]
        assert (cell < 250).any(axis=-1).mean() > 0.02, (row, column)


def test_a_recording_holds_samples_of_the_asked_time_once() -> None:
    rig = rig_from_parameters(
        {
            'world': {'model': 'rover_yard.xml'},
            'sensors': {
                'imu': {
                    'type': 'imu',
                    'rate_hz': 100.0,
                    'orientation': True,
                    'mount': {'body': 'rover'},
                    'delay_range_s': [0.02, 0.02],
                }
            },
        }
    )
    steps: list[float] = []
    (take,) = record(rig, 0.3, 0.2, steps.append)
    assert sum(steps) == pytest.approx(0.5)
    np.testing.assert_allclose(take.time_s, np.arange(28) * 0.01, atol=1e-9)
    assert take.measured('angular_velocity').shape == (28, 3)


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['sheet.bmp'], 'should end in'),
        (['sheet.png', '--seconds', '0'], 'more than zero'),
        (['sheet.png', '--after', '-1'], "--after is '-1'; it should be a number, zero or more"),
        (['sheet.png', '--rig', 'nowhere.yaml'], 'nowhere'),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['gallery', *arguments]) == 2
    assert sentence in capsys.readouterr().err


def test_a_sheet_that_cannot_be_written_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / 'rig.yaml'
    file.write_text(
        '/**: {ros__parameters: {world: {model: rover_yard.xml}, sensors: {imu: '
        '{type: imu, mount: {body: rover}}}}}'
    )
    assert (
        main(['gallery', '/proc/x.png', '--rig', str(file), '--seconds', '0.1', '--after', '0'])
        == 2
    )
    assert capsys.readouterr().err == (
        'error: cannot write /proc/x.png: no such file or directory\n'
    )


def test_pictures_line_up_with_and_without_a_colour_bar() -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4))
    grid = figure.add_gridspec(1, 2)
    pixels = np.zeros((30, 40))
    with_bar = gallery_pictures._two_pictures(figure, grid[0], pixels, pixels)
    gallery_pictures._colour_bar(figure, grid[0], with_bar, 'm')
    without = gallery_pictures._two_pictures(figure, grid[1], pixels, pixels)
    figure.draw_without_rendering()
    boxes = [axes.get_position() for axes in (*with_bar, *without)]
    assert len({(round(box.y0, 6), round(box.y1, 6)) for box in boxes}) == 1


def test_a_cloud_is_drawn_over_its_truth() -> None:
    from matplotlib.figure import Figure

    rig = rig_from_parameters(
        {
            'world': {'model': 'rover_yard.xml'},
            'sensors': {
                'cloud': {
                    'type': 'lidar3d',
                    'columns': 16,
                    'noise': 0.05,
                    'mount': {'body': 'rover', 'pos_m': [0.0, 0.0, 0.8]},
                }
            },
        }
    )
    (take,) = record(rig, 0.5)
    figure = Figure()
    gallery_pictures.cloud(figure, figure.add_gridspec(1, 1)[0], take)
    true, measured = figure.axes[0].collections[:2]
    assert len(true.get_offsets()) >= len(measured.get_offsets()) > 100
    assert not np.allclose(true.get_offsets()[:50], measured.get_offsets()[:50])
