"""Pose and velocity of a body: the truth as odometry, or a motion-capture system's view of it."""

from __future__ import annotations

import numpy as np

from rig_common import msgs
from sim_sensors.interface import Batch, Origin, Sensor, SensorConfig, Topic
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.sensors.common.rotations import rotate
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative


class PoseConfig(SensorConfig):
    """A pose; exact unless noise is given."""

    rate_hz: NonNegative = 50.0
    """Captures a second; 0 captures at every physics step."""
    world_frame_id: str = 'map'
    """Frame of the pose; MuJoCo's world."""
    position_noise_m: NonNegative = 0.0
    """Standard deviation of the position along each axis, m."""
    orientation_noise_rad: NonNegative = 0.0
    """Standard deviation of the orientation around each axis, rad."""
    linear_noise_m_s: NonNegative = 0.0
    """Standard deviation of the velocity along each axis, m/s."""
    angular_noise_rad_s: NonNegative = 0.0
    """Standard deviation of the angular rate around each axis, rad/s."""


class Pose(Sensor[PoseConfig]):
    """Pose of the mount in the world, twist in the mount's own axes (REP 103, nav_msgs)."""

    config_class = PoseConfig
    topic = Topic('odom', 'nav_msgs/msg/Odometry')
    natives = ('framepos', 'framequat', 'velocimeter', 'gyro')
    on_tensors = True

    def __init__(self, name: str, config: PoseConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout(
            {'position': (3,), 'orientation': (4,), 'linear': (3,), 'angular': (3,)}, float
        )
        """Position m, orientation xyzw, velocity m/s, angular rate rad/s."""
        self._sigma = np.repeat(
            [
                config.position_noise_m,
                config.orientation_noise_rad,
                config.linear_noise_m_s,
                config.angular_noise_rad_s,
            ],
            3,
        )
        variance = self._sigma**2
        self._template = msgs.odometry(config.world_frame_id, self.frame_id).preset(
            pose_covariance=np.diag(variance[:6]).ravel(),
            twist_covariance=np.diag(variance[6:]).ravel(),
        )

    def origin(self) -> Origin:
        """Return the frame of the pose: the world under the name it has in the messages."""
        return Origin(self.config.world_frame_id)

    def reader(self, view: WorldView) -> TruthReader:
        """Read the native columns; the quaternion turns from wxyz to xyzw."""
        reader = ColumnReader(view.model, self.native_names)
        reader.columns[3:7] = np.roll(reader.columns[3:7], -1)
        return reader

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Add noise; the orientation is turned, so it stays a rotation."""
        if not self._sigma.any():
            return
        noise = batch.noise.normal('pose', batch, 12) * self._sigma
        values[:, :3] += noise[:, :3]
        rotate(values[:, 3:7], noise[:, 3:6])
        values[:, 7:] += noise[:, 6:]

    def sync_facts(self) -> dict[str, object]:
        """Return that its cue has no error that stays: what measures a pose does not slip."""
        return {'cue_bias_s': 0.0}
