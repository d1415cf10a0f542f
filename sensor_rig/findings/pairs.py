"""Findings about topics that belong together, and about frames and headers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from sensor_rig.bags.inspect import INFO_TYPE, TopicFacts
from sensor_rig.findings.model import Finding, Severity, times
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.stamps import domain_of

INFO, WARNING, WRONG = Severity.INFO, Severity.WARNING, Severity.WRONG
IMAGE_TYPES = ('sensor_msgs/msg/Image', 'sensor_msgs/msg/CompressedImage')
IMU_TYPE = 'sensor_msgs/msg/Imu'
TWINS = (('left', 'right'), ('infra1', 'infra2'), ('cam0', 'cam1'), ('camera0', 'camera1'))
SENSOR_PACKAGES = ('sensor_msgs', 'geometry_msgs', 'nav_msgs')
SAME_S = 1e-6
FRAMELESS = (
    'sensor_msgs/msg/JointState',
    'sensor_msgs/msg/TimeReference',
    'diagnostic_msgs/msg/DiagnosticArray',
    'sensor_msgs/msg/Joy',
)
"""Types whose header needs no frame."""


def pair_findings(records: Sequence[TopicRecord]) -> Iterator[Finding]:
    """Yield pairs that should have the same stamps and do not."""
    for one, other in combinations(records, 2):
        first, second = (one, other) if other.type_name == INFO_TYPE else (other, one)
        if _is_camera_pair(first, second):
            yield from _compare(
                first,
                second,
                'camera_info_differs',
                'the image and its camera_info',
                'exact synchronizers pair nothing; the calibration is of another moment',
                "write the image's stamp into its camera_info",
            )
        elif (
            _are_twins(one.name, other.name)
            and one.type_name == other.type_name
            and one.type_name in IMAGE_TYPES
        ):
            yield from _compare(
                one,
                other,
                'stereo_differs',
                'the two images of a stereo pair',
                'depth is wrong by motion times that difference',
                "trigger both by hardware, and give both the trigger's stamp",
            )
        elif one.type_name == other.type_name == IMU_TYPE and _is_split_imu(one.name, other.name):
            yield from _compare(
                one,
                other,
                'imu_split',
                'accelerometer and gyro',
                'filters that want both at once interpolate or drop',
                'let the driver unite them (unite_imu_method), on one clock',
            )


def _is_camera_pair(image: TopicRecord, info: TopicRecord) -> bool:
    return (
        info.type_name == INFO_TYPE
        and image.type_name in IMAGE_TYPES
        and image.name.rpartition('/')[0].removesuffix('/image_raw')
        == info.name.rpartition('/')[0]
    )


def _are_twins(one: str, other: str) -> bool:
    return (
        any(one.replace(a, b) == other or one.replace(b, a) == other for a, b in TWINS)
        and one != other
    )


def _is_split_imu(one: str, other: str) -> bool:
    kinds = [
        next((kind for kind in ('accel', 'gyro') if kind in name), '') for name in (one, other)
    ]
    return sorted(kinds) == ['accel', 'gyro']


def _compare(
    one: TopicRecord, other: TopicRecord, code: str, who: str, effect: str, change: str
) -> Iterator[Finding]:
    a, b = np.unique(one.stamps_ns), np.unique(other.stamps_ns)
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
    middle_s = float(np.median(difference[apart]))
    severe = abs(middle_s) > 0.001
    yield Finding(
        code,
        WRONG if severe else WARNING,
        (one.name, other.name),
        f'{who} differ by {abs(middle_s) * 1e3:.2f} ms in their stamps',
        effect,
        change,
        {'median_difference_ms': middle_s * 1e3, 'share': float(apart.mean())},
    )


def header_findings(record: TopicRecord) -> Iterator[Finding]:
    """Yield frames that are empty or change, and types without a stamp."""
    name = (record.name,)
    if not record.stamped:
        if record.type_name.partition('/')[0] in SENSOR_PACKAGES:
            yield Finding(
                'no_stamp',
                INFO,
                name,
                f'{record.type_name} has no stamp',
                'only its arrival time is known',
                'publish the stamped type (for instance TwistStamped)',
            )
        return
    if record.frame_changes:
        frames = ', '.join(sorted(frame or '(empty)' for frame in record.frames))
        yield Finding(
            'frame_changes',
            WRONG,
            name,
            f'header.frame_id changes {times(record.frame_changes)} between {frames}',
            'measurements are taken for those of another place',
            'look for two publishers on the topic',
            {'changes': record.frame_changes},
        )
    elif set(record.frames) == {''} and record.type_name not in FRAMELESS:
        yield Finding(
            'frame_empty',
            WARNING,
            name,
            'header.frame_id is empty',
            'no transform can be looked up',
            "set the driver's frame parameter",
        )


def domain_mix(
    records: Sequence[TopicRecord], facts: Mapping[str, TopicFacts]
) -> Iterator[Finding]:
    """Yield one finding where topics are stamped by clocks of different epochs."""
    domains: dict[str, list[str]] = {}
    for record in records:
        if record.stamped and record.stamps_ns and facts[record.name].source != 'none':
            domains.setdefault(domain_of(record, facts[record.name])[0], []).append(record.name)
    if len(domains) > 1:
        parts = '; '.join(
            f'{name.removeprefix("clock_").replace("_", " ")}: {", ".join(topics)}'
            for name, topics in sorted(domains.items())
        )
        yield Finding(
            'mixed_domains',
            WRONG,
            tuple(t for ts in domains.values() for t in ts),
            f'{len(domains)} time domains are mixed ({parts})',
            'sensors of different domains never meet in time',
            'bring all drivers to one clock, or sync them with stamp_source: device',
        )


def loop_findings(records: Sequence[TopicRecord], start_ns: int) -> tuple[list[Finding], set[str]]:
    """Return the finding of a looped or rewound recording, and the topics it explains."""
    jumps: dict[str, tuple[int, float]] = {}
    slack_s = 1.0
    for record in records:
        line = record.line
        far = [event for event in line.backward if -event.amount_s > max(4 * line.period_s, 0.5)]
        first_ns = record.stamps_ns[0] if record.stamps_ns else 0
        looped = [
            event
            for event in far
            if abs(event.stamp_ns - first_ns) / 1e9 < max(3 * line.period_s, 0.2)
        ]
        if looped:
            jumps[record.name] = (looped[0].arrival_ns, looped[0].amount_s)
            slack_s = max(slack_s, 2.0 * line.period_s)  # its first message of the new round
    if len(jumps) < 2 and not (len(jumps) == 1 and len([r for r in records if r.stamped]) == 1):
        return [], set()
    at_ns = [at for at, _ in jumps.values()]
    if (max(at_ns) - min(at_ns)) / 1e9 > slack_s:
        return [], set()
    length = max(-amount for _, amount in jumps.values())
    finding = Finding(
        'looped',
        WRONG,
        tuple(sorted(jumps)),
        f'time starts again after {(min(at_ns) - start_ns) / 1e9:.1f} s, back by '
        f'{length:.1f} s on all of them: a recording that was played in a loop',
        'everything after the first round is older than what came before',
        'cut the recording at the restart',
        {'length_s': length},
    )
    return [finding], set(jumps)
