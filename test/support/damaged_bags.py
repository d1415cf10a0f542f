"""Recordings with known content, and damage of many kinds for them."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.typesys import Stores, get_typestore

from rig_common import msgs
from rig_common.errors import RigError
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter

START_NS = 1_700_000_000_000_000_000
MS = 1_000_000
KINDS = ('mcap', 'mcap+zstd', 'mcap without checksums', 'mcap without chunks', 'db3', 'db3+zstd')
KINDS += ('bag', 'bag+bz2')
CHECKED = ('mcap', 'mcap+zstd')
"""Kinds in which every byte of a message is covered by a checksum."""
Content = dict[str, list[tuple[int, bytes]]]
"""Receive times and bytes of the messages of every topic."""


class Outcome(NamedTuple):
    """What became of a damaged recording."""

    kind: str
    """`whole`, `lost`, `altered` (all are there, bytes differ), `refused`."""
    told: bool
    """Whether a sentence with a number says so."""
    sentence: str
    lost: int = 0
    """How many messages are missing."""
    counted: int = 0
    """How many the recording is said to lack."""


def make(kind: str, folder: Path, count: int = 200) -> Path:
    """Write a recording; of several chunks, with small and larger messages on three topics."""
    if kind.startswith('bag'):
        return _make_ros1(folder / 'drive.bag', count, packed=kind.endswith('bz2'))
    if kind == 'mcap without checksums':
        return _make_plain(folder / 'drive.mcap', count, chunked=True)
    if kind == 'mcap without chunks':
        return _make_plain(folder / 'drive.mcap', count, chunked=False)
    storage, _, packed = kind.partition('+')
    path = folder / 'drive'
    with BagWriter(path, 'mcap' if storage == 'mcap' else 'sqlite3', compress=bool(packed)) as bag:
        for topic, receive_ns, type_name, raw in _stream(count):
            bag.add_topic(topic, type_name)
            bag.write(topic, receive_ns, raw)
    return path


def _stream(count: int) -> Iterator[tuple[str, int, str, bytes]]:
    """Yield (topic, receive time, type, bytes) of an IMU, a magnetometer and a small camera."""
    imu, mag = msgs.imu('imu_link'), msgs.magnetic_field('mag_link')
    image = msgs.image('camera', 60, 80, 'mono8')
    pixels = np.random.default_rng(1)
    for index in range(count):
        now_ns = START_NS + index * 10 * MS
        yield '/imu', now_ns, imu.type_name, bytes(imu.fill(now_ns - MS))
        if index % 2 == 0:
            yield '/mag', now_ns + MS, mag.type_name, bytes(mag.fill(now_ns))
        if index % 4 == 0:
            data = pixels.integers(0, 255, (60, 80), np.uint8)
            yield '/camera', now_ns + 2 * MS, image.type_name, bytes(image.fill(now_ns, data=data))


def _make_plain(path: Path, count: int, *, chunked: bool) -> Path:
    """Write an MCAP with the format's own writer, without any checksum."""
    from mcap.writer import CompressionType, Writer

    types = get_typestore(Stores.ROS2_KILTED)
    with path.open('wb') as file:
        writer = Writer(
            file,
            chunk_size=1 << 16,
            compression=CompressionType.NONE,
            use_chunking=chunked,
            enable_crcs=False,
        )
        writer.start('ros2')
        channels: dict[str, int] = {}
        for number, (topic, receive_ns, type_name, raw) in enumerate(_stream(count)):
            if topic not in channels:
                text = types.generate_msgdef(type_name, ros_version=2)[0]
                schema = writer.register_schema(type_name, 'ros2msg', text.encode())
                channels[topic] = writer.register_channel(topic, 'cdr', schema)
            writer.add_message(channels[topic], receive_ns, raw, receive_ns, sequence=number)
        writer.finish()
    return path


