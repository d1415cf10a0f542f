"""Messages about what surrounds the robot: scans, clouds, images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from rig_common.arrays import AnyArray
from rig_common.cdr import Buffer, CdrError, Template, TemplateBuilder, Writer

IMAGE_ENCODINGS: dict[str, tuple[str, int]] = {
    'mono8': ('u1', 1),
    'rgb8': ('u1', 3),
    'bgr8': ('u1', 3),
    'rgba8': ('u1', 4),
    'bgra8': ('u1', 4),
    'mono16': ('u2', 1),
    '8UC1': ('u1', 1),
    '16UC1': ('u2', 1),
    '32FC1': ('f4', 1),
    '32FC3': ('f4', 3),
    'rgb16': ('u2', 3),
    'bgr16': ('u2', 3),
    'rgba16': ('u2', 4),
    'bgra16': ('u2', 4),
    **{f'bayer_{order}8': ('u1', 1) for order in ('rggb', 'bggr', 'gbrg', 'grbg')},
    **{f'bayer_{order}16': ('u2', 1) for order in ('rggb', 'bggr', 'gbrg', 'grbg')},
    **dict.fromkeys(('yuv422', 'uyvy', 'yuv422_yuy2', 'yuyv'), ('u1', 2)),
}
"""Encoding -> (dtype, channels)."""

_POINT_FIELD_TYPES = {'i1': 1, 'u1': 2, 'i2': 3, 'u2': 4, 'i4': 5, 'u4': 6, 'f4': 7, 'f8': 8}


def laser_scan(
    frame_id: str,
    num_rays: int,
    *,
    angle_min_rad: float,
    angle_max_rad: float,
    angle_increment_rad: float,
    range_min_m: float,
    range_max_m: float,
    time_increment_s: float = 0.0,
    scan_time_s: float = 0.0,
    intensities: bool = False,
) -> Template:
    """sensor_msgs/msg/LaserScan: ranges [num_rays] m and, if asked for, intensities."""
    builder = TemplateBuilder('sensor_msgs/msg/LaserScan')
    builder.header(0, frame_id)
    for value in (
        angle_min_rad,
        angle_max_rad,
        angle_increment_rad,
        time_increment_s,
        scan_time_s,
        range_min_m,
        range_max_m,
    ):
        builder.f32(value)
    builder.sequence_block('ranges', 'f4', (num_rays,))
    if intensities:
        builder.sequence_block('intensities', 'f4', (num_rays,))
    else:
        builder.u32(0)
    return builder.build()


def image(frame_id: str, height: int, width: int, encoding: str) -> Template:
    """sensor_msgs/msg/Image: data [height, width] or, with colours, [height, width, channels]."""
    if encoding not in IMAGE_ENCODINGS:
        raise CdrError(f'image encoding {encoding!r} is not one of {", ".join(IMAGE_ENCODINGS)}')
    dtype, channels = IMAGE_ENCODINGS[encoding]
    step = width * channels * np.dtype(dtype).itemsize
    builder = TemplateBuilder('sensor_msgs/msg/Image')
    builder.header(0, frame_id)
    builder.u32(height)
    builder.u32(width)
    builder.string(encoding)
    builder.u8(0)
    builder.u32(step)
    builder.u32(step * height)
    # uint8[] on the wire whatever the pixel's type, so no alignment but a byte's
    shape = (height, width) if channels == 1 else (height, width, channels)
    builder.block('data', dtype, shape, align=False)
    return builder.build()


def compressed_image(stamp_ns: int, frame_id: str, image_format: str, data: Buffer) -> bytes:
    """sensor_msgs/msg/CompressedImage, `image_format` such as 'jpeg' or 'png'."""
    writer = Writer()
    writer.header(stamp_ns, frame_id)
    writer.string(image_format)
    writer.octets(data)
    return writer.finish()


def camera_info(
    frame_id: str,
    height: int,
    width: int,
    k: ArrayLike,
    *,
    d: ArrayLike = (),
    distortion_model: str = 'plumb_bob',
    r: ArrayLike | None = None,
    p: ArrayLike | None = None,
) -> Template:
    """sensor_msgs/msg/CameraInfo: `k` [3, 3] pixels, `d` coefficients, `r` [3, 3], `p` [3, 4].

    Without `r` and `p` the camera is its own rectified one: identity, and `k` with a zero column.
    """
    matrix = np.asarray(k, float).reshape(3, 3)
    projection = np.hstack([matrix, np.zeros((3, 1))]) if p is None else p
    builder = TemplateBuilder('sensor_msgs/msg/CameraInfo')
    builder.header(0, frame_id)
    builder.u32(height)
    builder.u32(width)
    builder.string(distortion_model)
    builder.sequence(d, 'f8')
    builder.array(matrix, 'f8')
    builder.array(np.eye(3) if r is None else r, 'f8')
    builder.array(projection, 'f8')
    for _ in range(6):  # binning x y, region of interest: 0 is the whole sensor
        builder.u32(0)
    builder.boolean(False)
    return builder.build()


def point_cloud2(
    frame_id: str, fields: DTypeLike, width: int, *, height: int = 1, is_dense: bool = True
) -> Template:
    """sensor_msgs/msg/PointCloud2 of a fixed size: points [height * width] of dtype `fields`.

    `fields` is a numpy record type; its itemsize is the point step, gaps included.
    """
    dtype = np.dtype(fields).newbyteorder('<')
    builder = TemplateBuilder('sensor_msgs/msg/PointCloud2')
    builder.header(0, frame_id)
    _cloud_head(builder, dtype, width, height)
    builder.block('points', dtype, (height * width,))
    builder.boolean(is_dense)
    return builder.build()


def point_cloud2_message(
    stamp_ns: int, frame_id: str, points: AnyArray, *, is_dense: bool = True
) -> bytes:
    """sensor_msgs/msg/PointCloud2 of the size of `points`: records [n] or [height, width]."""
    records = np.ascontiguousarray(points)
    height, width = records.shape if records.ndim == 2 else (1, records.size)
    writer = Writer()
    writer.header(stamp_ns, frame_id)
    _cloud_head(writer, records.dtype, width, height)
    writer.array(records, records.dtype.newbyteorder('<'))
    writer.boolean(is_dense)
    return writer.finish()


def _cloud_head(writer: Writer, dtype: np.dtype[Any], width: int, height: int) -> None:
    """Write everything between the header and the points' bytes."""
    if dtype.fields is None:
        raise CdrError(f'the points of a cloud are records with named fields, got {dtype}')
    writer.u32(height)
    writer.u32(width)
    writer.u32(len(dtype.fields))
    for name, (kind, offset, *_) in dtype.fields.items():
        base, shape = kind.subdtype or (kind, ())
        code = _POINT_FIELD_TYPES.get(f'{base.kind}{base.itemsize}')
        if code is None:
            raise CdrError(f'point field {name!r} of type {kind} has no PointField datatype')
        writer.string(name)
        writer.u32(offset)
        writer.u8(code)
        writer.u32(int(np.prod(shape, dtype=int)))
    writer.boolean(False)
    writer.u32(dtype.itemsize)
    writer.u32(dtype.itemsize * width)
    writer.u32(dtype.itemsize * width * height)
