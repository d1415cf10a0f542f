"""What ROS costs a rig: speed with all nodes in one process, and an emulator's share of a core.

    ./rig python -m bench.realtime_dds [--quick]

- `demo without camera`: all nodes in one process over DDS in lockstep, as fast as possible, and
  the same rig without ROS. Speeds are in CPU time, so that other programs do not count.
- `everything in real time`: the rig with all sensors, a 320x240 camera at 10 Hz among them, at a
  factor of 1: what factor it held, and how much of the machine it took.
- `imu truth at 1 kHz`: CPU of the emulator's process per simulated second at a factor of 1, beside
  processes that only take the same truth messages, raw and decoded, and send them on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from bench.figures import Figure, absent
from bench.realtime import without
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sensor_rig.cli.support.progress import note
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import RigConfig, load_rig
from sensor_rig.running.middleware import prepare_middleware
from sensor_rig.running.node_plan import planned_nodes

IMU_RIG = {
    'seed': 1,
    'world': {
        'model': 'rover_yard.xml',
        'timestep_s': 0.001,
        'real_time_factor': 1.0,
        'driver': 'figure_eight',
    },
    'sensors': {
        'imu': {
            'type': 'imu',
            'mount': {'body': 'rover'},
            'rate_hz': 200.0,
            'delay_range_s': [0.002, 0.002],
            'gyro': {'bandwidth_hz': 80.0},
            'accel': {'bandwidth_hz': 80.0},
            'eager': True,
        }
    },
}
RELAY = """
import sys
from rclpy.node import Node
from sensor_msgs.msg import Imu
from rig_common.ros import qos
from rig_common.ros.executor import run_node

class Relay(Node):
    def __init__(self):
        super().__init__('relay')
        out = self.create_publisher(Imu, 'relayed', qos.internal())
        self.create_subscription(Imu, 'truth/imu', out.publish, qos.internal(),
                                 raw=sys.argv[1] == 'raw')

sys.exit(run_node(Relay))
"""


def run(quick: bool = False) -> dict[str, Any]:
    """Return all figures."""
    seconds = 2.0 if quick else 15.0
    result: dict[str, Any] = {'demo without camera': one_process(seconds)}
    try:
        result['everything in real time'] = real_time('everything', seconds)
    except RigError as error:
        result['everything in real time'] = str(error)
    result['imu truth at 1 kHz'] = imu_shares(seconds)
    return result


# ---- all nodes in one process -------------------------------------------------------------------


def one_process(seconds: float) -> dict[str, float]:
    """Return how much faster than real time the demo rig runs with and without ROS."""
    import filterpy.kalman  # noqa: F401 - part of a start; else it waits for the first message

    rig = without(load_rig('demo'), cameras=True)
    plain = InProcessRig(rig, arrays=False)
    with_ros = _cpu_of(lambda: _run_nodes(rig, seconds))
    ticks = round(seconds / rig.simulated_world.timestep_s)
    without_ros = _cpu_of(lambda: [plain.step() for _ in range(ticks)])
    return {
        'without ROS (x real time)': seconds / without_ros,
        'over DDS (x real time)': seconds / with_ros,
        'ratio': with_ros / without_ros,
    }


def _run_nodes(rig: RigConfig, seconds: float) -> float:
    """Run in lockstep and return the CPU time it took, without the start."""
    from rig_common.ros.executor import Spinner, ros_context
    from sensor_rig.running.ros.one_process import OneProcess

    rig = rig.with_world(real_time_factor=0.0, lockstep=True)
    with ros_context([]) as context:
        nodes = OneProcess(rig, Spinner(context))
        began = time.process_time()
        nodes.run(seconds)
        spent = time.process_time() - began
        nodes.close()
    return spent


def _cpu_of(work: Callable[[], Any]) -> float:
    began = time.process_time()
    own = work()
    return own if isinstance(own, float) else time.process_time() - began


# ---- real time ------------------------------------------------------------------------------


def real_time(name: str, seconds: float) -> dict[str, float]:
    """Return how a rig holds real time in one process."""
    from sensor_rig.running.ros.one_process import run_in_one_process

    rig = load_rig(name)
    cpu, wall = time.process_time(), time.monotonic()
    summary = run_in_one_process(rig.with_world(real_time_factor=1.0), seconds)
    wall = time.monotonic() - wall
    return {
        'factor at the end': summary.real_time_factor,
        'slowed by (s)': summary.slowed_s,
        'cores used': (time.process_time() - cpu) / wall,
    }


# ---- an emulator's share of a core ------------------------------------------------------------


def imu_shares(seconds: float) -> dict[str, float]:
    """Return the CPU time per simulated second of the IMU's emulator and of bare relays, in %."""
    from rig_common.ros.executor import Spinner, ros_context
    from sensor_rig.running.ros.monitor import Monitor

    with tempfile.TemporaryDirectory() as folder, ros_context([]) as context:
        file = Path(folder) / 'rig.yaml'
        file.write_text(yaml.safe_dump({'/**': {'ros__parameters': IMU_RIG}}))
        (Path(folder) / 'relay.py').write_text(RELAY)
        rig = load_rig(file)
        spinner, monitor = Spinner(context), Monitor(rig)
        spinner.add(monitor)
        nodes = {node.name: node.command() for node in planned_nodes(rig)}
        for kind in ('raw', 'typed'):
            nodes[f'{kind} relay'] = [sys.executable, str(Path(folder) / 'relay.py'), kind]
        return {
            f'{name} (% of a core)': 100
            * _share(nodes[name], nodes['world'], seconds, monitor, spinner)
            for name in ('emulator_imu', 'raw relay', 'typed relay')
        }


