"""Recordings with labelled defects, by seed: what `rig inspect` has to find, and clean ones.

A recording is a handful of streams as arrays of stamps and arrivals; defects change them. Each
defect returns the findings that it must cause, as (code, topic).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rig_common import msgs
from sensor_rig.findings.record import TopicRecord

EPOCH_S = 1_750_000_000.0
LENGTH_S = 30.0
CLOUD, IMAGE = 'sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/Image'
INFO, IMU, SCAN = 'sensor_msgs/msg/CameraInfo', 'sensor_msgs/msg/Imu', 'sensor_msgs/msg/LaserScan'
ODOM = 'nav_msgs/msg/Odometry'

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
    scan_time_s: float = 0.0
    best_effort: bool = False

    def stamps_ns(self) -> list[int]:
        stamps = self.captures + self.offset_s if self.stamps is None else self.stamps
        return [0 if np.isnan(value) else round((EPOCH_S + float(value)) * 1e9)
                for value in stamps]


class Recording:
    """Streams of a robot whose stamps are right."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.streams = {
            '/imu/data': self.stream(IMU, 0.01, 0.001, 0.0005),
            '/lidar/points': self.stream(CLOUD, 0.1, 0.105, 0.003),
            '/camera/left/image_raw': self.stream(IMAGE, 1 / 30, 0.02, 0.002),
            '/odom': self.stream(ODOM, 0.02, 0.004, 0.001),
        }
        self.streams['/lidar/points'].points = lambda i: np.linspace(0.0, 0.099, 64, dtype='f4')
        left = self.streams['/camera/left/image_raw']
        self.streams['/camera/left/camera_info'] = Stream(
            INFO, left.period_s, left.captures, left.arrivals + 2e-4)
        self.streams['/camera/right/image_raw'] = Stream(
            IMAGE, left.period_s, left.captures, left.arrivals + 5e-4)

    def stream(self, type_name: str, period_s: float, delay_s: float, jitter_s: float) -> Stream:
        count = int(LENGTH_S / period_s)
        captures = np.arange(count) * period_s + self.random.uniform(0.0, period_s)
        delays = delay_s + self.random.gamma(2.0, jitter_s / 2.0, count)
        return Stream(type_name, period_s, captures,
                      np.maximum.accumulate(captures + delays))

    def records(self) -> list[TopicRecord]:
        """Return the topics as `inspect` gathers them."""
        return [self._record(name, stream) for name, stream in self.streams.items()]

    def _record(self, name: str, stream: Stream) -> TopicRecord:
        record = TopicRecord(name, stream.type_name, True, best_effort=stream.best_effort)
        arrivals = [round((EPOCH_S + float(value)) * 1e9) for value in stream.arrivals]
        for i, (stamp_ns, arrival_ns) in enumerate(zip(stream.stamps_ns(), arrivals,
                                                       strict=True)):
            raw = self._raw(stream, i, stamp_ns)
            record.add(raw, arrival_ns)
            if stream.doubled is not None and stream.doubled[i]:
                record.add(raw, arrival_ns + 100_000)
        return record

    def _raw(self, stream: Stream, number: int, stamp_ns: int) -> bytes:
        frame = stream.frames[number * len(stream.frames) // len(stream.captures)]
        if stream.points is not None and (number < 24 or number % 50 == 0):
            times = stream.points(number)
            points = np.zeros(len(times), np.dtype([('x', '<f4'), ('time', times.dtype)]))
            points['time'] = times
            return msgs.point_cloud2_message(stamp_ns, frame, points)
        if stream.scan_time_s and number < 24:
            return bytes(msgs.laser_scan(
                frame, 8, angle_min_rad=-1.0, angle_max_rad=1.0, angle_increment_rad=0.25,
                range_min_m=0.1, range_max_m=9.0, time_increment_s=0.0,
                scan_time_s=stream.scan_time_s).fill(stamp_ns, ranges=np.ones(8, np.float32)))
        text = frame.encode() + b'\0'
        return (b'\0\1\0\0' + struct.pack('<iII', *divmod(stamp_ns, 10**9), len(text)) + text
                + struct.pack('<q', number))


# ---- defects ----------------------------------------------------------------------------------

SENSORS = ('/imu/data', '/lidar/points', '/odom')


def _pick(recording: Recording, names: tuple[str, ...] = SENSORS) -> tuple[str, Stream]:
    name = str(recording.random.choice(names))
    return name, recording.streams[name]


def host_stamps(r: Recording) -> Expected:
    name, s = _pick(r, ('/odom', '/imu/data'))
    s.arrivals = s.arrivals + r.random.uniform(0.0, 0.3, len(s.arrivals)) * s.period_s
    s.arrivals = np.maximum.accumulate(s.arrivals)
    s.stamps = s.arrivals - r.random.uniform(1e-5, 2e-4, len(s.arrivals))
    return {('host_stamps', name)}


def drift(r: Recording) -> Expected:
    name, s = _pick(r)
    ppm = r.random.uniform(60.0, 200.0) * r.random.choice((-1, 1))
    s.stamps = s.captures * (1.0 + ppm * 1e-6) - (0.001 if ppm > 0 else 0.0)
    if ppm > 0:
        s.arrivals = s.arrivals + 0.01
    return {('clock_drift', name)}


def future(r: Recording) -> Expected:
    name, s = _pick(r, ('/imu/data', '/odom'))
    s.offset_s = r.random.uniform(0.015, 0.2)
    return {('future_stamps', name)}


def _domain(code: str, offset_s: Callable[[Recording], float]) -> Callable[[Recording], Expected]:
    def apply(r: Recording) -> Expected:
        name, s = _pick(r)
        s.offset_s = offset_s(r)
        return {(code, name), ('mixed_domains', name)}
    apply.__name__ = code
    return apply


def step(r: Recording) -> Expected:
    name, s = _pick(r)
    at = int(len(s.captures) * r.random.uniform(0.3, 0.7))
    size = r.random.uniform(0.02, 0.5) * r.random.choice((-1, 1))
    s.stamps = s.captures + np.where(np.arange(len(s.captures)) >= at, size, 0.0)
    if size > 0:
        s.stamps = s.stamps - size  # ends right, so that nothing lies in the future
    return {('clock_step', name)}


def wrap(r: Recording) -> Expected:
    name, s = _pick(r)
    size = 2.0**32 * r.random.choice((1e-9, 1e-6))
    at = LENGTH_S * r.random.uniform(0.3, 0.7)
    s.stamps = s.captures - np.where(s.captures >= at, size, 0.0)
    return {('wrap_around', name)}


def zeros(r: Recording) -> Expected:
    name, s = _pick(r)
    s.stamps = np.where(r.random.random(len(s.captures)) < r.random.uniform(0.05, 0.3), np.nan,
                        s.captures)
    return {('zero_stamps', name)}


def frozen(r: Recording) -> Expected:
    name, s = _pick(r)
    s.stamps = s.captures.copy()
    at = int(len(s.stamps) * 0.4)
    s.stamps[at:at + int(r.random.integers(10, 40))] = s.stamps[at]
    return {('frozen_stamps', name)}


def repeated(r: Recording) -> Expected:
    name, s = _pick(r, ('/imu/data', '/odom'))
    s.stamps = np.floor(s.captures / (1.5 * s.period_s)) * 1.5 * s.period_s
    return {('repeated_stamps', name)}


def back(r: Recording) -> Expected:
    name, s = _pick(r)
    size = r.random.uniform(0.8, 3.0)
    inside = (s.captures > 12.0) & (s.captures < 12.0 + r.random.uniform(3.0, 6.0))
    s.stamps = s.captures - np.where(inside, size, 0.0)
    return {('time_back', name)}


def out_of_order(r: Recording) -> Expected:
    name, s = _pick(r, ('/imu/data', '/odom'))
    order = np.arange(len(s.captures))
    swaps = r.random.choice(len(order) // 2 - 1, len(order) // 40, replace=False) * 2
    order[swaps], order[swaps + 1] = order[swaps + 1].copy(), order[swaps].copy()
    s.stamps = s.captures[order]
    return {('out_of_order', name)}


def looped(r: Recording) -> Expected:
    at = r.random.uniform(10.0, 20.0)
    for s in r.streams.values():
        s.stamps = s.captures - np.where(s.captures >= at, at, 0.0)
    return {('looped', '/imu/data')}


def _points(code: str, times: Callable[[Recording, Stream], Callable[[int], Any]]
            ) -> Callable[[Recording], Expected]:
    def apply(r: Recording) -> Expected:
        s = r.streams['/lidar/points']
        s.points = times(r, s)
        return {(code, '/lidar/points')}
    apply.__name__ = code
    return apply


def _linear(low: float, high: float, kind: str = 'f4') -> Callable[[int], Any]:
    return lambda i: np.linspace(low, high, 64).astype(kind)


def _shuffled(r: Recording) -> Callable[[int], Any]:
    times = np.linspace(0.0, 0.099, 64, dtype='f4')
    return lambda i: r.random.permutation(times)


def dropped(r: Recording) -> Expected:
    name, s = _pick(r)
    kept = r.random.random(len(s.captures)) > r.random.uniform(0.03, 0.15)
    kept[:2] = True
    s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    return {('dropped_frames', name)}


def best_effort(r: Recording) -> Expected:
    (_, name), = dropped(r)
    r.streams[name].best_effort = True
    return {('qos_loss', name), ('dropped_frames', name)}


def throttled(r: Recording) -> Expected:
    name, s = _pick(r, ('/imu/data', '/odom'))
    gate = s.period_s * r.random.choice((1.3, 1.4, 1.6))
    kept, due = [], 0.0
    for i, capture in enumerate(s.captures):
        if capture >= due:
            kept.append(i)
            due = max(due + gate, capture - gate)
    s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    return {('throttled', name)}


def doubled(r: Recording) -> Expected:
    name, s = _pick(r)
    s.doubled = r.random.random(len(s.captures)) < r.random.uniform(0.1, 1.0)
    return {('doubled_messages', name)}


def batches(r: Recording) -> Expected:
    name, s = _pick(r, ('/imu/data', '/odom'))
    size = int(r.random.integers(3, 9))
    last = np.minimum((np.arange(len(s.arrivals)) // size + 1) * size - 1, len(s.arrivals) - 1)
    s.arrivals = s.arrivals[last] + (np.arange(len(last)) % size) * 2e-5
    return {('arrivals_in_batches', name)}


def hiccup(r: Recording) -> Expected:
    at, length = r.random.uniform(8.0, 20.0), r.random.uniform(0.4, 1.5)
    for s in r.streams.values():
        kept = (s.arrivals < at) | (s.arrivals > at + length)
        s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    return {('recorder_hiccup', 'all topics')}


def rate_not_declared(r: Recording) -> Expected:
    s = r.stream(SCAN, 0.1, 0.02, 0.002)
    s.scan_time_s = r.random.choice((0.025, 0.05, 0.2))
    s.arrivals = s.arrivals + s.scan_time_s
    r.streams['/scan'] = s
    return {('rate_not_declared', '/scan')}


def info_differs(r: Recording) -> Expected:
    s = r.streams['/camera/left/camera_info']
    s.offset_s = -r.random.uniform(0.002, 0.012)
    return {('camera_info_differs', '/camera/left/image_raw')}


def stereo_differs(r: Recording) -> Expected:
    s = r.streams['/camera/right/image_raw']
    s.offset_s = -r.random.uniform(0.002, 0.012)
    return {('stereo_differs', '/camera/left/image_raw')}


def imu_split(r: Recording) -> Expected:
    for name in ('/camera/gyro/sample', '/camera/accel/sample'):
        r.streams[name] = r.stream(IMU, 0.01, 0.002, 0.0005)
    accel, late_s = r.streams['/camera/accel/sample'], r.random.uniform(0.002, 0.004)
    accel.captures, accel.arrivals = accel.captures + late_s, accel.arrivals + late_s
    return {('imu_split', '/camera/gyro/sample')}


def frame_changes(r: Recording) -> Expected:
    name, s = _pick(r)
    s.frames = ['base', 'sensor'] * int(r.random.integers(2, 5))
    return {('frame_changes', name)}


def frame_empty(r: Recording) -> Expected:
    name, s = _pick(r)
    s.frames = ['']
    return {('frame_empty', name)}


def unstamped_point(r: Recording) -> Expected:
    """A cloud that arrives before its sweep, counted from the stamp, can have ended."""
    s = r.streams['/lidar/points']
    s.arrivals = s.arrivals - r.random.uniform(0.06, 0.1)
    return {('stamp_point', '/lidar/points')}


DEFECTS: dict[str, Callable[[Recording], Expected]] = {
    'host_stamps': host_stamps, 'clock_drift': drift, 'future_stamps': future,
    'clock_tai': _domain('clock_tai', lambda r: float(r.random.choice((-37, 37)))),
    'clock_gps': _domain('clock_gps', lambda r: 18.0),
    'clock_time_zone': _domain('clock_time_zone', lambda r: 900.0 * float(
        r.random.choice((-48, -20, 4, 8, 22, 36)))),
    'clock_power_up': _domain('clock_power_up', lambda r: -EPOCH_S + r.random.uniform(10, 1e5)),
    'clock_other': _domain('clock_other', lambda r: float(r.random.choice((-1, 1)))
                           * r.random.uniform(40.0, 300.0)),
    'clock_step': step, 'wrap_around': wrap, 'zero_stamps': zeros, 'frozen_stamps': frozen,
    'repeated_stamps': repeated, 'time_back': back, 'out_of_order': out_of_order,
    'looped': looped,
    'point_times_zero': _points('point_times_zero', lambda r, s: _linear(0.0, 0.0)),
    'point_times_unit': _points('point_times_unit', lambda r, s: _linear(
        0.0, 0.099 * float(r.random.choice((1e3, 1e6, 1e9))))),
    'point_times_absolute': _points('point_times_absolute', lambda r, s: (
        lambda i: np.linspace(0.0, 0.099, 64) + EPOCH_S + s.captures[i])),
    'point_times_long': _points('point_times_long', lambda r, s: _linear(
        0.0, r.random.uniform(0.15, 0.4))),
    'point_times_reversed': _points('point_times_reversed', lambda r, s: _linear(0.099, 0.0)),
    'point_times_unsorted': _points('point_times_unsorted', lambda r, s: _shuffled(r)),
    'stamp_at_end': _points('stamp_point', lambda r, s: _linear(-0.099, 0.0)),
    'stamp_in_the_middle': _points('stamp_point', lambda r, s: _linear(-0.0495, 0.0495)),
    'stamp_after_the_sweep': unstamped_point,
    'dropped_frames': dropped, 'qos_loss': best_effort, 'throttled': throttled,
    'doubled_messages': doubled, 'arrivals_in_batches': batches, 'recorder_hiccup': hiccup,
    'rate_not_declared': rate_not_declared, 'camera_info_differs': info_differs,
    'stereo_differs': stereo_differs, 'imu_split': imu_split, 'frame_changes': frame_changes,
    'frame_empty': frame_empty,
}
"""Name of a defect -> what applies it to a recording and returns what must be found."""

CONSEQUENCES = {
    'clock_step': {'time_back'},  # a step back is also a time that goes back
    'time_back': {'clock_step', 'clock_wander'},
    'stamp_after_the_sweep': {'future_stamps'},
}
"""Defect -> further findings that are true of it."""