def _make_ros1(path: Path, count: int, *, packed: bool) -> Path:
    store = get_typestore(Stores.ROS1_NOETIC)
    types: Any = store.types
    kinds = {'/imu': 'sensor_msgs/msg/Imu', '/name': 'std_msgs/msg/String'}
    vector, header = types['geometry_msgs/msg/Vector3'], types['std_msgs/msg/Header']
    writer = Ros1Writer(path)
    if packed:
        writer.set_compression(Ros1Writer.CompressionFormat.BZ2)
    writer.chunk_threshold = 1 << 15
    with writer:
        known = {
            topic: writer.add_connection(topic, kind, typestore=store)
            for topic, kind in kinds.items()
        }
        for k in range(count):
            now_ns = START_NS + k * 10 * MS
            stamp = types['builtin_interfaces/msg/Time'](*divmod(now_ns, 10**9))
            message = types[kinds['/imu']](
                header(k, stamp, 'imu_link'),
                types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0),
                np.zeros(9),
                vector(0.1 * k, 0.0, 0.0),
                np.zeros(9),
                vector(0.0, 0.0, 9.8),
                np.zeros(9),
            )
            writer.write(known['/imu'], now_ns, store.serialize_ros1(message, kinds['/imu']))
            if k % 3 == 0:
                text = types[kinds['/name']](f'message {k} ' + 40 * 'x')
                raw = store.serialize_ros1(text, kinds['/name'])
                writer.write(known['/name'], now_ns + MS, raw)
    return path


def content_of(path: Path) -> tuple[Content, list[str]]:
    """Return all messages of a recording and its problems; raises RigError."""
    found: Content = {}
    with BagReader(path) as bag:
        for topic, receive_ns, raw, _ in bag.messages():
            found.setdefault(topic, []).append((receive_ns, raw))
        return found, bag.problems


def storage_files(path: Path) -> list[Path]:
    """Return the storage files of a recording."""
    if path.is_file():
        return [path]
    return [each for each in sorted(path.iterdir()) if each.suffix != '.yaml']


def damaged(path: Path, target: Path, draw: random.Random) -> str:
    """Write a copy of a recording with one kind of damage, and say which."""
    if target.is_dir():
        shutil.rmtree(target)
    elif target.exists():
        target.unlink()
    (shutil.copytree if path.is_dir() else shutil.copyfile)(path, target)
    file = draw.choice(storage_files(target))
    data = bytearray(file.read_bytes())
    kind = draw.choice(['flip', 'flip', 'flip', 'flips', 'cut', 'zeros', 'removed', 'doubled'])
    at = draw.randrange(len(data))
    if draw.random() < 0.3:  # the structure of most formats is at the ends
        at = draw.choice([at % 4096, len(data) - 1 - at % 4096]) % len(data)
    size = draw.choice([1, 8, 100, 5000])
    if kind == 'flip':
        data[at] ^= 1 << draw.randrange(8)
    elif kind == 'flips':
        for _ in range(draw.choice([2, 5, 50])):
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    elif kind == 'cut':
        del data[at:]
    elif kind == 'zeros':
        data[at : at + size] = bytes(len(data[at : at + size]))
    elif kind == 'removed':
        del data[at : at + size]
    else:
        data[at:at] = data[at : at + size]
    file.write_bytes(data)
    return f'{kind} at {at} of {file.name}'


def outcome(path: Path, truth: Content) -> Outcome:
    """Read a damaged recording and hold it against what it held."""
    try:
        found, problems = content_of(path)
    except RigError as error:
        text = str(error)
        assert '\n' not in text
        return Outcome('refused', True, text)
    told = any(any(sign.isdigit() for sign in problem) for problem in problems)
    sentence = ' | '.join(problems)
    lost = sum(max(len(m) - len(found.get(topic, [])), 0) for topic, m in truth.items())
    counted = sum(map(int, re.findall(r'(\d+) of \d+ of /', sentence)))
    if found == truth:
        return Outcome('whole', True, sentence)
    if all(len(found.get(topic, [])) >= len(messages) for topic, messages in truth.items()):
        return Outcome('altered', told, sentence)
    return Outcome('lost', told, sentence, lost, counted)
