"""The `sync:` section of a rig file.

Names follow the original design notes; every value carries its unit in its name. The rig file is a
ROS 2 parameter file, which knows no null and no empty list, so "none" is written `""`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from rig_common.errors import RigError
from rig_common.text import near
from rig_common.validation import Strict

StampSource = Literal['device', 'host', 'ptp', 'trigger']
MissingStrategy = Literal['drop', 'empty', 'interpolate']
CueKind = Literal['none', 'scan', 'cloud', 'image', 'odometry', 'rate']
CueAxes = Literal['', 'vector', 'yaw', 'size']
StampPolicy = Literal['bundle', 'corrected', 'raw']

IMU_TYPE = 'sensor_msgs/msg/Imu'
TF_TYPE = 'tf2_msgs/msg/TFMessage'


IMAGE_TYPES = ('sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage',
               'sensor_msgs/msg/CameraInfo')
"""Types whose stamp is the middle of an exposure by default."""


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
    """How far off `latency_s` may be, one sigma (s). It bounds what arrival times can tell."""
    stamp_point: Literal['default', 'start', 'middle', 'end'] = 'default'
    """Which instant of a sweep or an exposure its stamps tell; by default a sweep's start and an
    exposure's middle. Others are counted from there, `capture_s` long."""
    capture_s: float = Field(0.0, ge=0.0, le=10.0)
    """How long a sweep or an exposure lasts (s); needed where `stamp_point` is another."""
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
    """What its payload tells about rotation; this is what makes its offset observable."""
    focal_px: float = Field(0.0, ge=0.0)
    """Focal length for the image cue (px at the image's full size); 0: from the payload."""
    cue_bias_s: float = Field(0.0, ge=0.0, le=1.0)
    """Error of the cue that does not average out, one sigma (s): near things shift in images by
    translation too. It is part of every sigma of this input."""
    cue_wander: float = Field(0.4, ge=0.0, le=1.0)
    """How likely it is, before anything is seen, that the times of its turns wander against its
    stamps. Poses that another computer timed often do (0.4), turns found in the payload itself
    seldom (0.1). Too much makes its sigma wide for minutes, too little narrow while it wanders."""
    cue_axes: CueAxes = ''
    """What of its turns is used: `vector`, all three components; `yaw`, the turn about the
    sensor's own z; `size`, how far it turned, which needs no mounting. Empty: all that the cue
    measures."""
    frame_id: str = ''
    """Of a transform (`TransformStamped`, `/tf`): the frame it is in."""
    child_frame_id: str = ''
    """Of a transform: the frame whose turns are read."""
    imu_quat_wxyz: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    """Rotation that takes vectors from the sensor's frame to the IMU's (cameras: optical). All
    zeros: not declared, so it is estimated from the motion together with the offset. A declared
    one is checked against the motion."""

    @property
    def stamp_shift_ns(self) -> int:
        """From its stamps to the instant that stamps tell by default, ns."""
        parts = {'start': 0.5, 'middle': 0.0, 'end': -0.5} if self.type in IMAGE_TYPES else {
            'start': 0.0, 'middle': -0.5, 'end': -1.0}
        return round(parts.get(self.stamp_point, 0.0) * self.capture_s * 1e9)

    @model_validator(mode='after')
    def _point_has_a_length(self) -> InputConfig:
        if (self.stamp_point == 'default') != (self.capture_s == 0.0):
            raise ValueError(f'stamp_point is {self.stamp_point} and capture_s is '
                             f'{self.capture_s:g}; a point of a sweep or an exposure needs its '
                             'length, and the default none')
        return self

    @model_validator(mode='after')
    def _unit_rotation(self) -> InputConfig:
        norm = sum(value * value for value in self.imu_quat_wxyz)
        if norm != 0.0 and abs(norm - 1.0) > 1e-3:
            raise ValueError(f'imu_quat_wxyz must be a unit quaternion, or all zeros where it is '
                             f'not known; its norm is {norm**0.5:g}')
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
            return (f'an input of {TF_TYPE} carries many transforms; frame_id and child_frame_id '
                    f'must say which one is meant')
        if self.type == TF_TYPE and self.member:
            return f'an input of {TF_TYPE} cannot be in a bundle; it needs member: false'
        return ''

    @model_validator(mode='after')
    def _axes_of_cue(self) -> InputConfig:
        if self.cue in ('scan', 'cloud') and self.cue_axes not in ('', 'yaw'):
            raise ValueError(f"cue_axes {self.cue_axes!r} does not go with cue {self.cue!r}, "
                             "which tells the yaw alone; allowed is 'yaw'")
        return self


