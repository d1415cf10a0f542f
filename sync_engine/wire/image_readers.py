"""The brightness of camera messages: raw and compressed images, video packets.

A picture is read no further than the image cue needs it: a view of the message where that is
possible, a JPEG at an eighth, a quarter or half of its size.
"""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np

from rig_common.arrays import AnyArray
from rig_common.cdr import Buffer, CdrError, Reader
from rig_common.msgs.decode import Pixels
from sync_engine.streams.payload import CueValues

_WANTED_PX = (320, 180)
"""A JPEG is decoded at the smallest size that is at least this."""
_DEPTH_HEADER_BYTES = 12
"""In front of the PNG of a `compressedDepth` image: an int32 and two float32."""
_PNG, _JPEG = b'\x89PNG\r\n\x1a\n', b'\xff\xd8'


def image_values(image: Pixels) -> CueValues:
    """Return `gray` of an image of any encoding."""
    return {
        'gray': gray_of(image.encoding, image.pixels),
        'mosaic': image.encoding.startswith('bayer'),
    }


def gray_of(encoding: str, pixels: AnyArray) -> AnyArray:
    """Return the pixels [height, width] that stand for the brightness.

    Of colours green, which carries most of it and is second in every order; of a Bayer mosaic
    all, which 2 x 2 of them average.
    """
    if pixels.ndim == 2:
        return pixels
    if encoding in ('yuv422_yuy2', 'yuyv'):
        return pixels[:, :, 0]
    return pixels[:, :, min(1, pixels.shape[2] - 1)]


def read_compressed_image(raw: Buffer) -> CueValues:
    """Return `gray` of a sensor_msgs/CompressedImage: JPEG, PNG and what else pillow reads.

    `shrink` says how many times smaller than the picture it is.
    """
    reader = Reader(raw)
    reader.header()
    kind = reader.string()
    return decode_picture(bytes(reader.octets()), kind)


def read_foxglove_image(raw: Buffer) -> CueValues:
    """Return the same of a foxglove_msgs/CompressedImage, whose data come before the format."""
    reader = Reader(raw)
    reader.header()
    data = bytes(reader.octets())
    return decode_picture(data, reader.string())


def decode_picture(data: bytes, kind: str) -> CueValues:
    """Return `gray` and `shrink` of a picture in a file's format; `kind` is the message's word."""
    from PIL import Image, UnidentifiedImageError

    quantised = None
    if 'compressedDepth' in kind:
        quantised = _quantisation(data, kind)
        data = data[_DEPTH_HEADER_BYTES:]
    try:
        with Image.open(io.BytesIO(data)) as picture:
            width = picture.size[0]
            picture.draft('L', _WANTED_PX)
            gray = _as_array(picture)
    except UnidentifiedImageError:
        raise CdrError(f'{len(data)} bytes of format {kind!r} are no picture') from None
    except (OSError, ValueError, SyntaxError, struct.error) as error:
        raise CdrError(f'a picture of format {kind!r} is damaged: {error}') from None
    if quantised is not None:
        gray = _depth_m(gray, quantised)
    return {'gray': gray, 'shrink': max(1, round(width / gray.shape[1]))}


def _as_array(picture: Any) -> AnyArray:
    """Return the brightness [height, width] of a picture of pillow."""
    if picture.mode not in ('L', 'I', 'F') and not picture.mode.startswith('I;16'):
        picture = picture.convert('L')
    return np.asarray(picture)


def _quantisation(data: bytes, kind: str) -> tuple[float, float] | None:
    """Return the two numbers by which a float depth was quantised, None for a 16-bit depth."""
    if data[:8] == _PNG or len(data) < _DEPTH_HEADER_BYTES:
        raise CdrError(f'a picture of format {kind!r} lacks the header of its depth')
    if data[_DEPTH_HEADER_BYTES : _DEPTH_HEADER_BYTES + 8] != _PNG:
        raise CdrError(f'a depth of format {kind!r} is no PNG; RVL is not read')
    _, one, other = struct.unpack('<iff', data[:_DEPTH_HEADER_BYTES])
    return (one, other) if kind.startswith('32FC1') else None


def _depth_m(inverse: AnyArray, quantised: tuple[float, float]) -> AnyArray:
    """Return the depth (m) that was stored as a quantised inverse; NaN where there is none."""
    stored = inverse.astype(np.float64)
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.where(stored > 0.0, quantised[0] / (stored - quantised[1]), np.nan)
