"""What a sweep costs beside its runs: planning, the time between runs, idle workers.

    python -m bench.sweep [--quick] [--json FILE]

The rig is the demo's without its camera, run in process. Time between runs is wall time that a
worker does not spend in a run; on a busy machine both are stretched alike.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import yaml
from rich.console import Console

from bench.figures import Figure
from sensor_rig.sweep.driving import SweepJob
from sensor_rig.sweep.running.pool import Pool

PLANNED = 10_000
RUN_S = 10.0
"""The run that the time between runs is compared with, s."""
OFFSET, LOSS = 'sensors.front_lidar.clock.offset_s', 'sensors.front_lidar.loss.probability'


def write_plan(folder: Path, offsets: int, losses: int, **keys: Any) -> Path:
    """Write a plan over the demo's world without its camera; return its file."""
    rig = yaml.safe_load((Path(__file__).parents[1] / 'config' / 'demo.yaml').read_text())
    values = rig['/**']['ros__parameters']
    del values['sensors']['camera']
    values['sync']['required_sensors'] = ['front_lidar']
    (folder / 'rig.yaml').write_text(yaml.safe_dump(rig))
    file = folder / 'plan.yaml'
    file.write_text(
        yaml.safe_dump(
            {
                'rig': 'rig.yaml',
                **keys,
                'vary': {
                    OFFSET: {'from': -0.1, 'to': 0.1, 'count': offsets},
                    LOSS: {'from': 0.0, 'to': 0.1, 'count': losses},
                },
            }
        )
    )
    return file


def planned(file: Path) -> None:
    """Plan and hand over the first run; print how long that took since the process began."""
    job = SweepJob.of(file, file.parent / 'planned')
    with job, Pool(job.experiment, 1, job.scratch) as pool:
        pool.begin(iter(job.todo))
        print(
            json.dumps(
                {
                    'runs': len(job.tasks),
                    'seconds': time.time() - psutil.Process().create_time(),
                    'cpu_seconds': sum(os.times()[:2]),
                    'peak_mb': resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0,
                }
            )
        )


def planning(folder: Path) -> dict[str, Any]:
    """Return what it takes until the first of many planned runs is handed over."""
    file = write_plan(folder, 100, PLANNED // 100)
    told = subprocess.run(
        [sys.executable, '-m', 'bench.sweep', '--plan', str(file)],
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    result: dict[str, Any] = json.loads(told)
    return result


def running(folder: Path, runs: int, seconds: float) -> dict[str, Any]:
    """Return how the workers spend their time in a sweep."""
    workers = min(2, os.cpu_count() or 1)
    job = SweepJob.of(write_plan(folder, 2, runs // 2, seconds=seconds), folder / 'ran')
    lasted: list[float] = []
    with job, Pool(job.experiment, workers, job.scratch) as pool:
        outcomes = job.run(pool)
        for _ in range(workers):  # the first of each starts its process
            next(outcomes)
        began, before = time.monotonic(), _cpu_s(pool)
        for outcome in outcomes:
            lasted.append(outcome.seconds)
            if len(lasted) == runs - 2 * workers:
                break  # what ends alone, at the end, is no measure of the rest
        wall, cpu = time.monotonic() - began, _cpu_s(pool) - before
    return {
        'runs': len(lasted),
        'workers': workers,
        'wall_s': wall,
        'in_runs_s': sum(lasted),
        'cpu_s': cpu,
        'simulated_s': seconds * len(lasted),
    }


def _cpu_s(pool: Pool) -> float:
    return sum(sum(psutil.Process(pid).cpu_times()[:2]) for pid in pool.pids)


def run(quick: bool) -> dict[str, Any]:
    """Measure planning and running."""
    with tempfile.TemporaryDirectory(prefix='bench_sweep_') as name:
        folder = Path(name)
        return {
            'planning': planning(folder),
            'running': running(folder, 12 if quick else 32, 2.0 if quick else 5.0),
        }


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that matter."""
    plan, ran = result['planning'], result['running']
    offered = ran['wall_s'] * ran['workers']
    between = max(offered - ran['in_runs_s'], 0.0) / ran['runs']
    return [
        Figure(
            f'{plan["runs"]} planned runs: until the first starts',
            plan['seconds'],
            's',
            target=2.0,
            better='lower',
            kind='absolute',
            note=f'{plan["cpu_seconds"]:.2f} s of processor time',
        ),
        Figure(
            f'{plan["runs"]} planned runs: memory',
            plan['peak_mb'],
            'MB',
            target=200.0,
            better='lower',
            kind='absolute',
        ),
        Figure('workers in a run, part of the wall time', ran['in_runs_s'] / offered, target=0.9),
        Figure(
            'cores busy with runs',
            ran['cpu_s'] / offered,
            target=0.9,
            kind='absolute',
            note='less where others use the cores',
        ),
        Figure(
            'between two runs, part of a 10 s run', between / RUN_S, target=0.05, better='lower'
        ),
        Figure(
            'simulated s an hour a core',
            3600.0 * ran['simulated_s'] / ran['cpu_s'],
            kind='absolute',
        ),
    ]


def main() -> None:
    """Print the figures; `--json FILE` also writes them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument('--quick', action='store_true', help='fewer and shorter runs')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the result there')
    parser.add_argument('--plan', type=Path, metavar='FILE', help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plan:
        planned(arguments.plan)
        return
    result = run(arguments.quick)
    console = Console()
    for figure in headline(result):
        target = '' if figure.target is None else f' (target {figure.target:g})'
        console.print(f'{figure.name}: {figure.value:.3g} {figure.unit}{target} {figure.note}')
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + '\n')


if __name__ == '__main__':
    main()
