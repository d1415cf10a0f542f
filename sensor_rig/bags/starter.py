"""A rig file to start from, written from what the topics look like."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from rig_common.errors import RigError
from rig_common.msgs.catalogue import known
from rig_common.text import printable
from sensor_rig.bags.inspect import TopicFacts
from sync_engine.config import TELLS_TURNS

IMU_TYPE = 'sensor_msgs/msg/Imu'
FIX_TYPE, ODOMETRY_TYPE = 'sensor_msgs/msg/NavSatFix', 'nav_msgs/msg/Odometry'
LAST_RANK = 100
PAYLOAD_WANDER = 0.02
"""Chance that turns which are found in the payload wander against its stamp: they are the
payload's own. All of six recordings with poses from motion capture did, by about 20 ppm."""
OURS = re.compile(
    r'/?(.*/)?(synced|sync|truth|_truth|world)/|/?(tf|tf_static|clock|rosout|'
    r'diagnostics|parameter_events)\Z'
)
"""Topics that are no sensor's."""
TOPIC_NAME = re.compile(r'/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*', re.ASCII)
TYPE_NAME = re.compile(r'[A-Za-z]\w*/msg/[A-Za-z]\w*', re.ASCII)
"""What ROS takes for a name of a topic and of a type."""
GENERIC = frozenset(
    {
        'data',
        'data_raw',
        'image',
        'image_raw',
        'image_color',
        'scan',
        'points',
        'fix',
        'odom',
        'camera_info',
        'compressed',
        'imu',
        'points_raw',
    }
)


AS_THEY_ARE = (
    '      # Nothing in the recording tells the offsets of its clocks, and no stamp contradicts',
    '      # its arrival: stamps are paired as they are. Without this line offsets would be',
    '      # guessed from the usual latencies.',
    '      estimator: none',
)


class StampPoint(NamedTuple):
    """Which point of a sweep is stamped."""

    name: str
    """`middle` or `end`."""
    capture_s: float
    """How long the sweep lasts, s."""


def usable(facts: Sequence[TopicFacts]) -> list[TopicFacts]:
    """Return the topics that can be inputs: stamped, and not the rig's or ROS's own.

    A recording may hold any text as a name; names that ROS refuses stay out of the file.
    """
    return [
        topic
        for topic in facts
        if topic.source != 'none'
        and not OURS.match(topic.name)
        and TOPIC_NAME.fullmatch(topic.name)
        and TYPE_NAME.fullmatch(topic.type_name)
    ]


def starter_rig(
    facts: Sequence[TopicFacts],
    source: str,
    points: Mapping[str, StampPoint] = MappingProxyType({}),
    *,
    as_they_are: bool = False,
) -> str:
    """Return the text of a rig file that syncs what was found.

    `points` says which topics are not stamped at the start of their sweep. `as_they_are` pairs by
    stamps without estimating offsets.
    """
    topics = usable(facts)
    if not topics:
        raise RigError(
            f'{source} has no stamped topic with a name that ROS allows, so there is '
            f'nothing to sync'
        )
    names = input_names([topic.name for topic in topics])
    by_speed = speed_pairs(topics)
    reference = min(topics, key=_as_reference)
    imu = next((topic for topic in topics if topic.type_name == IMU_TYPE), None)
    required = [
        topic
        for topic in topics
        if topic is reference
        or (known(topic.type_name).reference_rank and topic.rate_hz >= 0.9 * reference.rate_hz)
    ]
    lines = [
        f'# Made from {printable(source)}. Latencies are usual values: set them to what is known '
        'of yours.',
        '# latency_sigma_s is how far off they may be; offsets can be no better without a cue.',
        '/**:',
        '  ros__parameters:',
        '    sync:',
    ]
    if as_they_are:
        lines += AS_THEY_ARE
    lines.append('      inputs:')
    for topic in topics:
        lines += _input(
            topic,
            names,
            topics,
            is_imu=topic is imu is not reference,
            point=points.get(topic.name),
            by_speed=topic in (by_speed if imu is not None else by_speed[1:]),
        )
    lines.append(f'      reference_sensor_id: {names[reference.name]}')
    lines.append(f'      required_sensors: [{", ".join(names[t.name] for t in required)}]')
    if imu is not None:
        lines.append(f'      imu_sensor_id: {names[imu.name]}')
    elif len(turning := [topic for topic in topics if 'cue' in _own_cue(topic, names)]) > 1:
        best = min(turning, key=_as_motion_reference)
        lines.append(f'      motion_reference: {names[best.name]}')
    return '\n'.join(lines) + '\n'


