"""`rig degrade` and `rig correct` against the plainest thing that does as much with the bytes.

    ./rig python -m bench.degrade [--quick] [--json FILE]

A recording into a new one against a copy with rosbags' own reader and writer, in MCAP: a robot
with a colour and a depth camera, a LiDAR of 64 beams and an IMU (61 MB/s), one with a camera at
15 Hz and 16 beams (18 MB/s), and an IMU alone. Rounds take turns; CPU time of this process, which
keeps the memory that it frees, as `rig degrade` does.
The live node against a node that only passes the same bytes on, both with the mix of
`bench.sync_node`, as processes over DDS; CPU of the whole process, threads of DDS included.
"""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bench.command import figures_of, run_as_program
from bench.figures import Figure
from rig_common import msgs
from rig_common.memory import keep_freed_memory
from sensor_rig.bags.sidecar import sidecar_text
from sensor_rig.bags.writer import BagWriter
from sensor_rig.cli.support.progress import note
from sensor_rig.correct.recording import correct_recording
from sensor_rig.degrade.recording import degrade_recording
from sensor_rig.rigfile import RigConfig, rig_from_parameters

TARGETS = {'robot': 0.7, 'small': 0.5, 'live': 1.3}
SECONDS, QUICK_S = 10.0, 4.0
LIVE_S, LIVE_QUICK_S = 20.0, 5.0
ROUNDS = 5
START_NS = 1_700_000_000_000_000_000
TIMING: dict[str, Any] = {
    'delay_range_s': [0.02, 0.03],
    'jitter_s': 0.01,
    'clock': {'offset_s': -0.085, 'drift_ppm': 20.0, 'stamp_jitter_s': 0.0002},
    'loss': {'probability': 0.01, 'burst_mean': 2.0},
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


def streams(topics: dict[str, str]) -> dict[str, Any]:
    """Return a stream with everything wrong for each name -> topic."""
    return {name: {'topics': [topic], **TIMING} for name, topic in topics.items()}


def robot() -> dict[str, tuple[Any, float, dict[str, Any]]]:
    """Return topic -> (template, rate in Hz, blocks) of a colour and depth camera, 64 beams."""
    made = mix()
    colour, _, blocks = made['/camera/image_raw']
    depth = np.full((480, 640), 1200, np.uint16)
    points = np.zeros(64 * 1024, POINT)
    return {
        **made,
        '/camera/image_raw': (colour, 30.0, blocks),
        '/depth/image_raw': (msgs.image('camera', 480, 640, '16UC1'), 30.0, {'data': depth}),
        '/lidar/points': (
            msgs.point_cloud2('lidar', POINT, len(points)),
            10.0,
            {'points': points},
        ),
    }


def mix() -> dict[str, tuple[Any, float, dict[str, Any]]]:
    """Return topic -> (template, rate in Hz, blocks) of a robot's streams."""
    pixels = np.random.default_rng(1).integers(0, 255, (480, 640, 3), np.uint8)
    points = np.zeros(16 * 1024, POINT)
    points['time'] = np.linspace(0, 0.1, len(points))
    return {
        '/camera/image_raw': (msgs.image('camera', 480, 640, 'rgb8'), 15.0, {'data': pixels}),
        '/lidar/points': (
            msgs.point_cloud2('lidar', POINT, len(points)),
            10.0,
            {'points': points},
        ),
        **small(200.0),
    }


def small(rate_hz: float = 1000.0) -> dict[str, tuple[Any, float, dict[str, Any]]]:
    """Return an IMU alone."""
    return {'/imu/data': (msgs.imu('imu'), rate_hz, {'linear_acceleration': [0.0, 0.0, 9.8]})}


def record(
    folder: Path, made: dict[str, tuple[Any, float, dict[str, Any]]], seconds: float
) -> None:
    """Write a recording of these streams."""
    due = [
        (round(k * 1e9 / rate_hz), topic)
        for topic, (_, rate_hz, _) in made.items()
        for k in range(int(seconds * rate_hz))
    ]
    with BagWriter(folder) as writer:
        for topic, (template, _, _) in made.items():
            writer.add_topic(topic, template.type_name)
        for time_ns, topic in sorted(due):
            template, _, blocks = made[topic]
            writer.write(
                topic, START_NS + time_ns + 1_000_000, template.fill(START_NS + time_ns, **blocks)
            )


def plain_copy(source: Path, target: Path) -> None:
    """Copy with rosbags alone, message by message."""
    from rosbags.highlevel import AnyReader
    from rosbags.rosbag2 import StoragePlugin, Writer

    with (
        AnyReader([source]) as reader,
        Writer(target, version=8, storage_plugin=StoragePlugin.MCAP) as writer,
    ):
        connections = {
            each.id: writer.add_connection(each.topic, each.msgtype, typestore=reader.typestore)
            for each in reader.connections
        }
        for connection, time_ns, raw in reader.messages():
            writer.write(connections[connection.id], time_ns, raw)


def cpu_s(work: Callable[[Path, Path], object], source: Path, target: Path) -> float:
    """Return the CPU seconds of one run."""
    shutil.rmtree(target, ignore_errors=True)
    began = time.process_time()
    work(source, target)
    return time.process_time() - began


def throughput(source: Path, rig: RigConfig, rounds: int) -> dict[str, Any]:
    """Return the throughput of degrade over that of a plain copy, in rounds by turns."""
    target, sidecar = source.with_name('out'), source.with_name('fix.yaml')
    offset = {'clock': {'offset_s': 0.02, 'drift_ppm': 20.0}}
    sidecar.write_text(sidecar_text(dict.fromkeys(_topics(rig), offset), 'a benchmark'))
    ratios, corrected, costs = [], [], []
    cpu_s(plain_copy, source, target)
    for _ in range(rounds):
        copy_s = cpu_s(plain_copy, source, target)
        degrade_s = cpu_s(lambda a, b: degrade_recording(a, b, rig), source, target)
        correct_s = cpu_s(lambda a, b: correct_recording(a, b, sidecar=sidecar), source, target)
        ratios.append(copy_s / degrade_s)
        corrected.append(copy_s / correct_s)
        costs.append((copy_s, degrade_s, correct_s))
    return {
        'ratio': statistics.median(ratios),
        'correct': statistics.median(corrected),
        'ratios': ratios,
        'cpu_s': costs,
    }


def _topics(rig: RigConfig) -> list[str]:
    return [topic for stream in rig.streams.values() for topic in stream.topics]


def bags(quick: bool) -> dict[str, Any]:
    """Return the throughput figures of both recordings."""
    seconds, found = QUICK_S if quick else SECONDS, {}
    keep_freed_memory()
    for name, made in (('robot', robot()), ('mix', mix()), ('small', small())):
        topics = {topic.split('/')[1]: topic for topic in made}
        rig = rig_from_parameters({'seed': 1, 'streams': streams(topics)})
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / 'in'
            record(source, made, seconds)
            found[name] = throughput(source, rig, 3 if quick else ROUNDS)
            found[name]['bytes'] = sum(each.stat().st_size for each in source.iterdir())
    return found


def live(quick: bool) -> dict[str, Any]:
    """Return CPU shares of the degrade node and of a relay of the same bytes."""
    from bench.sync_node import ROLES, measure
    from bench.sync_node_roles import CAMERAS, CLOUDS, IMU
    from sensor_rig.running.middleware import prepare_middleware

    prepare_middleware(note)
    seconds = LIVE_QUICK_S if quick else LIVE_S
    topics = {topic.split('/')[0]: '/' + topic for topic in (*CAMERAS, *CLOUDS, IMU)}
    with tempfile.TemporaryDirectory() as folder:
        rig = Path(folder) / 'faults.yaml'
        rig.write_text(
            json.dumps({'/**': {'ros__parameters': {'seed': 1, 'streams': streams(topics)}}})
        )
        node = [sys.executable, '-m', 'sensor_rig.nodes.degrade', '--rig', str(rig)]
        remap = [
            arg for topic in topics.values() for arg in ('-r', f'degraded{topic}:=synced{topic}')
        ]
        shares: dict[str, list[float]] = {'relay': [], 'degrade': []}
        heard: dict[str, Any] = {}
        for _ in range(1 if quick else 2):
            for name, subject in (
                ('relay', [*ROLES, 'relay', '600']),
                ('degrade', [*node, '--ros-args', *remap]),
            ):
                run = measure(subject, 'publish', seconds)
                shares[name].append(run['cpu_s'] / run['seconds'])
                heard[name] = {**run['publisher'], 'heard': run['sink'].get('heard', {})}
    return {
        'ratio': min(shares['degrade']) / min(shares['relay']),
        'shares': shares,
        'heard': heard,
    }


def run(quick: bool = False) -> dict[str, Any]:
    """Run both parts."""
    return {'bags': bags(quick), 'live': live(quick), 'targets': TARGETS}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    kept, targets = result['bags'], result['targets']
    return [
        Figure(
            'recording to recording, throughput over a rosbags copy',
            kept['robot']['ratio'],
            'x',
            targets['robot'],
            note='colour, depth, 64 beams and an IMU: 61 MB/s',
        ),
        Figure(
            'the same with a camera at 15 Hz and 16 beams',
            kept['mix']['ratio'],
            'x',
            note='18 MB/s',
        ),
        Figure(
            'the same with small messages alone',
            kept['small']['ratio'],
            'x',
            targets['small'],
            note='an IMU at 1 kHz; two small messages are written for each',
        ),
        Figure(
            'rig correct with a sidecar, throughput over a rosbags copy',
            kept['robot']['correct'],
            'x',
            targets['robot'],
            note='61 MB/s; the pass that writes, without learning the clocks',
        ),
        Figure(
            'the same with small messages alone',
            kept['small']['correct'],
            'x',
            targets['small'],
        ),
        Figure(
            'live node, CPU over a relay',
            result['live']['ratio'],
            'x',
            targets['live'],
            'lower',
            note='3 cameras, 2 clouds, an IMU',
        ),
    ]


if __name__ == '__main__':
    run_as_program(run, figures_of(headline), quick='a few seconds of each part')
