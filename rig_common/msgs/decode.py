"""Serialised messages read into numpy, for the few types whose content is needed.

Arrays are views into the message where its layout allows it. Whatever does not fit its type
raises `CdrError`.
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import AnyArray, Floats
from rig_common.cdr import HEADER_BYTES, Buffer, CdrError, Reader, endianness
from rig_common.msgs.scene import IMAGE_ENCODINGS
from rig_common.msgs.system import Transform

_IMU = {order: struct.Struct(f'{sign}4d72x3d72x3d') for order, sign in ((0, '>'), (1, '<'))}
_U32 = {0: struct.Struct('>I'), 1: struct.Struct('<I')}
_PLAIN_PIXELS = re.compile(r'(8|16|32|64)([USF])C([1-9]\d?)?\Z')
"""What OpenCV calls a type: bits, kind and channels."""
_PLANAR = ('nv12', 'nv21', 'nv24')
"""A plane of brightness, and colours after it, which are not read."""
_POINT_DTYPES = {1: 'i1', 2: 'u1', 3: 'i2', 4: 'u2', 5: 'i4', 6: 'u4', 7: 'f4', 8: 'f8'}


class Scan(NamedTuple):
    """sensor_msgs/LaserScan."""

    stamp_ns: int
    angle_min_rad: float
    angle_increment_rad: float
    time_increment_s: float
    scan_time_s: float
    range_min_m: float
    range_max_m: float
    ranges: NDArray[np.float32]
    intensities: NDArray[np.float32]
    """As many as `ranges`, or none."""


class Pixels(NamedTuple):
    """sensor_msgs/Image: pixels [height, width] or [height, width, channels]."""

    stamp_ns: int
    encoding: str
    pixels: AnyArray


class Cloud(NamedTuple):
    """sensor_msgs/PointCloud2: records [height * width]."""

    stamp_ns: int
    points: AnyArray
    data_offset: int
    """Where the points' bytes start in the message."""


class Intrinsics(NamedTuple):
    """sensor_msgs/CameraInfo: the lens and the picture that it makes on the whole sensor."""

    stamp_ns: int
    height: int
    width: int
    k: Floats
    """[3, 3] in pixels."""
    model: str = 'plumb_bob'
    """How `d` bends the picture: plumb_bob, rational_polynomial, equidistant, fisheye."""
    d: Floats = np.zeros(0)
    binning: tuple[int, int] = (1, 1)
    """Pixels of the sensor, to the right and down, that make one of the image."""
    corner: tuple[int, int] = (0, 0)
    """Column and row of the sensor where the image begins."""


class MotionMessage(NamedTuple):
    """nav_msgs/Odometry or a twist: pose in the fixed frame, rates in the body's."""

    stamp_ns: int
    position_m: Floats
    orientation_xyzw: Floats
    linear_m_s: Floats
    angular_rad_s: Floats


class ImuMessage(NamedTuple):
    """sensor_msgs/Imu."""

    angular_rad_s: tuple[float, float, float]
    linear_m_s2: tuple[float, float, float]
    orientation_xyzw: tuple[float, float, float, float]


class PoseMessage(NamedTuple):
    """geometry_msgs/PoseStamped and PoseWithCovarianceStamped."""

    stamp_ns: int
    position_m: Floats
    orientation_xyzw: Floats


class TwistMessage(NamedTuple):
    """geometry_msgs/TwistStamped and TwistWithCovarianceStamped."""

    stamp_ns: int
    linear_m_s: Floats
    angular_rad_s: Floats


class Fix(NamedTuple):
    """sensor_msgs/NavSatFix."""

    stamp_ns: int
    is_known: bool
    """Whether the receiver has a fix."""
    place: tuple[float, float, float]
    """Latitude and longitude (degrees), height (m)."""


def read_imu(buf: Buffer) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    """Return (angular velocity rad/s, linear acceleration m/s^2) of a sensor_msgs/Imu."""
    message = read_imu_message(buf)
    return message.angular_rad_s, message.linear_m_s2


def read_imu_message(buf: Buffer) -> ImuMessage:
    """Read a sensor_msgs/Imu.

    An IMU comes hundreds of times a second, so this one does not go field by field.
    """
    order = endianness(buf)
    try:
        frame_bytes = _U32[order].unpack_from(buf, 12)[0]
        start = 16 + frame_bytes
        start += -(start - HEADER_BYTES) % 8
        values = _IMU[order].unpack_from(buf, start)
    except struct.error:
        raise CdrError(f'{len(buf)} bytes are not a sensor_msgs/msg/Imu') from None
    return ImuMessage(values[4:7], values[7:], values[:4])


