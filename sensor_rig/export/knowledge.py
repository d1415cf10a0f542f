"""What is known of a rig: the offset, rotation and rate of every sensor, the noise of its IMU.

One form for all tools. `ahead_s` is how far a sensor's stamps are ahead of one common clock, so a
capture that both sensors make at once is stamped t + a.ahead_s by one and t + b.ahead_s by the
other; only differences of two mean anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import hypot, inf, nan

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.msgs.decode import Intrinsics
from rig_common.quaternions import Quaternion, matrix_from_wxyz
from rig_common.validation import hint

Triple = tuple[float, float, float]

CAMERAS = ('sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage')
LIDARS = ('sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/LaserScan')
IMU = 'sensor_msgs/msg/Imu'
SIGNIFICANT = 3.0
"""Sigmas above which a drift is told."""


@dataclass(frozen=True)
class KnownSensor:
    """One sensor. Times in s."""

    name: str
    topic: str
    type_name: str
    rate_hz: float
    ahead_s: float
    """NaN where nothing is known of its clock."""
    sigma_s: float
    """Against the IMU, or against the reference where there is none."""
    state: str
    """`locked`, `converging` or `unobservable`."""
    drift_ppm: float = nan
    """Of its clock against the IMU's (the reference's); NaN where it is not known."""
    steps: int = 0
    """How often its clock stepped or started over."""
    quat_wxyz: Quaternion | None = None
    """Takes vectors from its frame to the IMU's; None where it is not known."""
    quat_sigma_deg: float = nan
    quat_declared: bool = False
    position_m: Triple | None = None
    """Of its origin in the IMU's frame; None where nobody gave it."""
    position_source: str = ''
    latency_s: float = nan
    """From stamp to arrival, 99th percentile."""
    jitter_s: float = nan
    """Half of the range in which its stamps move about their grid."""
    phase_s: float = nan
    """Place of its captures in the period, by its stamps (see the LiDARs of Autoware)."""
    intrinsics: Intrinsics | None = None

    @property
    def known(self) -> bool:
        """Whether its clock is known at all."""
        return self.state != 'unobservable' and self.ahead_s == self.ahead_s

    def rotation(self) -> Floats | None:
        """Return the matrix [3, 3] that takes vectors from its frame to the IMU's."""
        if self.quat_wxyz is None:
            return None
        return matrix_from_wxyz(self.quat_wxyz)


@dataclass(frozen=True)
class ImuNoise:
    """Noise of an IMU, continuous: densities u/sqrt(Hz), walks u/s/sqrt(Hz). NaN is not known."""

    gyro_density: float = nan
    accel_density: float = nan
    gyro_walk: float = nan
    accel_walk: float = nan
    source: str = ''
    """Where the figures come from, for a comment."""


@dataclass(frozen=True)
class Knowledge:
    """Everything that an export may write."""

    source: str
    """What it was learned from."""
    duration_s: float
    sensors: dict[str, KnownSensor]
    reference: str
    imu: str = ''
    """Name of the IMU; empty where there is none."""
    noise: ImuNoise = field(default_factory=ImuNoise)
    problems: list[str] = field(default_factory=list)
    """What of the recording could not be read, and why: a sentence each."""

    def of(self, types: tuple[str, ...]) -> list[KnownSensor]:
        """Return the sensors of some message types, in the order of the rig file."""
        return [sensor for sensor in self.sensors.values() if sensor.type_name in types]

    def require_imu(self, tool: str) -> KnownSensor:
        """Return the IMU, or say that a tool cannot do without."""
        if not self.imu:
            raise RigError(f'{self.source} has no IMU among its inputs, which {tool} needs')
        return self.sensors[self.imu]

    def require(self, types: tuple[str, ...], what: str, tool: str) -> list[KnownSensor]:
        """Return the sensors of some types, or say that there is none."""
        found = self.of(types)
        if not found:
            raise RigError(f'{self.source} has no {what} among its inputs, which {tool} needs')
        return found

    def sensor(self, name: str) -> KnownSensor:
        """Return a sensor by its name."""
        if name not in self.sensors:
            raise RigError(
                f'{name} is no input of {self.source}; {hint(name, list(self.sensors), "it has")}'
            )
        return self.sensors[name]

    def sigma_s(self, one: KnownSensor, other: KnownSensor) -> float:
        """Return the sigma of `one.ahead_s - other.ahead_s`."""
        base = self.imu or self.reference
        sigmas = [0.0 if each.name == base else each.sigma_s for each in (one, other)]
        return hypot(*sigmas) if one is not other else 0.0

    def drift_ppm(self, one: KnownSensor, other: KnownSensor) -> float:
        """Return how fast the difference changes, ppm; 0 where it is not known to."""
        drifts = [0.0 if each.drift_ppm != each.drift_ppm else each.drift_ppm
                  for each in (one, other)]  # fmt: skip
        drift = drifts[0] - drifts[1]
        change_s = abs(drift) * 1e-6 * self.duration_s
        return drift if change_s > SIGNIFICANT * min(self.sigma_s(one, other), inf) else 0.0
