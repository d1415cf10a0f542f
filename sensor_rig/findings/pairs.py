"""Findings about topics that belong together, and about frames and headers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from rig_common.msgs.catalogue import known
from sensor_rig.bags.inspect import INFO_TYPE
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, lasting, times
from sensor_rig.findings.record import TopicRecord

IMAGE_TYPES = ('sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage')
IMU_TYPE = 'sensor_msgs/msg/Imu'
TWINS = (('left', 'right'), ('infra1', 'infra2'), ('cam0', 'cam1'), ('camera0', 'camera1'))
SENSOR_PACKAGES = ('sensor_msgs', 'geometry_msgs', 'nav_msgs')
SAME_S = 1e-6
RARE = 1000
"""Messages to a change of the frame, from which on it is no second publisher."""


def pair_findings(records: Sequence[TopicRecord]) -> Iterator[Finding]:
    """Yield pairs that should have the same stamps and do not."""
    for pair in combinations(records, 2):
        one, other = sorted(pair, key=lambda each: each.type_name == INFO_TYPE)
        for code, who, belong in PAIRS:
            if belong(one, other):
                yield from _compare(one, other, code, who)


def _is_camera_pair(image: TopicRecord, info: TopicRecord) -> bool:
    return (
        info.type_name == INFO_TYPE
        and image.type_name in IMAGE_TYPES
        and image.name.rpartition('/')[0].removesuffix('/image_raw')
        == info.name.rpartition('/')[0]
    )


def _are_twins(one: TopicRecord, other: TopicRecord) -> bool:
    return (
        one.type_name == other.type_name
        and one.type_name in IMAGE_TYPES
        and one.name != other.name
        and any(other.name in (one.name.replace(a, b), one.name.replace(b, a)) for a, b in TWINS)
    )


def _is_split_imu(one: TopicRecord, other: TopicRecord) -> bool:
    kinds = sorted(
        kind for kind in ('accel', 'gyro') for each in (one, other) if kind in each.name
    )
    return one.type_name == other.type_name == IMU_TYPE and kinds == ['accel', 'gyro']


PAIRS = (
    ('camera_info_differs', 'the image and its camera_info', _is_camera_pair),
    ('stereo_differs', 'the two images of a stereo pair', _are_twins),
    ('imu_split', 'accelerometer and gyro', _is_split_imu),
)


def _compare(one: TopicRecord, other: TopicRecord, code: str, who: str) -> Iterator[Finding]:
    a, b = np.unique(one.line.stamps_ns), np.unique(other.line.stamps_ns)
    if len(a) < 5 or len(b) < 5:
        return
    # Only where both were recorded: one may have started later.
    a = a[(a >= b[0]) & (a <= b[-1])]
    if not len(a):
        return
    right = np.clip(np.searchsorted(b, a), 1, len(b) - 1)
    nearest = np.where(a - b[right - 1] < b[right] - a, b[right - 1], b[right])
    difference = (a - nearest) / 1e9
    apart = np.abs(difference) > SAME_S
    if apart.mean() < 0.5:
        return
    if other.type_name == INFO_TYPE and len(b) < 0.5 * len(a):
        yield found(
            code,
            WARNING,
            (one.name, other.name),
            f'{len(b)} camera_info for {len(a)} images, with stamps of their own',
            {'images': len(a), 'infos': len(b)},
            change="send one camera_info with each image, with the image's stamp",
        )
        return
    middle_s = float(np.median(difference[apart]))
    usual_s = float(np.median(np.abs(difference[apart])))
    severe = usual_s > 0.001 and 0.5 < len(a) / len(b) < 2.0  # else they are meant to differ
    yield found(
        code,
        WRONG if severe else WARNING,
        (one.name, other.name),
        f'{who} differ by {lasting(usual_s)} in their stamps{_frames_apart(one, other)}',
        {'median_difference_ms': middle_s * 1e3, 'share': float(apart.mean())},
    )


def _frames_apart(one: TopicRecord, other: TopicRecord) -> str:
    """Say by how many frames the stamps are apart of what arrives together."""
    period_s = one.line.period_s
    if one.line.count != other.line.count or not period_s:
        return ''
    apart_s = float(np.median(other.line.stamps_ns - one.line.stamps_ns)) / 1e9
    frames = round(apart_s / period_s)
    way = 'later' if frames > 0 else 'earlier'
    return (
        f', or by {lasting(apart_s)} if none is lost: {abs(frames)} frame {way}' if frames else ''
    )


def header_findings(record: TopicRecord) -> Iterator[Finding]:
    """Yield frames that are empty or change, and types without a stamp."""
    name = (record.name,)
    if not record.stamped:
        if record.type_name.partition('/')[0] in SENSOR_PACKAGES:
            yield found('no_stamp', INFO, name, f'{record.type_name} has no stamp')
        return
    if record.frame_changes:
        frames = ', '.join(sorted(frame or '(empty)' for frame in record.frames))
        rare = record.frame_changes * RARE < record.count
        yield found(
            'frame_changes',
            WARNING if rare else WRONG,
            name,
            f'header.frame_id changes {times(record.frame_changes)} between {frames}',
            {'changes': record.frame_changes},
            change='look for a broken message, or a publisher that began anew' if rare else None,
        )
    elif set(record.frames) == {''} and not known(record.type_name).frameless:
        yield found('frame_empty', WARNING, name, 'header.frame_id is empty')


def copy_findings(records: Sequence[TopicRecord]) -> Iterator[Finding]:
    """Yield topics that hold the messages of another one."""
    for one, other in combinations(records, 2):
        if one.type_name != other.type_name:
            continue
        both = one.common_messages(other)
        if both > 0.9 * min(one.count, other.count):
            first, copy = sorted((one, other), key=lambda each: each.first_arrival_ns)
            yield found(
                'copied_topic',
                INFO,
                (copy.name, first.name),
                f'{both} of {copy.count} messages of {copy.name} are those of {first.name}, '
                f'byte for byte',
                {'messages': both},
            )
