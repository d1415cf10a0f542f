"""A rig file to start from, written from what the topics look like."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sensor_rig.bags.inspect import INFO_TYPE, TopicFacts
from sensor_rig.errors import RigError

IMU_TYPE = 'sensor_msgs/msg/Imu'
SEEING = ('sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/LaserScan', 'sensor_msgs/msg/Image',
          'sensor_msgs/msg/CompressedImage')
"""Types that a bundle is made for, the likeliest reference first."""
CUES = {'sensor_msgs/msg/LaserScan': 'scan', 'sensor_msgs/msg/PointCloud2': 'cloud',
        'nav_msgs/msg/Odometry': 'odometry'}
LATENCY_S = {'sensor_msgs/msg/Image': 0.03, 'sensor_msgs/msg/CompressedImage': 0.03,
             'sensor_msgs/msg/PointCloud2': 0.05, 'sensor_msgs/msg/LaserScan': 0.02,
             IMU_TYPE: 0.002}
"""Usual delay from capture to arrival; a recording cannot tell it from the clock's offset."""
OTHER_LATENCY_S = 0.01
OURS = re.compile(r'/?(.*/)?(synced|sync|truth|_truth|world)/|/?(tf|tf_static|clock|rosout|'
                  r'diagnostics|parameter_events)\Z')
"""Topics that are no sensor's."""
GENERIC = frozenset({'data', 'data_raw', 'image', 'image_raw', 'image_color', 'scan', 'points',
                     'fix', 'odom', 'camera_info', 'compressed', 'imu', 'points_raw'})


def usable(facts: Sequence[TopicFacts]) -> list[TopicFacts]:
    """Return the topics that can be inputs: stamped, and not the rig's or ROS's own."""
    return [topic for topic in facts if topic.source != 'none' and not OURS.match(topic.name)]


def starter_rig(facts: Sequence[TopicFacts], source: str) -> str:
    """Return the text of a rig file that syncs what was found."""
    topics = usable(facts)
    if not topics:
        raise RigError(f'{source} has no stamped topic, so there is nothing to sync')
    names = input_names([topic.name for topic in topics])
    reference = min(topics, key=_as_reference)
    imu = next((topic for topic in topics if topic.type_name == IMU_TYPE), None)
    required = [topic for topic in topics if topic is reference
                or (topic.type_name in SEEING and topic.rate_hz >= 0.9 * reference.rate_hz)]
    lines = [
        f'# Made from {source}. Latencies are usual values: set them to what is known of yours.',
        '/**:', '  ros__parameters:', '    sync:', '      inputs:']
    for topic in topics:
        lines += _input(topic, names, topics, is_imu=topic is imu)
    lines.append(f'      reference_sensor_id: {names[reference.name]}')
    lines.append(f'      required_sensors: [{", ".join(names[t.name] for t in required)}]')
    if imu is not None:
        lines.append(f'      imu_sensor_id: {names[imu.name]}')
    return '\n'.join(lines) + '\n'


def _as_reference(topic: TopicFacts) -> tuple[bool, int, float]:
    """Sort key: seeing sensors of at least 1 Hz first, by kind, the slowest of them."""
    kind = SEEING.index(topic.type_name) if topic.type_name in SEEING else len(SEEING)
    return (topic.rate_hz < 1.0, kind, topic.rate_hz)


def _input(topic: TopicFacts, names: dict[str, str], topics: Sequence[TopicFacts], *,
           is_imu: bool) -> list[str]:
    latency_s = LATENCY_S.get(topic.type_name, OTHER_LATENCY_S)
    entries = {'topic': topic.name, 'type': topic.type_name, 'stamp_source': topic.source,
               'latency_s': f'{latency_s:g}', 'latency_sigma_s': f'{max(latency_s, 0.005):g}'}
    owner = topic.shares_stamps_with
    if owner in names:
        entries['clock_of'] = names[owner]
    elif topic.type_name in CUES:
        entries['cue'] = CUES[topic.type_name]
    elif topic.type_name == 'sensor_msgs/msg/Image' and any(
            other.shares_stamps_with == topic.name
            and other.type_name == INFO_TYPE for other in topics):
        entries['cue'] = 'image'
    if is_imu:
        entries['collect'] = 'true'
    lines = [f'        # {topic.rate_hz:.1f} Hz; {topic.why}',
             f'        {names[topic.name]}:']
    return lines + [f'          {key}: {value}' for key, value in entries.items()]


def input_names(topics: Sequence[str]) -> dict[str, str]:
    """Return a short, unique name for every topic: `/front/lidar/points` -> `front_lidar`."""
    full = {topic: re.sub(r'[^a-z0-9_]+', '_', topic.strip('/').lower()) for topic in topics}
    short: dict[str, str] = {}
    for topic in topics:
        parts = topic.strip('/').lower().split('/')
        while len(parts) > 1 and parts[-1] in GENERIC:
            parts.pop()
        name = re.sub(r'[^a-z0-9_]+', '_', '_'.join(parts))
        short[topic] = name if name[:1].isalpha() else f'input_{name}'
    taken = list(short.values())
    return {topic: name if taken.count(name) == 1 else full[topic]
            for topic, name in short.items()}
