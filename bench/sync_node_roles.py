"""The processes around the sync node in its benchmark: publisher, sink, and the usual way.

    ./rig python -m bench.sync_node_roles ROLE SECONDS
    ROLE: publish, flood, sink, relay, thin_relay, thin_relay_default, usual or usual_apart

Each prints one JSON line at its end.
"""

from __future__ import annotations

import itertools
import json
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import rclpy
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy

from rig_common import msgs
from rig_common.cdr import Template, read_stamp_ns
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, ros_context, stop_on_signals
from rig_common.ros.types import message_class
from sync_engine.ros.inputs import BIG_RATE_HZ, BIG_TYPES, SMALL_RATE_HZ
from sync_engine.ros.publishers import output_qos

CAMERAS = [f'camera_{k}/image_raw' for k in range(3)]
CLOUDS = [f'lidar_{k}/points' for k in range(2)]
IMU = 'imu/data_raw'
CAMERA_HZ, CLOUD_HZ, IMU_HZ = 30.0, 10.0, 400.0
LATENCY_NS = {
    **dict.fromkeys(CAMERAS, 20_000_000),
    **dict.fromkeys(CLOUDS, 15_000_000),
    IMU: 1_000_000,
}
POINT = np.dtype(
    [
        ('x', '<f4'),
        ('y', '<f4'),
        ('z', '<f4'),
        ('intensity', '<f4'),
        ('time', '<f4'),
        ('ring', '<u2'),
    ]
)
NUM_POINTS = 16 * 1024
FLOOD = [f'small_{k}' for k in range(10)]
FLOOD_REFERENCE, FLOOD_REFERENCE_HZ = 'reference', 100.0
SLOP_S = 0.1
QUEUES = {'usual': 100, 'usual_apart': 10}
"""Queue of the synchronizer: with the IMU in it, it must hold a quarter of a second of it."""


def templates() -> dict[str, tuple[Template, float, dict[str, Any]]]:
    """Return topic -> (template, rate in Hz, blocks) of the benchmark's streams."""
    pixels = np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
    points = np.zeros(NUM_POINTS, POINT)
    points['time'] = np.linspace(0, 0.1, NUM_POINTS)
    streams: dict[str, tuple[Template, float, dict[str, Any]]] = {}
    for topic in CAMERAS:
        streams[topic] = (msgs.image('camera', 480, 640, 'rgb8'), CAMERA_HZ, {'data': pixels})
    for topic in CLOUDS:
        streams[topic] = (
            msgs.point_cloud2('lidar', POINT, NUM_POINTS),
            CLOUD_HZ,
            {'points': points},
        )
    streams[IMU] = (msgs.imu('imu'), IMU_HZ, {'linear_acceleration': [0.0, 0.0, 9.8]})
    return streams


def publish(seconds: float) -> dict[str, Any]:
    """Publish the streams for `seconds`, each on its own schedule."""
    node = rclpy.create_node('bench_publisher')
    streams = templates()
    publishers = {
        topic: node.create_publisher(
            message_class(template.type_name), topic, qos.sensor_out(rate_hz)
        )
        for topic, (template, rate_hz, _) in streams.items()
    }
    _await(lambda: all(p.get_subscription_count() for p in publishers.values()))
    due = {topic: index * 0.0007 for index, topic in enumerate(streams)}
    sent: Counter[str] = Counter()
    began, began_ns = time.perf_counter(), time.time_ns()
    while min(due.values()) < seconds:
        topic = min(due, key=due.__getitem__)
        template, rate_hz, blocks = streams[topic]
        wait_s = due[topic] - (time.perf_counter() - began)
        if wait_s > 0.0:
            time.sleep(wait_s)
        # a device stamps when it captures, however late this process comes round to sending
        stamp_ns = began_ns + round(due[topic] * 1e9) - LATENCY_NS[topic]
        publishers[topic].publish(template.fill(stamp_ns, **blocks))
        sent[topic] += 1
        due[topic] += 1.0 / rate_hz
    behind_s = time.perf_counter() - began - seconds
    node.destroy_node()
    return {'sent': dict(sent), 'behind_s': behind_s, 'began_ns': began_ns}


