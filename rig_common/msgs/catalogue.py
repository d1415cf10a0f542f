"""The message types that this project knows: a row each, and a decoder each.

A new type is one row here, and a decoder in `decode.py` where no reading below fits it. What it
then means follows from the reading that its decoder returns:

| reading | cue | viewers show |
|---|---|---|
| `Scan`, `Cloud` | `scan`, `cloud` | points |
| `Pixels` | `image` | a picture |
| has `orientation_xyzw` | `odometry` | with `position_m`: a path, and a TUM file |
| has `angular_rad_s` | `rate` | curves |
| has `position_m` or `linear_m_s`, or is a `Fix` | `speed`, where a rig file asks for it | |
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from rig_common.msgs import decode
from rig_common.msgs.system import read_time_reference

CueName = Literal['none', 'scan', 'cloud', 'image', 'odometry', 'rate', 'speed']
View = Literal[
    '',
    'scan',
    'cloud',
    'image',
    'camera',
    'imu',
    'motion',
    'pose',
    'joints',
    'force',
    'time',
    'frames',
]


@dataclass(frozen=True)
class MessageType:
    """What is known of a type besides its definition."""

    name: str
    decode: Callable[[bytes], Any] | None = None
    """Returns a reading of `decode.py`; None where no content is needed."""
    cue: CueName = 'none'
    """The cue that an input of this type gets."""
    readable_as: tuple[CueName, ...] = ()
    """Other cues that can read it, where a rig file asks for one."""
    cue_bias_s: float = 0.0
    """Time error of the cue that stays, however long it is averaged, s. A simulated sensor that
    has a smaller error declares it (`Sensor.sync_facts`)."""
    latency_s: tuple[float, float] = (0.02, 0.02)
    """Usual time from the end of a capture to its arrival, and its sigma: a recording cannot tell
    them from the offset of the clock."""
    sensor: str = ''
    """Sensor type of a rig file that simulates it."""
    noise: bool = False
    """Whether `degrade` can put the noise of that sensor on recorded messages."""
    reference_rank: int = 0
    """Bundles are made for sensors that see: 1 is the likeliest reference, 0 is none."""
    frameless: bool = False
    """Whether its header needs no frame."""
    view: View = ''
    """How a viewer shows a message."""
    rviz: str = ''
    """RViz's display."""
    plotted: tuple[str, ...] = ()
    """Fields that Foxglove plots."""
    in_space: bool = False
    """Whether Foxglove shows it in 3D."""

    def cues(self) -> tuple[CueName, ...]:
        """Return every cue that can read it."""
        return (*((self.cue,) if self.cue != 'none' else ()), *self.readable_as)


# Measured in simulation against the true turns: parallax leaves at most 0.4 ms after a minute on
# figure eights of three sizes, and scans 0.05 to 0.15 ms over drives of 120 and 180 s. An image
# gets 1 ms, because real things are nearer and real shutters roll; that is not measured.
_IMAGE_BIAS_S, _SCAN_BIAS_S = 1e-3, 1.5e-4
# Wheels slip, and no message says whether wheels or motion capture (0.8 ms) wrote an Odometry.
_ODOMETRY_BIAS_S = 0.02
_SEES = (0.03, 0.03)
_XYZ = ('x', 'y', 'z')

