"""Wheel odometry: planar dead reckoning from the travel of a left and a right wheel."""

from __future__ import annotations

from collections.abc import Sequence
from math import tau
from typing import Annotated, Any

import mujoco
import numpy as np
from pydantic import Field, model_validator

from rig_common import msgs
from rig_common.times import NS_PER_S
from sim_sensors.interface import Batch, Origin, Sample, Sensor, SensorConfig, Timeline, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.common.axes import quantise
from sim_sensors.sensors.common.native import LinearReader, add_joint_native
from sim_sensors.sensors.common.rotations import yaw_quat
from sim_sensors.timing.arrays import Array, Layout, arrays_holding
from sim_sensors.timing.arrays.columns import column
from sim_sensors.timing.units import NonNegative, Positive, Probability

TF = Topic('/tf', 'tf2_msgs/msg/TFMessage', is_global=True)
UNKNOWN = 1e6
"""Variance of what planar odometry does not measure (z, roll, pitch), m^2 or rad^2."""
PLANAR = np.add.outer(6 * np.array([0, 1, 5]), np.array([0, 1, 5])).ravel()
"""Places of x, y, yaw in the [36] of a ROS covariance of x, y, z, roll, pitch, yaw."""
SLIP_BIAS_S = 0.02
"""How far the turns of slipping wheels lie from the body's, s (seen in the yard: up to 35 ms)."""
UNKNOWN_ELSEWHERE = np.diag([0.0, 0.0, UNKNOWN, UNKNOWN, UNKNOWN, 0.0]).ravel()

RelativeError = Annotated[float, Field(gt=-0.9, le=10.0)]


class WheelOdometryConfig(SensorConfig):
    """Odometry of a differential or skid-steered base. `noise`, `bias`, `random_walk` and
    `resolution` act on the travel of each side, m."""

    rate_hz: NonNegative = 50.0
    """Captures a second; 0 captures at every physics step."""
    left_joints: tuple[str, ...] = ()
    """Wheel joints of the left side, averaged. Without any joints the travel is that of ideal
    wheels under the mount (any base, also one without wheels in the model)."""
    right_joints: tuple[str, ...] = ()
    """Wheel joints of the right side, averaged."""
    reverse: tuple[bool, bool] = (False, False)
    """Whether the left and the right joints turn backwards when the base drives forwards."""
    wheel_radius_m: Positive = 0.1
    """Nominal wheel radius, m."""
    track_m: Positive = 0.5
    """Nominal distance between the left and the right wheels, m."""
    radius_error: tuple[RelativeError, RelativeError] = (0.0, 0.0)
    """Relative error of the assumed radius, left and right; 0.01 reads 1 % too far."""
    track_error: RelativeError = 0.0
    """Relative error of the assumed track; 0.01 reads 1 % too little turn."""
    slip: Probability = 0.0
    """Fraction of the wheels' travel that does not move the base, on top of the world's own."""
    slip_noise: NonNegative = 0.0
    """Random part of the travel of each side, m per square root of a metre."""
    counts_per_rev: NonNegative = 0.0
    """Encoder counts per turn of a wheel; 0 is continuous."""
    odom_frame_id: str = 'odom'
    """Frame of the pose; it starts where the base starts."""
    publish_tf: bool = False
    """Publish the pose as a transform to `frame_id`, which has to be the frame of the base."""

    @model_validator(mode='after')
    def _has_two_sides(self) -> WheelOdometryConfig:
        if bool(self.left_joints) != bool(self.right_joints):
            raise ValueError('left_joints and right_joints go together; one of them is empty')
        return self


