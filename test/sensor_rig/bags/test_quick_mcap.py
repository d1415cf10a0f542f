"""The quick MCAP writer writes what rosbags' own does, with checksums and message numbers."""

from __future__ import annotations

import struct
from binascii import crc32
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from rosbags.rosbag2 import Writer

from rig_common import msgs
from sensor_rig.bags import writer as bag_writer
from sensor_rig.bags.quick_mcap import QuickWriter


def write(path: Path, *, compress: bool) -> Path:
    """Write several chunks, whose messages are not in order of time, and an empty topic."""
    made: dict[str, Any] = {
        '/picture': msgs.image('camera', 480, 640, 'rgb8'),
        '/imu': msgs.imu('imu'),
        '/never': msgs.imu('imu'),
    }
    pixels = np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
    with bag_writer.BagWriter(path, compress=compress) as writer:
        for topic, template in made.items():
            writer.add_topic(topic, template.type_name)
        for k in range(40):
            writer.write('/imu', 10**9 + (k ^ 1) * 10**6, made['/imu'].fill(k))
            if k % 8 == 0:
                writer.write('/picture', 10**9 + k * 10**6, made['/picture'].fill(k, data=pixels))
    return path


@pytest.mark.parametrize('compress', [False, True])
def test_it_holds_what_rosbags_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: bool
) -> None:
    make_reader = pytest.importorskip('mcap.reader', reason='mcap is not installed').make_reader
    found: list[Any] = []

    class Plain(Writer):
        def put(self, *message: Any) -> None:
            self.write(*message[:3])

    for kind in (Plain, QuickWriter):
        monkeypatch.setattr(bag_writer, 'QuickWriter', kind)
        path = write(tmp_path / kind.__name__ / 'bag', compress=compress)
        with (path / 'bag.mcap').open('rb') as file:
            reader = make_reader(file, validate_crcs=True)
            summary = reader.get_summary()
            found.append(
                (
                    [
                        (schema, channel, message.log_time, message.publish_time, message.data)
                        for schema, channel, message in reader.iter_messages()
                    ],
                    summary.statistics,
                    [len(chunk.message_index_offsets) for chunk in summary.chunk_indexes],
                    yaml.safe_load((path / 'metadata.yaml').read_text()),
                )
            )
        assert (path / 'bag.mcap').stat().st_size > 2 << 20
    assert found[0] == found[1]


@pytest.mark.parametrize('compress', [False, True])
def test_checksums_and_numbers_are_written(tmp_path: Path, compress: bool) -> None:
    """The format's own reader finds the checksums that it reckons itself."""
    mcap = pytest.importorskip('mcap.reader', reason='mcap is not installed')
    from mcap.stream_reader import CRCValidationError

    file = write(tmp_path / 'bag', compress=compress) / 'bag.mcap'
    data = file.read_bytes()
    with file.open('rb') as stream:
        reader = mcap.make_reader(stream, validate_crcs=True)
        chunks = reader.get_summary().chunk_indexes
        numbers: dict[int, list[int]] = {}
        for _, _, message in reader.iter_messages(log_time_order=False):
            numbers.setdefault(message.channel_id, []).append(message.sequence)
    assert all(each == list(range(1, len(each) + 1)) for each in numbers.values())
    assert len(chunks) > 2
    for chunk in chunks:
        (checksum,) = struct.unpack_from('<I', data, chunk.chunk_start_offset + 9 + 24)
        assert checksum
    (summary,) = struct.unpack_from('<Q', data, len(data) - 37 + 9)
    assert struct.unpack_from('<I', data, len(data) - 12) == (crc32(data[summary:-12]),)
    altered = bytearray(data)
    altered[chunks[1].chunk_start_offset + 9 + 24] ^= 1
    file.write_bytes(altered)
    with file.open('rb') as stream, pytest.raises(CRCValidationError):
        list(mcap.make_reader(stream, validate_crcs=True).iter_messages())