_ROWS = (
    MessageType(
        'sensor_msgs/msg/Imu',
        decode.read_imu_message,
        readable_as=('rate', 'odometry'),
        latency_s=(0.002, 0.005),
        sensor='imu',
        noise=True,
        view='imu',
        plotted=tuple(f'.angular_velocity.{axis}' for axis in _XYZ),
    ),
    MessageType(
        'sensor_msgs/msg/LaserScan',
        decode.read_scan,
        'scan',
        cue_bias_s=_SCAN_BIAS_S,
        latency_s=_SEES,
        sensor='lidar2d',
        noise=True,
        reference_rank=2,
        view='scan',
        rviz='LaserScan',
        in_space=True,
    ),
    MessageType(
        'sensor_msgs/msg/PointCloud2',
        decode.read_cloud,
        'cloud',
        cue_bias_s=_SCAN_BIAS_S,
        latency_s=_SEES,
        sensor='lidar3d',
        noise=True,
        reference_rank=1,
        view='cloud',
        rviz='PointCloud2',
        in_space=True,
    ),
    MessageType(
        'sensor_msgs/msg/Image',
        decode.read_image,
        'image',
        cue_bias_s=_IMAGE_BIAS_S,
        latency_s=_SEES,
        sensor='camera',
        reference_rank=3,
        view='image',
        rviz='Image',
    ),
    MessageType(
        'sensor_msgs/msg/CompressedImage',
        cue_bias_s=_IMAGE_BIAS_S,
        cue='image',
        latency_s=_SEES,
        reference_rank=4,
    ),
    MessageType('sensor_msgs/msg/CameraInfo', decode.read_camera_info, view='camera'),
    MessageType(
        'nav_msgs/msg/Odometry',
        decode.read_odometry,
        'odometry',
        readable_as=('speed',),
        cue_bias_s=_ODOMETRY_BIAS_S,
        latency_s=(0.01, 0.01),
        sensor='pose',
        noise=True,
        view='motion',
        rviz='Odometry',
        plotted=('.twist.twist.linear.x', '.twist.twist.angular.z'),
        in_space=True,
    ),
    MessageType(
        'geometry_msgs/msg/PoseStamped',
        decode.read_pose,
        'odometry',
        readable_as=('speed',),
        view='pose',
        rviz='Pose',
        in_space=True,
    ),
    MessageType(
        'geometry_msgs/msg/PoseWithCovarianceStamped',
        decode.read_pose,
        'odometry',
        readable_as=('speed',),
        view='pose',
    ),
    MessageType('geometry_msgs/msg/TransformStamped', decode.read_transform, 'odometry'),
    MessageType('tf2_msgs/msg/TFMessage', decode.read_transforms, view='frames'),
    MessageType(
        'geometry_msgs/msg/TwistStamped',
        decode.read_twist,
        readable_as=('rate', 'speed'),
        rviz='TwistStamped',
    ),
    MessageType(
        'geometry_msgs/msg/TwistWithCovarianceStamped',
        decode.read_twist,
        readable_as=('rate', 'speed'),
    ),
    MessageType(
        'geometry_msgs/msg/WrenchStamped',
        decode.read_force,
        view='force',
        rviz='Wrench',
        plotted=tuple(f'.wrench.force.{axis}' for axis in _XYZ),
    ),
    MessageType(
        'sensor_msgs/msg/JointState',
        decode.read_joint_positions,
        frameless=True,
        view='joints',
        plotted=('.position[:]',),
    ),
    MessageType(
        'sensor_msgs/msg/NavSatFix',
        decode.read_fix,
        readable_as=('speed',),
        latency_s=(0.1, 0.05),
        sensor='gnss',
        noise=True,
    ),
    MessageType(
        'sensor_msgs/msg/Range', decode.read_range, sensor='range', noise=True, rviz='Range'
    ),
    MessageType('sensor_msgs/msg/MagneticField', sensor='magnetometer'),
    MessageType('sensor_msgs/msg/FluidPressure', sensor='barometer', rviz='FluidPressure'),
    MessageType('sensor_msgs/msg/Temperature', rviz='Temperature'),
    MessageType('sensor_msgs/msg/TimeReference', read_time_reference, frameless=True, view='time'),
    MessageType('sensor_msgs/msg/Joy', frameless=True),
    MessageType('diagnostic_msgs/msg/DiagnosticArray', frameless=True),
    MessageType('geometry_msgs/msg/PointStamped', rviz='PointStamped'),
    MessageType('visualization_msgs/msg/MarkerArray', in_space=True),
)
CATALOGUE: dict[str, MessageType] = {row.name: row for row in _ROWS}


def known(type_name: str) -> MessageType:
    """Return the row of a type; one that is not in the catalogue has only the usual latency."""
    return CATALOGUE.get(type_name) or MessageType(type_name)
