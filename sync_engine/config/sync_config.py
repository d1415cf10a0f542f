"""The `sync:` section of a rig file.

Names follow the original design notes; every value carries its unit in its name. The rig file is a
ROS 2 parameter file, which knows no null and no empty list, so "none" is written `""`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationError, model_validator

from rig_common.errors import RigError
from rig_common.text import near
from rig_common.validation import Strict
from sync_engine.config.input_config import IMU_TYPE, InputConfig

MissingStrategy = Literal['drop', 'empty', 'interpolate']
StampPolicy = Literal['bundle', 'corrected', 'raw']


TELLS_TURNS = ('rate', 'joints', 'odometry', 'cloud', 'scan', 'image')
"""Cues whose turns others can be compared with, the best first."""
_WORST_SPEEDS = ('', 'TwistWithCovarianceStamped', 'TwistStamped', 'NavSatFix')
"""Types of inputs whose speed is the reference if there is no better one, the worst last."""


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
    offset_walk_s: float = Field(1e-6, gt=0.0)
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
    min_span_s: float = Field(0.5, gt=0.0)
    """Shortest stretch of motion that is tried (s)."""
    max_span_s: float = Field(30.0, gt=0.0)
    """Longest history that is searched before one offset alone explains it (s)."""

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
    """Silence after which a device clock is learned again (s)."""


class CorrectConfig(Strict):
    """Single topics with right stamps: of a recording (`rig correct`), or live."""

    inputs: tuple[str, ...] = ()
    """Inputs that the sync node publishes as `corrected/<topic>`, each message at once and with
    its own right stamp. For `rig correct`, inputs to correct; empty for all."""
    to: Literal['host', 'reference'] = 'host'
    """Clock that stamps are put on: the host's, or the reference input's."""
    min_state: Literal['locked', 'converging'] = 'locked'
    """How well a clock must be known; until then messages pass as they came."""
    smooth_arrivals: bool = False
    """Recordings only: whether the jitter of stamps written on arrival is taken out, too."""


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
    motion_reference: str = ''
    """Without an IMU: the input whose turns, or with `cue: speed` whose way, the others' are
    compared with. Empty: the one whose cue tells turns best (rate, joints, odometry, cloud, scan,
    image, in this order), and of ways odometry before twists before fixes."""
    window: WindowConfig = WindowConfig()
    """How far from its target a frame may be."""
    buffer: BufferConfig = BufferConfig()
    """How much each stream may hold."""
    adakf: AdaKFConfig = AdaKFConfig()
    """The adaptive Kalman filter that estimates clock offsets."""
    motion: MotionConfig = MotionConfig()
    """How rotations are compared with the gyro."""
    epochs: EpochConfig = EpochConfig()
    """When a clock, or the host, has started over."""
    missing_strategy: MissingStrategy = 'drop'
    """Without a frame of a required input: no bundle, one without it, or one with an interpolated
    frame."""
    estimator: Literal['adaptive', 'pairing', 'none'] = 'adaptive'
    """`adaptive`: clock filter per sensor; `pairing`: the design notes' filter on the pairing
    residual (hardware-triggered rigs only); `none`: stamps are taken as they are."""
    stamp_policy: StampPolicy = 'bundle'
    """Which stamp the members are published with; used by the shells."""
    correct: CorrectConfig = CorrectConfig()
    """Single topics with right stamps, without bundles."""

    @model_validator(mode='after')
    def _names_exist(self) -> SyncConfig:
        known = ', '.join(sorted(self.inputs))
        named = {'reference_sensor_id': [self.reference_sensor_id]}
        named['required_sensors'] = list(self.required_sensors)
        for key in ('imu_sensor_id', 'motion_reference'):
            named[key] = [getattr(self, key)] if getattr(self, key) else []
        named['correct.inputs'] = list(self.correct.inputs)
        for key, names in named.items():
            for name in names:
                if name not in self.inputs:
                    raise ValueError(
                        f"{key} names '{name}', which is not an input; "
                        f'{near(name, self.inputs)}inputs are {known}'
                    )
        self._check_reference()
        self._check_motion_reference()
        self._check_inputs()
        if self.wrong_imu:
            raise ValueError(self.wrong_imu)
        return self

    @property
    def turn_reference(self) -> str:
        """The input whose turns the others' are compared with: the IMU, or the best of the rest.

        Empty where there is none, or nothing to compare with it.
        """
        named = self.imu_sensor_id or self.motion_reference
        if named and self.inputs[named].cue != 'speed':
            return named
        cued = [name for name, given in self.inputs.items() if given.cue in TELLS_TURNS]
        if len(cued) < 2:
            return ''
        return min(cued, key=lambda name: TELLS_TURNS.index(self.inputs[name].cue))

    @property
    def speed_reference(self) -> str:
        """The input whose way the others' ways are compared with, empty where there is none.

        Its clock is not compared with another one: an input with `cue: speed`, or the one that
        turns are compared with.
        """
        own = [name for name, given in self.inputs.items() if given.cue == 'speed']
        kept = self.turn_reference
        told = [
            name
            for name, given in self.inputs.items()
            if given.cue == 'speed' or (given.cue == 'odometry' and kept in ('', name))
        ]
        if not own or len(told) < 2:
            return ''
        if self.motion_reference in told:
            return self.motion_reference

        def badness(name: str) -> int:
            kind = self.inputs[name].type.rpartition('/')[2]
            return _WORST_SPEEDS.index(kind) if kind in _WORST_SPEEDS else -1

        return min(told, key=badness)

    def clock_anchor(self, name: str) -> str:
        """Return the input that the motion of an input is compared with; itself for such a one."""
        by_speed = self.inputs[name].cue == 'speed' or name == self.speed_reference
        return self.speed_reference if by_speed else self.turn_reference

    def _check_motion_reference(self) -> None:
        name = self.motion_reference
        if name and self.imu_sensor_id:
            raise ValueError(
                f"motion_reference names '{name}' beside the IMU '{self.imu_sensor_id}'; "
                'turns are compared with one of them, so leave one out'
            )
        if name and self.inputs[name].cue not in (*TELLS_TURNS, 'speed'):
            raise ValueError(
                f"motion_reference names '{name}', whose cue is '{self.inputs[name].cue}'; it "
                f'needs one that tells turns or speed: {", ".join(TELLS_TURNS)}, speed'
            )

    @property
    def wrong_imu(self) -> str:
        """Say what is wrong where `imu_sensor_id` names an input that is no IMU; else empty."""
        if not self.imu_sensor_id or self.inputs[self.imu_sensor_id].type in ('', IMU_TYPE):
            return ''
        imus = ', '.join(name for name, given in self.inputs.items() if given.type == IMU_TYPE)
        return (
            f"imu_sensor_id names '{self.imu_sensor_id}', whose messages are "
            f'{self.inputs[self.imu_sensor_id].type}; it should name an input of {IMU_TYPE}'
            + (f' ({imus})' if imus else ', or be left out')
        )

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


def load_config(values: dict[str, object]) -> SyncConfig:
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
