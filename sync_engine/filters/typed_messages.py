"""Decoded messages in the engine's hands: the few that must be looked into go through CDR.

rclpy is imported only when such a message comes, so this module loads without ROS.
"""

from __future__ import annotations

from collections.abc import Mapping

from rig_common.arrays import Floats
from sync_engine.matching.interpolate import CannotInterpolate, Kind
from sync_engine.streams.payload import CueValues, Payload, PayloadReader
from sync_engine.wire.codecs import codec_of
from sync_engine.wire.cue_readers import reader_of, types_of

Triple = tuple[float, float, float]


def type_name_of(message: Payload) -> str:
    """Return e.g. `sensor_msgs/msg/Imu` of a decoded message."""
    kind = type(message)
    return f'{kind.__module__.split(".")[0]}/msg/{kind.__name__}'


def typed_imu(message: Payload) -> tuple[Triple, Triple]:
    """Return (angular velocity, linear acceleration) of a sensor_msgs/Imu, decoded or raw."""
    if isinstance(message, bytes):
        from rig_common.msgs.decode import read_imu

        return read_imu(message)
    gyro, accel = message.angular_velocity, message.linear_acceleration
    return (gyro.x, gyro.y, gyro.z), (accel.x, accel.y, accel.z)


def typed_reader(cue: str) -> PayloadReader:
    """Return a reader that feeds decoded messages to `cue`."""

    def read(message: Payload) -> CueValues:
        type_name = type_name_of(message)
        if type_name not in types_of(cue):
            raise ValueError(f'the {cue} cue cannot read {type_name}')
        return reader_of(cue, type_name)(_serialized(message))

    return read


class TypedCodec:
    """Interpolates decoded messages of whatever type comes, as the codec of that type does."""

    def __init__(self) -> None:
        self.kinds: Mapping[str, Kind] = {}

    def decode(self, payload: Payload) -> Mapping[str, Floats]:
        """Return the fields of a message; the type decides which there are."""
        codec = codec_of(type_name_of(payload))
        if codec is None:
            raise CannotInterpolate(f'{type_name_of(payload)} cannot be interpolated')
        self.kinds = codec.kinds
        return codec.decode(_serialized(payload))

    def encode(self, payload: Payload, values: Mapping[str, Floats]) -> Payload:
        """Return a new message like `payload` with these fields."""
        codec = codec_of(type_name_of(payload))
        assert codec is not None
        from rclpy.serialization import deserialize_message

        return deserialize_message(codec.encode(_serialized(payload), values), type(payload))


def _serialized(message: Payload) -> bytes:
    from rclpy.serialization import serialize_message

    return bytes(serialize_message(message))
