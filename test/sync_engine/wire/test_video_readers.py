"""Packets of coded video, against the pictures that went into PyAV's encoder."""

from __future__ import annotations

import numpy as np
import pytest

from rig_common.cdr import CdrError, Writer
from rig_common.times import NS_PER_S
from sync_engine.wire.video_readers import FFMPEG_TYPE, FOXGLOVE_TYPE, VideoReader

av = pytest.importorskip('av')

HEIGHT, WIDTH, FRAME_NS = 96, 160, 33_333_333


def picture(k: int) -> np.ndarray:
    """Return a gray picture that moves on by two pixels each time."""
    rng = np.random.default_rng(1)
    rough = np.kron(rng.integers(0, 255, (12, 40), dtype=np.uint8), np.ones((8, 8), np.uint8))
    return np.ascontiguousarray(rough[:, 2 * k : 2 * k + WIDTH])


def packets(codec: str, count: int, options: dict[str, str]) -> list[bytes]:
    """Return one packet for every picture."""
    encoder = av.CodecContext.create(codec, 'w')
    encoder.width, encoder.height, encoder.pix_fmt = WIDTH, HEIGHT, 'yuv420p'
    encoder.framerate, encoder.gop_size, encoder.options = 30, 8, options
    found = []
    for k in range(count):
        gray = np.repeat(picture(k)[:, :, None], 3, axis=2)
        found += encoder.encode(av.VideoFrame.from_ndarray(gray, format='rgb24'))
    return [bytes(packet) for packet in [*found, *encoder.encode(None)]]


def foxglove(stamp_ns: int, data: bytes, kind: str) -> bytes:
    writer = Writer()
    writer.header(stamp_ns, 'camera')
    writer.octets(data)
    writer.string(kind)
    return writer.finish()


def ffmpeg(stamp_ns: int, data: bytes, kind: str) -> bytes:
    writer = Writer()
    writer.header(stamp_ns, 'camera')
    writer.i32(WIDTH)
    writer.i32(HEIGHT)
    writer.string(f'{kind};yuv420p;bgr8;bgr8')
    writer.u64(7)
    writer.u8(0)
    writer.boolean(False)
    writer.octets(data)
    return writer.finish()


CASES = [
    ('libx264', 'h264', FOXGLOVE_TYPE),
    ('libx265', 'h265', FOXGLOVE_TYPE),
    ('libx264', 'libx264', FFMPEG_TYPE),
    ('libx265', 'hevc_nvenc', FFMPEG_TYPE),
]


def messages(codec: str, kind: str, type_name: str, count: int = 20) -> list[bytes]:
    options = {'tune': 'zerolatency', 'preset': 'ultrafast', 'crf': '12'}
    if codec == 'libx265':
        options['x265-params'] = 'log-level=none:bframes=0'
    write = foxglove if type_name == FOXGLOVE_TYPE else ffmpeg
    return [
        write(NS_PER_S + k * FRAME_NS, data, kind)
        for k, data in enumerate(packets(codec, count, options))
    ]


@pytest.mark.parametrize(('codec', 'kind', 'type_name'), CASES)
def test_every_picture_comes_out_with_its_own_stamp(codec: str, kind: str, type_name: str) -> None:
    reader = VideoReader(type_name)
    shown = [reader(raw) for raw in messages(codec, kind, type_name)]
    assert all('gray' in values for values in shown)
    for k, values in enumerate(shown):
        assert values['stamp_ns'] == NS_PER_S + k * FRAME_NS
        close = np.abs(values['gray'].astype(float) - (16 + picture(k) * 219.0 / 255.0)).mean()
        other = np.abs(values['gray'].astype(float) - (16 + picture(k + 1) * 219.0 / 255.0)).mean()
        assert close < 4.0 < other


def test_after_a_gap_nothing_is_shown_until_the_next_key_frame() -> None:
    reader = VideoReader(FOXGLOVE_TYPE)
    raw = messages('libx264', 'h264', FOXGLOVE_TYPE)
    for each in raw[:3]:
        reader(each)
    reader.missed()
    shown = ['gray' in reader(each) for each in raw[5:]]  # a key frame every 8 pictures
    assert shown == [k >= 8 for k in range(5, 20)]


def test_what_cannot_be_decoded_is_one_sentence() -> None:
    with pytest.raises(CdrError, match="no decoder for video of the format 'mystery'"):
        VideoReader(FOXGLOVE_TYPE)(foxglove(5, b'1234', 'mystery'))
    assert VideoReader(FOXGLOVE_TYPE)(foxglove(5, b'no video at all', 'h264')) == {}
    with pytest.raises(CdrError):
        VideoReader(FFMPEG_TYPE)(foxglove(5, b'', 'h264')[:14])
