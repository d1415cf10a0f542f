"""Decodes serialised messages into the named arrays that the cues want (see sync_engine.cues)."""

from __future__ import annotations

import numpy as np

from rig_common.cdr import CdrError, Reader
from rig_common.errors import RigError
from rig_common.msgs import Transform
from rig_common.msgs.decode import (
    Intrinsics,
    read_camera_info,
    read_cloud,
    read_imu,
    read_odometry,
    read_scan,
    read_transform,
    read_transforms,
    read_twist,
)
from sync_engine.config import TF_TYPE, InputConfig, SyncConfig
from sync_engine.cues.image_lens import MODELS, CameraLens
from sync_engine.streams.payload import CueValues, PayloadReader
from sync_engine.wire.image_readers import (
    read_compressed_image,
    read_foxglove_image,
    read_raw_image,
)
from sync_engine.wire.restamp import point_times_s
from sync_engine.wire.video_readers import VIDEO_TYPES, VideoReader

INFO_TYPE = 'sensor_msgs/msg/CameraInfo'
_PATIENCE = 8
"""Pictures that a camera with a camera_info waits for the first one."""
TRANSFORMS = frozenset({'geometry_msgs/msg/TransformStamped', TF_TYPE})


class Lenses:
    """Lenses of the cameras, from the camera_info inputs that share their clock."""

    def __init__(self, config: SyncConfig) -> None:
        self._camera_of = {
            name: given.clock_of
            for name, given in config.inputs.items()
            if given.type == INFO_TYPE
            and given.clock_of
            and config.inputs[given.clock_of].cue == 'image'
        }
        self.of: dict[str, CameraLens] = {}
        """By camera; one is not there before its first camera_info that is calibrated."""

    def expect(self, camera: str) -> bool:
        """Return whether some input is the camera's camera_info."""
        return camera in self._camera_of.values()

    def offer(self, sensor_id: str, raw: bytes) -> None:
        """Take a message of any input; only camera_info is looked into."""
        camera = self._camera_of.get(sensor_id)
        if camera is not None:
            info = read_camera_info(raw)
            if info.k[0, 0] > 0.0 and info.k[1, 1] > 0.0:
                self.of[camera] = lens_of(info)


def lens_of(info: Intrinsics) -> CameraLens:
    """Return the lens of a camera's pictures; an unknown model of distortion is left out."""
    known = info.model in MODELS
    (left, top), (across, down) = info.corner, info.binning
    return CameraLens(
        (float(info.k[0, 0]) / across, float(info.k[1, 1]) / down),
        (
            (float(info.k[0, 2]) - left + 0.5) / across - 0.5,
            (float(info.k[1, 2]) - top + 0.5) / down - 0.5,
        ),
        0 if left or top else info.width // across,
        info.model if known else 'plumb_bob',
        tuple(info.d.tolist()) if known else (),
    )


def readers_of(config: SyncConfig, lenses: Lenses) -> dict[str, PayloadReader]:
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
        if given.type in TRANSFORMS:
            readers[name] = _transform_reader(given)
        elif given.cue == 'image':
            readers[name] = CameraReader(name, given, lenses)
        else:
            readers[name] = READERS[given.cue][given.type]
    return readers


class CameraReader:
    """Reads one camera's messages, and adds what is known of its lens."""

    def __init__(self, camera: str, given: InputConfig, lenses: Lenses) -> None:
        self._camera, self._lenses = camera, lenses
        self._video = VideoReader(given.type) if given.type in VIDEO_TYPES else None
        self._read = self._video or READERS['image'][given.type]
        self._patience = _PATIENCE if lenses.expect(camera) else 0

    def missed(self) -> None:
        """Messages were left out."""
        if self._video is not None:
            self._video.missed()

    def __call__(self, raw: bytes) -> CueValues:
        """Return what the image cue wants; nothing while a camera_info may still come."""
        lens = self._lenses.of.get(self._camera)
        values = self._read(raw)
        if lens is not None:
            return {**values, 'lens': lens}
        self._patience -= 1
        return values if self._patience < 0 else {}


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
    'image': {
        'sensor_msgs/msg/Image': read_raw_image,
        'sensor_msgs/msg/CompressedImage': read_compressed_image,
        'foxglove_msgs/msg/CompressedImage': read_foxglove_image,
        **{name: VideoReader(name) for name in VIDEO_TYPES},
    },
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
"""Cue -> message type -> reader; an input of transforms or of video has one of its own."""
