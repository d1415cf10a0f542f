"""Faults for `bench/findings.py --matrix`: each in four strengths, on the robot of `field.py`.

A fault changes a robot and returns the codes of which one has to be found.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from support import field
from support.field import MS, START_NS, Robot, S, Stream, during

Fault = Callable[[Robot, int], set[str]]


def _lidar(r: Robot) -> Stream:
    return r.streams['/lidar/points']


def _camera(r: Robot) -> Stream:
    return r.streams['/camera/image_raw']


def _plain(apply: Callable[[Robot], None], *codes: str) -> Fault:
    """Return a fault that is what it is, whatever the strength: a unit, a time scale."""

    def fault(r: Robot, strength: int) -> set[str]:
        apply(r)
        return set(codes)

    return fault


def _half(r: Robot) -> int:
    arrivals = r.imu.arrivals
    return int(arrivals[0] + (arrivals[-1] - arrivals[0]) // 2)


def step(r: Robot, strength: int) -> set[str]:
    lidar = _lidar(r)
    size = (20, 60, 300, 5000)[strength] * MS
    lidar.stamps = lidar.stamps + np.where(lidar.arrivals >= _half(r), -size, 0)
    return {'clock_step'}


def step_and_return(r: Robot, strength: int) -> set[str]:
    lidar = _lidar(r)
    away = (3, 5, 8, 12)[strength]
    inside = (lidar.arrivals >= _half(r)) & (lidar.arrivals < _half(r) + away * S)
    lidar.stamps = lidar.stamps + np.where(inside, S, 0)
    return {'clock_step'}


def host_ahead(r: Robot, strength: int) -> set[str]:
    field.host_step((50.0, 250.0, 1003.0, 20_000.0)[strength])(r)
    return {'host_step'}


def host_back(r: Robot, strength: int) -> set[str]:
    field.host_step((-123.0, -250.0, -503.0, -3007.0)[strength])(r)
    return {'host_step'}


def drift(r: Robot, strength: int) -> set[str]:
    ppm = (60, 150, 400, 900)[strength]
    since = r.imu.stamps - r.imu.stamps[0]
    r.imu.stamps = r.imu.stamps - since * ppm // 10**6
    return {'clock_drift'}


def wander(r: Robot, strength: int) -> set[str]:
    size = (4, 8, 20, 60)[strength] * MS
    since = (r.imu.stamps - r.imu.stamps[0]) / (r.imu.stamps[-1] - r.imu.stamps[0])
    r.imu.stamps = r.imu.stamps - np.rint(size * (1 + np.sin(9.0 * since))).astype(np.int64)
    return {'clock_wander'}


def late_from_the_middle(r: Robot, strength: int) -> set[str]:
    camera = _camera(r)
    late = (30, 60, 120, 400)[strength] * MS
    camera.arrivals = camera.arrivals + np.where(camera.arrivals >= _half(r), late, 0)
    return {'latency_step'}


def future(r: Robot, strength: int) -> set[str]:
    r.imu.stamps = r.imu.stamps + (5, 12, 60, 400)[strength] * MS
    return {'future_stamps'}


def own_clock(r: Robot, strength: int) -> set[str]:
    _lidar(r).stamps += (3, 40, 7000, 10**8)[strength] * S
    return {'clock_other'}


def time_zone(r: Robot, strength: int) -> set[str]:
    _lidar(r).stamps += (1, 2, -5, 8)[strength] * 3600 * S
    return {'clock_time_zone'}


def power_up(r: Robot, strength: int) -> set[str]:
    lidar = _lidar(r)
    lidar.stamps = lidar.stamps - START_NS + (1, 60, 5000, 10**6)[strength] * S
    return {'clock_power_up'}


def wrap(r: Robot, strength: int) -> set[str]:
    size = (2**32, 2**31 * 1000, 2**32 * 1000, 2**32 * 1000)[strength]
    r.imu.stamps = r.imu.stamps - np.where(r.imu.arrivals >= _half(r), size, 0)
    return {'wrap_around'}


def lost(r: Robot, strength: int) -> set[str]:
    share = (0.01, 0.05, 0.15, 0.4)[strength]
    r.imu.keep(r.random.random(len(r.imu.stamps)) >= share)
    return {'dropped_frames'}


def lost_in_bursts(r: Robot, strength: int) -> set[str]:
    camera = _camera(r)
    span = (0.2, 0.5, 1.0, 3.0)[strength]
    begin = float(camera.arrivals[0] - START_NS) / 1e9
    for at in (6.0, 14.0, 25.0):
        camera.keep(~during(camera, begin + at, begin + at + span))
    return {'dropped_frames'}


def disorder(r: Robot, strength: int) -> set[str]:
    count = len(r.imu.stamps)
    order = np.arange(float(count))
    share = (0.005, 0.02, 0.05, 0.15)[strength]
    late = r.random.choice(np.arange(10, count - 10, 4), int(share * count), replace=False)
    order[late] += r.random.choice((1.5, 2.5), len(late))
    order = np.argsort(order, kind='stable')
    r.imu.stamps = r.imu.stamps[order]
    r.imu.marks = order if r.imu.marks is None else r.imu.marks[order]
    return {'out_of_order'}


def batches(r: Robot, strength: int) -> set[str]:
    size = (2, 4, 8, 20)[strength]
    places = np.arange(len(r.imu.arrivals))
    last = np.minimum(places // size * size + size - 1, places[-1])
    r.imu.arrivals = r.imu.arrivals[last]
    return {'arrivals_in_batches'}


def second_source(r: Robot, strength: int) -> set[str]:
    period = float(np.median(np.diff(r.imu.stamps)))
    apart = round((0.2, 0.3, 0.4, 0.25)[strength] * period)
    behind = (0, 0, 0, 80 * MS)[strength]
    r.imu.append(r.imu.stamps + apart - behind, r.imu.arrivals + apart)
    return {'two_sources'}


def zeros(r: Robot, strength: int) -> set[str]:
    share = (0.002, 0.02, 0.2, 1.0)[strength]
    r.imu.stamps = np.where(r.random.random(len(r.imu.stamps)) < share, 0, r.imu.stamps)
    return {'zero_stamps'}


def frozen(r: Robot, strength: int) -> set[str]:
    count = (10, 50, 400, 3000)[strength]
    at = len(r.imu.stamps) // 3
    r.imu.stamps[at : at + count] = r.imu.stamps[at]
    return {'frozen_stamps'}


def strays(r: Robot, strength: int) -> set[str]:
    away = (2, 30, 3000, 10**8)[strength] * S
    r.imu.stamps[[len(r.imu.stamps) // 4, len(r.imu.stamps) // 2]] -= away
    return {'stray_stamps'}


def rounded(r: Robot, strength: int) -> set[str]:
    grid = (5, 10, 20, 1000)[strength] * MS
    camera = _camera(r)
    camera.stamps = camera.stamps // grid * grid
    return {'stamp_resolution'}


def hiccup(r: Robot, strength: int) -> set[str]:
    span = (0.6, 1.0, 3.0, 12.0)[strength]
    begin = (_half(r) - START_NS) / 1e9
    for stream in r.streams.values():
        stream.keep(~during(stream, begin, begin + span))
    return {'recorder_hiccup'}


def doubled(r: Robot, strength: int) -> set[str]:
    again = r.random.random(len(r.imu.stamps)) < (0.02, 0.1, 0.5, 1.0)[strength]
    marks = np.arange(len(r.imu.stamps))[again]
    r.imu.append(r.imu.stamps[again], r.imu.arrivals[again] + 300_000, marks)
    return {'doubled_messages'}


def sweep_end(r: Robot, strength: int) -> set[str]:
    """Stamped at the end of the sweep, while the points say otherwise: it arrives too early."""
    lidar = _lidar(r)
    lidar.stamps = lidar.stamps + (20, 50, 80, 99)[strength] * MS
    return {'stamp_point'}


def frames(r: Robot, strength: int) -> set[str]:
    _camera(r).frames = ['camera'] * (400, 100, 10, 1)[strength] + ['other']
    return {'frame_changes'}


def on_the_way(r: Robot, strength: int) -> set[str]:
    camera = _camera(r)
    camera.publishes = camera.arrivals
    camera.arrivals = camera.arrivals + (25, 50, 100, 400)[strength] * MS
    return {'transport_delay'}


FAULTS: dict[str, Fault] = {
    'stamped as USB is polled': _plain(field.polled_by_usb, 'arrivals_in_batches'),
    # The sensor's clock.
    'TAI': _plain(field.tai, 'clock_tai'),
    'GPS time': _plain(field.gps_time, 'clock_gps'),
    'epoch of 2000': _plain(field.epoch_of_2000, 'clock_epoch'),
    'time zone': time_zone,
    'daylight saving': _plain(field.local_time_with_daylight_saving, 'clock_time_zone'),
    'power-up': power_up,
    'clock of its own': own_clock,
    'restart': _plain(field.restart, 'restart'),
    'simulated beside wall time': _plain(field.simulated_beside_wall_time, 'sim_time_mixed'),
    'drift': drift,
    'wander': wander,
    'clock step': step,
    'step and return': step_and_return,
    'counter wraps': wrap,
    'stamped in the future': future,
    'stamped at the sweep end': sweep_end,
    # The recording, whose stamps the driver has yet to write.
    'recorder stands still': hiccup,
    'host set ahead': host_ahead,
    'host set back': host_back,
    'host slewed': _plain(field.host_slewed, 'clock_wander', 'clock_drift'),
    'joined from two': _plain(field.cut_together_and_closed_up, 'spliced'),
    'looped': _plain(field.looped_bag, 'looped'),
    'two sources': second_source,
    # What the driver writes.
    'stray stamps': strays,
    'frozen stamp': frozen,
    'sec rounded': _plain(field.seconds_rounded, 'stamp_unit'),
    'sec and nanosec swapped': _plain(field.seconds_and_rest_swapped, 'stamp_unit'),
    'counter in microseconds': _plain(field.counter_in_microseconds, 'stamp_unit'),
    'milliseconds in nanosec': _plain(field.milliseconds_as_nanoseconds, 'stamp_unit'),
    'microseconds in nanosec': _plain(field.microseconds_as_nanoseconds, 'stamp_unit'),
    'milliseconds since 1970': _plain(field.milliseconds_since_1970, 'stamp_unit'),
    'seconds as float32': _plain(field.seconds_as_float32, 'stamp_float'),
    'rounded stamps': rounded,
    'zero stamps': zeros,
    'frame changes': frames,
    # The way of the messages.
    'doubled messages': doubled,
    'out of order': disorder,
    'lost frames': lost,
    'lost in bursts': lost_in_bursts,
    'batches': batches,
    'later from the middle on': late_from_the_middle,
    'slow middleware': on_the_way,
    'falls silent': _plain(field.lidar_dies, 'ends_early'),
    'slower from the middle on': _plain(field.camera_slows_down, 'rate_changes'),
}
"""In an order in which two of them can be put together: units after all that moves a clock."""
ONE_OF = (
    {
        'GPS time',
        'epoch of 2000',
        'time zone',
        'daylight saving',
        'power-up',
        'clock of its own',
        'restart',
        'simulated beside wall time',
    },
    {
        'sec rounded',
        'sec and nanosec swapped',
        'counter in microseconds',
        'milliseconds in nanosec',
        'microseconds in nanosec',
        'milliseconds since 1970',
        'seconds as float32',
    },
)
"""One clock is of one time scale, and one driver writes one unit: never two of these at once."""
ALLOWED = {
    'restart': {'clock_power_up'},
    'host set back': {'out_of_order', 'time_back'},
    'stamped at the sweep end': {'future_stamps'},
    'rounded stamps': {'repeated_stamps'},
}
"""Fault -> further findings that are true of it."""