class WindowConfig(Strict):
    """Half-width of the selection window, from calm (max) to fast motion (min)."""

    min_ms: float = Field(20.0, gt=0.0)
    """Half-width in fast motion (ms)."""
    max_ms: float = Field(100.0, gt=0.0)
    """Half-width at rest, and without an IMU (ms)."""
    gravity_m_s2: float = Field(9.8, ge=0.0)
    """What the accelerometer shows at rest (m/s^2)."""
    linear_scale_m_s2: float = Field(5.0, gt=0.0)
    """Deviation of |a| from gravity that counts as intensity 1 (m/s^2)."""
    angular_scale_rad_s: float = Field(1.0, gt=0.0)
    """Angular rate that counts as intensity 1 (rad/s)."""
    smoothing_s: float = Field(0.1, ge=0.0)
    """Time constant of the averaging of |a| and |w| (s); 0 takes the last sample alone."""
    stale_after_s: float = Field(0.5, gt=0.0)
    """Silence of the IMU after which the window is the maximum again (s)."""

    @model_validator(mode='after')
    def _ordered(self) -> WindowConfig:
        if self.min_ms > self.max_ms:
            raise ValueError(f'min_ms ({self.min_ms}) must not exceed max_ms ({self.max_ms})')
        return self


class BufferConfig(Strict):
    """Bounds of every stream's buffer; whichever is reached first evicts the oldest."""

    max_size: int = Field(1000, ge=2, le=1_000_000)
    """Messages per stream."""
    timeout_s: float = Field(1.0, gt=0.0)
    """Age by arrival time (s), never by stamp: a sensor's clock may count from its power-up."""
    max_bytes: int = Field(256 * 1024 * 1024, ge=1)
    """Bytes per stream."""


class AdaKFConfig(Strict):
    """The offset filter. The first four names serve `estimator: pairing` as well."""

    initial_offset: float = 0.0
    """Offset of a `ptp` or pairing stream before anything is measured (s)."""
    process_noise: float = Field(1.0e-4, gt=0.0)
    """Pairing estimator only: Q (s^2 a bundle)."""
    measurement_noise: float = Field(1.0e-3, gt=0.0)
    """Pairing estimator only: base R (s^2)."""
    residual_window: int = Field(20, ge=2)
    """Pairing estimator only: residuals kept for adapting R."""
    block_s: float = Field(1.0, gt=0.0)
    """Span over which the smallest arrival delay becomes one observation (s)."""
    gate_nis: float = Field(9.0, gt=0.0)
    """Squared innovation over its variance beyond which an observation is rejected."""
    forgetting: float = Field(0.95, gt=0.0, lt=1.0)
    """b of the Sage-Husa noise estimate: 0.95 remembers about 20 observations."""
    offset_walk_s: float = Field(1e-5, gt=0.0)
    """Random walk of the offset (s per root second)."""
    skew_walk: float = Field(1e-7, gt=0.0)
    """Random walk of the skew (1 per root second)."""
    latency_walk_s: float = Field(1e-5, gt=0.0)
    """Random walk of the smallest latency (s per root second)."""
    skew_sigma: float = Field(3e-5, gt=0.0)
    """Prior sigma of a device clock's skew (30 ppm: an uncompensated crystal)."""
    ptp_sigma_s: float = Field(2e-4, gt=0.0)
    """Prior sigma of the offset of a `ptp` stream (s)."""
    lock_sigma_s: float = Field(0.002, gt=0.0)
    """Sigma below which an offset is `locked` (s)."""
    unobservable_sigma_s: float = Field(0.1, gt=0.0)
    """Sigma above which an offset is `unobservable` and corrects nothing (s)."""


class MotionConfig(Strict):
    """Comparison of a sensor's rotations with the integrated gyro."""

    grid_s: float = Field(0.3, gt=0.0, le=5.0)
    """Half-width of the search around the offset known so far (s)."""
    min_span_s: float = Field(1.0, gt=0.0)
    """Shortest stretch of motion that is tried (s)."""
    max_span_s: float = Field(8.0, gt=0.0)
    """Longest stretch that is kept (s)."""
    accept_sigma_s: float = Field(0.006, gt=0.0)
    """Only a stretch of motion that pins the offset this sharply is an observation (s)."""

    @model_validator(mode='after')
    def _ordered(self) -> MotionConfig:
        if self.min_span_s > self.max_span_s:
            raise ValueError(
                f'min_span_s ({self.min_span_s}) must not exceed max_span_s ({self.max_span_s})'
            )
        return self


class EpochConfig(Strict):
    """When a stream, or the host, has started over."""

    restart_jump_s: float = Field(1.0, gt=0.0)
    """A stamp further than this from where its clock should be waits for a second one that
    agrees, and then is a new epoch (s)."""
    host_backward_s: float = Field(0.1, gt=0.0)
    """Arrival times going back by more than this are a new epoch of everything (s)."""
    gap_reset_s: float = Field(10.0, gt=0.0)
    """Silence after which a device clock is learnt anew (s)."""


