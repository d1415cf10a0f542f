"""How long a command takes before it does its work, against what its libraries take to load.

    ./rig python -m bench.startup [--quick] [--json FILE]

Each part is a process of its own, timed from its start to its end as a user waits for it; parts
take turns, and the least time counts. The yardstick of `--help` is an interpreter that loads
argparse; of `check`, one that loads numpy, pydantic, yaml and MuJoCo; of a run, one that loads
rclpy and messages as well. A run ends here with the first message of its IMU. `as it was` loads
filterpy, and with it all of scipy, before a command starts, as every command did.

The targets are 0.12 s for `--help`, 1.0 s for `check` of the demo and 1.8 s to the first message,
over what the yardsticks took on the same machine (AMD EPYC, 2 cores): 0.033, 0.32 and 0.33 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

from bench.command import figures_of, run_as_program
from bench.figures import Figure

TARGETS = {'help': 0.12 / 0.033, 'check': 1.0 / 0.32, 'first_message': 1.8 / 0.33}
ROUNDS, QUICK_ROUNDS = 7, 2
MAIN = 'import sys; from sensor_rig.cli.main import main; sys.exit(main({arguments!r}))'
BEFORE = 'import filterpy.kalman; '
LOADS = 'import argparse, numpy, pydantic, yaml, mujoco'
FIRST_MESSAGE = """
import os
from rclpy.publisher import Publisher
publish = Publisher.publish
def publish_and_end(self, message):
    publish(self, message)
    if self.topic_name.endswith('imu/data_raw'):
        os._exit(0)
Publisher.publish = publish_and_end
"""
CODE = {
    'bare': 'import argparse',
    'libraries': LOADS,
    'ros': LOADS + ', rclpy, sensor_msgs.msg, nav_msgs.msg, visualization_msgs.msg',
    'help': MAIN.format(arguments=['--help']),
    'check': MAIN.format(arguments=['check', 'demo']),
    'check_without_camera': MAIN.format(arguments=['check', 'soak']),
    'check_as_it_was': BEFORE + MAIN.format(arguments=['check', 'soak']),
    'engine': 'import sync_engine.engine',
    'engine_as_it_was': BEFORE + 'import sync_engine.engine',
    'first_message': FIRST_MESSAGE + MAIN.format(arguments=['run', 'demo', '--seconds', '60']),
}
"""Programs by name."""


def elapsed_s(code: str) -> float:
    """Run a program and return how long it took, s."""
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, '-c', code],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=300,
        env=_environment(),
    )
    return time.perf_counter() - began


def _environment() -> dict[str, str]:
    """Return an environment in which compiled modules are kept, as they are for users."""
    return {name: value for name, value in os.environ.items() if name != 'PYTHONDONTWRITEBYTECODE'}


def run(quick: bool = False) -> dict[str, Any]:
    """Return the least time of every program, s."""
    times: dict[str, list[float]] = {name: [] for name in CODE}
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        for name, code in CODE.items():
            times[name].append(elapsed_s(code))
    return {'wall_s': {name: min(each) for name, each in times.items()}, 'targets': TARGETS}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    wall_s, targets = result['wall_s'], result['targets']

    def figure(name: str, part: str, yardstick: str, note: str) -> Figure:
        return Figure(
            name,
            wall_s[part] / wall_s[yardstick],
            'x',
            targets.get(part),
            'lower',
            note=f'{wall_s[part]:.2f} s{note and "; " + note}',
        )

    return [
        figure('--help, over a bare interpreter', 'help', 'bare', 'loads no rig models'),
        figure(
            'check of the demo, over loading its libraries',
            'check',
            'libraries',
            'a camera: a renderer is tried in a process of its own, at the same time',
        ),
        figure(
            'check of a rig without cameras, the same',
            'check_without_camera',
            'libraries',
            'the soak rig',
        ),
        figure('that check as it was, with filterpy loaded', 'check_as_it_was', 'libraries', ''),
        figure(
            'import of the engine, over the import as it was',
            'engine',
            'engine_as_it_was',
            'without scipy',
        ),
        figure(
            'first message of the demo over ROS, over loading its libraries',
            'first_message',
            'ros',
            'from the start of the process',
        ),
    ]


if __name__ == '__main__':
    run_as_program(run, figures_of(headline), quick='two rounds')
