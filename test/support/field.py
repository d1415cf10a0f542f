"""Recordings with faults as users have them: a small robot, made with numpy alone.

Every fault is a function that changes the arrays of stamps and arrivals (ns) of a `Robot`. Nothing
of the project makes them but the bytes of a header, so that a finding cannot agree with its own
maker by mistake.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from sensor_rig.bags.reader import BagReader
from sensor_rig.findings.model import Finding
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.search import search

Ns = NDArray[np.int64]
S, MS = 10**9, 10**6
START_NS = 1_763_478_000 * S
IMU, ODOM = 'sensor_msgs/msg/Imu', 'nav_msgs/msg/Odometry'
CLOUD, IMAGE = 'sensor_msgs/msg/PointCloud2', 'sensor_msgs/msg/Image'
INFO = 'sensor_msgs/msg/CameraInfo'
UNSTAMPED = ('std_msgs/msg/String', 'rosgraph_msgs/msg/Clock')


@dataclass
class Stream:
    """The messages of one topic, in the order in which they were recorded."""

    type_name: str
    stamps: Ns
    arrivals: Ns
    frames: list[str] = field(default_factory=lambda: ['frame'])
    """In turn, message by message."""
    publishes: Ns | None = None
    marks: Ns | None = None
    """Content of each message; equal marks and stamps are equal bytes."""
    sweep_s: float = 0.0

    def keep(self, kept: NDArray[np.bool_]) -> None:
        self.stamps, self.arrivals = self.stamps[kept], self.arrivals[kept]

    def append(self, stamps: Ns, arrivals: Ns, marks: Ns | None = None) -> None:
        """Mix more messages in, by their arrival."""
        own = np.arange(len(self.stamps)) if self.marks is None else self.marks
        new = np.arange(len(stamps)) + 10**6 if marks is None else marks
        arrival = np.concatenate([self.arrivals, arrivals])
        order = np.argsort(arrival, kind='stable')
        self.stamps = np.concatenate([self.stamps, stamps])[order]
        self.marks = np.concatenate([own, new])[order]
        self.arrivals = arrival[order]

    def resort(self) -> None:
        """Put the messages in the order of their arrivals, as a reader of the file does."""
        order = np.argsort(self.arrivals, kind='stable')
        self.stamps, self.arrivals = self.stamps[order], self.arrivals[order]
        if self.publishes is not None:
            self.publishes = self.publishes[order]


class Robot:
    """An IMU, a LiDAR and a camera with clocks of their own, and odometry stamped by the host."""

    def __init__(self, seed: int = 0, seconds: float = 40.0) -> None:
        self.random = np.random.default_rng(seed)
        self.seconds = seconds
        self.streams = {
            '/imu/data': self.stream(IMU, 200.0, 1.0, 0.3),
            '/lidar/points': self.stream(CLOUD, 10.0, 105.0, 1.0),
            '/camera/image_raw': self.stream(IMAGE, 30.0, 25.0, 1.5),
            '/odom': self.stream(ODOM, 50.0, 2.0, 0.5, by_host=True),
        }
        self.streams['/lidar/points'].sweep_s = 0.099

    @property
    def imu(self) -> Stream:
        return self.streams['/imu/data']

    def stream(
        self,
        type_name: str,
        rate_hz: float,
        delay_ms: float,
        jitter_ms: float,
        *,
        by_host: bool = False,
    ) -> Stream:
        count = int(self.seconds * rate_hz)
        captures = self.random.uniform(0.0, 1.0 / rate_hz) + np.arange(count) / rate_hz
        delays = (delay_ms + self.random.gamma(2.0, jitter_ms / 2.0, count)) / 1e3
        arrivals = np.maximum.accumulate(captures + delays)
        stamps = arrivals - self.random.uniform(5e-5, 2e-4, count) if by_host else captures
        return Stream(type_name, as_ns(stamps), as_ns(arrivals))

    def records(self) -> list[TopicRecord]:
        found = []
        for name, stream in self.streams.items():
            record = TopicRecord(name, stream.type_name, stream.type_name not in UNSTAMPED)
            for message in messages(stream):
                record.add(*message)
            found.append(record)
        return found

    def findings(self) -> list[Finding]:
        return search(self.records())[1]


def mild(seed: int) -> Robot:
    """Return a sound robot of any topics: 5 to 400 Hz, jitter, held-up messages, odd lengths."""
    robot = Robot(seed, seconds=0.1)
    random = robot.random
    robot.seconds = float(random.choice([3.0, 7.0, 20.0, 45.0]))
    robot.streams = {}
    for number in range(random.integers(2, 7)):
        rate_hz = float(np.exp(random.uniform(np.log(5.0), np.log(400.0))))
        jitter_ms = min(random.uniform(0.05, 0.25) / rate_hz * 1e3, random.choice([0.3, 1.0, 3.0]))
        by_host = bool(random.random() < 0.35)
        stream = robot.stream(
            str(random.choice([IMU, CLOUD, IMAGE, ODOM])),
            rate_hz,
            random.uniform(0.5, 60.0),
            jitter_ms,
            by_host=by_host,
        )
        count = len(stream.stamps)
        held = np.where(random.random(count) < 0.005, random.exponential(5e6, count), 0.0)
        apart = 20_000 * np.arange(count)
        late = stream.arrivals + held.astype(np.int64) - apart
        held_up = np.maximum.accumulate(late) + apart - stream.arrivals
        stream.arrivals = stream.arrivals + held_up
        jitter_ns = random.normal(0.0, min(0.02 / rate_hz, 1e-3), count) * 1e9
        stream.stamps = stream.stamps + (held_up if by_host else jitter_ns.astype(np.int64))
        robot.streams[f'/topic{number}'] = stream
    return robot


def with_times_of(bag: Path, seed: int) -> Robot:
    """Return the robot with the times of a real recording, so far as this has such topics.

    The first IMU, cloud or scan, image and odometry take the place of the made ones.
    """
    robot = Robot(seed)
    kinds = {IMU: '/imu/data', CLOUD: '/lidar/points', IMAGE: '/camera/image_raw', ODOM: '/odom'}
    kinds['sensor_msgs/msg/LaserScan'] = '/lidar/points'
    with BagReader(bag) as reader:
        for topic in reader.topics.values():
            name = kinds.pop(topic.type_name, '')
            times = [
                (read_stamp_ns(each.raw), each.receive_ns)
                for each in (reader.messages([topic.name]) if name else ())
            ]
            if len(times) > 100:
                stamps, arrivals = np.array(times, np.int64).T
                moved = START_NS - reader.start_ns
                old = robot.streams[name]
                robot.streams[name] = Stream(old.type_name, stamps + moved, arrivals + moved)
    ends = [int(each.arrivals[-1]) for each in robot.streams.values()]
    for stream in robot.streams.values():
        stream.keep(stream.arrivals <= min(ends))
    return robot


def as_ns(seconds: NDArray[np.float64]) -> Ns:
    return np.asarray(START_NS + np.rint(seconds * 1e9), np.int64)


def messages(stream: Stream) -> Iterator[tuple[bytes, int, int]]:
    """Yield (bytes, arrival, publish time) of every message."""
    for i, (stamp, arrival) in enumerate(
        zip(stream.stamps.tolist(), stream.arrivals.tolist(), strict=True)
    ):
        mark = i if stream.marks is None else int(stream.marks[i])
        publish = 0 if stream.publishes is None else int(stream.publishes[i])
        yield raw(stream, stamp, stream.frames[i % len(stream.frames)], mark), arrival, publish


def raw(stream: Stream, stamp_ns: int, frame: str, mark: int) -> bytes:
    if stream.sweep_s:
        points = np.zeros(16, np.dtype([('x', '<f4'), ('time', '<f4')]))
        points['x'], points['time'] = mark, np.linspace(0.0, stream.sweep_s, 16)
        return msgs.point_cloud2_message(stamp_ns, frame, points)
    text = frame.encode() + b'\0'
    head = struct.pack('<iII', *divmod(stamp_ns, S), len(text)) + text
    return b'\0\1\0\0' + head + struct.pack('<q', mark) + bytes(16)


def during(stream: Stream, begin_s: float, end_s: float) -> NDArray[np.bool_]:
    """Return which messages arrived in a span since the start."""
    since = (stream.arrivals - START_NS) / 1e9
    return np.asarray((since >= begin_s) & (since < end_s))


# ---- the recordings of the field -------------------------------------------------------------


def milliseconds_as_nanoseconds(r: Robot) -> None:
    r.imu.stamps = r.imu.stamps // S * S + r.imu.stamps % S // MS


def microseconds_as_nanoseconds(r: Robot) -> None:
    r.imu.stamps = r.imu.stamps // S * S + r.imu.stamps % S // 1000


def milliseconds_since_1970(r: Robot) -> None:
    r.imu.stamps = r.imu.stamps // MS


def out_of_order(r: Robot) -> None:
    """300 of 6000 messages come one or two places late; none is missing."""
    end = r.imu.arrivals[5999]
    for stream in r.streams.values():
        stream.keep(stream.arrivals <= end)
    order = np.arange(6000.0)
    late = r.random.choice(np.arange(10, 5990, 4), 300, replace=False)
    order[late] += r.random.choice((1.5, 2.5), 300)
    r.imu.stamps = r.imu.stamps[np.argsort(order, kind='stable')]


def pps_lost(r: Robot) -> None:
    """The LiDAR's clock is ahead by 1 s for 8 s."""
    lidar = r.streams['/lidar/points']
    lidar.stamps = lidar.stamps + np.where(during(lidar, 15.0, 23.0), S, 0)