def flood(seconds: float) -> dict[str, Any]:
    """Publish small messages in bursts as fast as the subscriber takes them."""
    node = rclpy.create_node('bench_flood')
    small = message_class('sensor_msgs/msg/Imu')
    deep = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
    publishers = [node.create_publisher(small, topic, deep) for topic in FLOOD]
    reference = node.create_publisher(small, FLOOD_REFERENCE, deep)
    _await(lambda: all(p.get_subscription_count() for p in (*publishers, reference)))
    template = msgs.imu('imu')
    sent = 0
    began = time.perf_counter()
    ticks = int(seconds * FLOOD_REFERENCE_HZ)
    for tick in range(ticks):
        reference.publish(template.fill(time.time_ns() - 1_000_000))
        for burst in range(300):
            publishers[burst % len(publishers)].publish(template.fill(time.time_ns() - 1_000_000))
        sent += 301
        wait_s = (tick + 1) / FLOOD_REFERENCE_HZ - (time.perf_counter() - began)
        if wait_s > 0.0:
            time.sleep(wait_s)
    took_s = time.perf_counter() - began
    node.destroy_node()
    return {'sent': sent, 'rate_hz': sent / took_s}


def sink(seconds: float) -> dict[str, Any]:
    """Note the stamps of what comes out under `synced/`, until a signal or `seconds` passed."""
    stamps_ns: dict[str, list[int]] = {topic: [] for topic in templates()}
    node = rclpy.create_node('bench_sink')

    def note(topic: str, raw: bytes) -> None:
        stamps_ns[topic].append(read_stamp_ns(raw))

    for topic, (template, _, _) in templates().items():
        node.create_subscription(
            message_class(template.type_name),
            f'synced/{topic}',
            partial(note, topic),
            qos.sensor_in(500.0, reliable=True),
            raw=True,
        )
    _spin(node, seconds)
    return {
        'heard': {topic: len(found) for topic, found in stamps_ns.items()},
        'stamps_ns': stamps_ns,
    }


def relay(seconds: float) -> dict[str, Any]:
    """Pass the streams on as they are, as bytes: the least a node between two others can do."""
    node = rclpy.create_node('bench_relay')
    for topic, (template, rate_hz, _) in templates().items():
        kind = message_class(template.type_name)
        publisher = node.create_publisher(kind, f'synced/{topic}', qos.sensor_out())
        node.create_subscription(
            kind, topic, publisher.publish, qos.sensor_in(rate_hz, reliable=True), raw=True
        )
    _spin(node, seconds)
    return {}


