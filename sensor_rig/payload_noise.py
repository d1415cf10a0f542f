"""Noise of a simulated sensor on recorded values: its own stages, on rows read from messages.

message bytes -> row of the sensor's truth -> Stages (noise, response, limits) -> same bytes,
other values. Everything else in the message (covariances, intensities) stays as it was.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from rig_common.arrays import AnyArray
from rig_common.cdr import CdrError, Reader
from rig_common.msgs.decode import read_cloud
from sensor_rig.rigfile.stream_keys import TYPES, StreamConfig
from sim_sensors.interface import AnySensor, Batch, NoiseSource, ReadoutErrors
from sim_sensors.pipeline.stages import Stages
from sim_sensors.registry import sensor_class
from sim_sensors.timing.arrays import Array
from sim_sensors.timing.faults import Condition

NO_FIX = -1
FARTHEST_M = 10_000.0
"""As far as a LiDAR's config allows: a cloud does not say its range."""


class PayloadNoise:
    """The noise of one stream; a message that cannot be read passes unchanged."""

    def __init__(self, name: str, config: StreamConfig, seed: int) -> None:
        """Draw from `seed` and `name`, as the simulated sensor of that name does."""
        kind: str = getattr(config, 'type', '')
        self.type_name = TYPES[kind]
        self._name, self._config, self._seed = name, config, seed
        self._codec = CODECS[kind]()
        self._width = -1

    def apply(self, raw: bytes, number: int, time_ns: int, condition: Condition) -> bytes:
        """Return the message with the noise of capture `number`, `time_ns` after the start."""
        copy = bytearray(raw)
        try:
            values = self._codec.read(copy)
            if self._width < len(values):
                self._build(len(values))
        except CdrError:
            return raw
        truth = self._sensor.truth_layout.empty(1)
        self._codec.to_truth(values, truth[0])
        numbers, period_s = np.array([number]), 1.0 / self._config.rate_hz
        batch = Batch(
            slice(None),
            numbers,
            numbers,
            np.array([time_ns]),
            period_s,
            period_s,
            True,
            self._noise,
            self._stages.state,
        )
        measured, _ = self._stages.measure(*self._stages.sense(truth, batch), batch, condition)
        self._codec.write(measured[0], values)
        return bytes(copy)

    def _build(self, width: int) -> None:
        """Make the sensor for messages of `width` values.

        A larger cloud makes it again; draws of wide rows begin with those of narrower ones.
        """
        self._width = width
        self._sensor = sensor = self._codec.sensor(self._name, self._config, width)
        self._noise = NoiseSource(
            self._seed,
            self._name,
            1,
            sensor.truth_layout.dtype,
            readout_errors=ReadoutErrors(sensor.config),
        )
        self._stages = Stages(sensor, 1, 1.0 / self._config.rate_hz)


class PayloadCodec(ABC):
    """Where the values of one message type are."""

    @abstractmethod
    def read(self, buf: bytearray) -> AnyArray:
        """Return what is disturbed in `buf`, by which the width of the sensor's row is told."""

    def sensor(self, name: str, config: Any, width: int) -> AnySensor:
        """Return the simulated sensor for messages of `width` values."""
        return sensor_class(config.type)(name, config)

    @abstractmethod
    def to_truth(self, values: AnyArray, row: Array) -> None:
        """Write what was read into a row of the sensor's truth."""

    @abstractmethod
    def write(self, row: Array, values: AnyArray) -> None:
        """Write a row of the sensor's output into the message that was read last."""


class Doubles(PayloadCodec):
    """Messages whose values are doubles at known places behind the header."""

    count = 0
    places: Sequence[int] = ()

    def read(self, buf: bytearray) -> AnyArray:
        """Return a view of the doubles."""
        reader = Reader(buf)
        reader.header()
        self.skip(reader)
        self._doubles = _writable(buf, reader, 'f8', self.count)
        return self._doubles

    def skip(self, reader: Reader) -> None:
        """Pass over what stands between the header and the doubles."""

    def to_truth(self, values: AnyArray, row: Array) -> None:
        """Take the doubles of the row, as many as it has."""
        row[:] = values[list(self.places[: len(row)])]

    def write(self, row: Array, values: AnyArray) -> None:
        """Put them back."""
        values[list(self.places[: len(row)])] = row


class ImuCodec(Doubles):
    """sensor_msgs/Imu: acceleration, angular rate, orientation."""

    count = 37
    places = (*range(25, 28), *range(13, 16), *range(4))


class OdometryCodec(Doubles):
    """nav_msgs/Odometry: position, orientation, linear and angular velocity."""

    count = 49
    places = (*range(7), *range(43, 49))

    def skip(self, reader: Reader) -> None:
        """Pass over the child frame."""
        reader.string()


