"""Decodes serialised messages into the named arrays that the cues want (see sync_engine.cues)."""

from __future__ import annotations

from collections.abc import Callable, Set
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.cdr import CdrError
from rig_common.errors import RigError
from rig_common.msgs import Transform
from rig_common.msgs.catalogue import CATALOGUE
from rig_common.msgs.decode import (
    Cloud,
    Fix,
    Intrinsics,
    Scan,
    read_camera_info,
    read_transform,
    read_transforms,
)
from rig_common.quaternions import Quaternion, product
from sync_engine.config import TF_TYPE, InputConfig, SyncConfig
from sync_engine.cues.image_lens import MODELS, CameraLens
from sync_engine.streams.payload import CueValues, PayloadReader
from sync_engine.wire.image_readers import (
    image_values,
    read_compressed_image,
    read_foxglove_image,
)
from sync_engine.wire.joint_chain import JointChain
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
        if given.type not in types_of(given.cue):
            raise RigError(
                f'sync.inputs.{name}.cue is {given.cue!r}, which reads '
                f'{" or ".join(types_of(given.cue))}; its type is {given.type!r}'
            )
        if given.wrong_transform:
            raise RigError(f'sync.inputs.{name}: {given.wrong_transform}')
        if given.type in TRANSFORMS:
            readers[name] = _transform_reader(given)
        elif given.cue == 'joints':
            readers[name] = JointChain(Path(given.urdf), given.frame_id, given.child_frame_id)
        elif given.cue == 'image':
            readers[name] = CameraReader(name, given, lenses)
        else:
            readers[name] = reader_of(given.cue, given.type)
    return readers


class CameraReader:
    """Reads one camera's messages, and adds what is known of its lens."""

    def __init__(self, camera: str, given: InputConfig, lenses: Lenses) -> None:
        self._camera, self._lenses = camera, lenses
        self._video = VideoReader(given.type) if given.type in VIDEO_TYPES else None
        self._read = self._video or reader_of('image', given.type)
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


def _scan(scan: Scan) -> CueValues:
    return {
        'ranges': scan.ranges,
        'angle_min': scan.angle_min_rad,
        'angle_increment': scan.angle_increment_rad,
        'time_increment': scan.time_increment_s,
        'range_min': scan.range_min_m,
        'range_max': scan.range_max_m,
    }


def _cloud(cloud: Cloud) -> CueValues:
    if not {'x', 'y', 'z'} <= set(cloud.points.dtype.names or ()):
        raise CdrError('a cloud without x, y and z')
    points = np.stack([cloud.points[axis] for axis in 'xyz'], axis=1)
    times = point_times_s(cloud)
    return {'points': points} if times is None else {'points': points, 'times': times}


def find_transform(given: InputConfig, raw: bytes) -> Transform | None:
    """Return the transform that the input names, None where the message has none of it.

    Where the two frames are not neighbours, the transforms between them are put together, as
    far as one message has them all; its stamp is the last one's.
    """
    found = read_transforms(raw) if given.type == TF_TYPE else [read_transform(raw)]
    base, frame = given.frame_id.strip('/'), given.child_frame_id.strip('/')
    for each in found:
        if base in ('', each.frame_id.strip('/')) and frame in (
            '',
            each.child_frame_id.strip('/'),
        ):
            return each
    by_child = {each.child_frame_id.strip('/'): each for each in found}
    chain: list[Transform] = []
    while frame != base and frame in by_child:
        chain.insert(0, by_child.pop(frame))
        frame = chain[0].frame_id.strip('/')
    if frame != base or not chain:
        return None
    turn: Quaternion = (1.0, 0.0, 0.0, 0.0)
    for each in chain:
        x, y, z, w = each.rotation_xyzw
        turn = product(turn, (w, x, y, z))
    w, x, y, z = turn
    return chain[-1]._replace(frame_id=given.frame_id, rotation_xyzw=[x, y, z, w])


def _transform_reader(given: InputConfig) -> PayloadReader:
    def read(raw: bytes) -> CueValues:
        found = find_transform(given, raw)
        if found is None:
            raise CdrError(f'no transform from {given.frame_id} to {given.child_frame_id}')
        return {'orientation': found.rotation_xyzw}

    return read


def _place(reading: Any) -> CueValues:
    """Return where a sensor is or how fast it goes; nothing where it tells neither."""
    if isinstance(reading, Fix):
        return {'fix': reading.place} if reading.is_known else {}
    if hasattr(reading, 'position_m'):
        return {'position': reading.position_m}
    if hasattr(reading, 'linear_m_s'):
        return {'velocity': reading.linear_m_s, 'turn_rate': reading.angular_rad_s}
    return {}


VALUES: dict[str, Callable[[Any], CueValues]] = {
    'scan': _scan,
    'cloud': _cloud,
    'image': image_values,
    'rate': lambda reading: {'angular_velocity': reading.angular_rad_s},
    'odometry': lambda reading: {'orientation': reading.orientation_xyzw, **_place(reading)},
    'speed': _place,
}
"""Cue -> what it wants of a reading, which the type's decoder in the catalogue returns."""
IMAGE_READERS: dict[str, PayloadReader] = {
    'sensor_msgs/msg/CompressedImage': read_compressed_image,
    'foxglove_msgs/msg/CompressedImage': read_foxglove_image,
    **{name: VideoReader(name) for name in VIDEO_TYPES},
}
"""Pictures that are decoded no further than the cue needs them; a video input has its own."""


_FURTHER: dict[str, Set[str]] = {
    'image': set(IMAGE_READERS),
    'odometry': TRANSFORMS,
    'joints': {'sensor_msgs/msg/JointState'},
}
"""Types that a cue reads with something of the input's own: a decoder, frames, a robot."""


def types_of(cue: str) -> list[str]:
    """Return the message types that a cue can read."""
    known = {row.name for row in CATALOGUE.values() if cue in row.cues()}
    return sorted(known | _FURTHER.get(cue, set()))


def reader_of(cue: str, type_name: str) -> PayloadReader:
    """Return what reads the payload of one of `types_of(cue)`."""
    if type_name in IMAGE_READERS:
        return IMAGE_READERS[type_name]
    decode, values = CATALOGUE[type_name].decode, VALUES[cue]
    assert decode is not None, f'{type_name} has a cue and no decoder'
    return lambda raw: values(decode(raw))
