"""What of a serialised message can be interpolated, and how to write it back.

A codec walks one message type and names its runs of numbers. Everything else (frame, joint names,
status, covariances) is kept from the nearer message, and two messages in which frame, names or
status differ have no middle: a fingerprint of those runs along as a number that must come out as
it went in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple
from zlib import crc32

import numpy as np

from rig_common.arrays import AnyArray, Floats
from rig_common.cdr import STAMP_END, Buffer, CdrError, Reader
from sync_engine.matching.interpolate import CannotInterpolate, Kind

FINGERPRINT = 'fingerprint'
IDENTITY_XYZW = np.array([0.0, 0.0, 0.0, 1.0])


class Run(NamedTuple):
    """A run of numbers in a message."""

    name: str
    start: int
    """First byte."""
    values: AnyArray
    """As they stand there, in their own byte order."""


Walk = Callable[[Reader], Iterator[Run]]


class WireCodec:
    """The engine's codec for one message type (see sync_engine.matching.interpolate.Codec)."""

    def __init__(self, kinds: Mapping[str, Kind], walk: Walk) -> None:
        self.kinds: Mapping[str, Kind] = {**kinds, FINGERPRINT: Kind.LINEAR}
        self._walk = walk

    def decode(self, payload: Buffer) -> dict[str, Floats]:
        """Return every run as float64, and the fingerprint of what stands before the first."""
        try:
            runs = self.runs(payload)
        except CdrError as error:
            raise CannotInterpolate(str(error)) from None
        values = {run.name: run.values.astype(np.float64) for run in runs}
        values[FINGERPRINT] = np.array([float(crc32(payload[STAMP_END : runs[0].start]))])
        return values

    def runs(self, payload: Buffer) -> list[Run]:
        """Return the runs of numbers as they stand in a message; raises CdrError."""
        return list(self._walk(Reader(payload)))

    def encode(self, payload: Buffer, values: Mapping[str, Floats]) -> bytes:
        """Return a copy of `payload` with these numbers."""
        own = self.decode(payload)
        if own[FINGERPRINT] != values[FINGERPRINT]:
            raise CannotInterpolate('the two messages differ in their frame, names or status')
        out = bytearray(payload)
        for run in self._walk(Reader(payload)):
            raw = values[run.name].astype(run.values.dtype).tobytes()
            out[run.start : run.start + len(raw)] = raw
        return bytes(out)


def codec_of(type_name: str) -> WireCodec | None:
    """Return the codec of a type that can be interpolated."""
    return CODECS.get(type_name)


# ---- how the types are walked --------------------------------------------------------------


def _run(reader: Reader, name: str, count: int, dtype: str = 'f8') -> Run:
    values = reader.array(dtype, count)
    return Run(name, reader.pos - values.nbytes, values)


def _vectors(**counts: int) -> WireCodec:
    """Codec of a type that is a header and then vectors of float64."""

    def walk(reader: Reader) -> Iterator[Run]:
        reader.header()
        for name, count in counts.items():
            yield _run(reader, name, count)

    return WireCodec(dict.fromkeys(counts, Kind.LINEAR), walk)


def _imu(reader: Reader) -> Iterator[Run]:
    reader.header()
    orientation = _run(reader, 'orientation', 4)
    covariance = reader.array('f8', 9)
    if covariance[0] != -1.0:
        yield orientation
    yield _run(reader, 'angular_velocity', 3)
    reader.array('f8', 9)
    yield _run(reader, 'linear_acceleration', 3)


class _ImuCodec(WireCodec):
    """An IMU without an orientation (REP 145: covariance -1) has nothing to slerp."""

    def decode(self, payload: Buffer) -> dict[str, Floats]:
        values = super().decode(payload)
        values.setdefault('orientation', IDENTITY_XYZW)
        return values


def _pose(reader: Reader) -> Iterator[Run]:
    reader.header()
    yield _run(reader, 'position', 3)
    yield _run(reader, 'orientation', 4)


def _odometry(reader: Reader) -> Iterator[Run]:
    reader.header()
    reader.string()
    yield _run(reader, 'position', 3)
    yield _run(reader, 'orientation', 4)
    reader.array('f8', 36)
    yield _run(reader, 'twist', 6)


def _fix(reader: Reader) -> Iterator[Run]:
    reader.header()
    reader.i8()
    reader.u16()
    yield _run(reader, 'latitude', 1)
    yield _run(reader, 'longitude', 1)
    yield _run(reader, 'altitude', 1)


class _FixCodec(WireCodec):
    """Longitudes run the short way round, also across the 180th meridian."""

    def decode(self, payload: Buffer) -> dict[str, Floats]:
        values = super().decode(payload)
        values['longitude'] = np.radians(values['longitude'])
        return values

    def encode(self, payload: Buffer, values: Mapping[str, Floats]) -> bytes:
        degrees = np.degrees(values['longitude'])
        return super().encode(payload, {**values, 'longitude': degrees})


def _joints(reader: Reader) -> Iterator[Run]:
    reader.header()
    reader.strings()
    for name in ('position', 'velocity', 'effort'):
        yield _run(reader, name, reader.count(8))


def _range(reader: Reader) -> Iterator[Run]:
    reader.header()
    reader.u8()
    reader.array('f4', 3)
    yield _run(reader, 'range', 1, 'f4')


_POSE = {'position': Kind.LINEAR, 'orientation': Kind.SLERP_XYZW}

CODECS: dict[str, WireCodec] = {
    'sensor_msgs/msg/Imu': _ImuCodec(
        {
            'orientation': Kind.SLERP_XYZW,
            'angular_velocity': Kind.LINEAR,
            'linear_acceleration': Kind.LINEAR,
        },
        _imu,
    ),
    'sensor_msgs/msg/MagneticField': _vectors(magnetic_field=3),
    'sensor_msgs/msg/FluidPressure': _vectors(fluid_pressure=1),
    'sensor_msgs/msg/Temperature': _vectors(temperature=1),
    'sensor_msgs/msg/NavSatFix': _FixCodec(
        {'latitude': Kind.LINEAR, 'longitude': Kind.ANGLE_RAD, 'altitude': Kind.LINEAR}, _fix
    ),
    'sensor_msgs/msg/JointState': WireCodec(
        dict.fromkeys(('position', 'velocity', 'effort'), Kind.LINEAR), _joints
    ),
    'sensor_msgs/msg/Range': WireCodec({'range': Kind.LINEAR}, _range),
    'geometry_msgs/msg/TwistStamped': _vectors(linear=3, angular=3),
    'geometry_msgs/msg/TwistWithCovarianceStamped': _vectors(linear=3, angular=3),
    'geometry_msgs/msg/AccelStamped': _vectors(linear=3, angular=3),
    'geometry_msgs/msg/WrenchStamped': _vectors(force=3, torque=3),
    'geometry_msgs/msg/Vector3Stamped': _vectors(vector=3),
    'geometry_msgs/msg/PointStamped': _vectors(point=3),
    'geometry_msgs/msg/PoseStamped': WireCodec(_POSE, _pose),
    'geometry_msgs/msg/PoseWithCovarianceStamped': WireCodec(_POSE, _pose),
    'nav_msgs/msg/Odometry': WireCodec({**_POSE, 'twist': Kind.LINEAR}, _odometry),
}