class FixCodec(Doubles):
    """sensor_msgs/NavSatFix; errors are made in metres around its first fix."""

    count = 3

    def skip(self, reader: Reader) -> None:
        """Pass over the status, and remember where it is."""
        self._status = reader.pos
        reader.i8()
        reader.u16()

    def read(self, buf: bytearray) -> AnyArray:
        """Return latitude, longitude and altitude; a message without a fix has nothing to err."""
        self._buf = buf
        values = super().read(buf)
        if not np.isfinite(values).all():
            raise CdrError('there is no fix')
        return values

    def sensor(self, name: str, config: Any, width: int) -> AnySensor:
        """Put the datum where the receiver is first."""
        latitude, longitude, altitude = self._doubles.tolist()
        datum = config.datum.model_copy(
            update={
                'latitude_deg': latitude,
                'longitude_deg': longitude,
                'altitude_m': altitude,
                'yaw_rad': 0.0,
            }
        )
        made = super().sensor(name, config.model_copy(update={'datum': datum}), width)
        from sim_sensors.sensors.gnss import geodetic_transformer

        self._to_geodetic = geodetic_transformer(datum)
        return made

    def to_truth(self, values: AnyArray, row: Array) -> None:
        """Turn degrees into metres east, north, up; the velocity is not in the message."""
        latitude, longitude, altitude = values.tolist()
        row[:3] = self._to_geodetic.transform(longitude, latitude, altitude, direction='INVERSE')
        row[3:] = 0.0

    def write(self, row: Array, values: AnyArray) -> None:
        """Write the position, and that there is none in an outage."""
        values[:] = row[:3]
        if row[6] == NO_FIX:
            self._buf[self._status] = NO_FIX & 0xFF


class RangeCodec(PayloadCodec):
    """sensor_msgs/Range; its limits are those of the message."""

    def read(self, buf: bytearray) -> AnyArray:
        """Return a view of the range."""
        reader = Reader(buf)
        reader.header()
        reader.u8()
        _, self._low_m, self._high_m = reader.array('f4', 3).tolist()
        return _writable(buf, reader, 'f4', 1)

    def sensor(self, name: str, config: Any, width: int) -> AnySensor:
        """Give the sensor the limits of the message."""
        return super().sensor(
            name,
            config.model_copy(update={'min_range_m': self._low_m, 'max_range_m': self._high_m}),
            width,
        )

    def to_truth(self, values: AnyArray, row: Array) -> None:
        """Take the range."""
        row[:] = values

    def write(self, row: Array, values: AnyArray) -> None:
        """Put it back."""
        values[:] = row


class Ranges(PayloadCodec):
    """Scans and clouds: every return counts as one of the reference signal."""

    _keys: dict[str, Any]
    """What of the sensor's config the message says."""

    def sensor(self, name: str, config: Any, width: int) -> AnySensor:
        """Make a sensor of as many rays as the message has."""
        self._count, self._signal = width, config.optics.reference_signal
        return super().sensor(
            name,
            config.model_copy(
                update={
                    **self._keys,
                    'num_rays': width,
                    'beam': config.beam.model_copy(update={'rays': 1}),
                }
            ),
            width,
        )

    def to_truth(self, values: AnyArray, row: Array) -> None:
        """Fill ranges and signals; rays that the message does not have find nothing."""
        row[: self._count] = np.inf
        row[: len(values)] = values
        row[self._count :] = self._signal


class ScanCodec(Ranges):
    """sensor_msgs/LaserScan; its limits are those of the message."""

    def read(self, buf: bytearray) -> AnyArray:
        """Return a view of the ranges."""
        reader = Reader(buf)
        reader.header()
        low_m, high_m = reader.array('f4', 7).tolist()[5:]
        self._keys = {'min_range_m': low_m, 'max_range_m': high_m}
        return _writable(buf, reader, 'f4', reader.count(4))

    def write(self, row: Array, values: AnyArray) -> None:
        """Put the ranges back; what was no number stays none."""
        good = ~np.isnan(values)
        values[good] = row[: len(values)][good]


class CloudCodec(Ranges):
    """sensor_msgs/PointCloud2: points move along their rays; a lost return becomes NaN."""

    _keys = {'pattern': 'rosette', 'min_range_m': 0.0, 'max_range_m': FARTHEST_M}

    def read(self, buf: bytearray) -> AnyArray:
        """Return the distance of every point; the points themselves are kept for `write`."""
        cloud = read_cloud(buf)
        names = cloud.points.dtype.names or ()
        if not {'x', 'y', 'z'} <= set(names):
            raise CdrError('the cloud has no x, y and z')
        self._points = np.frombuffer(buf, cloud.points.dtype, cloud.points.size, cloud.data_offset)
        x, y, z = (self._points[axis].astype(np.float64) for axis in 'xyz')
        return np.sqrt(x * x + y * y + z * z)

    def write(self, row: Array, values: AnyArray) -> None:
        """Scale the points to their new distance."""
        ranges = row[: len(values)]
        with np.errstate(divide='ignore', invalid='ignore'):
            factor = np.where(np.isfinite(ranges), ranges / values, np.nan)
        for axis in 'xyz':
            self._points[axis] *= factor.astype(self._points[axis].dtype)


CODECS: dict[str, type[PayloadCodec]] = {
    'imu': ImuCodec,
    'pose': OdometryCodec,
    'gnss': FixCodec,
    'range': RangeCodec,
    'lidar2d': ScanCodec,
    'lidar3d': CloudCodec,
}


def _writable(buf: bytearray, reader: Reader, kind: str, count: int) -> AnyArray:
    """Return a view of the next numbers of `buf` that can be written."""
    order = '<' if buf[1] else '>'
    read = reader.array(kind, count)
    return np.frombuffer(buf, np.dtype(order + kind), count, reader.pos - read.nbytes)
