"""Recordings for rerun, Foxglove and evo: what comes out is what was recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from support.places import SMALL_RIG

from sensor_rig.bags.reader import BagReader
from sensor_rig.cli.main import main
from sensor_rig.view.foxglove import layout
from sensor_rig.view.trajectories import file_name


@pytest.fixture(scope='module')
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp('view') / 'run'
    assert main(['record', str(out), '--rig', str(SMALL_RIG), '--seconds', '2']) == 0
    return out


def test_trajectories_are_the_recorded_poses(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['view', str(recording), '--tum', str(tmp_path / 'poses'), '--json']) == 0
    counts = json.loads(capsys.readouterr().out)['tum']['poses']
    with BagReader(recording) as bag:
        wanted = {
            file_name(name): topic.message_count
            for name, topic in bag.topics.items()
            if topic.type_name == 'nav_msgs/msg/Odometry'
        }
    assert counts == wanted and len(wanted) >= 2
    rows = np.loadtxt(tmp_path / 'poses' / 'truth_odom.tum')
    assert rows.shape == (wanted['truth_odom.tum'], 8)
    np.testing.assert_allclose(np.diff(rows[:, 0]), 0.02, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(rows[:, 4:], axis=1), 1.0, atol=1e-6)
    assert rows[0, 0] == 1000.0
    assert np.linalg.norm(rows[-1, 1:3] - rows[0, 1:3]) > 0.01, 'the rover has moved'


def test_evo_draws_the_trajectories_over_the_true_one(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('evo')
    assert main(['view', str(recording), '--evo', str(tmp_path), '--json']) == 0
    pictures = json.loads(capsys.readouterr().out)['tum']['pictures']
    assert str(tmp_path / 'evo_trajectories.png') in pictures
    assert all(Path(each).read_bytes()[:4] == b'\x89PNG' for each in pictures)


def test_a_layout_names_topics_that_exist(recording: Path, tmp_path: Path) -> None:
    out = tmp_path / 'layout.json'
    assert main(['view', str(recording), '--foxglove', str(out)]) == 0
    made = json.loads(out.read_text())
    with BagReader(recording) as bag:
        topics = bag.topics
    panels = made['configById']
    assert set(panels['3D!world']['topics']) <= set(topics)
    colours = {
        name: shown.get('flatColor') or shown.get('color')
        for name, shown in panels['3D!world']['topics'].items()
    }
    assert [
        colours[name] for name in ('/front_lidar/scan', '/synced/front_lidar/scan', '/truth/odom')
    ] == ['#d1495b', '#0f6cbd', '#1a9c5b']
    for path in panels['Plot!motion']['paths']:
        assert path['value'].partition('.')[0] in topics
    assert panels['DiagnosticSummary!sync']['topicToRender'] == '/sync/bundle'
    assert set(leaves(made['layout'])) == set(panels)


def test_the_layout_fits_foxgloves_own_model(recording: Path) -> None:
    published = pytest.importorskip('foxglove.layouts', reason='foxglove-sdk is not installed')
    models = {
        '3D': published.ThreeDeeConfig,
        'Image': published.ImageConfig,
        'Plot': published.PlotConfig,
        'DiagnosticSummary': published.DiagnosticsSummaryConfig,
    }
    with BagReader(recording) as bag:
        panels = json.loads(layout(bag.topics))['configById']
    for name, config in panels.items():
        assert list(misfits(config, models[name.partition('!')[0]], name)) == []


def misfits(value: Any, model: Any, where: str) -> Iterator[str]:
    """Yield what in `value` does not fit the annotation `model`, a dataclass of Foxglove's."""
    origin, inner = get_origin(model), get_args(model)
    if origin in (Union, UnionType):
        found = [list(misfits(value, each, where)) for each in inner]
        if all(found):
            yield from min(found, key=len)
    elif is_dataclass(model):
        hints = {key.replace('_', ''): hint for key, hint in get_type_hints(model).items()}
        for key, each in value.items() if isinstance(value, dict) else ():
            if key.lower() in hints:
                yield from misfits(each, hints[key.lower()], f'{where}.{key}')
            else:
                yield f'{where}.{key} is unknown'
        if not isinstance(value, dict):
            yield f'{where} is {value!r}'
    elif origin is Literal:
        if value not in inner:
            yield f'{where} is {value!r}'
    elif origin in (list, dict):
        if not isinstance(value, origin):
            yield f'{where} is {value!r}'
            return
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from misfits(each, inner[-1], f'{where}.{key}')
    elif model is not Any and not isinstance(value, (int, float) if model is float else model):
        yield f'{where} is {value!r}'