class WheelOdometry(Sensor[WheelOdometryConfig]):
    """Pose in the odometry frame and twist of the base, with a covariance that grows."""

    config_class = WheelOdometryConfig
    topic = Topic('odom', 'nav_msgs/msg/Odometry')
    stateful = True
    on_tensors = True

    def __init__(self, name: str, config: WheelOdometryConfig) -> None:
        super().__init__(name, config)
        self.remembers_captures = has_wheels = bool(config.left_joints)
        self.responds = not has_wheels
        self.natives = () if has_wheels else ('velocimeter', 'gyro')
        self.truth_layout = Layout({'position': (2,), 'velocity': (2,)}, float)
        """Travel m and speed m/s of the left and right wheels over the ground."""
        self.returns = Layout(
            {'pose': (3,), 'twist': (3,), 'covariance': (3, 3), 'travel': (2,)}, float
        )
        """Pose (x m, y m, yaw rad), twist (m/s, m/s, rad/s), covariance, travel of both sides."""
        self._truth_template = msgs.joint_state(['left', 'right'])
        self._template = msgs.odometry(config.odom_frame_id, self.frame_id)
        self._gain = np.tile((1.0 + np.asarray(config.radius_error)) / (1.0 - config.slip), 2)
        self._count_m = (
            tau * config.wheel_radius_m / config.counts_per_rev if config.counts_per_rev else 0.0
        )
        self._track_m = config.track_m * (1.0 + config.track_error)
        self._to_twist = np.array(
            [[0.5, 0.5], [0.0, 0.0], [-1.0 / self._track_m, 1.0 / self._track_m]]
        )
        self._period_s = np.inf
        self.state_shapes = {'time_s': ()}

    # ---- the world's side -----------------------------------------------------------------

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add MuJoCo's own joint sensors, or a velocimeter and a gyro on the mount."""
        super().mount(spec)
        for kind, joint in self._wheel_sensors():
            add_joint_native(spec, self.name, kind, joint)

    def origin(self) -> Origin:
        """Return the odometry frame: it starts where the base starts."""
        config = self.config
        return Origin(config.odom_frame_id, at_start=True, places_base=config.publish_tf)

    def reader(self, view: WorldView) -> TruthReader:
        """Read both sides from the wheels' joints or from the base's twist."""
        if self.responds:
            half = 0.5 * self.config.track_m
            to_row = np.zeros((6, 4))
            to_row[0, 2:] = 1.0
            to_row[5, 2:] = -half, half
            return LinearReader(view.model, self.native_names, to_row)
        names = [f'{self.name}/{kind}/{joint}' for kind, joint in self._wheel_sensors()]
        config = self.config
        sides = [
            (-1.0) ** is_reversed * config.wheel_radius_m / len(joints) * np.ones((len(joints), 1))
            for joints, is_reversed in zip(
                (config.left_joints, config.right_joints), config.reverse, strict=True
            )
        ]
        to_row = np.zeros((len(names), 4))
        row = 0
        for place, side in enumerate((*sides, *sides)):
            to_row[row : row + len(side), place : place + 1] = side
            row += len(side)
        return LinearReader(view.model, names, to_row)

    def _wheel_sensors(self) -> list[tuple[str, str]]:
        joints = (*self.config.left_joints, *self.config.right_joints)
        return [(kind, joint) for kind in ('jointpos', 'jointvel') for joint in joints]

    # ---- the pipeline's stages ----------------------------------------------------------------

    def integrate(self, values: Array, timeline: Timeline, tick_s: float) -> None:
        """Integrate the speed where there are no joints to do it."""
        before, xp = timeline.at(1), arrays_holding(values)
        speeds = xp.concat([before[None, :, 2:], values[:, :, 2:]])
        moved = tick_s * (0.5 * (speeds[:-1] + speeds[1:]))
        moved[0] = xp.where(timeline.filled[:, None], before[:, :2] + moved[0], values[0, :, :2])
        values[:, :, :2] = xp.cumulative_sum(moved, axis=0)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Apply radius error and slip, what every sensor has, and count."""
        self._period_s = batch.period_s
        values *= self._gain
        batch.noise.apply_readout_errors(values[:, :2], batch)
        quantise(values[:, :2], self._count_m)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Add the travel since the last capture to the last pose."""
        config, layout = self.config, self.return_layout
        track_m = self._track_m if batch.is_measured else config.track_m
        xp = batch.noise.xp
        now_s = xp.astype(batch.time_ns, np.float64) / NS_PER_S
        out = layout.zeros(len(values), xp)
        pose, twist, covariance, travel = layout.unpack(out).values()
        travel[:] = values[:, :2]
        if previous is None or not batch.is_measured:
            twist[:, 0], twist[:, 2] = _over_ground(values[:, 2:], track_m)
        if previous is not None:
            last, _, spread, last_travel = layout.unpack(previous).values()
            moved = travel - last_travel
            slip_noise = config.slip_noise if batch.is_measured else 0.0
            if slip_noise:
                slipped = slip_noise * xp.sqrt(xp.abs(moved))
                moved += slipped * batch.noise.normal('slip', batch, 2)
            forward, turn = _over_ground(moved, track_m)
            heading = last[:, 2] + 0.5 * turn
            along = xp.cos(heading), xp.sin(heading)
            chord = forward * xp.sinc(0.5 * turn / np.pi)
            for axis, change in enumerate((chord * along[0], chord * along[1], turn)):
                pose[:, axis] = last[:, axis] + change
            if slip_noise or spread.any():  # else it stays 0
                variance = slip_noise**2 * xp.abs(moved)
                _grow(covariance, spread, forward, along, variance, track_m)
            if batch.is_measured:
                period_s = now_s - batch.state['time_s'][batch.envs]
                twist[:, 0], twist[:, 2] = forward / period_s, turn / period_s
        batch.state['time_s'][batch.envs] = now_s
        return out

    def sync_facts(self) -> dict[str, object]:
        """Return that its turns show little about its clock: wheels slip, and not at random."""
        return {'cue': 'none', 'cue_bias_s': SLIP_BIAS_S}

    # ---- messages -------------------------------------------------------------------------

    def blocks(self, row: Array) -> dict[str, Any]:
        """Return the planar pose and twist, with all that is not known."""
        pose, twist, covariance, _ = self.return_layout.unpack(row).values()
        x, y, yaw = pose.tolist()
        forward, left, turn = twist.tolist()
        return {
            'position': [x, y, 0.0],
            'orientation': yaw_quat(yaw),
            'pose_covariance': _spatial(covariance),
            'linear': [forward, left, 0.0],
            'angular': [0.0, 0.0, turn],
            'twist_covariance': self._twist_covariance(forward, turn),
        }

    def topics(self) -> Sequence[Topic]:
        """One Odometry, and its pose as a transform."""
        return (self.topic, TF) if self.config.publish_tf else (self.topic,)

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        """Fill the Odometry and the transform."""
        found = [*super().encode(sample)]
        if self.config.publish_tf:
            x, y, yaw = self.return_layout.view(sample.values, 'pose').tolist()
            frames = self.config.odom_frame_id, self.frame_id
            moved = msgs.Transform(sample.stamp_ns, *frames, [x, y, 0.0], yaw_quat(yaw))
            found.append((TF, msgs.tf_message([moved])))
        return found

    def _twist_covariance(self, forward: float, turn: float) -> Array:
        """Return [36]: the slip of both sides over one period."""
        half = 0.5 * self._track_m
        speed = np.abs([forward - half * turn, forward + half * turn])
        variance = self.config.slip_noise**2 * speed / self._period_s
        return _spatial((self._to_twist * variance) @ self._to_twist.T)