def read_scan(buf: Buffer) -> Scan:
    """Read a sensor_msgs/LaserScan."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    angle_min, _, increment, time_increment, scan_time, low, high = reader.array('f4', 7).tolist()
    return Scan(
        stamp_ns,
        angle_min,
        increment,
        time_increment,
        scan_time,
        low,
        high,
        reader.sequence('f4'),
        reader.sequence('f4'),
    )


def read_marker_poses(buf: Buffer) -> dict[int, NDArray[np.float64]]:
    """Return the poses (x y z m, quaternion xyzw) [7] of a visualization_msgs/MarkerArray by id.

    Shapes are passed over: a marker made of triangles holds thousands of points.
    """
    reader = Reader(buf)
    poses: dict[int, NDArray[np.float64]] = {}
    for _ in range(reader.count(4)):
        reader.header()
        reader.string()  # namespace
        number, _, _ = reader.i32(), reader.i32(), reader.i32()
        poses[number] = reader.array('f8', 7)
        reader.array('f8', 3)  # scale
        reader.array('f4', 4)  # colour
        reader.stamp()  # lifetime
        reader.boolean()  # locked to its frame
        reader.array('f8', 3 * reader.count(24))  # points
        reader.array('f4', 4 * reader.count(16))  # their colours
        reader.string()  # texture: resource, picture, coordinates
        reader.header()
        reader.string()
        reader.octets()
        reader.array('f4', 2 * reader.count(8))
        reader.string()  # text
        reader.string()  # mesh: resource, file, materials
        reader.string()
        reader.octets()
        reader.boolean()
    return poses


def read_image(buf: Buffer) -> Pixels:
    """Read a sensor_msgs/Image; rows may be padded, multi-byte pixels of either endianness.

    Of a planar encoding (nv12, nv21, nv24) the pixels are the brightness alone.
    """
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    height, width = reader.u32(), reader.u32()
    encoding = reader.string()
    big, step = reader.u8(), reader.u32()
    data = np.frombuffer(reader.octets(), np.uint8)
    kind, channels = _kind_of_pixels(encoding)
    dtype = np.dtype(kind).newbyteorder('>' if big else '<')
    row = width * channels * dtype.itemsize
    if step < row or data.size < step * height:
        raise CdrError(
            f'an image of {width}x{height} {encoding} does not fit its {data.size} '
            f'bytes with a step of {step}'
        )
    rows = data[: step * height].reshape(height, step)[:, :row]
    pixels = np.ascontiguousarray(rows).view(dtype) if step != row else rows.view(dtype)
    shape = (height, width) if channels == 1 else (height, width, channels)
    return Pixels(stamp_ns, encoding, pixels.reshape(shape))


def _kind_of_pixels(encoding: str) -> tuple[str, int]:
    """Return (dtype, channels) of an encoding."""
    known = IMAGE_ENCODINGS.get(encoding)
    if known is not None:
        return known
    if encoding in _PLANAR:
        return 'u1', 1
    plain = _PLAIN_PIXELS.match(encoding)
    if plain is None or plain[1] + plain[2] in ('8F', '64U', '64S'):
        raise CdrError(
            f'image encoding {encoding!r} is not one of '
            f'{", ".join((*IMAGE_ENCODINGS, *_PLANAR))}, 16SC1 and the like'
        )
    return f'{plain[2].lower().replace("s", "i")}{int(plain[1]) // 8}', int(plain[3] or 1)


def read_cloud(buf: Buffer) -> Cloud:
    """Read a sensor_msgs/PointCloud2."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    height, width = reader.u32(), reader.u32()
    fields = tuple(
        [
            (reader.string(), reader.u32(), reader.u8(), reader.u32())
            for _ in range(reader.count(13))
        ]
    )
    order = '>' if reader.boolean() else '<'
    point_step = reader.u32()
    reader.u32()
    data = reader.octets()
    dtype = _point_dtype(fields, order, point_step)
    if point_step == 0 or point_step * width * height > len(data):
        raise CdrError(
            f'{width * height} points of {point_step} bytes do not fit the '
            f'{len(data)} bytes of the cloud'
        )
    points = np.frombuffer(data, dtype, width * height)
    return Cloud(stamp_ns, points, reader.pos - len(data))