def _share(
    command: list[str], world: list[str], seconds: float, monitor: Any, spinner: Any
) -> float:
    """Return the CPU time of a process per simulated second of the world beside it."""
    environment = {**os.environ, 'PYTHONPATH': os.getcwd()}
    measured = subprocess.Popen(command, env=environment)
    beside = subprocess.Popen(world, env=environment)

    def until(time_ns: int) -> None:
        while not monitor.now_ns >= time_ns:
            spinner.turn(0.02)

    try:
        monitor.forget()
        until(2 * NS_PER_S)
        cpu_s, began_ns = _cpu_s(measured.pid), monitor.now_ns
        until(began_ns + round(seconds * NS_PER_S))
        return (_cpu_s(measured.pid) - cpu_s) / ((monitor.now_ns - began_ns) / NS_PER_S)
    finally:
        for child in (measured, beside):
            child.terminate()
            child.wait(10.0)


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process so far, s."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    demo, shares = result['demo without camera'], result['imu truth at 1 kHz']
    held, emulator = result['everything in real time'], shares['emulator_imu (% of a core)']
    title = 'rig with all sensors in real time, factor held'
    return [
        Figure(
            'demo rig without camera over DDS, one process',
            demo['over DDS (x real time)'],
            'x real time',
            4.0,
            kind='absolute',
        ),
        Figure('CPU with ROS over CPU without', demo['ratio'], 'x', better='lower'),
        absent(title, held, target=0.99, kind='absolute')
        if isinstance(held, str)
        else Figure(title, held['factor at the end'], target=0.99, kind='absolute'),
        Figure(
            'emulator of an IMU with truth at 1 kHz',
            emulator,
            '% of a core',
            25.0,
            'lower',
            'absolute',
        ),
        Figure(
            'that emulator over a bare typed relay',
            emulator / shares['typed relay (% of a core)'],
            'x',
            better='lower',
        ),
    ]


def main() -> int:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description='what ROS costs a rig')
    parser.add_argument('--quick', action='store_true')
    prepare_middleware(note)
    print(json.dumps(run(parser.parse_args().quick), indent=2))
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
