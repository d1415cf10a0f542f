"""Recordings that are broken, or made to harm: salvaged, refused in a sentence, shown as text."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import struct
import threading
import time
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rig_common import msgs
from rig_common.errors import RigError
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.storage.sqlite_pages import message_rows
from sensor_rig.bags.writer import STORAGES, BagWriter, Storage
from sensor_rig.cli.main import main

IMU, MAG = 'sensor_msgs/msg/Imu', 'sensor_msgs/msg/MagneticField'
MS = 1_000_000
START_NS = 1_700_000_000_000_000_000
RIG = """/**:
  ros__parameters:
    sync:
      inputs:
        imu: {topic: /imu, type: sensor_msgs/msg/Imu, latency_s: 0.0, latency_sigma_s: 0.01}
        mag: {topic: /mag, type: sensor_msgs/msg/MagneticField, latency_s: 0.0,
          latency_sigma_s: 0.01}
      reference_sensor_id: imu
      required_sensors: [imu, mag]
"""


def write_bag(
    path: Path,
    storage: Storage = 'mcap',
    *,
    count: int = 3000,
    compress: bool = False,
    times: tuple[int, ...] = (),
    stamps: tuple[int, ...] = (),
) -> Path:
    """Write `count` pairs of messages 10 ms apart; `times` and `stamps` replace the first ones."""
    imu, mag = msgs.imu('imu_link'), msgs.magnetic_field('mag_link')
    with BagWriter(path, storage, compress=compress) as writer:
        writer.add_topic('/imu', imu.type_name)
        writer.add_topic('/mag', mag.type_name)
        for index in range(count):
            receive_ns = times[index] if index < len(times) else START_NS + index * 10 * MS
            stamp_ns = stamps[index] if index < len(stamps) else START_NS + index * 10 * MS
            for topic, template in (('/imu', imu), ('/mag', mag)):
                raw = bytearray(template.fill(0))
                sec, nanosec = divmod(stamp_ns, 10**9)
                struct.pack_into('<iI', raw, 4, sec, nanosec)
                writer.write(topic, receive_ns, bytes(raw))
    return path


def storage_file(path: Path) -> Path:
    return next(each for each in path.iterdir() if each.suffix in ('.mcap', '.db3'))


def cut(path: Path, fraction: float) -> None:
    file = storage_file(path)
    with file.open('r+b') as handle:
        handle.truncate(int(file.stat().st_size * fraction))


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    (tmp_path / 'rig.yaml').write_text(RIG)
    return tmp_path / 'rig.yaml'


# ---- cut off ------------------------------------------------------------------------------------


@pytest.mark.parametrize('fraction', [0.12, 0.5, 0.97])
@pytest.mark.parametrize(
    ('storage', 'compress'),
    [('mcap', False), ('mcap', True), ('sqlite3', False), ('sqlite3', True)],
)
def test_everything_before_the_break_is_read(
    tmp_path: Path, storage: Storage, compress: bool, fraction: float
) -> None:
    path = write_bag(tmp_path / 'bag', storage, compress=compress)
    with BagReader(path) as bag:
        whole = list(bag.messages())
    cut(path, fraction)
    for given in (path, storage_file(path)):
        with BagReader(given) as bag:
            found = list(bag.messages())
            assert 'damaged' in bag.problems[0]
            lost = re.findall(r'(\d+) of 3000 of', bag.problems[-1])
            assert given != path or sum(map(int, lost)) == len(whole) - len(found)
            assert bag.message_count == len(found)
            assert sum(topic.message_count for topic in bag.topics.values()) == len(found)
        assert found == whole[: len(found)]
    # Compressed bytes are not spread evenly, and the last pages or chunk may be incomplete.
    assert len(found) > len(whole) * (fraction - 0.1) - 500


def test_a_recording_of_several_chunks_keeps_all_that_are_whole(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag', count=8000)
    size = storage_file(path).stat().st_size
    assert size > 4 << 20, 'several chunks of a mebibyte'
    cut(path, 0.6)
    with BagReader(path) as bag:
        assert len(list(bag.messages())) > 0.55 * 16_000


def test_what_is_cut_to_nothing_is_refused(tmp_path: Path) -> None:
    for storage in STORAGES:
        path = write_bag(tmp_path / storage, storage, count=5)
        for size in (0, 8, 60):
            with storage_file(path).open('r+b') as handle:
                handle.truncate(size)
            with pytest.raises(RigError, match='not a readable rosbag2 recording'):
                BagReader(path)
            assert not list(Path('/tmp').glob('sensor_rig_*/bag.part'))


