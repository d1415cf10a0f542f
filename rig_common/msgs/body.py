"""Messages about the robot's own body: motion, forces, joints, air, position."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from rig_common.cdr import Template, TemplateBuilder

IDENTITY_XYZW = (0.0, 0.0, 0.0, 1.0)


def _stamped(type_name: str, frame_id: str) -> TemplateBuilder:
    builder = TemplateBuilder(type_name)
    builder.header(0, frame_id)
    return builder


def _with_doubles(builder: TemplateBuilder, **lengths: int) -> Template:
    """Return the template with float64 blocks at its end; one of length 1 is a number."""
    for name, length in lengths.items():
        default = IDENTITY_XYZW if name == 'orientation' else 0.0
        builder.block(name, 'f8', (length,) if length > 1 else (), default)
    return builder.build()


def imu(frame_id: str, *, orientation: bool = False) -> Template:
    """sensor_msgs/msg/Imu: orientation [4], angular_velocity [3] rad/s, linear_acceleration [3].

    Without an orientation its covariance starts with -1 (REP 145).
    """
    builder = _stamped('sensor_msgs/msg/Imu', frame_id)
    builder.block('orientation', 'f8', (4,), IDENTITY_XYZW)
    unknown = [0.0 if orientation else -1.0] + [0.0] * 8
    builder.block('orientation_covariance', 'f8', (9,), unknown)
    return _with_doubles(
        builder,
        angular_velocity=3,
        angular_velocity_covariance=9,
        linear_acceleration=3,
        linear_acceleration_covariance=9,
    )


def magnetic_field(frame_id: str) -> Template:
    """sensor_msgs/msg/MagneticField: magnetic_field [3] in tesla."""
    builder = _stamped('sensor_msgs/msg/MagneticField', frame_id)
    builder.block('magnetic_field', 'f8', (3,))
    builder.block('magnetic_field_covariance', 'f8', (9,))
    return builder.build()


def fluid_pressure(frame_id: str) -> Template:
    """sensor_msgs/msg/FluidPressure: fluid_pressure in pascal, variance."""
    builder = _stamped('sensor_msgs/msg/FluidPressure', frame_id)
    builder.block('fluid_pressure', 'f8')
    builder.block('variance', 'f8')
    return builder.build()


def temperature(frame_id: str) -> Template:
    """sensor_msgs/msg/Temperature: temperature in degrees Celsius, variance."""
    builder = _stamped('sensor_msgs/msg/Temperature', frame_id)
    builder.block('temperature', 'f8')
    builder.block('variance', 'f8')
    return builder.build()


def nav_sat_fix(
    frame_id: str, *, status: int = 0, service: int = 1, covariance_type: int = 2
) -> Template:
    """sensor_msgs/msg/NavSatFix: position [3] = latitude deg, longitude deg, altitude m (WGS 84).

    `status` is a block too (-1 no fix, 0 fix); position_covariance [9] is in m^2, east north up.
    """
    builder = _stamped('sensor_msgs/msg/NavSatFix', frame_id)
    builder.block('status', 'i1', (), status)
    builder.u16(service)
    builder.block('position', 'f8', (3,))
    builder.block('position_covariance', 'f8', (9,))
    builder.block('position_covariance_type', 'u1', (), covariance_type)
    return builder.build()


def twist_stamped(frame_id: str) -> Template:
    """geometry_msgs/msg/TwistStamped: linear [3] m/s, angular [3] rad/s."""
    builder = _stamped('geometry_msgs/msg/TwistStamped', frame_id)
    builder.block('linear', 'f8', (3,))
    builder.block('angular', 'f8', (3,))
    return builder.build()


def wrench_stamped(frame_id: str) -> Template:
    """geometry_msgs/msg/WrenchStamped: force [3] N, torque [3] N m."""
    builder = _stamped('geometry_msgs/msg/WrenchStamped', frame_id)
    builder.block('force', 'f8', (3,))
    builder.block('torque', 'f8', (3,))
    return builder.build()


def vector3_stamped(frame_id: str) -> Template:
    """geometry_msgs/msg/Vector3Stamped: vector [3]."""
    builder = _stamped('geometry_msgs/msg/Vector3Stamped', frame_id)
    builder.block('vector', 'f8', (3,))
    return builder.build()


def point_stamped(frame_id: str) -> Template:
    """geometry_msgs/msg/PointStamped: point [3] m."""
    builder = _stamped('geometry_msgs/msg/PointStamped', frame_id)
    builder.block('point', 'f8', (3,))
    return builder.build()


def pose_stamped(frame_id: str) -> Template:
    """geometry_msgs/msg/PoseStamped: position [3] m, orientation [4]."""
    builder = _stamped('geometry_msgs/msg/PoseStamped', frame_id)
    builder.block('position', 'f8', (3,))
    builder.block('orientation', 'f8', (4,), IDENTITY_XYZW)
    return builder.build()


def odometry(frame_id: str, child_frame_id: str) -> Template:
    """nav_msgs/msg/Odometry: the pose in `frame_id`, the twist in `child_frame_id`.

    Blocks: position [3] m, orientation [4], pose_covariance [36], linear [3] m/s,
    angular [3] rad/s, twist_covariance [36].
    """
    builder = _stamped('nav_msgs/msg/Odometry', frame_id)
    builder.string(child_frame_id)
    return _with_doubles(
        builder,
        position=3,
        orientation=4,
        pose_covariance=36,
        linear=3,
        angular=3,
        twist_covariance=36,
    )


def joint_state(
    names: Sequence[str],
    *,
    frame_id: str = '',
    position: bool = True,
    velocity: bool = True,
    effort: bool = False,
) -> Template:
    """sensor_msgs/msg/JointState: position rad or m, velocity, effort, each [len(names)].

    A part that is left out is an empty sequence, as the message's definition requires.
    """
    builder = _stamped('sensor_msgs/msg/JointState', frame_id)
    builder.strings(names)
    for name, wanted in (('position', position), ('velocity', velocity), ('effort', effort)):
        if wanted:
            builder.sequence_block(name, 'f8', (len(names),))
        else:
            builder.u32(0)
    return builder.build()


def range_reading(
    frame_id: str,
    *,
    radiation_type: int,
    field_of_view_rad: float,
    min_range_m: float,
    max_range_m: float,
    variance: ArrayLike = 0.0,
) -> Template:
    """sensor_msgs/msg/Range: range in metres (0 ultrasound, 1 infrared), variance."""
    builder = _stamped('sensor_msgs/msg/Range', frame_id)
    builder.u8(radiation_type)
    builder.f32(field_of_view_rad)
    builder.f32(min_range_m)
    builder.f32(max_range_m)
    builder.block('range', 'f4')
    builder.block('variance', 'f4', (), variance)
    return builder.build()
