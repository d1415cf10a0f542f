"""Runs benchmarks, each in a process of its own, and keeps what they found.

./rig python -m bench.driver NAME [--quick] FILE   # the child: one benchmark, result into FILE
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from bench import machine
from bench.figures import Figure
from sensor_rig.running.domain import claim_domain

ROOT = Path(__file__).resolve().parents[1]

Entry = dict[str, Any]
"""What one benchmark left: figures and details, or why it did not finish."""


@dataclass(frozen=True)
class Benchmark:
    """One benchmark: the module `bench.<name>` with `run(quick)` and `headline(result)`."""

    name: str
    measures: str
    limit_s: float
    """Ended after this long in a full run, a quick one after half of it: several times what an
    idle machine needs."""
    needs_ros: bool = False


BENCHMARKS = (
    Benchmark('raycast', 'ray casting against its peers', 900.0),
    Benchmark('pipeline', 'the sensor pipeline against loops and torch', 400.0),
    Benchmark('learning', 'senses for learning against torch and mjlab', 900.0),
    Benchmark('environments', 'what sensors cost many environments', 400.0),
    Benchmark('imu_noise', 'Allan parameters recovered', 900.0),
    Benchmark('sync_cost', 'cost of a message against streams and queues', 600.0),
    Benchmark('sync_accuracy', 'offsets and pairing against the truth', 1500.0),
    Benchmark('trust', 'offsets beside the peers and the Cramer-Rao bound', 1500.0),
    Benchmark('findings', 'what inspect finds of labelled defects', 900.0),
    Benchmark('image_cue', 'the camera of the demo against the IMU', 1800.0),
    Benchmark('sync_honesty', 'sigma against error, clock steps, looking twice', 3000.0),
    Benchmark('sweep', 'what a sweep costs beside its runs', 600.0),
    Benchmark('realtime', 'speed of a rig without ROS', 300.0),
    Benchmark('growth', 'cost and memory as everything grows', 400.0),
    Benchmark('realtime_dds', 'what ROS costs a rig', 400.0, needs_ros=True),
    Benchmark('timing', 'when messages leave in real time', 300.0, needs_ros=True),
    Benchmark('startup', 'what a command takes before its work', 600.0, needs_ros=True),
    Benchmark('degrade', 'degrading against a copy and a relay', 600.0, needs_ros=True),
    Benchmark('sync_node', 'the sync node over DDS', 600.0, needs_ros=True),
)
NAMES = tuple(each.name for each in BENCHMARKS)


def run_all(
    chosen: list[Benchmark], quick: bool, command: str, done: Callable[[Benchmark, Entry], None]
) -> dict[str, Entry]:
    """Run `chosen` one after the other; `done` is told of each as it ends."""
    entries = {}
    for each in chosen:
        entries[each.name] = entry = run_apart(each, quick, command)
        done(each, entry)
    return entries


def run_apart(benchmark: Benchmark, quick: bool, command: str = '') -> Entry:
    """Run one benchmark in its own process; a failure, a crash or a hang is an entry too."""
    entry: Entry = {
        'started': time.strftime('%Y-%m-%d %H:%M:%S'),
        'command': command,
        'quick': quick,
        'load': machine.load(),
    }
    limit_s = benchmark.limit_s / 2.0 if quick else benchmark.limit_s
    began, cpu_s = time.monotonic(), _children_cpu_s()
    with tempfile.TemporaryDirectory(prefix='rig_bench_') as folder:
        kept = Path(folder) / 'result.json'
        arguments = [benchmark.name, str(kept)] + ['--quick'] * quick
        log = Path(folder) / 'log'
        with log.open('wb') as output:
            code = _wait([sys.executable, '-m', 'bench.driver', *arguments], output, limit_s)
        entry['seconds'] = round(time.monotonic() - began, 1)
        entry['cpu_seconds'] = round(_children_cpu_s() - cpu_s, 1)
        if code == 0:
            return {**entry, **json.loads(kept.read_text())}
        said = _last_line(log.read_text(errors='replace'))
        if code is None:
            return {**entry, 'failed': f'ended after {limit_s:.0f} s: {said}'}
        if code == ABSENT:
            return {**entry, 'absent': said}
        return {**entry, 'failed': f'exit code {code}: {said}'}


ABSENT = 69
"""Exit code of a child that lacks what the benchmark is about."""


def _wait(command: list[str], output: Any, limit_s: float) -> int | None:
    """Return the exit code, or None after ending the process and all it started."""
    environment = {
        **os.environ,
        'ROS_AUTOMATIC_DISCOVERY_RANGE': 'LOCALHOST',
        'ROS_DOMAIN_ID': str(_domain()),
    }
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return child.wait(limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(child)


@cache
def _domain() -> int:
    """Return the domain of all benchmarks: no robot and no test disturbs them or hears them."""
    return claim_domain()


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child's whole session, politely first; nothing of a benchmark may live on."""
    for how, patience_s in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
        try:
            os.killpg(child.pid, how)
        except ProcessLookupError:
            break
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            continue
    child.wait()


def _children_cpu_s() -> float:
    """Return the processor time of all children that have ended, and of theirs, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _last_line(text: str) -> str:
    """Return the last line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else 'it said nothing'


def figures_of(entry: Entry) -> list[Figure]:
    """Return the headline figures of an entry; none where it failed."""
    return [Figure.from_dict(each) for each in entry.get('figures', ())]


# ---- the child --------------------------------------------------------------------------------


def measure(name: str, quick: bool) -> dict[str, Any]:
    """Run benchmark `name` here; return its headline and everything else it found."""
    module = importlib.import_module(f'bench.{name}')
    result = module.run(quick)
    figures = module.headline(result)
    return {'figures': [figure.to_dict() for figure in figures], 'details': result}


def main() -> int:
    """Run one benchmark and write what it found."""
    parser = argparse.ArgumentParser(description='one benchmark, as the driver starts it')
    parser.add_argument('name', choices=NAMES)
    parser.add_argument('file', type=Path)
    parser.add_argument('--quick', action='store_true')
    given = parser.parse_args()
    if next(each for each in BENCHMARKS if each.name == given.name).needs_ros:
        try:
            importlib.import_module('rclpy')
        except ImportError as error:
            print(f'it needs ROS 2, and rclpy is not here ({error})')
            return ABSENT
    found = measure(given.name, given.quick)
    given.file.write_text(json.dumps(found, default=float) + '\n')
    return 0


if __name__ == '__main__':
    sys.exit(main())
