"""The sync node with real processes over DDS: latency, CPU against the usual way, throughput.

    ./rig python -m bench.sync_node [--quick] [--json FILE]

Three 640x480 cameras at 30 Hz, two clouds of 16x1024 points at 10 Hz, an IMU at 400 Hz. The same
publisher runs against the sync node and, in turns, against a raw relay on the same executor that
receives the same topics and publishes as many of the same bytes under the same QoS: the least that
a node in Python can do. Beside it stand that relay on rclpy's default executor, and typed
subscriptions with message_filters' ApproximateTimeSynchronizer over all six (or, without that
package, the latest value of each topic, which costs less). CPU is what the process used, all its
threads, those of DDS included, while the streams ran; messages at the sink are counted by stamps,
without the first and the last second.

The latency that the node adds is from the callback of a bundle's last member until the bundle's
last message is handed to DDS. Most of it is publishing, which the relay has to do as well, spread
over the set's members: what publishing one set takes there stands beside it.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bench.command import Result, run_as_program
from bench.figures import Figure
from bench.sync_node_roles import CAMERAS, CLOUDS, FLOOD, FLOOD_REFERENCE, IMU
from sensor_rig.cli.support.progress import note
from sensor_rig.running.middleware import prepare_middleware

ROLES = [sys.executable, '-m', 'bench.sync_node_roles']
SYNC = [sys.executable, '-m', 'sensor_rig.nodes.sync', '--rig']
TURN_S, TURNS, USUAL_S, FLOOD_S = 10.0, 10, 20.0, 10.0
QUICK_S, QUICK_TURNS = 4.0, 2
EDGE_S = 1.0
"""At both ends of a run, left out of the count at the sink: sets that are not complete."""
SETTLE_S = 2.5
"""After the publisher's end, until the last diagnostics are out."""
TARGETS = {
    'cpu_over_relay': 1.1,
    'latency_p99_over_relay_ms': 3.0,
    'fewer_at_sink': 0.002,
    'messages_per_s': 20_000.0,
}
FATES = (
    'bundled',
    'collected',
    'consumed',
    'unmatched',
    'expired',
    'overflow',
    'duplicate',
    'late',
    'invalid',
    'flushed',
    'buffered',
)


def rig_text(inputs: dict[str, str], reference: str, required: list[str], imu: str = '') -> str:
    """Return a rig file for a robot with these inputs (name -> flow map)."""
    lines = ['/**:', '  ros__parameters:', '    sync:', '      inputs:']
    lines += [f'        {name}: {{{given}}}' for name, given in inputs.items()]
    lines += [
        f'      reference_sensor_id: {reference}',
        f'      required_sensors: [{", ".join(required)}]',
    ]
    if imu:
        lines.append(f'      imu_sensor_id: {imu}')
    return '\n'.join(lines) + '\n'


def camera_rig() -> str:
    """Return the rig of the cameras, clouds and the IMU."""
    inputs = {
        f'camera_{k}': f'topic: {topic}, type: sensor_msgs/msg/Image, latency_s: 0.02'
        for k, topic in enumerate(CAMERAS)
    }
    inputs |= {
        f'lidar_{k}': f'topic: {topic}, type: sensor_msgs/msg/PointCloud2, latency_s: 0.015'
        for k, topic in enumerate(CLOUDS)
    }
    required = list(inputs)
    inputs['imu'] = (
        f'topic: {IMU}, type: sensor_msgs/msg/Imu, latency_s: 0.001, '
        f'latency_sigma_s: 0.001, collect: true'
    )
    return rig_text(inputs, 'lidar_0', required, 'imu')


def flood_rig() -> str:
    """Return the rig of the small messages."""
    given = 'type: sensor_msgs/msg/Imu, latency_s: 0.001'
    inputs = {name: f'topic: {name}, {given}' for name in (FLOOD_REFERENCE, *FLOOD)}
    return rig_text(inputs, FLOOD_REFERENCE, [FLOOD_REFERENCE])


