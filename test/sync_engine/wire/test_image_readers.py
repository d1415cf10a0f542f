"""Every way in which cameras store a picture, against OpenCV and pillow, which wrote it."""

from __future__ import annotations

import io
import struct

import numpy as np
import pytest

from rig_common import msgs
from rig_common.cdr import CdrError, Writer
from rig_common.times import NS_PER_S
from sync_engine.cues.image import ImageCue
from sync_engine.wire.cue_readers import reader_of

cv2 = pytest.importorskip('cv2')
Image = pytest.importorskip('PIL.Image')

HEIGHT, WIDTH = 120, 160


def scene(shift_px: float = 0.0) -> np.ndarray:
    """Return a smooth random picture [h, w, 3] in BGR, its content moved to the right."""
    rng = np.random.default_rng(3)
    large = rng.integers(0, 255, (24, 40, 3), dtype=np.uint8)
    wide = cv2.resize(large, (2 * WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    moved = np.float32([[1, 0, shift_px - WIDTH / 2], [0, 1, 0]])
    return np.asarray(cv2.warpAffine(wide, moved, (WIDTH, HEIGHT)))


def image(encoding: str, data: np.ndarray, height: int, big: bool = False) -> bytes:
    """Return a sensor_msgs/Image of these bytes."""
    data = np.ascontiguousarray(data)
    writer = Writer()
    writer.header(5, 'camera')
    writer.u32(height)
    writer.u32(WIDTH)
    writer.string(encoding)
    writer.u8(int(big))
    writer.u32(data.nbytes // len(data))
    writer.octets(data.tobytes())
    return writer.finish()


def mosaic(bgr: np.ndarray, order: str) -> np.ndarray:
    """Return what a sensor sees behind a colour mosaic; `order` is that of the first 2 x 2."""
    channels = {'b': 0, 'g': 1, 'r': 2}
    seen = np.empty(bgr.shape[:2], dtype=bgr.dtype)
    for k, colour in enumerate(order):
        row, column = divmod(k, 2)
        seen[row::2, column::2] = bgr[row::2, column::2, channels[colour]]
    return seen


def stored(bgr: np.ndarray, encoding: str) -> bytes:
    """Return the picture as a message of this encoding, made by OpenCV where it can."""
    gray = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY)
    if encoding.startswith('bayer'):
        seen = mosaic(bgr, encoding.removeprefix('bayer_')[:4])
        return image(
            encoding, seen.astype(np.uint16) * 200 if encoding.endswith('16') else seen, 120
        )
    if encoding in ('nv12', 'nv21'):
        planes = cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_I420)
        return image(encoding, planes, HEIGHT)  # brightness first; the colours are not read
    plain = {
        'mono8': gray,
        '8UC1': gray,
        '8UC3': bgr,
        'bgr8': bgr,
        'rgb8': cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB),
        'rgba8': cv2.cvtColor(bgr, cv2.COLOR_BGR2RGBA),
        'bgra8': cv2.cvtColor(bgr, cv2.COLOR_BGR2BGRA),
        'rgb16': cv2.cvtColor(bgr, cv2.COLOR_BGR2RGB).astype(np.uint16) * 100,
        'mono16': gray.astype(np.uint16) * 16,  # 12 bits
        '16UC1': gray.astype(np.uint16) + 7000,  # a thermal camera
        '16SC1': gray.astype(np.int16) - 300,
        '32FC1': gray.astype(np.float32) / 50.0,
        '64FC1': gray.astype(np.float64) / 50.0,
    }
    if encoding in plain:
        return image(encoding, plain[encoding], HEIGHT)
    code = cv2.COLOR_BGR2YUV_UYVY if encoding in ('yuv422', 'uyvy') else cv2.COLOR_BGR2YUV_YUY2
    return image(encoding, cv2.cvtColor(bgr, code), HEIGHT)


ENCODINGS = [
    *('mono8', '8UC1', '8UC3', 'bgr8', 'rgb8', 'rgba8', 'bgra8', 'rgb16', 'mono16', '16UC1'),
    *('16SC1', '32FC1', '64FC1', 'nv12', 'nv21', 'yuv422', 'uyvy', 'yuv422_yuy2', 'yuyv'),
    *(f'bayer_{order}{bits}' for order in ('rggb', 'bggr', 'gbrg', 'grbg') for bits in (8, 16)),
]


def turn_of(messages: list[bytes], type_name: str, scale: float = 1.0) -> float:
    """Return the turn about y (rad) that the cue finds between two messages."""
    cue, read = ImageCue(), reader_of('image', type_name)
    focal = {'fx': 120.0 * scale, 'fy': 120.0 * scale}
    found = [
        cue.feed(NS_PER_S + k * 40_000_000, {**focal, **read(raw)})
        for k, raw in enumerate(messages)
    ]
    assert found[-1] is not None
    return float(found[-1].values_rad[1])


@pytest.mark.parametrize('encoding', ENCODINGS)
def test_a_raw_image_of_any_encoding_shows_the_turn(encoding: str) -> None:
    """Three pixels to the right at 120 px are a turn of 25 mrad to the left."""
    turn = turn_of(
        [stored(scene(shift), encoding) for shift in (0.0, 3.0)], 'sensor_msgs/msg/Image'
    )
    assert turn == pytest.approx(-3.0 / 120.0, abs=2.5e-3)


