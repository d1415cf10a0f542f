"""Defects of recordings, by name: each changes a recording and returns what must be found.

What must be found is a set of (code, topic). Sizes are those of real systems.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from support.blind import EPOCH_S, IMU, SCAN, Expected, Recording, Stream

SENSORS = ('/imu/data', '/lidar/points', '/odom', '/camera/left/image_raw')
FAST = ('/imu/data', '/odom')
GPS_EPOCH_S = 315_964_800.0

Defect = Callable[[Recording], Expected]


def _pick(recording: Recording, names: tuple[str, ...] = SENSORS) -> tuple[str, Stream]:
    name = str(recording.random.choice(names))
    return name, recording.streams[name]


def _sign(r: Recording) -> float:
    return float(r.random.choice((-1, 1)))


# ---- clocks -----------------------------------------------------------------------------------


def host_stamps(r: Recording) -> Expected:
    name, s = _pick(r, (*FAST, '/camera/left/image_raw'))
    s.arrivals = s.arrivals + r.random.uniform(0.0, 0.3, len(s.arrivals)) * s.period_s
    s.arrivals = np.maximum.accumulate(s.arrivals)
    s.stamps = s.arrivals - r.random.uniform(1e-5, 2e-4, len(s.arrivals))
    _follow(r, name, s)
    return {('host_stamps', name)}


def _follow(r: Recording, name: str, s: Stream) -> None:
    """Give the companions of the left camera its stamps and arrivals."""
    if name == '/camera/left/image_raw':
        for other, later_s in (
            ('/camera/left/camera_info', 2e-4),
            ('/camera/right/image_raw', 5e-4),
        ):
            twin = r.streams[other]
            twin.stamps, twin.offset_s = s.stamps, s.offset_s
            twin.captures, twin.arrivals = s.captures, s.arrivals + later_s


def drift(r: Recording) -> Expected:
    name, s = _pick(r)
    ppm = r.random.uniform(60.0, 200.0) * _sign(r) * max(1.0, r.robot.restlessness)
    s.stamps = s.captures * (1.0 + ppm * 1e-6)
    if ppm > 0:  # ends right, so that nothing lies in the future
        s.stamps = s.stamps - s.captures[-1] * ppm * 1e-6
    _follow(r, name, s)
    return {('clock_drift', name)}


def wander(r: Recording) -> Expected:
    """A clock that NTP slews to and fro, or that no PTP master holds."""
    name, s = _pick(r, ('/imu/data', '/odom', '/camera/left/image_raw'))
    cycles = r.random.uniform(1.0, 2.5)
    size_s = r.random.uniform(0.008, 0.03)
    phase = r.random.uniform(0.0, 2.0 * np.pi)
    s.stamps = s.captures - size_s * (
        1.0 + np.sin(2.0 * np.pi * cycles * s.captures / r.length_s + phase)
    )
    _follow(r, name, s)
    return {('clock_wander', name)}


def slewed(r: Recording) -> Expected:
    """A clock that was off and is slewed back at 500 to 2000 ppm while it is recorded."""
    name, s = _pick(r, ('/imu/data', '/odom'))
    at_s = r.length_s * r.random.uniform(0.2, 0.4)
    rate = r.random.uniform(5e-4, 2e-3)
    long_s = r.random.uniform(0.3, 0.5) * r.length_s
    s.stamps = s.captures - rate * np.clip(at_s + long_s - s.captures, 0.0, long_s)
    return {('clock_wander', name)}


def future(r: Recording) -> Expected:
    name, s = _pick(r, FAST)
    s.offset_s = r.random.uniform(0.03, 0.2)
    return {('future_stamps', name)}


def _domain(code: str, offset_s: Callable[[Recording], float]) -> Defect:
    def apply(r: Recording) -> Expected:
        name, s = _pick(r)
        s.offset_s = offset_s(r)
        _follow(r, name, s)
        return {(code, name)}

    return apply


def step(r: Recording) -> Expected:
    name, s = _pick(r)
    at = int(len(s.captures) * r.random.uniform(0.3, 0.7))
    size = r.random.uniform(0.02, 0.5) * _sign(r)
    s.stamps = s.captures + np.where(np.arange(len(s.captures)) >= at, size, 0.0)
    if size > 0:
        s.stamps = s.stamps - size  # ends right, so that nothing lies in the future
    _follow(r, name, s)
    return {('clock_step', name)}


def ptp_lost(r: Recording) -> Expected:
    """A clock that runs free for a while and is set again by a step."""
    name, s = _pick(r)
    begin, end = r.length_s * 0.25, r.length_s * r.random.uniform(0.55, 0.75)
    size_s = r.random.uniform(0.03, 0.1)
    free = (s.captures > begin) & (s.captures < end)
    s.stamps = s.captures - np.where(free, size_s * (s.captures - begin) / (end - begin), 0.0)
    _follow(r, name, s)
    return {('clock_step', name)}


def wrap(r: Recording) -> Expected:
    name, s = _pick(r)
    size = 2.0**32 * r.random.choice((1e-9, 1e-6))
    at = r.length_s * r.random.uniform(0.3, 0.7)
    s.stamps = s.captures - np.where(s.captures >= at, size, 0.0)
    _follow(r, name, s)
    return {('wrap_around', name)}


# ---- order ------------------------------------------------------------------------------------


def zeros(r: Recording) -> Expected:
    name, s = _pick(r)
    s.stamps = np.where(
        r.random.random(len(s.captures)) < r.random.uniform(0.05, 0.3), np.nan, s.captures
    )
    _follow(r, name, s)
    return {('zero_stamps', name)}


def frozen(r: Recording) -> Expected:
    name, s = _pick(r)
    s.stamps = s.captures.copy()
    at = int(len(s.stamps) * r.random.uniform(0.1, 0.7))
    s.stamps[at : at + int(r.random.integers(10, 40))] = s.stamps[at]
    _follow(r, name, s)
    return {('frozen_stamps', name)}


def repeated(r: Recording) -> Expected:
    name, s = _pick(r, FAST)
    grid_s = r.random.uniform(1.2, 3.0) * s.period_s
    s.stamps = np.floor(s.captures / grid_s) * grid_s
    return {('repeated_stamps', name)}


def back(r: Recording) -> Expected:
    name, s = _pick(r)
    size = r.random.uniform(0.8, 3.0)
    at = r.length_s * r.random.uniform(0.2, 0.6)
    inside = (s.captures > at) & (s.captures < at + r.random.uniform(3.0, 6.0))
    s.stamps = s.captures - np.where(inside, size, 0.0)
    _follow(r, name, s)
    return {('clock_step', name)}


def out_of_order(r: Recording) -> Expected:
    name, s = _pick(r, FAST)
    order = np.arange(len(s.captures))
    swaps = r.random.choice(len(order) // 2 - 1, len(order) // 40, replace=False) * 2
    order[swaps], order[swaps + 1] = order[swaps + 1].copy(), order[swaps].copy()
    s.stamps = s.captures[order]
    return {('out_of_order', name)}


def looped(r: Recording) -> Expected:
    at = r.length_s * r.random.uniform(0.35, 0.7)
    for s in r.streams.values():
        s.stamps = s.captures - np.where(s.captures >= at, at, 0.0)
    return {('looped', '/imu/data')}


# ---- points -----------------------------------------------------------------------------------


def _points(code: str, times: Callable[[Recording, Stream], Callable[[int], Any]]) -> Defect:
    def apply(r: Recording) -> Expected:
        s = r.streams['/lidar/points']
        s.points = times(r, s)
        return {(code, '/lidar/points')}

    return apply


def _linear(low: float, high: float, kind: str = 'f4') -> Callable[[int], Any]:
    return lambda i: np.linspace(low, high, 64).astype(kind)


def _in_another_unit(r: Recording, s: Stream) -> Callable[[int], Any]:
    """Floats in ms, us or ns where seconds are meant; integers in us where ns are."""
    if r.random.random() < 0.25:
        return _linear(0.0, r.sweep_s * 1e6, 'u4')
    return _linear(0.0, r.sweep_s * float(r.random.choice((1e3, 1e6, 1e9))))


def _dates(r: Recording, s: Stream) -> Callable[[int], Any]:
    return lambda i: np.linspace(0.0, r.sweep_s, 64) + EPOCH_S + s.captures[i]


def _shuffled(r: Recording, s: Stream) -> Callable[[int], Any]:
    times = np.linspace(0.0, r.sweep_s, 64, dtype='f4')
    return lambda i: r.random.permutation(times)


def _growing(r: Recording, s: Stream) -> Callable[[int], Any]:
    """Times that do not restart with every sweep."""
    return lambda i: np.linspace(0.0, r.sweep_s, 64, dtype='f4') * (i + 1)


def no_point_times(r: Recording) -> Expected:
    r.streams['/lidar/points'].point_field = 'ring'
    return {('point_times_missing', '/lidar/points')}


def stamped_after_the_sweep(r: Recording) -> Expected:
    """A cloud that arrives before its sweep, counted from the stamp, can have ended."""
    s = r.streams['/lidar/points']
    s.arrivals = s.arrivals - r.random.uniform(0.6, 0.95) * r.sweep_s
    return {('stamp_point', '/lidar/points')}


# ---- arrivals ---------------------------------------------------------------------------------


def dropped(r: Recording) -> Expected:
    name, s = _pick(r)
    kept = r.random.random(len(s.captures)) > r.random.uniform(0.03, 0.15)
    kept[:2] = True
    s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    _follow(r, name, s)
    return {('dropped_frames', name)}


def dropped_in_bursts(r: Recording) -> Expected:
    """A cable that comes loose: a few long gaps."""
    name, s = _pick(r, ('/imu/data', '/camera/left/image_raw', '/lidar/points'))
    kept = np.ones(len(s.captures), bool)
    for at in r.random.uniform(0.1, 0.9, int(r.random.integers(2, 5))) * r.length_s:
        kept &= (s.captures < at) | (s.captures > at + max(0.5, 3.0 * s.period_s))
    s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    _follow(r, name, s)
    return {('dropped_frames', name)}


def best_effort(r: Recording) -> Expected:
    ((_, name),) = dropped(r)
    r.streams[name].best_effort = True
    return {('qos_loss', name), ('dropped_frames', name)}


def throttled(r: Recording) -> Expected:
    """A time gate: what comes before its next time is left out, as topic_tools throttle does."""
    name, s = _pick(r, FAST)
    gate = s.period_s * r.random.uniform(1.2, 1.8)
    kept, due = [], -np.inf
    for i, capture in enumerate(s.captures):
        if capture >= due:
            kept.append(i)
            due = capture + gate if due < capture - gate else due + gate
    s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    return {('throttled', name)}


def doubled(r: Recording) -> Expected:
    name, s = _pick(r)
    s.doubled = r.random.random(len(s.captures)) < r.random.uniform(0.1, 1.0)
    return {('doubled_messages', name)}


def batches(r: Recording) -> Expected:
    name, s = _pick(r, FAST)
    size = int(r.random.integers(3, 9))
    last = np.minimum((np.arange(len(s.arrivals)) // size + 1) * size - 1, len(s.arrivals) - 1)
    s.arrivals = s.arrivals[last] + (np.arange(len(last)) % size) * 2e-5
    return {('arrivals_in_batches', name)}


def polled(r: Recording) -> Expected:
    """A driver that reads its port at fixed times: all that came since comes at once."""
    name, s = _pick(r, FAST)
    every_s = s.period_s * r.random.uniform(2.5, 6.0)
    s.arrivals = np.ceil(s.arrivals / every_s) * every_s
    s.arrivals = s.arrivals + np.arange(len(s.arrivals)) % 8 * 2e-5
    s.arrivals = np.maximum.accumulate(s.arrivals)
    return {('arrivals_in_batches', name)}


def _hiccups(r: Recording) -> list[tuple[float, float]]:
    starts = np.sort(r.random.uniform(0.2, 0.8, int(r.random.integers(1, 4)))) * r.length_s
    return [(at, at + r.random.uniform(0.8, 1.5)) for at in starts]


def hiccup(r: Recording) -> Expected:
    """The recorder writes nothing for a while."""
    spans = _hiccups(r)
    for s in r.streams.values():
        kept = np.ones(len(s.arrivals), bool)
        for begin, end in spans:
            kept &= (s.arrivals < begin) | (s.arrivals > end)
        s.captures, s.arrivals = s.captures[kept], s.arrivals[kept]
    return {('recorder_hiccup', 'all topics')}


def late_recorder(r: Recording) -> Expected:
    """The recorder stands still and then writes all that has queued, with late receive times."""
    spans = _hiccups(r)
    for s in r.streams.values():
        for begin, end in spans:
            late = (s.arrivals >= begin) & (s.arrivals < end)
            s.arrivals = np.where(late, end + (s.arrivals - begin) * 1e-3, s.arrivals)
        s.arrivals = np.maximum.accumulate(s.arrivals)
    return {('recorder_hiccup', 'all topics')}


def rate_not_declared(r: Recording) -> Expected:
    rate_hz = float(r.random.choice((7, 10, 15, 20)))
    s = r.stream(SCAN, rate_hz, 0.02, 0.002)
    s.scan_time_s = s.period_s * float(r.random.choice((0.25, 0.5, 0.8, 2.0)))
    s.arrivals = s.arrivals + s.scan_time_s
    r.streams['/scan'] = s
    return {('rate_not_declared', '/scan')}


# ---- topics that belong together, and headers -------------------------------------------------


def info_differs(r: Recording) -> Expected:
    s = r.streams['/camera/left/camera_info']
    s.offset_s = -r.random.uniform(0.1, 0.4) * s.period_s
    return {('camera_info_differs', '/camera/left/image_raw')}


def stereo_differs(r: Recording) -> Expected:
    s = r.streams['/camera/right/image_raw']
    s.offset_s = -r.random.uniform(0.1, 0.4) * s.period_s
    return {('stereo_differs', '/camera/left/image_raw')}


def imu_split(r: Recording) -> Expected:
    names = ('/camera/gyro/sample', '/camera/accel/sample')
    rates = (200.0, 200.0) if r.random.random() < 0.5 else (200.0, 63.0)
    for name, rate_hz in zip(names, rates, strict=True):
        r.streams[name] = r.stream(IMU, rate_hz, 0.002, 0.0005)
    return {('imu_split', '/camera/gyro/sample')}


def frame_changes(r: Recording) -> Expected:
    name, s = _pick(r)
    s.frames = ['base', 'sensor'] * int(r.random.integers(2, 5))
    return {('frame_changes', name)}


def frame_empty(r: Recording) -> Expected:
    name, s = _pick(r)
    s.frames = ['']
    return {('frame_empty', name)}


def no_stamp(r: Recording) -> Expected:
    s = r.stream('geometry_msgs/msg/Twist', 20.0, 0.002, 0.001)
    s.stamped = False
    r.streams['/cmd_vel'] = s
    return {('no_stamp', '/cmd_vel')}


DEFECTS: dict[str, Defect] = {
    'host_stamps': host_stamps,
    'clock_drift': drift,
    'clock_wander': wander,
    'clock_slewed': slewed,
    'future_stamps': future,
    'clock_tai': _domain('clock_tai', lambda r: 37.0 * _sign(r)),
    'clock_gps': _domain('clock_gps', lambda r: 18.0),
    'clock_gps_epoch': _domain('clock_gps_epoch', lambda r: 18.0 - GPS_EPOCH_S),
    'clock_time_zone': _domain(
        'clock_time_zone', lambda r: 900.0 * float(r.random.choice((-48, -20, 4, 8, 22, 36)))
    ),
    'clock_power_up': _domain('clock_power_up', lambda r: -EPOCH_S + r.random.uniform(10, 1e5)),
    'clock_other': _domain('clock_other', lambda r: _sign(r) * r.random.uniform(40.0, 300.0)),
    'clock_step': step,
    'ptp_lost': ptp_lost,
    'wrap_around': wrap,
    'zero_stamps': zeros,
    'frozen_stamps': frozen,
    'repeated_stamps': repeated,
    'time_back': back,
    'out_of_order': out_of_order,
    'looped': looped,
    'point_times_missing': no_point_times,
    'point_times_zero': _points('point_times_zero', lambda r, s: _linear(0.0, 0.0)),
    'point_times_unit': _points('point_times_unit', _in_another_unit),
    'point_times_absolute': _points('point_times_absolute', _dates),
    'point_times_long': _points(
        'point_times_long', lambda r, s: _linear(0.0, r.random.uniform(1.5, 4.0) * s.period_s)
    ),
    'point_times_growing': _points('point_times_long', _growing),
    'point_times_reversed': _points('point_times_reversed', lambda r, s: _linear(r.sweep_s, 0.0)),
    'point_times_unsorted': _points('point_times_unsorted', _shuffled),
    'stamp_at_end': _points('stamp_point', lambda r, s: _linear(-r.sweep_s, 0.0)),
    'stamp_in_the_middle': _points(
        'stamp_point', lambda r, s: _linear(-0.5 * r.sweep_s, 0.5 * r.sweep_s)
    ),
    'stamp_after_the_sweep': stamped_after_the_sweep,
    'dropped_frames': dropped,
    'dropped_in_bursts': dropped_in_bursts,
    'qos_loss': best_effort,
    'throttled': throttled,
    'doubled_messages': doubled,
    'arrivals_in_batches': batches,
    'polled': polled,
    'recorder_hiccup': hiccup,
    'late_recorder': late_recorder,
    'rate_not_declared': rate_not_declared,
    'camera_info_differs': info_differs,
    'stereo_differs': stereo_differs,
    'imu_split': imu_split,
    'frame_changes': frame_changes,
    'frame_empty': frame_empty,
    'no_stamp': no_stamp,
}
"""Name of a defect -> what applies it to a recording and returns what must be found."""

CONSEQUENCES = {
    'clock_step': {'time_back'},  # a step back is also a time that goes back
    'ptp_lost': {'clock_drift', 'clock_wander'},  # while it runs free
    'clock_slewed': {'clock_drift'},
    'stamp_after_the_sweep': {'future_stamps'},
}
"""Defect -> further findings that are true of it."""

ADDED = ('no_stamp', 'imu_split', 'rate_not_declared')
"""Defects of topics that they add themselves, so that they hide no other."""
BESIDE = (*ADDED, 'camera_info_differs', 'point_times_zero')
"""Defects that hide none of the IMU or the odometry."""
OF_ALL = {'looped', 'recorder_hiccup'}
"""Findings that every topic must agree on."""


def others_beside(wanted: Expected, r: Recording) -> Expected:
    """Apply up to two more defects that do not hide what is `wanted`; return what they cause."""
    if OF_ALL & {code for code, _ in wanted}:
        return set()
    names = [
        name
        for name in (BESIDE if {topic for _, topic in wanted} <= set(FAST) else ADDED)
        if name not in {code for code, _ in wanted}
    ]
    chosen = r.random.permutation(names)[: int(r.random.integers(0, 3))]
    return set().union(*(DEFECTS[str(name)](r) for name in chosen))