@lru_cache(maxsize=8)
def _point_dtype(
    fields: tuple[tuple[str, int, int, int], ...], order: str, point_step: int
) -> np.dtype[np.void]:
    """Return the record of a point with these (name, offset, datatype, count)."""
    names, offsets = [], []
    formats: list[object] = []
    for name, offset, datatype, count in fields:
        if datatype not in _POINT_DTYPES:
            raise CdrError(f'point field {name!r} has the unknown datatype {datatype}')
        kind = np.dtype(order + _POINT_DTYPES[datatype])
        if offset + kind.itemsize * max(count, 1) > point_step:
            raise CdrError(f'point field {name!r} does not fit a point of {point_step} bytes')
        names.append(name)
        formats.append(kind if count <= 1 else (kind, (count,)))
        offsets.append(offset)
    try:
        return np.dtype(
            {'names': names, 'formats': formats, 'offsets': offsets, 'itemsize': point_step}
        )
    except (ValueError, OverflowError, MemoryError) as error:  # a name twice, a step of gigabytes
        raise CdrError(f'the fields of the cloud do not make a record: {error}') from None


def read_camera_info(buf: Buffer) -> Intrinsics:
    """Read a sensor_msgs/CameraInfo, without its rectification."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    height, width = reader.u32(), reader.u32()
    model = reader.string()
    d = reader.sequence('f8').astype(np.float64)
    k = reader.array('f8', 9).astype(np.float64).reshape(3, 3)
    reader.array('f8', 9 + 12)  # rectification and projection
    across, down, left, top = (reader.u32() for _ in range(4))
    binning = max(across, 1), max(down, 1)
    return Intrinsics(stamp_ns, height, width, k, model, d, binning, (left, top))


def read_odometry(buf: Buffer) -> MotionMessage:
    """Read a nav_msgs/Odometry."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    reader.string()
    values = reader.array('f8', 7 + 36 + 6).astype(np.float64)  # pose, its covariance, twist
    return MotionMessage(stamp_ns, values[:3], values[3:7], values[43:46], values[46:])


def read_pose(buf: Buffer) -> PoseMessage:
    """Read a geometry_msgs/PoseStamped or PoseWithCovarianceStamped."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    pose = reader.array('f8', 7).astype(np.float64)
    return PoseMessage(stamp_ns, pose[:3], pose[3:])


def _transform(reader: Reader) -> Transform:
    stamp_ns, frame_id = reader.header()
    child = reader.string()
    pose = reader.array('f8', 7).tolist()
    return Transform(stamp_ns, frame_id, child, pose[:3], pose[3:])


def read_transform(buf: Buffer) -> Transform:
    """Read a geometry_msgs/TransformStamped."""
    return _transform(Reader(buf))


def read_transforms(buf: Buffer) -> list[Transform]:
    """Read a tf2_msgs/TFMessage."""
    reader = Reader(buf)
    return [_transform(reader) for _ in range(reader.count(72))]


def read_fix(buf: Buffer) -> Fix:
    """Read a sensor_msgs/NavSatFix."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    status, _ = reader.i8(), reader.u16()
    latitude, longitude, height = reader.array('f8', 3).tolist()
    return Fix(stamp_ns, status >= 0, (latitude, longitude, height))


def read_twist(buf: Buffer) -> TwistMessage:
    """Read a geometry_msgs/TwistStamped or TwistWithCovarianceStamped."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    twist = reader.array('f8', 6).astype(np.float64)
    return TwistMessage(stamp_ns, twist[:3], twist[3:])


def read_joint_positions(buf: Buffer) -> tuple[int, dict[str, float]]:
    """Return (stamp_ns, position by joint, rad or m) of a sensor_msgs/JointState."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    names = [reader.string() for _ in range(reader.count(4))]
    return stamp_ns, dict(zip(names, reader.sequence('f8').tolist(), strict=False))


def read_force(buf: Buffer) -> tuple[int, Floats]:
    """Return (stamp_ns, force N [3]) of a geometry_msgs/WrenchStamped."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    return stamp_ns, reader.array('f8', 3).astype(np.float64)


def read_range(buf: Buffer) -> tuple[int, float]:
    """Return (stamp_ns, range m) of a sensor_msgs/Range; -inf and +inf as in REP 117."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    reader.array('u1', 1)
    return stamp_ns, float(reader.array('f4', 4)[3])