class SyncConfig(Strict):
    """Everything the engine is told. Unknown keys are refused."""

    inputs: dict[str, InputConfig] = Field(min_length=1)
    """The streams by name."""
    reference_sensor_id: str
    """The input that bundles are made for: one bundle per frame of it."""
    required_sensors: tuple[str, ...] = ()
    """Sensors without which there is no bundle; the reference always is one of them."""
    imu_sensor_id: str = ''
    """The input that drives the window and that motion is compared with; empty for none."""
    window: WindowConfig = WindowConfig()
    buffer: BufferConfig = BufferConfig()
    adakf: AdaKFConfig = AdaKFConfig()
    motion: MotionConfig = MotionConfig()
    epochs: EpochConfig = EpochConfig()
    missing_strategy: MissingStrategy = 'drop'
    """Without a frame of a required input: no bundle, one without it, or one with an interpolated
    frame."""
    estimator: Literal['adaptive', 'pairing', 'none'] = 'adaptive'
    """`adaptive`: clock filter per sensor; `pairing`: the design notes' filter on the pairing
    residual (hardware-triggered rigs only); `none`: stamps are taken as they are."""
    stamp_policy: StampPolicy = 'bundle'
    """Which stamp the members are published with; used by the shells."""

    @model_validator(mode='after')
    def _names_exist(self) -> SyncConfig:
        known = ', '.join(sorted(self.inputs))
        named = {'reference_sensor_id': [self.reference_sensor_id]}
        named['required_sensors'] = list(self.required_sensors)
        named['imu_sensor_id'] = [self.imu_sensor_id] if self.imu_sensor_id else []
        for key, names in named.items():
            for name in names:
                if name not in self.inputs:
                    raise ValueError(f"{key} names '{name}', which is not an input; "
                                     f'{near(name, self.inputs)}inputs are {known}')
        self._check_reference()
        self._check_inputs()
        if self.wrong_imu:
            raise ValueError(self.wrong_imu)
        return self

    @property
    def wrong_imu(self) -> str:
        """Say what is wrong where `imu_sensor_id` names an input that is no IMU; else empty."""
        if not self.imu_sensor_id or self.inputs[self.imu_sensor_id].type in ('', IMU_TYPE):
            return ''
        imus = ', '.join(name for name, given in self.inputs.items() if given.type == IMU_TYPE)
        return (f"imu_sensor_id names '{self.imu_sensor_id}', whose messages are "
                f'{self.inputs[self.imu_sensor_id].type}; it should name an input of {IMU_TYPE}'
                + (f' ({imus})' if imus else ', or be left out'))

    def _check_reference(self) -> None:
        reference = self.reference_sensor_id
        if self.required_sensors and reference not in self.required_sensors:
            raise ValueError(f"required_sensors must contain the reference '{reference}'")
        if self.inputs[reference].collect or not self.inputs[reference].member:
            raise ValueError(f"the reference '{reference}' must be a member and not collected")
        if self.inputs[reference].stamp_source == 'trigger':
            raise ValueError(
                f"the reference '{reference}' cannot have stamp_source 'trigger': "
                'the others are triggered by it'
            )

    def _check_inputs(self) -> None:
        topics: dict[str, str] = {}
        for name, given in self.inputs.items():
            if given.topic and topics.setdefault(given.topic, name) != name:
                raise ValueError(
                    f"inputs '{topics[given.topic]}' and '{name}' share topic '{given.topic}'"
                )
            if name in self.required_sensors and not given.member:
                raise ValueError(f"required sensor '{name}' has member: false")
            if given.member and given.deadline_s > self.buffer.timeout_s:
                raise ValueError(
                    f'inputs.{name}.deadline_s ({given.deadline_s}) must not exceed '
                    f'buffer.timeout_s ({self.buffer.timeout_s})'
                )
            owner = given.clock_of
            if owner and (owner not in self.inputs or owner == name):
                raise ValueError(f"inputs.{name}.clock_of names '{owner}', not another input")
            if owner and self.inputs[owner].clock_of:
                raise ValueError(f"inputs.{name}.clock_of '{owner}' itself follows a clock")

    def strategy_of(self, sensor_id: str) -> MissingStrategy:
        """Return what is done when `sensor_id` has no frame for a bundle."""
        own = self.inputs[sensor_id].missing_strategy
        return self.missing_strategy if own == 'inherit' else own


def load_config(values: dict[str, Any]) -> SyncConfig:
    """Validate `values` (the mapping under `sync:`); a mistake is one sentence (RigError)."""
    try:
        return SyncConfig.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = '.'.join(['sync', *(str(part) for part in first['loc'])])
        given = first['input']
        value = '' if isinstance(given, (dict, list)) else f' (it is {given!r})'
        reason = first['msg'].removeprefix('Value error, ')
        raise RigError(f'{where}: {reason}{value}.') from None
