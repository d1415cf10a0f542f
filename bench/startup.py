"""How long a command takes before it does its work, against what its libraries take to load.

    ./rig python -m bench.startup [--quick] [--json FILE]

Each part is a process of its own; parts take turns, and the least CPU time counts (children
included: `check` of a rig with cameras tries a renderer). The yardstick of `--help` is an
interpreter that loads argparse; of `check`, one that loads numpy, pydantic, yaml and MuJoCo; of
a run, one that loads rclpy and messages as well. `as it was` loads filterpy, and with it
all of scipy, before a command starts, as every command did.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from typing import Any

from bench.command import figures_of, run_as_program
from bench.figures import Figure

TARGETS = {'help': 2.0, 'check': 2.0, 'check_without_camera': 1.6, 'run': 2.0}
ROUNDS, QUICK_ROUNDS = 7, 2
MAIN = 'import sys; from sensor_rig.cli.main import main; sys.exit(main({arguments!r}))'
BEFORE = 'import filterpy.kalman; '
LOADS = 'import argparse, numpy, pydantic, yaml, mujoco'
RUN = ['run', 'demo', '--rtf', '0', '--seconds', '0.02', '--json']
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
    'run': MAIN.format(arguments=RUN),
}
"""Programs by name."""


def cpu_s(code: str) -> float:
    """Run a program and return the CPU time of it and its children, s."""
    before = _children_s()
    subprocess.run([sys.executable, '-c', code], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, timeout=300, env=_environment())
    return _children_s() - before


def _environment() -> dict[str, str]:
    """Return an environment in which compiled modules are kept, as they are for users."""
    return {name: value for name, value in os.environ.items()
            if name != 'PYTHONDONTWRITEBYTECODE'}


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(quick: bool = False) -> dict[str, Any]:
    """Return the least CPU time of every program, s."""
    times: dict[str, list[float]] = {name: [] for name in CODE}
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        for name, code in CODE.items():
            times[name].append(cpu_s(code))
    return {'cpu_s': {name: min(each) for name, each in times.items()}, 'targets': TARGETS}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    cpu, targets = result['cpu_s'], result['targets']

    def figure(name: str, part: str, yardstick: str, note: str) -> Figure:
        return Figure(name, cpu[part] / cpu[yardstick], 'x', targets.get(part), 'lower',
                      note=note)
    return [
        figure('--help, CPU over a bare interpreter', 'help', 'bare', 'loads no rig models'),
        figure('check of the demo, CPU over loading its libraries', 'check', 'libraries',
               'a camera: a renderer is tried in a process of its own'),
        figure('check of a rig without cameras, the same', 'check_without_camera', 'libraries',
               'the soak rig'),
        figure('that check as it was, with filterpy loaded', 'check_as_it_was', 'libraries', ''),
        figure('import of the engine, CPU over the import as it was', 'engine',
               'engine_as_it_was', 'without scipy'),
        figure('20 ms of the demo over ROS, CPU over loading its libraries', 'run', 'ros',
               'from the start to the summary'),
    ]


if __name__ == '__main__':
    run_as_program(run, figures_of(headline), quick='two rounds')