def _spatial(planar: Array) -> Array:
    """Return the row-major [36] covariance whose x, y, yaw part is `planar` [3, 3]."""
    covariance = UNKNOWN_ELSEWHERE.copy()
    covariance[PLANAR] = planar.ravel()
    return covariance


def _over_ground(sides: Array, track_m: float) -> tuple[Array, Array]:
    """Return (forward, turn) [n] of the travel or speed [n, 2] of both sides."""
    left, right = sides.T
    return 0.5 * (left + right), (right - left) / track_m


def _grow(
    out: Array,
    covariance: Array,
    forward: Array,
    along: tuple[Array, Array],
    variance: Array,
    track_m: float,
) -> None:
    """Write into `out` the `covariance` [n, 3, 3] of x, y, yaw after a step of `forward` m [n].

    `along` is cosine and sine of the heading half way, `variance` m^2 [n, 2] that of both sides'
    travel.
    """
    ahead, cosine, sine = (column(each) for each in (forward, *along))
    # how x, y, yaw move with an error of the heading before, and with one of either side's travel
    turn = -ahead * sine, ahead * cosine, 0.0
    bend = 0.5 * ahead / track_m
    left = 0.5 * cosine + bend * sine, 0.5 * sine - bend * cosine, -1.0 / track_m
    right = 0.5 * cosine - bend * sine, 0.5 * sine + bend * cosine, 1.0 / track_m
    of_left, of_right = (column(each) for each in variance.T)
    yaw = [column(covariance[:, i, 2]) for i in range(3)]
    for i in range(3):
        for j in range(3):
            grown = column(covariance[:, i, j]) + turn[i] * yaw[j]
            grown += yaw[i] * turn[j]
            grown += turn[i] * (turn[j] * yaw[2])
            grown += left[i] * (left[j] * of_left) + right[i] * (right[j] * of_right)
            out[:, i, j] = grown