def test_damage_in_the_middle_costs_one_chunk(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag', count=8000, compress=True)
    file = storage_file(path)
    data = bytearray(file.read_bytes())
    chunk = data.index(b'\x28\xb5\x2f\xfd', len(data) // 2)  # where a zstd frame begins
    data[chunk : chunk + 64] = bytes(64)
    file.write_bytes(data)
    with BagReader(path) as bag:
        found = list(bag.messages())
        assert 0.5 * 16_000 < len(found) < 16_000
        lost = re.findall(r'(\d+) of 8000 of', bag.problems[-1])
        assert sum(map(int, lost)) == 16_000 - len(found)
        assert f'so its {16_000 - len(found)} messages are left out' in bag.problems[0]


def test_the_verbs_write_their_result_and_end_with_1(
    tmp_path: Path, rig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_bag(tmp_path / 'bag')
    cut(path, 0.5)
    out = tmp_path / 'out'
    assert main(['sync', str(path), str(out), '--rig', str(rig), '--json']) == 1
    shown = capsys.readouterr()
    assert (out / 'report.html').is_file() and (out / 'metadata.yaml').is_file()
    assert json.loads(shown.out)['bundles'] > 1000
    assert 'damaged' in json.loads(shown.out)['problems'][0] and 'damaged' in shown.err
    page = tmp_path / 'page.html'
    assert main(['report', str(path), '--rig', str(rig), '-o', str(page)]) == 1
    assert page.is_file()
    assert main(['inspect', str(path), '--write', str(tmp_path / 'made.yaml')]) == 1
    assert (tmp_path / 'made.yaml').is_file()


def test_messages_out_of_order_in_a_file_without_summary_come_in_order(tmp_path: Path) -> None:
    times = tuple(START_NS + (3000 - index) * MS for index in range(3000))
    path = write_bag(tmp_path / 'bag', times=times)
    file = storage_file(path)
    data = file.read_bytes()
    summary = int.from_bytes(data[-28:-20], 'little')
    file.write_bytes(data[:summary])
    with BagReader(path) as bag:
        found = [message.receive_ns for message in bag.messages()]
    assert len(found) == 6000 and found == sorted(found)


def test_a_record_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    """Found by tools/fuzz: a size of 2^39 bytes was asked of the system."""
    path = tmp_path / 'x.mcap'
    good = storage_file(write_bag(tmp_path / 'bag', count=50)).read_bytes()
    header = 9 + int.from_bytes(good[9:17], 'little')
    path.write_bytes(good[: 8 + header] + b'\x05' + (1 << 39).to_bytes(8, 'little') + good[100:])
    tracemalloc.start()
    with BagReader(path) as bag:
        assert 90 < len(list(bag.messages())) <= 100
        assert 'bytes make no sense, and it is read on behind them' in bag.problems[0]
    assert tracemalloc.get_traced_memory()[1] < 1 << 26
    tracemalloc.stop()


def test_chunks_without_an_index_of_their_messages_are_read(tmp_path: Path) -> None:
    """The format allows it (`noMessageIndex` of rosbag2); rosbags finds no message in them."""
    mcap = pytest.importorskip('mcap.writer', reason='mcap is not installed')
    path = tmp_path / 'x.mcap'
    with path.open('wb') as file:
        writer = mcap.Writer(file, index_types=mcap.IndexType.ALL ^ mcap.IndexType.MESSAGE)
        writer.start('ros2')
        types = get_typestore(Stores.ROS2_KILTED)
        text = types.generate_msgdef(IMU, ros_version=2)[0]
        channel = writer.register_channel(
            '/imu', 'cdr', writer.register_schema(IMU, 'ros2msg', text.encode())
        )
        for index in range(50):
            writer.add_message(channel, START_NS + index, msgs.imu('a').fill(5), START_NS + index)
        writer.finish()
    with BagReader(path) as bag:
        assert len(list(bag.messages())) == bag.message_count == 50
        assert bag.problems == []


@pytest.mark.parametrize(('text', 'known'), [('int32 a\n', True), ('x/B b\n', False)])
def test_a_type_of_the_recordings_own_without_a_hash_is_copied(
    tmp_path: Path, text: str, known: bool
) -> None:
    """MCAP of Humble has definitions and no hashes; a type that nobody defines stays unknown."""
    mcap = pytest.importorskip('mcap.writer', reason='mcap is not installed')
    with (tmp_path / 'x.mcap').open('wb') as file:
        writer = mcap.Writer(file)
        writer.start('ros2')
        for name, type_name, definition in (('/x', 'x/msg/A', text), ('/imu', IMU, '')):
            channel = writer.register_channel(
                name,
                'cdr',
                writer.register_schema(
                    type_name, 'ros2msg' if definition else '', definition.encode()
                ),
            )
            writer.add_message(channel, START_NS, msgs.imu('a').fill(START_NS), START_NS)
        writer.finish()
    (tmp_path / 'rig.yaml').write_text(
        '/**:\n  ros__parameters:\n    streams:\n      imu: '
        '{topics: [/imu], delay_range_s: [0.01, 0.02]}\n'
    )
    out = tmp_path / 'out'
    code = main(
        ['degrade', str(tmp_path / 'x.mcap'), str(out), '--rig', str(tmp_path / 'rig.yaml')]
    )
    assert code == (0 if known else 2) and out.exists() == known
    if known:
        with BagReader(out) as bag:
            assert bag.topics['/x'].definition[0].strip() == 'int32 a'


def test_pages_that_all_rows_claim_are_not_read_for_each(tmp_path: Path) -> None:
    page, pages = 512, 200
    data = bytearray(page * pages)
    size = page * pages - 4096  # of a row whose chain of pages goes through the whole file
    cell = bytes(
        (
            0x80 | size >> 14,
            0x80 | size >> 7 & 0x7F,
            size & 0x7F,
            1,
            7,
            0,
            1,
            6,
            0x80 | (2 * size) >> 14 & 0x7F,
            0x80 | (2 * size) >> 7 & 0x7F,
            0,
        )
    )
    for number in range(1, pages):
        struct.pack_into('>I', data, number * page, number + 1)
    for number in range(1, 21):
        data[number * page] = 0x0D
        struct.pack_into('>H', data, number * page + 3, 200)
        for index in range(200):
            struct.pack_into('>H', data, number * page + 8 + 2 * index, 420)
        data[number * page + 420 : number * page + 420 + len(cell)] = cell
    begun = time.process_time()
    assert len(list(message_rows(bytes(data), page))) <= 17
    assert time.process_time() - begun < 1.0


# ---- what a table of sqlite can hold ------------------------------------------------------------


@pytest.mark.parametrize(
    'row',
    [
        "timestamp = 'noon'",
        'timestamp = 1e300',
        "data = 'text'",
        'data = NULL',
        'data = 100000000000',
    ],
)
def test_a_row_that_is_no_message_is_left_out(tmp_path: Path, row: str) -> None:
    path = write_bag(tmp_path / 'bag', 'sqlite3', count=20)
    change(
        path,
        'CREATE TABLE copy AS SELECT * FROM messages',
        'DROP TABLE messages',
        'ALTER TABLE copy RENAME TO messages',
        f'UPDATE messages SET {row} WHERE id = 21',
    )
    with BagReader(path) as bag:
        found = list(bag.messages())
    assert bag.problems[0].endswith('1 rows are no messages and are left out')
    assert len(found) == 39


def test_a_view_without_end_is_not_counted(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag', 'sqlite3', count=5)
    change(
        path,
        'DROP TABLE messages',
        'CREATE VIEW messages AS WITH RECURSIVE c(id) AS (SELECT '
        "1 UNION ALL SELECT id + 1 FROM c) SELECT id, 1 AS topic_id, id AS timestamp, x'00' AS "
        'data FROM c',
    )
    with pytest.raises(RigError, match='not a readable rosbag2 recording'):
        BagReader(path)


def change(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(storage_file(path))) as database:
        for command in commands:
            database.execute(command)
        database.commit()


# ---- what metadata.yaml says --------------------------------------------------------------------


def test_topics_that_metadata_lack_are_read_and_strays_are_missed(
    tmp_path: Path,
) -> None:
    path = write_bag(tmp_path / 'unlisted', count=20)
    change_metadata(path, lambda about: about['topics_with_message_count'].pop())
    with BagReader(path) as bag:
        assert len(list(bag.messages())) == 40
        assert bag.problems == []
    path = write_bag(tmp_path / 'stray', 'sqlite3', count=20)
    change(path, 'UPDATE messages SET topic_id = 7 WHERE id > 30')
    for given in (path, storage_file(path)):
        with BagReader(given) as bag:
            assert len(list(bag.messages())) == 30
            assert '10 messages belong to no topic' in bag.problems[0]
            assert 'said to hold: 5 of 20 of /imu, 5 of 20 of /mag' in bag.problems[1]


def test_custom_data_that_make_no_sense_are_passed_over(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag', count=5)
    for custom in (['a'], {'a': ['x'], 'b': 5}):
        change_metadata(path, lambda about, custom=custom: about.update(custom_data=custom))
        with BagReader(path) as bag:
            assert len(list(bag.messages())) == 10
            assert bag.note == ({} if isinstance(custom, list) else {'b': '5'})
    change_metadata(
        path, lambda about: about['topics_with_message_count'][0].update(message_count='many')
    )
    with BagReader(path) as bag:
        assert len(list(bag.messages())) == 10
        assert "/imu is said to have 'many' messages" in bag.problems[0]


def change_metadata(path: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    file = path / 'metadata.yaml'
    values = yaml.safe_load(file.read_text())
    edit(values['rosbag2_bagfile_information'])
    file.write_text(yaml.safe_dump(values))


@pytest.mark.parametrize('name', ['a#b', 'a?mode=memory', 'a%20b'])
def test_signs_of_a_uri_in_a_path_are_part_of_its_name(tmp_path: Path, name: str) -> None:
    path = write_bag(tmp_path / 'bag', 'sqlite3', count=5).rename(tmp_path / name)
    shutil.copy(storage_file(path), tmp_path / f'{name}.db3')
    for given in (path, tmp_path / f'{name}.db3'):
        with BagReader(given) as bag:
            assert len(list(bag.messages())) == 10
            assert bag.problems == [] and bag.path == given
    with pytest.raises(RigError, match='sqlite cannot write there'):
        BagWriter(tmp_path / f'{name}2', 'sqlite3')


# ---- changes beside the file --------------------------------------------------------------------


def test_a_log_beside_the_file_is_read_and_nothing_is_written_there(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag', 'sqlite3', count=100)
    file = storage_file(path)
    with closing(sqlite3.connect(file)) as database:
        assert database.execute('PRAGMA journal_mode=WAL').fetchone() == ('wal',)
        database.execute('PRAGMA wal_autocheckpoint=0')
        rows = database.execute('SELECT topic_id, timestamp, data FROM messages').fetchall()
        database.executemany(
            'INSERT INTO messages(topic_id, timestamp, data) VALUES(?, ?, ?)',
            [(topic, time + 10**9, data) for topic, time, data in rows],
        )
        database.commit()
        copied = tmp_path / 'killed'
        shutil.copytree(path, copied)  # as a recorder that is killed leaves it
    before = {each.name: each.read_bytes() for each in copied.iterdir()}
    assert before[file.name + '-wal']
    with BagReader(copied) as bag:
        assert len(list(bag.messages())) == 400
        assert bag.problems == []
    assert {each.name: each.read_bytes() for each in copied.iterdir()} == before


# ---- two types on one topic ---------------------------------------------------------------------


@pytest.mark.parametrize('storage', list(StoragePlugin))
def test_a_topic_with_two_types_is_read_as_one_of_them(
    tmp_path: Path, storage: StoragePlugin
) -> None:
    types = get_typestore(Stores.ROS2_KILTED)
    imu, mag = msgs.imu('a').fill(5), msgs.magnetic_field('b').fill(5)
    with Writer(tmp_path / 'bag', version=8, storage_plugin=storage) as writer:
        first = writer.add_connection('/x', MAG, typestore=types)
        second = writer.add_connection('/x', IMU, typestore=types)
        for index in range(10):
            writer.write(second if index % 3 else first, index, imu if index % 3 else mag)
    with BagReader(tmp_path / 'bag') as bag:
        assert {
            name: (topic.type_name, topic.message_count) for name, topic in bag.topics.items()
        } == {'/x': (IMU, 6)}
        assert [message.raw for message in bag.messages()] == [imu] * 6
        assert bag.problems == [
            f'/x of {tmp_path / "bag"} has several types: it is read as '
            f'{IMU}, and 4 messages of {MAG} are left out'
        ]


# ---- times at the edges -------------------------------------------------------------------------

INT64_MAX, UINT64_MAX = 2**63 - 1, 2**64 - 1
EDGES_NS = {
    'stamps at the last second of int32': ((), (0, (2**31 - 1) * 10**9 + 999_999_999) * 5),
    'negative stamps': ((), (-(2**31) * 10**9, -1) * 5),
    'receive times near the end of int64': ((0, 1, INT64_MAX - 5, INT64_MAX - 1), ()),
    'receive times at the end of int64': ((INT64_MAX,) * 30, ()),
    'everything at once': ((0, INT64_MAX), (-(2**31) * 10**9, (2**31 - 1) * 10**9)),
}


@pytest.mark.parametrize('storage', STORAGES)
@pytest.mark.parametrize('edge', list(EDGES_NS))
def test_every_time_that_the_format_can_hold_is_handled(
    tmp_path: Path, rig: Path, storage: Storage, edge: str, capsys: pytest.CaptureFixture[str]
) -> None:
    times, stamps = EDGES_NS[edge]
    path = write_bag(tmp_path / 'bag', storage, count=30, times=times, stamps=stamps)
    for out_storage in STORAGES:
        out = tmp_path / f'out_{out_storage}'
        assert main(
            [
                'sync',
                str(path),
                str(out),
                '--rig',
                str(rig),
                '--storage',
                out_storage,
                '--copy',
                '--json',
            ]
        ) in (0, 1)
        counts = [
            sensor['counts'] for sensor in json.loads(capsys.readouterr().out)['sensors'].values()
        ]
        for each in counts:
            received = each.pop('received')
            assert received == 30 == sum(each.values())
        assert (out / 'report.html').is_file()
        with BagReader(out) as bag:
            assert bag.topics['/imu'].message_count == 30
    assert main(['report', str(path), '--rig', str(rig)]) in (0, 1)
    assert main(['inspect', str(path), '--write', str(tmp_path / 'made.yaml')]) in (0, 1, 2)
    for verb in ('fit', 'trust'):  # in a moment, whatever centuries lie between the messages
        assert main([verb, str(path)]) in (0, 1, 2)
    assert 'Traceback' not in capsys.readouterr().err


def test_receive_times_above_int64_are_handled(tmp_path: Path, rig: Path) -> None:
    path = write_bag(tmp_path / 'bag', count=20, times=(UINT64_MAX - 1,) * 3)
    assert main(['sync', str(path), str(tmp_path / 'out'), '--rig', str(rig)]) in (0, 1)
    assert main(['inspect', str(path)]) in (0, 1)


def test_a_run_that_fails_leaves_nothing(
    tmp_path: Path, rig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bag(tmp_path / 'bag', count=30)

    def fail(*_: object) -> Path:
        raise RigError('the page could not be made')

    monkeypatch.setattr('sensor_rig.syncing.bag_sync.write_report', fail)
    assert main(['sync', str(path), str(tmp_path / 'out'), '--rig', str(rig)]) == 2
    assert not (tmp_path / 'out').exists()


# ---- hostile text -------------------------------------------------------------------------------

HOSTILE = '/a\x1b[2J[red]\n      evil: {topic: /b} # <script>alert(1)</script>'


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Return a recording whose topic name and frame id are made to harm."""
    imu = msgs.imu(HOSTILE)
    with BagWriter(tmp_path / 'bag') as writer:
        for topic in ('/imu', HOSTILE):
            writer.add_topic(topic, imu.type_name)
            for index in range(50):
                writer.write(topic, START_NS + index * MS, imu.fill(START_NS + index * MS))
    return tmp_path / 'bag'


def test_hostile_names_are_shown_as_text(
    hostile: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = tmp_path / 'made.yaml'
    main(['inspect', str(hostile), '--write', str(made)])
    shown = capsys.readouterr()
    assert '\x1b' not in shown.out + shown.err
    assert '[red]' in shown.out and '\\x1b[2J' in shown.out
    assert 'evil' not in made.read_text() and 'script' not in made.read_text()
    assert main(['check', str(made)]) == 0
    main(['inspect', str(hostile), '--json'])
    assert '\x1b' not in capsys.readouterr().out


def test_hostile_names_in_a_report_are_escaped(hostile: Path, tmp_path: Path) -> None:
    rig = tmp_path / 'rig.yaml'
    rig.write_text(
        RIG.replace('/mag', '/other')
        .replace('MagneticField', 'Imu')
        .replace('required_sensors: [imu, mag]', 'required_sensors: [imu]')
    )
    named = hostile.rename(tmp_path / '<script>alert(2)<!--')
    page = tmp_path / 'page.html'
    assert main(['report', str(named), '--rig', str(rig), '-o', str(page)]) == 0
    assert '<script>alert' not in page.read_text() and 'alert(2)' in page.read_text()


def test_a_name_of_a_million_characters_is_cut_where_it_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rig: Path
) -> None:
    with BagWriter(tmp_path / 'bag') as writer:
        writer.add_topic('/' + 1_000_000 * 'a', IMU)
        for index in range(50):
            writer.write('/' + 1_000_000 * 'a', START_NS + index * MS, msgs.imu('a').fill(index))
    for command in (
        ['sync', str(tmp_path / 'bag'), str(tmp_path / 'out'), '--rig', str(rig)],
        ['inspect', str(tmp_path / 'bag')],
        ['fit', str(tmp_path / 'bag')],
    ):
        main(command)
        assert len(capsys.readouterr().err) < 5000


# ---- what is no file ----------------------------------------------------------------------------


@pytest.mark.parametrize('kind', ['recording', 'rig', 'extends', 'model'])
def test_a_pipe_or_device_is_refused_and_not_read_for_ever(
    tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, place in (('pipe', tmp_path / 'pipe.xml'), ('device', Path('/dev/zero'))):
        if name == 'pipe':
            os.mkfifo(place)
        rig = tmp_path / f'{name}.yaml'
        if kind == 'extends':
            rig.write_text(f'/**:\n  ros__parameters:\n    extends: {place}\n    seed: 1\n')
        else:
            rig.write_text(
                f'/**:\n  ros__parameters:\n    seed: 1\n    world: {{model: {place}, '
                f'timestep_s: 0.001, allow_outside_files: true}}\n    sensors:\n'
                f'      a: {{type: imu, mount: {{body: b}}, rate_hz: 10.0}}\n'
            )
        command = (
            ['inspect', str(place)]
            if kind == 'recording'
            else ['check', str(place if kind == 'rig' else rig)]
        )
        ended = _code_of(command)
        assert ended == 2, f'{kind} {name} is being read'
        assert 'error: ' in capsys.readouterr().err


@pytest.mark.parametrize('name', ['metadata.yaml', 'bag.mcap'])
def test_a_pipe_in_the_folder_of_a_recording_is_refused(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_bag(tmp_path / 'bag', count=5)
    (path / name).unlink()
    os.mkfifo(path / name)
    assert _code_of(['inspect', str(path)]) == 2
    assert f'{name} in it is neither a file nor a folder' in capsys.readouterr().err


def _code_of(command: list[str]) -> int | None:
    """Return the exit code, or None where the command is still reading after 20 s."""
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(command)), daemon=True)
    thread.start()
    thread.join(20.0)
    return codes[0] if codes else None
