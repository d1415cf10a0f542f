"""Small recordings that would take gigabytes or minutes are refused in a sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from rig_common import msgs
from rig_common.errors import RigError
from sensor_rig.bags import bounds
from sensor_rig.bags.reader import BagReader
from sensor_rig.cli.main import main

IMU = 'sensor_msgs/msg/Imu'
INFORMATION = 'rosbag2_bagfile_information'


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


def test_deep_nesting_is_refused_before_it_takes_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_bag(tmp_path / 'bag')
    (path / 'metadata.yaml').write_text('[' * 100_000 + ']' * 100_000)
    begun = time.process_time()
    assert main(['inspect', str(path)]) == 2
    assert time.process_time() - begun < 3.0
    assert 'metadata.yaml is nested more than 32 deep' in ' '.join(capsys.readouterr().err.split())


def test_a_file_that_is_named_often_is_not_read_often(tmp_path: Path) -> None:
    path = write_bag(tmp_path / 'bag')
    metadata = path / 'metadata.yaml'
    values = yaml.safe_load(metadata.read_text())
    values[INFORMATION]['relative_file_paths'] *= 5000
    metadata.write_text(yaml.safe_dump(values))
    with pytest.raises(RigError, match=r'metadata\.yaml names the file bag\.db3 5000 times'):
        BagReader(path)


@pytest.mark.parametrize(
    ('mode', 'what'),
    [(CompressionMode.FILE, 'a packed file of it'), (CompressionMode.MESSAGE, 'a packed message')],
)
def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: CompressionMode, what: str
) -> None:
    path = write_bag(tmp_path / 'bag', mode, 1 << 22)
    with BagReader(path) as bag:
        (message,) = bag.messages()
        assert len(message.raw) > 1 << 22
    monkeypatch.setattr(bounds, 'SMALLEST_LIMIT', 1 << 20)
    with pytest.raises(RigError, match=f'{what} holds more than 1 MiB'):
        list(BagReader(path).messages())


def test_a_packed_message_that_breaks_off_is_said() -> None:
    with pytest.raises(RigError, match='a packed message breaks off'):
        bounds.BoundedZstd.decompress(bounds.zstd.compress(bytes(1000))[:-4])
