"""Recordings with known content, damaged at random: all is read, a loss is said, or it is refused.

Bytes that are altered and nothing else are seen where the format has a checksum for them; the
format of the sqlite files and of the ROS 1 bags has none, and other writers of MCAP may leave it
out (docs/bags.md).
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
import yaml
from support.damaged_bags import (
    CHECKED,
    KINDS,
    Content,
    content_of,
    damaged,
    make,
    outcome,
    storage_files,
)

from rig_common.errors import RigError
from sensor_rig.bags.reader import BagReader
from sensor_rig.cli.main import main

pytest.importorskip('mcap', reason='mcap is not installed')
VERBS = (
    'inspect',
    'fit',
    'trust',
    'sync',
    'report',
    'degrade',
    'correct',
    'export',
    'assert',
    'view',
)
RIG = """/**:
  ros__parameters:
    streams: {all: {topics: [/imu], delay_range_s: [0.01, 0.01]}}
    sync:
      inputs:
        imu: {topic: /imu, type: sensor_msgs/msg/Imu, latency_s: 0.0, latency_sigma_s: 0.01}
        other: {topic: /mag, type: sensor_msgs/msg/MagneticField, latency_s: 0.0,
          latency_sigma_s: 0.01}
      reference_sensor_id: imu
      required_sensors: [imu]
"""


def fuzz(kind: str, tmp_path: Path, seeds: range) -> Counter[str]:
    """Damage a recording once for each seed and hold what is read against what it held."""
    (tmp_path / 'good').mkdir()
    path = make(kind, tmp_path / 'good')
    truth, problems = content_of(path)
    assert problems == [] and len(truth) > 1
    tally: Counter[str] = Counter()
    for seed in seeds:
        what = damaged(path, tmp_path / path.name, random.Random(seed))
        found = outcome(tmp_path / path.name, truth)
        about = f'{kind}, seed {seed}: {what}: {found.kind}: {found.sentence}'
        assert found.told or (found.kind == 'altered' and kind not in CHECKED), about
        if kind in CHECKED and found.kind == 'lost':
            assert found.lost <= found.counted, about
        tally[found.kind] += 1
    return tally


@pytest.mark.parametrize('kind', KINDS)
def test_nothing_is_lost_in_silence(kind: str, tmp_path: Path) -> None:
    tally = fuzz(kind, tmp_path, range(12))
    assert len(tally) > 1 and tally['refused'] < 12


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize('kind', KINDS)
def test_nothing_is_lost_in_silence_in_a_thousand(kind: str, tmp_path: Path) -> None:
    tally = fuzz(kind, tmp_path, range(1000, 2000))
    print(kind, dict(tally))


@pytest.mark.long
@pytest.mark.timeout(3000)
@pytest.mark.parametrize('kind', ['mcap', 'mcap+zstd', 'db3', 'db3+zstd', 'bag'])
def test_every_verb_says_what_it_lacks(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / 'good').mkdir()
    path = make(kind, tmp_path / 'good', 400)
    truth, _ = content_of(path)
    (tmp_path / 'rig.yaml').write_text(RIG)
    for seed in range(10):
        bag, out = tmp_path / path.name, tmp_path / 'out'
        what = damaged(path, bag, random.Random(seed))
        found = outcome(bag, truth)
        for verb in VERBS:
            shutil.rmtree(out, ignore_errors=True)
            code = main(_command(verb, bag, out, tmp_path / 'rig.yaml'))
            err = capsys.readouterr().err
            about = f'{verb} of {what}, seed {seed}: {code}, {err}'
            assert code in (0, 1, 2) and 'Traceback' not in err, about
            if found.kind == 'refused':
                assert code == 2 and 'error: ' in err, about
            elif found.sentence:
                assert code in (1, 2) and err, about


def _command(verb: str, bag: Path, out: Path, rig: Path) -> list[str]:
    files = [str(bag), str(out)] if verb in ('sync', 'degrade', 'correct') else [str(bag)]
    more = {
        'sync': ['--rig', str(rig)],
        'degrade': ['--rig', str(rig), '--storage', 'mcap'],
        'correct': ['--rig', str(rig), '--storage', 'mcap'],
        'export': ['--rig', str(rig), '--to', 'message_filters'],
        'report': ['--rig', str(rig), '-o', f'{out}.html'],
        'assert': ['--that', 'imu.received > 1'],
        'view': ['--tum', str(out)],
    }
    return [verb, *files, *more.get(verb, [])]


# ---- one kind of damage each --------------------------------------------------------------------


@pytest.fixture
def good(tmp_path: Path) -> tuple[Path, Content]:
    (tmp_path / 'good').mkdir()
    path = make('mcap', tmp_path / 'good')
    return path, content_of(path)[0]


def test_a_bit_in_the_footer_and_one_in_the_length_of_a_message(tmp_path: Path) -> None:
    """What lost more than half of the messages in silence."""
    path = make('mcap', tmp_path, 2000)
    truth, _ = content_of(path)
    file = path / 'drive.mcap'
    data = bytearray(file.read_bytes())
    data[-37 + 10] ^= 4  # where the summary begins
    length = data.index(b'imu_link') - 40
    while data[length] != 5 or int.from_bytes(data[length + 1 : length + 9], 'little') > 1000:
        length -= 1
    data[length + 2] ^= 1
    file.write_bytes(data)
    found, problems = content_of(path)
    lost = sum(map(len, truth.values())) - sum(map(len, found.values()))
    assert lost == 1
    assert 'a chunk does not fit its checksum, so the ' in problems[1]
    assert 'messages, 1 of which make no sense' in problems[1]
    assert '1 of 2000 of /imu' in problems[2]


def test_a_recording_of_one_chunk_whose_checksum_is_wrong_is_read(
    good: tuple[Path, Content],
) -> None:
    """A byte of a payload: everything is there, and how much of it may be altered is said."""
    path, truth = good
    file = path / 'drive.mcap'
    data = bytearray(file.read_bytes())
    data[data.index(b'imu_link') + 60] ^= 1
    file.write_bytes(data)
    found, problems = content_of(path)
    count = sum(map(len, truth.values()))
    assert {topic: len(each) for topic, each in found.items()} == {
        topic: len(each) for topic, each in truth.items()
    }
    assert f'so the {count} messages that are read of it may hold altered bytes' in problems[0]
    assert len(problems) == 1


@pytest.mark.parametrize('kind', ['mcap without checksums', 'bag'])
def test_a_length_of_a_message_costs_that_message(kind: str, tmp_path: Path) -> None:
    """The index of the chunk says where the others are."""
    path = make(kind, tmp_path)
    truth, _ = content_of(path)
    data = bytearray(path.read_bytes())
    place = data.index(b'imu_link', len(data) // 2)
    while kind != 'bag' and data[place] != 5:
        place -= 1
    if kind == 'bag':
        place = data.rindex(b'op=\x02', 0, place)
        place = data.rindex(b'time=', 0, data.index(b'imu_link', place)) + 13
        data[place] ^= 1
    else:
        data[place + 1] ^= 1
    path.write_bytes(data)
    found, problems = content_of(path)
    lost = sum(map(len, truth.values())) - sum(map(len, found.values()))
    assert 1 <= lost <= 3 and problems
    assert any(f'{lost} of which make no sense' in problem for problem in problems), problems


def test_metadata_that_are_missing_or_cut_do_not_matter(good: tuple[Path, Content]) -> None:
    path, truth = good
    metadata = path / 'metadata.yaml'
    text = metadata.read_text()
    for part in (text[:100], text[: len(text) // 2], '', '\x00\x01'):
        metadata.write_text(part)
        found, problems = content_of(path)
        assert found == truth and 'its metadata.yaml is not readable' in problems[0]
    metadata.unlink()
    found, problems = content_of(path)
    assert found == truth and 'there is no metadata.yaml in it' in problems[0]
    metadata.symlink_to(metadata)
    assert content_of(path)[0] == truth


def test_metadata_that_count_wrong_are_said(good: tuple[Path, Content]) -> None:
    path, truth = good
    values = yaml.safe_load((path / 'metadata.yaml').read_text())
    about = values['rosbag2_bagfile_information']['topics_with_message_count']
    about[0]['message_count'] += 7
    (path / 'metadata.yaml').write_text(yaml.safe_dump(values))
    found, problems = content_of(path)
    assert found == truth
    assert problems[0].endswith('lacks messages that it is said to hold: 7 of 207 of /imu')


def split(path: Path, truth: Content) -> Path:
    """Make three files of a recording: one after the other, with one metadata.yaml."""
    folder = path.parent / 'split'
    folder.mkdir()
    from sensor_rig.bags.writer import BagWriter

    values = yaml.safe_load((path / 'metadata.yaml').read_text())
    with BagReader(path) as bag:
        messages = list(bag.messages())
        for part in range(3):
            with BagWriter(path.parent / f'split_{part}') as writer:
                for topic in bag.topics.values():
                    writer.add_topic_like(topic)
                for each in messages[part * 117 : (part + 1) * 117 if part < 2 else None]:
                    writer.write(*each)
            made = path.parent / f'split_{part}'
            shutil.move(made / f'split_{part}.mcap', folder)
    names = [f'split_{part}.mcap' for part in range(3)]
    values['rosbag2_bagfile_information']['relative_file_paths'] = names
    (folder / 'metadata.yaml').write_text(yaml.safe_dump(values))
    return folder


def test_files_of_a_recording_that_are_missing_swapped_or_doubled(
    good: tuple[Path, Content],
) -> None:
    path, truth = good
    folder = split(path, truth)
    first, second, third = storage_files(folder)
    assert content_of(folder) == (truth, [])
    data = [each.read_bytes() for each in (first, second, third)]
    first.write_bytes(data[2])
    third.write_bytes(data[0])
    assert content_of(folder) == (truth, []), 'in order of time, whatever the files are called'
    third.write_bytes(data[2])
    _, problems = content_of(folder)
    assert 'hold the same messages, which are read twice' in ' '.join(problems)
    first.unlink()
    found, problems = content_of(folder)
    assert 'lists the file split_0.mcap, which is not there' in problems[0]
    lost = sum(map(len, truth.values())) - sum(map(len, found.values()))
    assert lost == 117 and 'said to hold: ' in problems[1]
    second.write_bytes(b'')
    found, problems = content_of(folder)
    assert f'nothing of {second} can be read: it is empty' in problems
    (folder / 'metadata.yaml').unlink()
    second.write_bytes(data[1])
    first.write_bytes(data[0])
    assert content_of(folder)[0] == truth


@pytest.mark.parametrize('kind', ['mcap', 'db3', 'bag'])
def test_a_file_with_the_name_of_another_kind_is_read_as_what_it_is(
    kind: str, tmp_path: Path
) -> None:
    path = make(kind, tmp_path)
    truth, _ = content_of(path)
    for name in ('x.mcap', 'x.db3', 'x.bag', 'x.dat', 'x'):
        shutil.copy(storage_files(path)[0], tmp_path / name)
        assert content_of(tmp_path / name)[0] == truth


def test_what_is_no_recording_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    (tmp_path / 'folder').mkdir()
    (tmp_path / 'folder' / 'a.mcap').symlink_to(tmp_path / 'folder' / 'a.mcap')
    for name in ('empty.mcap', 'empty.db3', 'empty.bag', 'empty'):
        (tmp_path / name).touch()
    (tmp_path / 'text.mcap').write_text('no recording at all')
    for path in sorted(tmp_path.iterdir()):
        with pytest.raises(RigError) as caught:
            BagReader(path)
        assert '\n' not in str(caught.value) and str(path) in str(caught.value)


def test_a_recording_without_permission_is_one_sentence(
    good: tuple[Path, Content], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _ = good

    def refuse(*_: object, **__: object) -> object:
        raise PermissionError(13, 'Permission denied')

    monkeypatch.setattr('os.open', refuse)
    with pytest.raises(RigError, match=r'not a readable rosbag2 recording: .*Permission denied'):
        BagReader(path / 'drive.mcap')


def test_without_room_for_a_copy_the_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full TMPDIR is no fault of the recording."""
    path = make('db3', tmp_path)
    file = storage_files(path)[0]
    with file.open('r+b') as handle:
        handle.truncate(file.stat().st_size // 2)
    monkeypatch.setattr('tempfile.tempdir', '/dev/full')
    with pytest.raises(RigError, match='no temporary folder can be made') as caught:
        BagReader(path)
    assert 'not a readable' not in str(caught.value)


OPTIONS: list[dict[str, object]] = [
    {},
    {'use_statistics': False},
    {'use_summary_offsets': False},
    {'repeat_channels': False, 'repeat_schemas': False},
    {'enable_data_crcs': True},
    {'enable_crcs': False},
    {'use_statistics': False, 'repeat_channels': False, 'index_types': 0},
]


@pytest.mark.parametrize('chunked', [True, False])
@pytest.mark.parametrize('compression', ['NONE', 'LZ4', 'ZSTD'])
def test_a_whole_file_of_any_writer_is_no_damage(
    tmp_path: Path, compression: str, chunked: bool
) -> None:
    """With an attachment between the messages, whose times are not in order."""
    from mcap.writer import CompressionType, IndexType, Writer

    for number, options in enumerate(OPTIONS):
        path = tmp_path / f'{number}.mcap'
        if 'index_types' in options:
            options = {**options, 'index_types': IndexType.NONE}
        with path.open('wb') as file:
            writer = Writer(
                file,
                chunk_size=5000,
                compression=CompressionType[compression],
                use_chunking=chunked,
                **options,  # type: ignore[arg-type]
            )
            writer.start('ros2')
            schema = writer.register_schema('sensor_msgs/msg/Imu', '', b'')
            channel = writer.register_channel('/imu', 'cdr', schema)
            writer.add_attachment(5, 5, 'a', 'b', b'\x05' * 3000)
            for index in range(100):
                writer.add_message(channel, 1000 + (index ^ 3), bytes(40), 1000 + index)
            writer.finish()
        found, problems = content_of(path)
        assert problems == [], options
        assert [receive_ns for receive_ns, _ in found['/imu']] == list(range(1000, 1100))
