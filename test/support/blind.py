"""Recordings with labelled defects, by seed: what `rig inspect` has to find, and clean ones.

A recording is a handful of streams as arrays of stamps and arrivals, with rates, delays and jitter
of a robot that is drawn by the seed; the defects of `support.defects` change them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from rig_common import msgs
from sensor_rig.findings.record import KEPT, TopicRecord

EPOCH_S = 1_750_000_000.0
CLOUD, IMAGE = 'sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/Image'
INFO, IMU, SCAN = 'sensor_msgs/msg/CameraInfo', 'sensor_msgs/msg/Imu', 'sensor_msgs/msg/LaserScan'
ODOM, FIX = 'nav_msgs/msg/Odometry', 'sensor_msgs/msg/NavSatFix'

Random = np.random.Generator
Expected = set[tuple[str, str]]


@dataclass
class Stream:
    """One topic before it becomes messages. Times in seconds since the start."""

    type_name: str
    period_s: float
    captures: Any
    arrivals: Any
    offset_s: float = 0.0
    """Added to the captures to give stamps."""
    stamps: Any = None
    frames: list[str] = field(default_factory=lambda: ['frame'])
    """In turn."""
    points: Callable[[int], Any] | None = None
    """Raw point times of message i; seconds as float32, or another type."""
    doubled: Any = None
    """Messages that are sent twice."""
    point_field: str = 'time'
    """What the cloud calls the field of `points`."""
    scan_time_s: float = 0.0
    best_effort: bool = False
    stamped: bool = True

    def stamps_ns(self) -> list[int]:
        stamps = self.captures + self.offset_s if self.stamps is None else self.stamps
        return [
            0 if np.isnan(value) else round((EPOCH_S + float(value)) * 1e9) for value in stamps
        ]


class Robot(NamedTuple):
    """What differs from robot to robot, by seed."""

    imu_hz: float
    lidar_hz: float
    camera_hz: float
    odom_hz: float
    fix_hz: float
    length_s: float
    jitter: str
    """`gamma`, `uniform`, or `spiky`: now and then a message is very late."""
    restlessness: float
    """Factor on the jitter of every stream."""

    @classmethod
    def of(cls, random: Random) -> Robot:
        return cls(
            float(random.choice((50, 100, 200, 400))),
            float(random.choice((5, 10, 20))),
            float(random.choice((7.5, 15, 30, 60))),
            float(random.choice((10, 25, 50))),
            float(random.choice((1, 5, 10))),
            float(random.uniform(25.0, 45.0)),
            str(random.choice(('gamma', 'uniform', 'spiky'))),
            float(random.uniform(0.3, 2.5)),
        )


class Recording:
    """Streams of a robot whose stamps are right."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.robot = robot = Robot.of(self.random)
        self.sweep_s = float(self.random.uniform(0.85, 0.99)) / robot.lidar_hz
        self.streams = {
            '/imu/data': self.stream(IMU, robot.imu_hz, 0.001, 0.0005),
            '/lidar/points': self.stream(CLOUD, robot.lidar_hz, self.sweep_s + 0.005, 0.003),
            '/camera/left/image_raw': self.stream(IMAGE, robot.camera_hz, 0.02, 0.002),
            '/odom': self.stream(ODOM, robot.odom_hz, 0.004, 0.001),
            '/fix': self.stream(FIX, robot.fix_hz, 0.08, 0.01),
        }
        self.streams['/lidar/points'].points = lambda i: np.linspace(
            0.0, self.sweep_s, 64, dtype='f4'
        )
        left = self.streams['/camera/left/image_raw']
        self.streams['/camera/left/camera_info'] = Stream(
            INFO, left.period_s, left.captures, left.arrivals + 2e-4
        )
        self.streams['/camera/right/image_raw'] = Stream(
            IMAGE, left.period_s, left.captures, left.arrivals + 5e-4
        )

    @property
    def length_s(self) -> float:
        return self.robot.length_s

    def stream(self, type_name: str, rate_hz: float, delay_s: float, jitter_s: float) -> Stream:
        """Return a stream whose delays are `delay_s` and about `jitter_s` more."""
        period_s = 1.0 / rate_hz
        count = int(self.length_s / period_s)
        captures = np.arange(count) * period_s + self.random.uniform(0.0, period_s)
        jitter_s *= self.robot.restlessness
        if self.robot.jitter == 'uniform':
            delays = delay_s + self.random.uniform(0.0, 2.0 * jitter_s, count)
        else:
            delays = delay_s + self.random.gamma(2.0, jitter_s / 2.0, count)
        if self.robot.jitter == 'spiky':
            late = self.random.random(count) < 0.005
            delays += late * self.random.uniform(2.0, 10.0, count) * jitter_s
        return Stream(type_name, period_s, captures, np.maximum.accumulate(captures + delays))

    def records(self, kept: int = KEPT) -> list[TopicRecord]:
        """Return the topics as `inspect` gathers them."""
        return [self._record(name, stream, kept) for name, stream in self.streams.items()]

    def _record(self, name: str, stream: Stream, kept: int) -> TopicRecord:
        record = TopicRecord(
            name, stream.type_name, stream.stamped, kept=kept, best_effort=stream.best_effort
        )
        arrivals = [round((EPOCH_S + float(value)) * 1e9) for value in stream.arrivals]
        for i, (stamp_ns, arrival_ns) in enumerate(zip(stream.stamps_ns(), arrivals, strict=True)):
            raw = self._raw(stream, i, stamp_ns)
            record.add(raw, arrival_ns)
            if stream.doubled is not None and stream.doubled[i]:
                record.add(raw, arrival_ns + 100_000)
        return record

    def _raw(self, stream: Stream, number: int, stamp_ns: int) -> bytes:
        frame = stream.frames[number * len(stream.frames) // len(stream.captures)]
        if stream.points is not None and (number < 24 or number % 50 == 0):
            times = stream.points(number)
            points = np.zeros(
                len(times), np.dtype([('x', '<f4'), (stream.point_field, times.dtype)])
            )
            points[stream.point_field] = times
            points['x'] = number
            return msgs.point_cloud2_message(stamp_ns, frame, points)
        if stream.scan_time_s and number < 24:
            return bytes(
                msgs.laser_scan(
                    frame,
                    8,
                    angle_min_rad=-1.0,
                    angle_max_rad=1.0,
                    angle_increment_rad=0.25,
                    range_min_m=0.1,
                    range_max_m=9.0,
                    time_increment_s=0.0,
                    scan_time_s=stream.scan_time_s,
                ).fill(stamp_ns, ranges=np.ones(8, np.float32))
            )
        text = frame.encode() + b'\0'
        return (
            b'\0\1\0\0'
            + struct.pack('<iII', *divmod(stamp_ns, 10**9), len(text))
            + text
            + struct.pack('<qd', number, stream.arrivals[0])
        )
