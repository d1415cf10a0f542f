"""Small recordings that would take gigabytes or minutes are refused in a sentence, or cut."""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import pytest
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rig_common import msgs
from rig_common.errors import RigError
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.storage import base, unpacking
from sensor_rig.bags.storage.base import BrokenError
from sensor_rig.bags.storage.unpacking import zstd
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.main import main

IMU = 'sensor_msgs/msg/Imu'
INFORMATION = 'rosbag2_bagfile_information'
MIB = 1 << 20


def write_bag(path: Path, mode: CompressionMode = CompressionMode.NONE, size: int = 0) -> Path:
    """Write one IMU message with `size` zeros behind it to a sqlite recording."""
    writer = Writer(path, version=9, storage_plugin=StoragePlugin.SQLITE3)
    if mode != CompressionMode.NONE:
        writer.set_compression(mode, CompressionFormat.ZSTD)
    with writer:
        connection = writer.add_connection(
            '/imu', IMU, typestore=get_typestore(Stores.ROS2_KILTED)
        )
        writer.write(connection, 1, msgs.imu('a').fill(1) + bytes(size))
    return path


def chunk(packed: bytes, size: int) -> bytes:
    """Return the record of a chunk of an MCAP."""
    body = struct.pack('<QQQII4sQ', 1, 9, size, 0, 4, b'zstd', len(packed)) + packed
    return struct.pack('<BQ', 6, len(body)) + body


def with_chunks(path: Path, chunks: bytes) -> Path:
    """Return a good MCAP with more chunks behind its header."""
    with BagWriter(path / 'good') as writer:
        writer.add_topic('/imu', IMU)
        for index in range(50):
            writer.write('/imu', index + 1, msgs.imu('a').fill(index))
    good = (path / 'good' / 'good.mcap').read_bytes()
    head = 8 + 9 + int.from_bytes(good[9:17], 'little')
    (path / 'x.mcap').write_bytes(good[:head] + chunks + good[head:])
    return path / 'x.mcap'


def test_deep_nesting_is_refused_before_it_takes_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_bag(tmp_path / 'bag')
    (path / 'metadata.yaml').write_text('[' * 100_000 + ']' * 100_000)
    begun = time.process_time()
    assert main(['inspect', str(path)]) == 2
    assert time.process_time() - begun < 3.0
    assert 'metadata.yaml is nested more than 32 deep' in ' '.join(capsys.readouterr().err.split())


