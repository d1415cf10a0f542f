"""Filters: PX4's EKF2, robot_localization; and message_filters of ROS 2 Kilted."""

from __future__ import annotations

from sensor_rig.export.knowledge import IMU, Knowledge, KnownSensor
from sensor_rig.export.text import CORRECT, apart, difference, gap, warnings

PX4_DELAYS = {
    'sensor_msgs/msg/NavSatFix': 'EKF2_GPS_DELAY',
    'sensor_msgs/msg/FluidPressure': 'EKF2_BARO_DELAY',
    'sensor_msgs/msg/MagneticField': 'EKF2_MAG_DELAY',
    'sensor_msgs/msg/Range': 'EKF2_RNG_DELAY',
    'nav_msgs/msg/Odometry': 'EKF2_EV_DELAY',
    'geometry_msgs/msg/PoseStamped': 'EKF2_EV_DELAY',
    'geometry_msgs/msg/PoseWithCovarianceStamped': 'EKF2_EV_DELAY',
}
"""The parameter of each kind of measurement; the first sensor of a kind is taken."""
PX4_MOST_MS = 300.0
ESTIMATED = {
    'sensor_msgs/msg/Imu': 'imu',
    'nav_msgs/msg/Odometry': 'odom',
    'geometry_msgs/msg/PoseWithCovarianceStamped': 'pose',
    'geometry_msgs/msg/TwistWithCovarianceStamped': 'twist',
}
"""What robot_localization takes, and what it calls it."""


def px4(known: Knowledge) -> dict[str, str]:
    """Return parameters of EKF2 as QGroundControl loads them: two ids, name, value, type.

    A value is in ms and counts back: t_imu = t_stamp - value.
    """
    imu = known.require_imu('PX4')
    lines = [
        '# EKF2_*_DELAY in ms: t_imu = t_stamp - value, where both are stamps of one capture.',
        '# PX4 takes 0 to 300 ms and, for most of them, a restart. Since March 2026 it calls '
        'EKF2_GPS_DELAY SENS_GPS0_DELAY.',
    ]
    taken: dict[str, KnownSensor] = {}
    for sensor in known.sensors.values():
        key = PX4_DELAYS.get(sensor.type_name)
        if key is None or key in taken:
            continue
        taken[key] = sensor
        lines += _px4_delay(known, key, sensor, imu)
    if not taken:
        lines.append(f'# {known.source} has nothing that EKF2 fuses with a delay')
    return {'px4.params': '\n'.join(lines) + '\n'}


def _px4_delay(known: Knowledge, key: str, sensor: KnownSensor, imu: KnownSensor) -> list[str]:
    lines = difference(known, key, sensor, imu, scale=1e3)
    if not lines[-1].startswith(key):
        return lines
    value_ms = float(lines.pop().partition(': ')[2])
    if 0.0 <= value_ms <= PX4_MOST_MS:
        return [*lines, f'1\t1\t{key}\t{value_ms:.9g}\t9']
    return [
        *lines,
        gap(key, f'{value_ms:.3f} ms is outside of what PX4 takes (0 to {PX4_MOST_MS:.0f}); set '
            'the clock, or stamp earlier'),
    ]  # fmt: skip


def robot_localization(known: Knowledge) -> dict[str, str]:
    """Return an ekf.yaml that waits long enough; robot_localization has no time offsets."""
    lines = [
        'ekf_filter_node:',
        '  ros__parameters:',
        f'    # robot_localization has no time offset: it takes stamps as they are. {CORRECT}.',
    ]
    counts: dict[str, int] = {}
    latest_s = 0.0
    base = known.sensors[known.imu or known.reference]
    for sensor in known.sensors.values():
        kind = ESTIMATED.get(sensor.type_name)
        if kind is None:
            continue
        number = counts[kind] = counts.get(kind, -1) + 1
        lines.append(f'    {kind}{number}: {sensor.topic}')
        if sensor is not base and sensor.known and base.known:
            told = apart(known, f'its stamps are {{}} against {base.name}', sensor, base)
            lines += [f'    # {each}' for each in told]
        if sensor.latency_s == sensor.latency_s:
            latest_s = max(latest_s, sensor.latency_s)
    lines += [
        f'    # Messages come up to {latest_s * 1e3:.0f} ms after their stamp (99th percentile).',
        '    smooth_lagged_data: true',
        f'    history_length: {max(0.1, round(2.0 * latest_s + 0.05, 1)):.1f}',
        '    # Noise is read from the covariances of the messages.',
    ]
    return {'ekf.yaml': '\n'.join(lines) + '\n'}


def message_filters(known: Knowledge) -> dict[str, str]:
    """Return the `queue_offset` of an ApproximateTimeSynchronizer of ROS 2 Kilted.

    In ns, one for each input: it is subtracted from the stamp.
    """
    sensors = [sensor for sensor in known.sensors.values() if sensor.type_name != IMU]
    base = known.sensors[known.reference]
    lines = [
        '# stamp - queue_offset is on the clock of ' + f'{base.name}, for every input.',
        '# Any input may be left out, together with its offset.',
    ]
    values = []
    for sensor in sensors:
        if not (sensor.known and base.known):
            lines.append(gap(sensor.name, 'its clock is not observable, so its offset is 0'))
            values.append(0)
            continue
        values.append(round((sensor.ahead_s - base.ahead_s) * 1e9))
        lines.append(
            f'# {sensor.name}: ± {known.sigma_s(sensor, base) * 1e3:.3g} ms (1 sigma), '
            f'{sensor.state}'
        )
        lines += [f'# {text}' for text in warnings(known, sensor, base)]
    lines += [
        f'topics = [{", ".join(repr(sensor.topic) for sensor in sensors)}]',
        f'queue_offset = {values}',
    ]
    return {'queue_offset.py': '\n'.join(lines) + '\n'}