def speed_pairs(topics: Sequence[TopicFacts]) -> list[TopicFacts]:
    """Return the odometry or poses that tell speed best, and the GNSS fixes to compare with it.

    Empty where one of both is missing. Twists are left out: they may be commands.
    """
    own = [topic for topic in topics if not topic.shares_stamps_with]
    fixes = [topic for topic in own if topic.type_name == FIX_TYPE]
    ways = [
        topic
        for topic in own
        if known(topic.type_name).cue == 'odometry' and 'speed' in known(topic.type_name).cues()
    ]
    best = max(
        ways, key=lambda topic: (topic.type_name == ODOMETRY_TYPE, topic.rate_hz), default=None
    )
    return [best, *fixes] if best is not None and fixes else []


def _as_reference(topic: TopicFacts) -> tuple[bool, int, float]:
    """Sort key: seeing sensors of at least 1 Hz first, by kind, the slowest of them."""
    rank = known(topic.type_name).reference_rank
    return (topic.rate_hz < 1.0, rank or LAST_RANK, topic.rate_hz)


def _as_motion_reference(topic: TopicFacts) -> tuple[int, float]:
    """Sort key: who tells turns best, of the same cue the fastest."""
    return TELLS_TURNS.index(_cue(topic)['cue']), -topic.rate_hz


def _input(
    topic: TopicFacts,
    names: dict[str, str],
    topics: Sequence[TopicFacts],
    *,
    is_imu: bool,
    point: StampPoint | None,
    by_speed: bool,
) -> list[str]:
    if point is not None:
        topic = replace(topic, sweep_s=point.capture_s)
    latency_s, sigma_s = latency_of(topic)
    entries = {
        'topic': topic.name,
        'type': topic.type_name,
        'stamp_source': topic.source,
        'latency_s': f'{latency_s:.3g}',
        'latency_sigma_s': f'{sigma_s:.3g}',
    }
    if point is not None:
        entries.update(stamp_point=point.name, capture_s=f'{point.capture_s:.4g}')
    owner = topic.shares_stamps_with
    if owner in names:
        entries['clock_of'] = names[owner]
    else:
        entries.update({'cue': 'speed'} if by_speed else _cue(topic))
    if is_imu:
        entries['collect'] = 'true'
    sweep = f'; {sweep_sentence(topic)}' if topic.sweep_s and point is None else ''
    lines = [
        f'        # {topic.rate_hz:.1f} Hz; {topic.why}{sweep}',
        f'        {names[topic.name]}:',
    ]
    return lines + [f'          {key}: {value}' for key, value in entries.items()]


def latency_of(topic: TopicFacts) -> tuple[float, float]:
    """Return the latency that is written for a topic and its sigma, s.

    What sweeps arrives after its last ray. Whether its driver stamps the first one, as it should,
    is not sure, so half of the sweep is in doubt.
    """
    latency_s, sigma_s = known(topic.type_name).latency_s
    return latency_s + topic.sweep_s, max(sigma_s, topic.sweep_s / 2.0)


def sweep_sentence(topic: TopicFacts) -> str:
    """Say what a sweep does to the latency."""
    return (
        f'its last ray is {topic.sweep_s * 1e3:.3g} ms after its stamp, which is part of the '
        f'latency'
    )


def _own_cue(topic: TopicFacts, names: Mapping[str, str]) -> dict[str, str]:
    """Return the entries of its cue, none where it shares another topic's clock."""
    return {} if topic.shares_stamps_with in names else _cue(topic)


def _cue(topic: TopicFacts) -> dict[str, str]:
    """Return the entries that say which cue the payload offers."""
    row = known(topic.type_name)
    if row.cue == 'none':
        return {}
    entries: dict[str, str] = {'cue': row.cue}
    if row.cue in ('scan', 'cloud', 'image'):
        entries['cue_wander'] = f'{PAYLOAD_WANDER:g}'
    if row.cue_bias_s:
        entries['cue_bias_s'] = f'{row.cue_bias_s:g}'
    return entries


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
    return {
        topic: name if taken.count(name) == 1 else full[topic] for topic, name in short.items()
    }