@pytest.mark.parametrize('where', ['name', 'custom_data', 'file'])
def test_aliases_are_refused_before_they_take_time(
    tmp_path: Path, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nine lists of nine names of the list before are 10^9 values in a few hundred characters."""
    path = write_bag(tmp_path / 'bag')
    metadata = path / 'metadata.yaml'
    nested: list[object] = ['x'] * 9
    for _ in range(9):
        nested = [nested] * 9
    values = yaml.safe_load(metadata.read_text())
    about = values[INFORMATION]
    if where == 'name':
        about['topics_with_message_count'][0]['topic_metadata']['name'] = nested
    elif where == 'file':
        about['relative_file_paths'] = nested
    else:
        about['custom_data'] = {'a': nested}
    metadata.write_text(yaml.safe_dump(values))
    assert metadata.stat().st_size < 4000
    begun = time.process_time()
    assert main(['inspect', str(path)]) == 2
    assert time.process_time() - begun < 3.0
    assert 'uses a YAML alias (*id001)' in ' '.join(capsys.readouterr().err.split())


def test_a_file_that_is_named_often_is_not_read_often(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag')
    metadata = path / 'metadata.yaml'
    values = yaml.safe_load(metadata.read_text())
    values[INFORMATION]['relative_file_paths'] *= 5000
    metadata.write_text(yaml.safe_dump(values))
    with pytest.raises(RigError, match=r'metadata\.yaml names the file bag\.db3 5000 times'):
        BagReader(path)


def test_a_packed_file_that_unpacks_to_too_much_is_read_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bag(tmp_path / 'bag', CompressionMode.FILE, 4 * MIB)
    with BagReader(path) as bag:
        (message,) = bag.messages()
        assert len(message.raw) > 4 * MIB
    monkeypatch.setattr(unpacking, 'SMALLEST_TOTAL', MIB)
    with pytest.raises(RigError, match='is damaged: it holds more than 1 MiB'):
        BagReader(path)


def test_a_packed_message_that_unpacks_to_too_much_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bag(tmp_path / 'bag', CompressionMode.MESSAGE, 4 * MIB)
    monkeypatch.setattr(unpacking, 'SMALLEST_LIMIT', MIB)
    with BagReader(path) as bag:
        assert list(bag.messages()) == []
    assert '1 messages of' in bag.problems[0] and 'holds more than 1 MiB' in bag.problems[0]
    assert bag.problems[1].endswith('said to hold: 1 of 1 of /imu')


def test_a_packed_message_that_breaks_off_is_said() -> None:
    with pytest.raises(BrokenError, match='a packed message breaks off'):
        unpacking.unpacked_message(zstd.compress(bytes(1000))[:-4], unpacking.Budget(1000))


def test_a_chunk_out_of_proportion_is_not_unpacked(tmp_path: Path) -> None:
    """The 33 kB that hold a gigabyte of zeros took 146 s and 3.2 GiB; thirty of them, an hour."""
    packed = zstd.compress(bytes(300 * MIB))
    path = with_chunks(tmp_path, 30 * chunk(packed, 300 * MIB))
    begun = time.process_time()
    with BagReader(path) as bag:
        assert len(list(bag.messages())) == 50
    assert time.process_time() - begun < 5.0
    assert 'said to unpack to 300 MiB, which is out of proportion' in bag.problems[0]
    assert 'is damaged at 25 more places' in bag.problems[-1]


@pytest.mark.parametrize('kind', [0, 3, 0x80])
def test_a_chunk_of_empty_records_takes_no_minutes(tmp_path: Path, kind: int) -> None:
    """Ten million records of nine bytes; their number is bounded by the size of the file."""
    data = bytes([kind, *bytes(8)]) * 10_000_000
    path = with_chunks(tmp_path, chunk(zstd.compress(data), len(data)))
    begun = time.process_time()
    with BagReader(path) as bag:
        assert len(list(bag.messages())) == 50
        assert bag.problems
    assert time.process_time() - begun < 10.0


def test_all_chunks_together_have_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, 'SMALLEST_TOTAL', 64 * MIB)
    monkeypatch.setattr(unpacking, 'LARGEST_RATIO', 1)
    monkeypatch.setattr(base, 'TOLD', 100)
    data = bytes(8 * MIB)
    path = with_chunks(tmp_path, 10 * chunk(zstd.compress(data), len(data)))
    with BagReader(path) as bag:
        list(bag.messages())
    assert any('would unpack to more than 64 MiB' in problem for problem in bag.problems)


@pytest.mark.parametrize('suffix', ['mcap', 'db3', 'bag'])
def test_a_hole_of_a_terabyte_is_not_read(tmp_path: Path, suffix: str) -> None:
    """A sparse file: some good bytes, and a size that no disk has."""
    if suffix == 'bag':
        head = b'#ROSBAG V2.0\n'
    else:
        with BagWriter(tmp_path / 'bag', 'mcap' if suffix == 'mcap' else 'sqlite3') as writer:
            writer.add_topic('/imu', IMU)
            for index in range(50):
                writer.write('/imu', index + 1, msgs.imu('a').fill(index))
        head = (tmp_path / 'bag' / f'bag.{suffix}').read_bytes()[:-40]
    path = tmp_path / f'x.{suffix}'
    path.write_bytes(head)
    os.truncate(path, 1 << 40)
    begun = time.process_time()
    try:
        with BagReader(path) as bag:
            assert len(list(bag.messages())) == 50
    except RigError:
        assert suffix == 'bag'
    assert time.process_time() - begun < 5.0