def leaves(node: object) -> list[str]:
    """Return the panels of an arrangement."""
    if isinstance(node, dict):
        return leaves(node['first']) + leaves(node['second'])
    return [str(node)]


def test_a_layout_of_nothing_is_a_layout() -> None:
    assert set(leaves(json.loads(layout({}))['layout'])) == {'3D!world', 'Plot!motion'}


def test_a_recording_carries_what_foxglove_needs(recording: Path) -> None:
    """Schemas of all topics, frames, and the truth, by the reader of the format itself."""
    reader = pytest.importorskip('mcap.reader')
    with next(recording.glob('*.mcap')).open('rb') as file:
        made = reader.make_reader(file)
        assert made.get_header().profile == 'ros2'
        summary = made.get_summary()
    names = {
        channel.topic: summary.schemas[channel.schema_id] for channel in summary.channels.values()
    }
    assert {'/tf', '/tf_static', '/truth/odom', '/truth/time/imu'} <= set(names)
    assert all(schema.encoding == 'ros2msg' and schema.data for schema in names.values())


def test_a_file_for_rerun_has_three_timelines(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    rerun = pytest.importorskip('rerun', reason='rerun-sdk is not installed')
    out, times, set_time = tmp_path / 'run.rrd', {}, rerun.RecordingStream.set_time

    def noted(stream: Any, name: str, **at: Any) -> None:
        times.setdefault(name, []).append(int(at['duration'] / np.timedelta64(1, 'ns')))
        set_time(stream, name, **at)

    monkeypatch.setattr(rerun.RecordingStream, 'set_time', noted)
    layouts: list[Any] = []
    monkeypatch.setattr(
        rerun.RecordingStream, 'send_blueprint', lambda _, layout: layouts.append(layout)
    )
    assert main(['view', str(recording), '--rerun', str(out), '--json']) == 0
    shown = json.loads(capsys.readouterr().out)['rerun']['messages']
    assert shown['/front_lidar/scan'] and shown['/truth/odom'] and shown['/imu/data_raw']
    assert out.stat().st_size > 10_000
    capture, stamp, arrival = (np.array(times[name]) for name in ('capture', 'stamp', 'arrival'))
    assert (arrival >= capture).all()
    errors_ms = np.unique(np.rint((stamp - capture) / 1e6))
    assert {-30.0, 0.0, 12.0} <= set(errors_ms.tolist()), 'the clocks of LiDAR, truth and IMU'
    world, beside = layouts[0].root_container.contents
    assert world.origin == 'world'
    shown_beside = [view.origin for tabs in beside.contents for view in tabs.contents]
    assert 'imu/imu/data_raw/angular_velocity' in shown_beside


def test_without_rerun_one_sentence_says_what_to_install(
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, 'rerun', None)
    assert main(['view', str(recording), '--rerun', str(tmp_path / 'run.rrd')]) == 2
    assert 'needs rerun-sdk' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('arguments', 'sentence'),
    [
        (['--rerun', 'run.mcap'], 'run.mcap should end in .rrd'),
        (['--foxglove', 'nowhere/layout.json'], 'there is no folder nowhere'),
        (['--foxglove', 'layout.txt'], 'should end in .json'),
    ],
)
def test_mistakes_are_one_sentence(
    recording: Path, arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['view', str(recording), *arguments]) == 2
    said = capsys.readouterr().err
    assert sentence in said and 'Traceback' not in said


def test_a_recording_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['view', str(tmp_path / 'nothing'), '--tum', str(tmp_path / 'poses')]) == 2
    assert 'nothing' in capsys.readouterr().err
    assert not (tmp_path / 'poses').exists()