class ThinRelay(Node):
    """What the sync node does to the network: the same bytes in, as many of them out."""

    def __init__(self) -> None:
        super().__init__('bench_thin_relay')
        self._took_s: dict[str, list[float]] = {}
        for topic, (template, _, _) in templates().items():
            kind = message_class(template.type_name)
            rate_hz = BIG_RATE_HZ if template.type_name in BIG_TYPES else SMALL_RATE_HZ
            out = self.create_publisher(kind, f'synced/{topic}', output_qos(topic == IMU))
            number = round(CAMERA_HZ / CLOUD_HZ) if topic in CAMERAS else 1
            self._took_s[topic] = []
            self.create_subscription(
                kind,
                topic,
                _every(number, out.publish, self._took_s[topic]),
                qos.sensor_in(rate_hz, reliable=True),
                raw=True,
            )

    def set_ms(self) -> list[float]:
        """Return how long publishing took in all for each set as the sync node would send it."""
        per_set = {
            topic: round(IMU_HZ / CLOUD_HZ) if topic == IMU else 1 for topic in self._took_s
        }
        sets = min(len(took) // per_set[topic] for topic, took in self._took_s.items())
        return [
            1e3
            * sum(
                sum(took[k * per_set[topic] : (k + 1) * per_set[topic]])
                for topic, took in self._took_s.items()
            )
            for k in range(sets)
        ]


def _every(
    number: int, call: Callable[[bytes], None], took_s: list[float]
) -> Callable[[bytes], None]:
    """Return a callback that passes on every `number`th message and notes how long that took."""
    seen = itertools.count()

    def on_message(raw: bytes) -> None:
        if next(seen) % number == 0:
            began_s = time.perf_counter()
            call(raw)
            took_s.append(time.perf_counter() - began_s)

    return on_message


def thin_relay(seconds: float) -> dict[str, Any]:
    """Pass on as many bytes as the sync node does, on the executor that it runs on."""
    node = ThinRelay()
    _spin(node, seconds)
    return {'set_ms': node.set_ms()}


def thin_relay_default(seconds: float) -> dict[str, Any]:
    """Do the same on rclpy's default executor."""
    _spin_default(ThinRelay(), seconds)
    return {}


def usual(seconds: float, imu_apart: bool = False) -> dict[str, Any]:
    """Sync and republish the way it is usually done: typed, with the default executor."""
    node = Usual(imu_apart)
    _spin_default(node, seconds)
    return {'sets': node.sets, 'imu': node.imu, 'way': node.way}


def usual_apart(seconds: float) -> dict[str, Any]:
    """Do the same with less: the IMU is not in the sets, it is only passed on."""
    return usual(seconds, imu_apart=True)


class Usual(Node):
    """Typed subscriptions, ApproximateTimeSynchronizer where it is installed, typed publishing."""

    def __init__(self, imu_apart: bool) -> None:
        super().__init__('usual_way')
        self.sets = self.imu = 0
        kinds = {
            **dict.fromkeys(CAMERAS, 'Image'),
            **dict.fromkeys(CLOUDS, 'PointCloud2'),
            IMU: 'Imu',
        }
        classes = {
            topic: message_class(f'sensor_msgs/msg/{kind}') for topic, kind in kinds.items()
        }
        self._out = {
            topic: self.create_publisher(kind, f'synced/{topic}', qos.sensor_out())
            for topic, kind in classes.items()
        }
        if imu_apart:
            self.create_subscription(
                classes.pop(IMU), IMU, self._on_imu, qos.sensor_in(IMU_HZ, reliable=True)
            )
        self._topics = list(classes)
        self._reference = self._topics.index(CLOUDS[0])
        try:
            import message_filters
        except ImportError:
            self.way = 'latest value (message_filters is not installed)'
            self._latest: dict[int, Any] = {}
            for index, (topic, kind) in enumerate(classes.items()):
                self.create_subscription(
                    kind, topic, partial(self._on_any, index), qos.sensor_in(IMU_HZ, reliable=True)
                )
            return
        self.way = 'message_filters.ApproximateTimeSynchronizer'
        inputs = [
            message_filters.Subscriber(
                self, kind, topic, qos_profile=qos.sensor_in(IMU_HZ, reliable=True)
            )
            for topic, kind in classes.items()
        ]
        queue = QUEUES['usual_apart' if imu_apart else 'usual']
        self._sync = message_filters.ApproximateTimeSynchronizer(inputs, queue, SLOP_S)
        self._sync.registerCallback(self._on_set)

    def _on_any(self, index: int, message: Any) -> None:
        self._latest[index] = message
        if index == self._reference and len(self._latest) == len(self._topics):
            self._on_set(*(self._latest[k] for k in range(len(self._topics))))

    def _on_set(self, *messages: Any) -> None:
        stamp = messages[self._reference].header.stamp
        for topic, message in zip(self._topics, messages, strict=True):
            message.header.stamp = stamp
            self._out[topic].publish(message)
        self.sets += 1

    def _on_imu(self, message: Any) -> None:
        self._out[IMU].publish(message)
        self.imu += 1


def _await(condition: Callable[[], bool], timeout_s: float = 60.0) -> None:
    """Wait until all are connected, then say so."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError('the other processes of the benchmark did not come')
        time.sleep(0.05)
    time.sleep(1.0)  # inputs that turn from reliable to best effort do so now
    print('begin', flush=True)


def _spin(node: Node, seconds: float) -> None:
    spinner = Spinner()
    spinner.add(node)
    end = time.monotonic() + seconds
    with stop_on_signals(spinner.stop):
        while not spinner.stopped and time.monotonic() < end:
            spinner.turn()
    spinner.close()


def _spin_default(node: Node, seconds: float) -> None:
    from rclpy.executors import SingleThreadedExecutor

    executor = SingleThreadedExecutor()
    executor.add_node(node)
    stopped: list[bool] = []
    with stop_on_signals(lambda: stopped.append(True)):
        end = time.monotonic() + seconds
        while not stopped and time.monotonic() < end:
            executor.spin_once(timeout_sec=0.1)


def main() -> int:
    """Play one role."""
    role, seconds = sys.argv[1], float(sys.argv[2])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ros_context([]):
        print(json.dumps(globals()[role](seconds)), flush=True)
    return 0


if __name__ == '__main__':
    sys.exit(main())