class Diagnostics:
    """The latest /diagnostics of the sync node, heard by this process."""

    def __init__(self) -> None:
        import rclpy
        from diagnostic_msgs.msg import DiagnosticArray

        from rig_common.ros import qos
        from rig_common.ros.executor import Spinner

        self._node = rclpy.create_node('bench_diagnostics')
        self.engine: dict[str, str] = {}
        self.inputs: dict[str, dict[str, str]] = {}
        self._node.create_subscription(
            DiagnosticArray, '/diagnostics', self._on, qos.internal(), raw=True
        )
        self._spinner = Spinner()
        self._spinner.add(self._node)

    def _on(self, raw: bytes) -> None:
        from rig_common import msgs

        for status in msgs.read_diagnostic_array(raw)[1]:
            name = status.name.removeprefix('sync: ')
            if name == 'engine':
                self.engine = dict(status.values)
            elif 'received' in status.values:
                self.inputs[name] = dict(status.values)

    def listen(self, seconds: float) -> None:
        """Hear what comes for `seconds`."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._spinner.turn(min(left, 0.1))

    def unaccounted(self) -> int:
        """Return the messages that the ledger cannot explain."""
        return sum(
            abs(int(values['received']) - sum(int(values[fate]) for fate in FATES))
            for values in self.inputs.values()
        )

    def close(self) -> None:
        """Let go of the node."""
        self._spinner.close()
        self._node.destroy_node()


def measure(
    subject: list[str], role: str, seconds: float, diagnostics: Diagnostics | None = None
) -> dict[str, Any]:
    """Run `subject` while the publisher plays `role`; return what all of them said."""
    running = [subprocess.Popen(subject, stdout=subprocess.PIPE, text=True)]
    try:
        if role == 'publish':
            running.append(
                subprocess.Popen([*ROLES, 'sink', '600'], stdout=subprocess.PIPE, text=True)
            )
        publisher = subprocess.Popen(
            [*ROLES, role, str(seconds)], stdout=subprocess.PIPE, text=True
        )
        running.append(publisher)
        process = psutil.Process(running[0].pid)
        assert publisher.stdout is not None
        publisher.stdout.readline()  # it says so when everyone is connected
        before = _cpu(process)
        while publisher.poll() is None:
            _pause(0.25, diagnostics)
        _pause(SETTLE_S, diagnostics)
        total, main = (after - b for after, b in zip(_cpu(process), before, strict=True))
        result = {
            'cpu_s': total,
            'main_thread_s': main,
            'seconds': seconds,
            'publisher': _said(publisher),
        }
    finally:
        for child in running:
            if child.poll() is None:
                child.send_signal(signal.SIGINT)
        texts = [child.communicate(timeout=20)[0] for child in running]
    for name, text in zip(('subject', 'sink'), texts, strict=False):
        result[name] = _json(text)
    return result


def _pause(seconds: float, diagnostics: Diagnostics | None) -> None:
    if diagnostics is None:
        time.sleep(seconds)
    else:
        diagnostics.listen(seconds)


def _cpu(process: psutil.Process) -> tuple[float, float]:
    """Return CPU seconds of the whole process and of its main thread."""
    times = process.cpu_times()
    main = next(t for t in process.threads() if t.id == process.pid)
    return times.user + times.system, main.user_time + main.system_time


def _said(child: subprocess.Popen[str]) -> Any:
    assert child.stdout is not None
    return _json(child.stdout.read())


def _json(text: str) -> Any:
    line = next((line for line in (text or '').splitlines() if line.startswith('{')), '{}')
    return json.loads(line)


def run(quick: bool = False) -> dict[str, Any]:
    """Run all three parts; figures and targets by name."""
    prepare_middleware(note)
    from rig_common.ros.executor import ros_context

    with tempfile.TemporaryDirectory() as folder, ros_context([]):
        rigs = {'cameras': camera_rig(), 'flood': flood_rig()}
        files = {name: Path(folder) / f'{name}.yaml' for name in rigs}
        for name, text in rigs.items():
            files[name].write_text(text)
        figures = _against_relay([*SYNC, str(files['cameras'])], quick)
        for way in ('thin_relay_default', 'usual', 'usual_apart')[: 2 if quick else 3]:
            other = measure([*ROLES, way, '600'], 'publish', QUICK_S if quick else USUAL_S)
            figures[f'{way}_cpu_share'] = share = other['cpu_s'] / other['seconds']
            figures[f'cpu_over_{way}'] = figures['cpu_share'] / share
            figures[f'{way}_with'] = other['subject'].get('way', '')
        heard = Diagnostics()
        small = measure(
            [*SYNC, str(files['flood'])], 'flood', QUICK_S if quick else FLOOD_S, heard
        )
        figures |= _flood_figures(small, heard)
        heard.close()
    return {'figures': figures, 'targets': TARGETS}


def _against_relay(sync: list[str], quick: bool) -> dict[str, Any]:
    """Run the sync node and the relay in turns; return the figures of both."""
    seconds, turns = (QUICK_S, QUICK_TURNS) if quick else (TURN_S, TURNS)
    shares: dict[str, list[float]] = {'sync': [], 'relay': []}
    counts = {'sync': 0, 'relay': 0}
    unaccounted, latencies, publishing = 0, [], []
    for _ in range(turns):
        heard = Diagnostics()
        ours = measure(sync, 'publish', seconds, heard)
        unaccounted += heard.unaccounted()
        latencies.append(
            [float(heard.engine[f'latency {which} (ms)']) for which in ('p50', 'p99', 'max')]
        )
        heard.close()
        relay = measure([*ROLES, 'thin_relay', '600'], 'publish', seconds)
        publishing.append(np.quantile(relay['subject']['set_ms'], [0.5, 0.99]))
        for name, found in (('sync', ours), ('relay', relay)):
            shares[name].append(found['cpu_s'] / seconds)
            counts[name] += _at_sink(found)
    ratios = np.array(shares['sync']) / np.array(shares['relay'])
    p50, p99, most = np.array(latencies).T
    relay_p50, relay_p99 = np.array(publishing).T
    return {
        'turns': turns,
        'seconds': seconds,
        'unaccounted': unaccounted,
        'cpu_share': float(np.median(shares['sync'])),
        'relay_cpu_share': float(np.median(shares['relay'])),
        'cpu_over_relay': float(np.median(ratios)),
        'cpu_over_relay_least': float(ratios.min()),
        'cpu_over_relay_most': float(ratios.max()),
        'at_sink': counts['sync'],
        'relay_at_sink': counts['relay'],
        'fewer_at_sink': 1.0 - counts['sync'] / counts['relay'],
        'latency_p50_ms': float(np.median(p50)),
        'latency_p99_ms': float(np.median(p99)),
        'latency_max_ms': float(most.max()),
        'relay_publishing_p50_ms': float(np.median(relay_p50)),
        'relay_publishing_p99_ms': float(np.median(relay_p99)),
        'latency_p99_over_relay_ms': float(np.median(p99 - relay_p99)),
    }


def _at_sink(found: dict[str, Any]) -> int:
    """Return the messages at the sink that were captured in the middle of the run."""
    began_ns = found['publisher']['began_ns']
    first_ns = began_ns + EDGE_S * 1e9
    last_ns = began_ns + (found['seconds'] - EDGE_S) * 1e9
    return sum(
        first_ns <= stamp_ns < last_ns
        for stamps_ns in found['sink']['stamps_ns'].values()
        for stamp_ns in stamps_ns
    )


def _flood_figures(small: dict[str, Any], heard: Diagnostics) -> dict[str, Any]:
    received = sum(int(values['received']) for values in heard.inputs.values())
    return {
        'small_sent': small['publisher'].get('sent', 0),
        'small_received': received,
        'small_unaccounted': heard.unaccounted(),
        'messages_per_s': received / small['main_thread_s'],
        'messages_per_cpu_s': received / small['cpu_s'],
    }


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    figures, targets = result['figures'], result['targets']
    spread = (figures['cpu_over_relay_least'], figures['cpu_over_relay_most'])
    return [
        Figure(
            'CPU over a raw relay of the same bytes, same executor',
            figures['cpu_over_relay'],
            'x',
            targets['cpu_over_relay'],
            'lower',
            spread=spread,
        ),
        Figure(
            'CPU over that relay on the default executor',
            figures['cpu_over_thin_relay_default'],
            'x',
            better='lower',
        ),
        Figure(
            'CPU over typed republishing',
            figures['cpu_over_usual'],
            'x',
            better='lower',
            note=figures['usual_with'],
        ),
        Figure(
            'last member received to bundle published, p99',
            figures['latency_p99_ms'],
            'ms',
            better='lower',
            kind='absolute',
            note=f'publishing takes the relay {figures["relay_publishing_p99_ms"]:.1f} ms',
        ),
        Figure(
            'of it, more than publishing a set takes the relay',
            figures['latency_p99_over_relay_ms'],
            'ms',
            targets['latency_p99_over_relay_ms'],
            'lower',
            'absolute',
        ),
        Figure(
            'messages at the sink fewer than from the relay',
            figures['fewer_at_sink'] * 100.0,
            '%',
            targets['fewer_at_sink'] * 100.0,
            'lower',
            'accuracy',
        ),
        Figure(
            'small messages on one core',
            figures['messages_per_s'],
            'messages/s',
            targets['messages_per_s'],
            kind='absolute',
        ),
        Figure(
            'messages unaccounted for',
            figures['unaccounted'] + figures['small_unaccounted'],
            target=0.0,
            better='lower',
            kind='accuracy',
        ),
    ]


def show(result: Result) -> None:
    """Print the figures beside their targets."""
    for name, value in result['figures'].items():
        target = result['targets'].get(name)
        shown = f'{value:.3f}' if isinstance(value, float) else str(value)
        print(f'{name:40} {shown}' + (f'   (target {target:g})' if target else ''))


if __name__ == '__main__':
    run_as_program(run, show, quick='a few seconds of each part')
