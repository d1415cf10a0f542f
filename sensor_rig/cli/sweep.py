"""Carry out a plan: a rig, what varies, a system under test, and what is measured.

The same command goes on where it was stopped; runs that are there are not run again.
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rig_common.cores import usable_cores
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from rig_common.jsonable import JsonObject
    from sensor_rig.sweep.driving import SweepJob
    from sensor_rig.sweep.running.pool import Executor

NAME = 'sweep'
GROUP = 'stress'
HELP = 'run a plan of many runs, on all cores or on a Ray cluster'
EPILOG = """examples:
  rig sweep plan.yaml --out results/                  all cores of this machine
  rig sweep plan.yaml --out results/ --ray-address auto   the Ray cluster of this machine
  rig sweep plan.yaml --out results/ --list           which runs there are, and how they ended
  rig tolerance results/                              what they say
exit code: 0 done, also where runs failed; 1 not one run is ok; 2 a mistake; 130 interrupted"""
VERSION = 1
TELL_EVERY_S = 30.0
"""Between two lines of progress where there is no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the plan, the folder and where to run."""
    parser.add_argument('plan', metavar='PLAN', type=Path, help='the plan, a YAML file')
    parser.add_argument(
        '--out',
        metavar='FOLDER',
        type=Path,
        required=True,
        help='the results; what is there already is not run again',
    )
    parser.add_argument(
        '--workers', metavar='N', type=_count, help='runs at a time (as many as there are cores)'
    )
    parser.add_argument(
        '--ray', action='store_true', help='run on Ray, which is started on this machine'
    )
    parser.add_argument(
        '--ray-address',
        metavar='ADDRESS',
        help='run on the Ray cluster at this address; auto: the one of this machine',
    )
    parser.add_argument('--list', action='store_true', help='list the runs and run nothing')
    parser.add_argument('--rerun', choices=('failed',), help='repeat the runs that failed')
    add_json_argument(parser)


def _count(text: str) -> int:
    if not re.fullmatch('[1-9][0-9]{0,3}', text):
        raise argparse.ArgumentTypeError(
            f'is {text!r}; it should be a whole number from 1 to 9999'
        )
    return int(text)


def check_inputs(args: argparse.Namespace) -> None:
    """Refuse a plan that is wrong, before anything is installed for it."""
    from sensor_rig.sweep.driving import checked_plan

    checked_plan(args.plan)


def run(args: argparse.Namespace) -> int:
    """Carry out the plan and say what came of it."""
    from sensor_rig.cli.support.progress import note
    from sensor_rig.sweep.driving import SweepJob, warnings_of
    from sensor_rig.sweep.running.table import require_pyarrow

    require_pyarrow()
    sweep = SweepJob.of(
        args.plan, args.out, rerun_failed=args.rerun is not None, writes=not args.list
    )
    for each in warnings_of(sweep.experiment.plan):
        note(f'WARNING: {each}')
    if args.list:
        _list(sweep, args.json)
        return 0
    try:
        with sweep:
            if sweep.todo or sweep.refined():
                _run(sweep, args)
    except KeyboardInterrupt:
        sweep.finish()
        note(f'interrupted: {len(sweep.store.results)} runs are there; the same command goes on')
        raise
    table = sweep.finish()
    return _summary(sweep, table, args.json)


def _run(sweep: SweepJob, args: argparse.Namespace) -> None:
    """Run what is missing, and show how far it is."""
    from sensor_rig.cli.support.progress import note, progress

    begun = told = time.monotonic()
    done, failed = 0, 0
    with progress('runs', len(sweep.todo)) as advance, _executor(sweep, args) as executor:
        for outcome in sweep.run(executor):
            done += 1
            advance(1.0)
            if outcome.status.value != 'ok':
                failed += 1
                if failed == 1:
                    note(f'run {outcome.id}: {outcome.status.value}: {outcome.reason}')
            now = time.monotonic()
            if now - told >= TELL_EVERY_S:
                told, left_s = now, (now - begun) / done * len(sweep.todo)
                note(
                    f'sweep: {done} of {done + len(sweep.todo)} runs, {failed} not ok, '
                    f'{left_s:.0f} s left'
                )


def _executor(sweep: SweepJob, args: argparse.Namespace) -> Executor:
    if args.ray or args.ray_address:
        from sensor_rig.sweep.running.ray_cluster import RayCluster

        return RayCluster(sweep.experiment, sweep.files, args.ray_address, args.workers)
    from sensor_rig.sweep.running.pool import Pool

    wanted = args.workers or usable_cores()
    return Pool(sweep.experiment, min(wanted, len(sweep.todo)) or 1, sweep.scratch)


# ---- what is printed ----------------------------------------------------------------------------


def _list(sweep: SweepJob, as_json: bool) -> None:
    plan, results = sweep.experiment.plan, sweep.store.results
    rows = [
        (
            task.id,
            results[task.id].status.value if task.id in results else 'missing',
            task.seed,
            *task.values,
        )
        for task in sweep.tasks
    ]
    if as_json:
        print_json(
            {
                'version': VERSION,
                'runs': [
                    {
                        'id': row[0],
                        'status': row[1],
                        'seed': row[2],
                        'values': dict(zip(plan.vary, row[3:], strict=True)),
                    }
                    for row in rows
                ],
            }
        )
        return
    print_table(('run', 'status', 'seed', *plan.vary), rows)


def _summary(sweep: SweepJob, table: Path, as_json: bool) -> int:
    results = [
        sweep.store.results[task.id] for task in sweep.tasks if task.id in sweep.store.results
    ]
    counts: dict[str, int] = {}
    for result in results:
        counts[result.status.value] = counts.get(result.status.value, 0) + 1
    facts: JsonObject = {
        'version': VERSION,
        'table': str(table),
        'runs': len(results),
        'statuses': counts,
        'refined': sum(task.point < 0 for task in sweep.tasks),
        'retries': sweep.store.retries,
    }
    if as_json:
        print_json(facts)
    else:
        ended = ', '.join(f'{count} {status}' for status, count in sorted(counts.items()))
        more = f', {facts["refined"]} of them by bisecting' if facts['refined'] else ''
        retried = f'; {facts["retries"]} attempts repeated' if facts['retries'] else ''
        print(f'{len(results)} runs{more}: {ended}{retried}\nwritten: {table}')
    return 0 if counts.get('ok') else 1
