"""Decodes serialised messages into the named arrays that the cues want (see sync_engine.cues)."""

from __future__ import annotations

import numpy as np

from rig_common.cdr import CdrError, Reader
from rig_common.errors import RigError
from rig_common.msgs import Transform
from rig_common.msgs.decode import (
    read_camera_info,
    read_cloud,
    read_image,
    read_imu,
    read_odometry,
    read_scan,
    read_transform,
    read_transforms,
    read_twist,
)
from sync_engine.config import TF_TYPE, InputConfig, SyncConfig
from sync_engine.streams.payload import CueValues, PayloadReader
from sync_engine.wire.restamp import point_times_s

INFO_TYPE = 'sensor_msgs/msg/CameraInfo'
TRANSFORMS = frozenset({'geometry_msgs/msg/TransformStamped', TF_TYPE})


class FocalLengths:
    """Focal lengths of the cameras, from the camera_info inputs that share their clock."""

    def __init__(self, config: SyncConfig) -> None:
        self._camera_of = {
            name: given.clock_of
            for name, given in config.inputs.items()
            if given.type == INFO_TYPE
            and given.clock_of
            and config.inputs[given.clock_of].cue == 'image'
        }
        self.of: dict[str, dict[str, float]] = {}
        """Camera -> fx, fy (px); a camera is not there before its first camera_info."""

    def offer(self, sensor_id: str, raw: bytes) -> None:
        """Take a message of any input; only camera_info is looked into."""
        camera = self._camera_of.get(sensor_id)
        if camera is not None:
            k = read_camera_info(raw).k
            if k[0, 0] > 0.0:
                self.of[camera] = {'fx': float(k[0, 0]), 'fy': float(k[1, 1])}


def readers_of(config: SyncConfig, focal: FocalLengths) -> dict[str, PayloadReader]:
    """Return the payload readers of all inputs that have a cue."""
    readers: dict[str, PayloadReader] = {}
    for name, given in config.inputs.items():
        if given.cue == 'none':
            continue
        known = {*READERS[given.cue], *(TRANSFORMS if given.cue == 'odometry' else ())}
        if given.type not in known:
            raise RigError(
                f'sync.inputs.{name}.cue is {given.cue!r}, which reads '
                f'{" or ".join(sorted(known))}; its type is {given.type!r}'
            )
        if given.wrong_transform:
            raise RigError(f'sync.inputs.{name}: {given.wrong_transform}')
        read = (
            _transform_reader(given)
            if given.type in TRANSFORMS
            else (READERS[given.cue][given.type])
        )
        readers[name] = _with_focal(name, read, focal) if given.cue == 'image' else read
    return readers


def _with_focal(camera: str, read: PayloadReader, focal: FocalLengths) -> PayloadReader:
    return lambda raw: {**read(raw), **focal.of.get(camera, {})}


def _scan(raw: bytes) -> CueValues:
    scan = read_scan(raw)
    return {
        'ranges': scan.ranges,
        'angle_min': scan.angle_min_rad,
        'angle_increment': scan.angle_increment_rad,
        'time_increment': scan.time_increment_s,
        'range_min': scan.range_min_m,
        'range_max': scan.range_max_m,
    }


def _cloud(raw: bytes) -> CueValues:
    cloud = read_cloud(raw)
    if not {'x', 'y', 'z'} <= set(cloud.points.dtype.names or ()):
        raise CdrError('a cloud without x, y and z')
    points = np.stack([cloud.points[axis] for axis in 'xyz'], axis=1)
    times = point_times_s(cloud)
    return {'points': points} if times is None else {'points': points, 'times': times}


def _gray(raw: bytes) -> CueValues:
    _, encoding, pixels = read_image(raw)
    if pixels.dtype.kind == 'f':
        raise CdrError(f'an image of {encoding} holds no brightness')
    if pixels.ndim == 3:
        pixels = pixels[:, :, 1]  # green carries most of the brightness, in every order of colours
    return {'gray': pixels if pixels.dtype.itemsize == 1 else pixels / 256.0}


def _imu_rate(raw: bytes) -> CueValues:
    return {'angular_velocity': read_imu(raw)[0]}


def _twist_rate(raw: bytes) -> CueValues:
    return {'angular_velocity': read_twist(raw)[2]}


def _odometry_orientation(raw: bytes) -> CueValues:
    return {'orientation': read_odometry(raw).orientation_xyzw}


def _pose_orientation(raw: bytes) -> CueValues:
    reader = Reader(raw)
    reader.header()
    return {'orientation': reader.array('f8', 7)[3:]}


def find_transform(given: InputConfig, raw: bytes) -> Transform | None:
    """Return the transform that the input names, None where the message has none of it."""
    found = read_transforms(raw) if given.type == TF_TYPE else [read_transform(raw)]
    for each in found:
        if given.frame_id.strip('/') in (
            '',
            each.frame_id.strip('/'),
        ) and given.child_frame_id.strip('/') in ('', each.child_frame_id.strip('/')):
            return each
    return None


def _transform_reader(given: InputConfig) -> PayloadReader:
    def read(raw: bytes) -> CueValues:
        found = find_transform(given, raw)
        if found is None:
            raise CdrError(f'no transform from {given.frame_id} to {given.child_frame_id}')
        return {'orientation': found.rotation_xyzw}

    return read


def _imu_orientation(raw: bytes) -> CueValues:
    reader = Reader(raw)
    reader.header()
    return {'orientation': reader.array('f8', 4)}


READERS: dict[str, dict[str, PayloadReader]] = {
    'scan': {'sensor_msgs/msg/LaserScan': _scan},
    'cloud': {'sensor_msgs/msg/PointCloud2': _cloud},
    'image': {'sensor_msgs/msg/Image': _gray},
    'rate': {
        'sensor_msgs/msg/Imu': _imu_rate,
        'geometry_msgs/msg/TwistStamped': _twist_rate,
        'geometry_msgs/msg/TwistWithCovarianceStamped': _twist_rate,
    },
    'odometry': {
        'nav_msgs/msg/Odometry': _odometry_orientation,
        'geometry_msgs/msg/PoseStamped': _pose_orientation,
        'geometry_msgs/msg/PoseWithCovarianceStamped': _pose_orientation,
        'sensor_msgs/msg/Imu': _imu_orientation,
    },
}
"""Cue -> message type -> reader; transforms have one per input, which names its frames."""