@pytest.mark.parametrize('encoding', ['nv12', 'yuv422', 'yuv422_yuy2'])
def test_brightness_of_yuv_is_opencvs(encoding: str) -> None:
    bgr = scene()
    gray = reader_of('image', 'sensor_msgs/msg/Image')(stored(bgr, encoding))['gray']
    if encoding == 'nv12':
        wanted = cv2.cvtColor(bgr, cv2.COLOR_BGR2YUV_I420)[:HEIGHT]
    else:
        decoder = cv2.COLOR_YUV2GRAY_UYVY if encoding == 'yuv422' else cv2.COLOR_YUV2GRAY_YUY2
        code = cv2.COLOR_BGR2YUV_UYVY if encoding == 'yuv422' else cv2.COLOR_BGR2YUV_YUY2
        wanted = cv2.cvtColor(cv2.cvtColor(bgr, code), decoder)
    np.testing.assert_array_equal(gray, wanted)


def test_the_byte_order_of_a_message_counts() -> None:
    data = np.full((HEIGHT, WIDTH), 258, dtype='>u2')
    gray = reader_of('image', 'sensor_msgs/msg/Image')(image('mono16', data, HEIGHT, big=True))[
        'gray'
    ]
    assert (gray == 258).all()


@pytest.mark.parametrize('encoding', ['', 'rgb10', '8FC1', '64UC1', 'mono8; jpeg', '16UC0'])
def test_an_unknown_encoding_is_one_sentence(encoding: str) -> None:
    with pytest.raises(CdrError, match=r'image encoding .* is not one of'):
        reader_of('image', 'sensor_msgs/msg/Image')(
            image(encoding, np.zeros((HEIGHT, WIDTH), np.uint8), HEIGHT)
        )


@pytest.mark.parametrize('kind', ['jpeg', 'png', 'webp', 'png16'])
def test_compressed_pictures_show_the_turn(kind: str) -> None:
    files = []
    for shift in (0.0, 3.0):
        bgr = scene(shift)
        if kind == 'png16':
            bgr = cv2.cvtColor(bgr, cv2.COLOR_BGR2GRAY).astype(np.uint16) * 20
        done, data = cv2.imencode(f'.{kind.removesuffix("16")}', bgr)
        assert done
        files.append(msgs.compressed_image(5, 'c', kind, data.tobytes()))
    turn = turn_of(files, 'sensor_msgs/msg/CompressedImage')
    assert turn == pytest.approx(-3.0 / 120.0, abs=2.5e-3)


def test_a_jpeg_is_decoded_small_and_still_shows_the_turn() -> None:
    files = []
    for shift in (0.0, 3.0):
        done, data = cv2.imencode('.jpg', cv2.resize(scene(shift), None, fx=8.0, fy=8.0))
        assert done
        files.append(msgs.compressed_image(5, 'c', 'bgr8; jpeg compressed bgr8', data.tobytes()))
    values = reader_of('image', 'sensor_msgs/msg/CompressedImage')(files[0])
    assert values['gray'].shape == (240, 320)
    assert values['shrink'] == 4
    turn = turn_of(files, 'sensor_msgs/msg/CompressedImage', scale=8.0)
    assert turn == pytest.approx(-3.0 / 120.0, abs=2.5e-3)


def test_compressed_depth() -> None:
    """As compressed_depth_image_transport writes it: 12 bytes, then a PNG of 16 bits."""
    depth = np.linspace(0.5, 6.0, HEIGHT * WIDTH).reshape(HEIGHT, WIDTH)
    depth[0, 0] = np.nan
    done, data = cv2.imencode('.png', (depth[1:] * 1e3).astype(np.uint16))
    assert done
    raw = msgs.compressed_image(
        5, 'c', '16UC1; compressedDepth png', struct.pack('<iff', 0, 0, 0) + data.tobytes()
    )
    read = reader_of('image', 'sensor_msgs/msg/CompressedImage')
    np.testing.assert_array_equal(read(raw)['gray'], (depth[1:] * 1e3).astype(np.uint16))
    one, other = 100.0 * 101.0, 1.0 - 101.0 / 10.0
    coded = np.where(np.isnan(depth), 0.0, one / np.nan_to_num(depth, nan=1.0) + other)
    done, data = cv2.imencode('.png', coded.astype(np.uint16))
    assert done
    raw = msgs.compressed_image(
        5, 'c', '32FC1; compressedDepth', struct.pack('<iff', 0, one, other) + data.tobytes()
    )
    np.testing.assert_allclose(read(raw)['gray'], depth, rtol=2e-3)


def test_foxglove_puts_the_format_last() -> None:
    out = io.BytesIO()
    Image.fromarray(scene()[:, :, ::-1]).save(out, 'PNG')
    writer = Writer()
    writer.header(5, 'c')
    writer.octets(out.getvalue())
    writer.string('png')
    gray = reader_of('image', 'foxglove_msgs/msg/CompressedImage')(writer.finish())['gray']
    wanted = cv2.cvtColor(scene(), cv2.COLOR_BGR2GRAY)
    assert np.abs(gray.astype(int) - wanted).max() <= 1


def test_damaged_pictures_are_one_sentence() -> None:
    done, data = cv2.imencode('.jpg', scene())
    assert done
    read = reader_of('image', 'sensor_msgs/msg/CompressedImage')
    for bad, kind in (
        (b'', 'jpeg'),
        (b'no picture', 'jpeg'),
        (data.tobytes()[:300], 'jpeg'),
        (bytes(20) + b'RVL', '16UC1; compressedDepth rvl'),
        (b'', '16UC1; compressedDepth png'),
    ):
        with pytest.raises(CdrError):
            read(msgs.compressed_image(5, 'c', kind, bad))
