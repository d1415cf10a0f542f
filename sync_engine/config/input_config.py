"""One input of the `sync:` section: where it comes from, whose clock stamps it, what it may do."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rig_common.validation import Strict

StampSource = Literal['device', 'host', 'ptp', 'trigger']
CueKind = Literal['none', 'scan', 'cloud', 'image', 'odometry', 'rate', 'joints', 'speed']
CueAxes = Literal['', 'vector', 'yaw', 'size']

IMU_TYPE = 'sensor_msgs/msg/Imu'
TF_TYPE = 'tf2_msgs/msg/TFMessage'
IMAGE_TYPES = (
    'sensor_msgs/msg/Image',
    'sensor_msgs/msg/CompressedImage',
    'sensor_msgs/msg/CameraInfo',
    'foxglove_msgs/msg/CompressedImage',
    'foxglove_msgs/msg/CompressedVideo',
    'ffmpeg_image_transport_msgs/msg/FFMPEGPacket',
)
"""Types whose stamp is the middle of the first row's exposure by default."""


class InputConfig(Strict):
    """One stream. Buffers are per topic: an image and its camera_info are two inputs."""

    topic: str = ''
    """Topic it comes on, relative to the node's namespace; the engine itself does not read it."""
    type: str = ''
    """ROS type name (`sensor_msgs/msg/Image`); the engine itself does not read it."""
    stamp_source: StampSource = 'device'
    """Who writes the stamp: the sensor's own clock, the host on arrival, a clock that is kept
    equal to the host's (PTP), or a device fired by the reference's trigger line."""
    latency_s: float = Field(0.02, ge=0.0, le=10.0)
    """Smallest delay from capture to arrival that is believed (s)."""
    latency_sigma_s: float = Field(0.02, gt=0.0, le=10.0)
    """How far off `latency_s` may be, one sigma (s). It limits what arrival times can show."""
    stamp_point: Literal['default', 'start', 'middle', 'end'] = 'default'
    """Which instant of a sweep or an exposure its stamps mean. `default` is the start of a sweep
    and the middle of the exposure of an image's first row; the others need to know how long it
    lasts. Of an image `start` is when the first row begins to be exposed, `middle` the middle of
    the middle row's exposure, `end` when the last row's exposure ends."""
    capture_s: float = Field(0.0, ge=0.0, le=10.0)
    """How long a sweep, or the exposure of an image without `readout_s`, lasts (s); needed unless
    `stamp_point` is `default`."""
    exposure_s: float = Field(0.0, ge=0.0, le=10.0)
    """How long each row of an image is exposed (s); instead of `capture_s`."""
    readout_s: float = Field(0.0, ge=0.0, le=1.0)
    """Rolling shutter: time from the first row's exposure to the last one's (s). What the image
    cue finds belongs to the middle row, half of it after the first. 0: a global shutter, or not
    known; it is then estimated, and the offset is that of the middle row."""
    deadline_s: float = Field(0.2, gt=0.0, le=60.0)
    """How long after the reference frame's arrival a bundle waits for this stream (s)."""
    reuse: bool = False
    """Whether one frame may be a member of several bundles (a map, a slow sensor)."""
    collect: bool = False
    """Hand over every packet since the last bundle instead of the nearest one."""
    member: bool = True
    """False: the stream feeds the window and the cues only, and is no part of a bundle."""
    missing_strategy: Literal['inherit', 'drop', 'empty', 'interpolate'] = 'inherit'
    """What to do without a frame in the window; `inherit` takes the rig's."""
    max_gap_s: float = Field(0.1, gt=0.0, le=60.0)
    """Longest gap between two packets that interpolation may bridge (s)."""
    zero_stamp: Literal['reject', 'arrival'] = 'reject'
    """A stamp of zero is invalid, or is replaced by the arrival time."""
    clock_of: str = ''
    """Another input whose clock this one shares (camera_info shares the camera's)."""
    cue: CueKind = 'none'
    """How rotations, or for `speed` the way it went, are found in its payload; this is what makes
    its offset observable."""
    focal_px: float = Field(0.0, ge=0.0)
    """Focal length for the image cue (px at the image's full size). 0: from the camera_info that
    shares this input's clock, and without one estimated together with the offset."""
    cue_bias_s: float = Field(0.0, ge=0.0, le=1.0)
    """Error of the cue that does not average out, one sigma (s): near things shift in images by
    translation too. It is part of every sigma of this input."""
    cue_wander: float = Field(0.5, ge=0.0, le=1.0)
    """How likely it is, before anything is seen, that the times of its turns wander against its
    stamps. Poses that another computer timed often do (0.5), turns found in the payload itself
    seldom (0.1), those of simulated sensors never do (0.02 leaves a door open). Too much makes
    its sigma wide for minutes, too little narrow while it wanders."""
    cue_axes: CueAxes = ''
    """What of its turns is used: `vector`, all three components; `yaw`, the turn about the
    sensor's own z; `size`, how far it turned, which needs no mounting. Empty: all that the cue
    measures."""
    frame_id: str = ''
    """Of a transform (`TransformStamped`, `/tf`) or of joint states: the frame it is in."""
    child_frame_id: str = ''
    """Of a transform or of joint states: the frame whose turns are read."""
    urdf: str = ''
    """Of joint states: the file with the robot's joints; the turns are those of the link
    `child_frame_id` in the frame of the link `frame_id`."""
    imu_quat_wxyz: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Rotation that takes vectors from the sensor's frame to the IMU's (cameras: optical). All
    zeros: not declared, so it is estimated from the motion together with the offset. A declared
    one is checked against the motion."""

    @property
    def stamp_shift_ns(self) -> int:
        """From its stamps to the instant that stamps mean by default, ns."""
        if self.type in IMAGE_TYPES:
            exposure_s = self.exposure_s or self.capture_s
            shifts_s = {
                'start': 0.5 * exposure_s,
                'middle': -0.5 * self.readout_s,
                'end': -0.5 * exposure_s - self.readout_s,
            }
        else:
            shifts_s = {'middle': -0.5 * self.capture_s, 'end': -self.capture_s}
        return round(shifts_s.get(self.stamp_point, 0.0) * 1e9)

    @model_validator(mode='after')
    def _point_has_a_length(self) -> InputConfig:
        lasts_s = self.capture_s or self.exposure_s or self.readout_s
        if (self.stamp_point == 'default' and self.capture_s) or (
            self.stamp_point != 'default' and not lasts_s
        ):
            raise ValueError(
                f'stamp_point is {self.stamp_point} and capture_s is '
                f'{self.capture_s:g}; a point of a sweep or an exposure needs its '
                'length, and the default none'
            )
        return self

    @model_validator(mode='after')
    def _shutter_of_an_image(self) -> InputConfig:
        for key in ('exposure_s', 'readout_s'):
            if getattr(self, key) and self.type not in ('', *IMAGE_TYPES):
                raise ValueError(f'{key} belongs to an image; the type is {self.type}')
        if self.capture_s and (self.exposure_s or self.readout_s):
            raise ValueError(
                f'capture_s is {self.capture_s:g} beside exposure_s {self.exposure_s:g} and '
                f'readout_s {self.readout_s:g}; of an image give the last two'
            )
        return self

    @model_validator(mode='after')
    def _unit_rotation(self) -> InputConfig:
        norm = sum(value * value for value in self.imu_quat_wxyz)
        if norm != 0.0 and abs(norm - 1.0) > 1e-3:
            raise ValueError(
                f'imu_quat_wxyz must be a unit quaternion, or all zeros where it is '
                f'not known; its norm is {norm**0.5:g}'
            )
        return self

    @model_validator(mode='after')
    def _one_transform(self) -> InputConfig:
        if self.wrong_transform:
            raise ValueError(self.wrong_transform)
        return self

    @property
    def wrong_transform(self) -> str:
        """Say what an input of `/tf` lacks; else empty."""
        if self.type == TF_TYPE and not (self.frame_id and self.child_frame_id):
            return (
                f'an input of {TF_TYPE} carries many transforms; frame_id and child_frame_id '
                f'must say which one is meant'
            )
        if self.type == TF_TYPE and self.member:
            return f'an input of {TF_TYPE} cannot be in a bundle; it needs member: false'
        return ''

    @model_validator(mode='after')
    def _joints_have_a_robot(self) -> InputConfig:
        if self.cue == 'joints' and not (self.urdf and self.frame_id and self.child_frame_id):
            raise ValueError(
                'cue joints needs urdf, and the links frame_id and child_frame_id between which '
                'the joints are'
            )
        return self

    @model_validator(mode='after')
    def _axes_of_cue(self) -> InputConfig:
        if self.cue == 'speed' and self.cue_axes:
            raise ValueError(
                f'cue_axes {self.cue_axes!r} is of turns, which cue speed does not use'
            )
        if self.cue in ('scan', 'cloud') and self.cue_axes not in ('', 'yaw'):
            raise ValueError(
                f'cue_axes {self.cue_axes!r} does not go with cue {self.cue!r}, '
                "which measures the yaw alone; allowed is 'yaw'"
            )
        return self