def host_step(size_ms: float) -> Callable[[Robot], None]:
    """The recording host's clock is set: all arrivals, and the stamps that it writes."""

    def apply(r: Robot) -> None:
        at = START_NS + 18 * S
        for name, stream in r.streams.items():
            moved = np.where(stream.arrivals >= at, round(size_ms * MS), 0)
            if name != '/lidar/points':  # the only one with a clock of its own
                stream.stamps = stream.stamps + moved
            stream.arrivals = stream.arrivals + moved
            if stream.publishes is not None:
                stream.publishes = stream.publishes + moved
            stream.resort()

    return apply


def batches_of_four(r: Robot) -> None:
    last = np.minimum(np.arange(len(r.imu.arrivals)) // 4 * 4 + 3, len(r.imu.arrivals) - 1)
    r.imu.arrivals = r.imu.arrivals[last]


def batches_with_one_stamp(r: Robot) -> None:
    batches_of_four(r)
    r.imu.stamps = r.imu.arrivals - 100_000


def two_publishers(r: Robot) -> None:
    other = r.stream(IMU, 200.0, 1.4, 0.3)
    shift = round(1.7 * MS) + r.imu.stamps[0] - other.stamps[0]
    r.imu.append(other.stamps + shift, other.arrivals + shift)


def two_publishers_of_different_rate(r: Robot) -> None:
    other = r.stream(IMU, 63.0, 1.4, 0.3)
    r.imu.append(other.stamps, other.arrivals)


def slow_publisher_beside_a_fast_one(r: Robot) -> None:
    other = r.stream(IMU, 50.0, 2.2, 0.3)
    beside = r.imu.stamps[0] + 200_000 - other.stamps[0]
    r.imu.append(other.stamps + beside, other.arrivals + beside)


def two_publishers_on_different_clocks(r: Robot) -> None:
    other = r.stream(IMU, 200.0, 1.4, 0.3)
    r.imu.append(other.stamps - 80 * MS, other.arrivals)


def tai(r: Robot) -> None:
    r.imu.stamps = r.imu.stamps + 37 * S


def restart(r: Robot) -> None:
    """The LiDAR counts from its power-up and is restarted after 20 s."""
    lidar = r.streams['/lidar/points']
    lidar.keep(~during(lidar, 20.0, 23.0))
    later = lidar.arrivals >= START_NS + 20 * S
    lidar.stamps = lidar.stamps - START_NS + np.where(later, -22 * S, 600 * S)


# ---- faults that no table lists ----------------------------------------------------------------


def seconds_as_float32(r: Robot) -> None:
    r.imu.stamps = (r.imu.stamps / 1e9).astype(np.float32).astype(np.float64).astype(np.int64) * S


def power_up_seconds_as_float32(r: Robot) -> None:
    seconds = (r.imu.stamps - START_NS + 5000 * S) / 1e9
    r.imu.stamps = np.rint(seconds.astype(np.float32).astype(np.float64) * 1e9).astype(np.int64)


def local_time_with_daylight_saving(r: Robot) -> None:
    lidar = r.streams['/lidar/points']
    lidar.stamps = lidar.stamps + np.where(during(lidar, 0.0, 25.0), 7200 * S, 3600 * S)


def relayed_in_a_circle(r: Robot) -> None:
    """Every message comes a second time, with two others between."""
    r.imu.append(r.imu.stamps, r.imu.arrivals + 12 * MS, np.arange(len(r.imu.stamps)))


def looped_bag(r: Robot) -> None:
    for stream in r.streams.values():
        at = stream.arrivals >= START_NS + 22 * S
        stream.stamps = stream.stamps - np.where(at, 22 * S, 0)


def paused_recorder(r: Robot) -> None:
    for stream in r.streams.values():
        stream.keep(~during(stream, 14.0, 24.0))


def gps_time(r: Robot) -> None:
    r.streams['/lidar/points'].stamps += 18 * S


def epoch_of_2000(r: Robot) -> None:
    r.streams['/lidar/points'].stamps -= 946_684_800 * S


def week_rollover(r: Robot) -> None:
    r.streams['/lidar/points'].stamps -= 1024 * 7 * 86400 * S


def rounded_to_10_ms(r: Robot) -> None:
    r.imu.stamps = r.imu.stamps // (10 * MS) * (10 * MS)


def camera_rounded_to_10_ms(r: Robot) -> None:
    camera = r.streams['/camera/image_raw']
    camera.stamps = camera.stamps // (10 * MS) * (10 * MS)


def frozen_for_two_seconds(r: Robot) -> None:
    still = during(r.imu, 20.0, 22.0)
    r.imu.stamps = np.where(still, r.imu.stamps[still][0], r.imu.stamps)


def simulated_beside_wall_time(r: Robot) -> None:
    """The LiDAR and the camera run on simulated time at a pace that changes."""
    for name in ('/lidar/points', '/camera/image_raw'):
        stream = r.streams[name]
        since = (stream.stamps - START_NS) / 1e9
        paced = 120.0 + 0.8 * since + 1.5 * np.sin(since / 5.0)
        stream.stamps = np.asarray(np.rint(paced * 1e9), np.int64)


def cut_together(r: Robot) -> None:
    """Two recordings of one robot, an hour apart, written one after the other."""
    for stream in r.streams.values():
        later = np.where(stream.arrivals >= START_NS + 20 * S, 3600 * S, 0)
        stream.stamps, stream.arrivals = stream.stamps + later, stream.arrivals + later


def cut_together_and_closed_up(r: Robot) -> None:
    """The same, with new receive times that go on without a gap."""
    for stream in r.streams.values():
        stream.stamps = stream.stamps + np.where(stream.arrivals >= START_NS + 20 * S, 3600 * S, 0)


def queue_from_the_middle_on(r: Robot) -> None:
    camera = r.streams['/camera/image_raw']
    camera.arrivals = camera.arrivals + np.where(during(camera, 20.0, 99.0), 120 * MS, 0)


def single_garbage_stamps(r: Robot) -> None:
    r.imu.stamps[[1000, 3000, 5000]] -= 77 * S


def tai_from_the_middle_on(r: Robot) -> None:
    lidar = r.streams['/lidar/points']
    lidar.stamps = lidar.stamps + np.where(during(lidar, 20.0, 99.0), 37 * S, 0)


def played_at_half_speed(r: Robot) -> None:
    for stream in r.streams.values():
        stream.arrivals = START_NS + 86400 * S + 2 * (stream.arrivals - START_NS)


def counter_in_microseconds(r: Robot) -> None:
    r.imu.stamps = (r.imu.stamps - START_NS + 50 * S) // 1000


def copied_topic(r: Robot) -> None:
    imu = r.imu
    r.streams['/imu/relay'] = Stream(IMU, imu.stamps, imu.arrivals + 300_000)


def publish_clock_behind(r: Robot) -> None:
    for stream in r.streams.values():
        stream.publishes = stream.arrivals - MS // 2
    r.imu.publishes = r.imu.arrivals - 3 * S


def slow_middleware(r: Robot) -> None:
    for stream in r.streams.values():
        stream.publishes = stream.arrivals - MS // 2
    camera = r.streams['/camera/image_raw']
    camera.arrivals, camera.publishes = camera.arrivals + 60 * MS, camera.arrivals


def seconds_and_rest_swapped(r: Robot) -> None:
    """Read back as ROS does: sec * 10^9 + nanosec, whatever nanosec is."""
    r.imu.stamps = r.imu.stamps % S * S + r.imu.stamps // S


def seconds_rounded(r: Robot) -> None:
    r.imu.stamps = (r.imu.stamps + S // 2) // S * S + r.imu.stamps % S


def seconds_read_too_early(r: Robot) -> None:
    """sec is still the old one for 20 ms after each whole second."""
    r.imu.stamps = (r.imu.stamps - 20 * MS) // S * S + r.imu.stamps % S


def header_filled_once(r: Robot) -> None:
    lidar = r.streams['/lidar/points']
    lidar.stamps = np.full_like(lidar.stamps, lidar.stamps[0])


def host_slewed(r: Robot) -> None:
    """The host's clock is slewed by 500 ppm from 10 to 28 s; the odometry is stamped by it."""
    for name, stream in r.streams.items():
        since = np.clip(stream.arrivals - START_NS - 10 * S, 0, 18 * S) * 500 // 10**6
        stream.arrivals = stream.arrivals + since
        if name == '/odom':
            stream.stamps = stream.stamps + since


def polled_by_usb(r: Robot) -> None:
    """Fetched every 16 ms and stamped then, one by one."""
    poll = 16 * MS
    apart = r.random.integers(0, 300_000, len(r.imu.arrivals))
    r.imu.arrivals = np.sort(-(-r.imu.arrivals // poll) * poll + apart)
    r.imu.stamps = r.imu.arrivals - 100_000


def second_robot(r: Robot) -> None:
    """A second robot on the same network, whose clock is 430 ms ahead."""
    other = Robot(1000 + r.random.integers(1000), r.seconds)
    for name, stream in other.streams.items():
        stream.stamps = stream.stamps + 430 * MS
        r.streams[f'/other{name}'] = stream


def one_receive_time(r: Robot) -> None:
    for stream in r.streams.values():
        stream.arrivals = np.full_like(stream.arrivals, START_NS)


def camera_repeats_stamps(r: Robot) -> None:
    """Every 30th frame has the stamp of the one before; camera_info has the images' stamps."""
    camera = r.streams['/camera/image_raw']
    camera.stamps[30::30] = camera.stamps[29:-1:30]
    same = np.zeros(len(camera.stamps), np.int64)
    r.streams['/camera/camera_info'] = Stream(INFO, camera.stamps, camera.arrivals, marks=same)


def lidar_dies(r: Robot) -> None:
    lidar = r.streams['/lidar/points']
    lidar.keep(lidar.arrivals < START_NS + 21 * S)


def camera_slows_down(r: Robot) -> None:
    """From 27 s on it exposes longer than a period, and gives every second frame."""
    camera = r.streams['/camera/image_raw']
    places = np.arange(len(camera.stamps))
    camera.keep((camera.arrivals < START_NS + 27 * S) | (places % 2 == 0))


def stamps_counted_up(r: Robot) -> None:
    """The driver adds 5 ms a sample; the IMU runs at 200.9 Hz."""
    r.imu.stamps = r.imu.stamps[0] + np.arange(len(r.imu.stamps)) * 5 * MS
    r.imu.arrivals = START_NS + (r.imu.arrivals - START_NS) * 2000 // 2009


def recorded_in_simulated_time(r: Robot) -> None:
    tick = 10 * MS
    for stream in r.streams.values():
        stream.arrivals = stream.arrivals // tick * tick
    times = START_NS + np.arange(int(r.seconds * 100)) * tick
    r.streams['/clock'] = Stream('rosgraph_msgs/msg/Clock', times, times)


def recorded_twice(r: Robot) -> None:
    for stream in r.streams.values():
        stream.append(stream.stamps, stream.arrivals + 200_000, np.arange(len(stream.stamps)))


def camera_info_once_a_second(r: Robot) -> None:
    camera = r.streams['/camera/image_raw']
    stamps = camera.arrivals[::30] + 3 * MS
    r.streams['/camera/camera_info'] = Stream(INFO, stamps, stamps + 100_000)


def looped_with_seconds_rounded(r: Robot) -> None:
    looped_bag(r)
    seconds_rounded(r)
