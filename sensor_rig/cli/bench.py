"""Run the benchmarks of the source tree, each in a process of its own, against their peers.

Results go to bench/results/<date>.json and .md (quick ones to <date>-quick). With --check nothing
is written: the run is compared with the newest results there.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any

from rig_common.errors import RigError
from rig_common.jsonable import JsonObject
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

NAME = 'bench'
GROUP = 'maintain'
HELP = 'measure speed and accuracy, also beside other tools'
EPILOG = (
    'exit code: 1 when a benchmark failed or, with --check, when something got worse by '
    'more than 20 %; a missed target is shown and does not count as a failure'
)

VERDICTS = {None: ('', ''), True: ('met', 'green'), False: ('missed', 'red')}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which benchmarks to run, and how."""
    parser.add_argument(
        'names',
        nargs='*',
        metavar='NAME',
        help='benchmarks to run (default: all); --list names them',
    )
    parser.add_argument('--list', action='store_true', help='say which benchmarks there are')
    parser.add_argument(
        '--quick',
        action='store_true',
        help='fewer and shorter measurements: under 3 minutes instead of under 30',
    )
    parser.add_argument(
        '--check',
        action='store_true',
        help='compare with the newest kept results instead of keeping these',
    )
    parser.add_argument(
        '--docs',
        action='store_true',
        help='also write the table into docs/benchmarks.md and README.md',
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run, show, and keep or compare."""
    root = source_root()
    sys.path.insert(0, str(root))  # the benchmarks are not part of the installed package
    driver, results = (importlib.import_module(f'bench.{name}') for name in ('driver', 'results'))
    if args.list:
        print_table(
            ('benchmark', 'measures'), [(each.name, each.measures) for each in driver.BENCHMARKS]
        )
        return 0
    if args.check and args.docs:
        raise RigError('--check keeps nothing, so --docs has nothing to write; use one of them')
    chosen = choose(driver, args.names)
    earlier = results.newest(args.quick) if args.check else None
    if args.check and earlier is None:
        raise RigError(f'there are no results in {results.FOLDER} to compare with')
    entries = measure(driver, chosen, args, None if args.check else results)
    worse = results.compare(earlier[1], entries) if earlier is not None else []
    if args.docs:
        results.write_pages(results.newest(args.quick)[1])
    if args.json:
        print_json({**results.make(entries, args.quick), 'worse': worse})
    else:
        show(driver, entries)
        print(
            compared(earlier[0], worse)
            if earlier is not None
            else f'Kept in {os.path.relpath(results.FOLDER)}.'
        )
    return 1 if worse or any('failed' in entry for entry in entries.values()) else 0


def source_root() -> Path:
    """Return the root of the source tree, where tests, benchmarks and pages are."""
    root = Path(__file__).resolve().parents[2]
    if not (root / 'bench' / 'driver.py').is_file():
        raise RigError(f'{root} is not the source tree, which this needs; run ./rig in a clone')
    return root


def choose(driver: Any, names: list[str]) -> list[object]:
    """Return the benchmarks called `names`, in the driver's order; all without names."""
    unknown = [name for name in names if name not in driver.NAMES]
    if unknown:
        raise RigError(
            f'there is no benchmark {unknown[0]!r}; there are {", ".join(driver.NAMES)}'
        )
    return [each for each in driver.BENCHMARKS if not names or each.name in names]


def measure(
    driver: Any, chosen: list[Any], args: argparse.Namespace, keeper: Any | None
) -> JsonObject:
    """Run `chosen` with a progress bar; what ended is said, and kept by `keeper`, at once."""
    from sensor_rig.cli.support.progress import note, progress

    command = './rig bench ' + ' '.join([*args.names] + ['--quick'] * args.quick)
    with progress('benchmarks', sum(each.limit_s for each in chosen)) as advance:

        def done(benchmark: Any, entry: JsonObject) -> None:
            advance(benchmark.limit_s)
            state = entry.get('failed') or entry.get('absent') or 'done'
            note(f'{benchmark.name}: {state} ({entry["seconds"]:.0f} s)')
            if keeper is not None:
                keeper.save(keeper.make({benchmark.name: entry}, args.quick))

        entries: JsonObject = driver.run_all(chosen, args.quick, command.strip(), done)
    return entries


def show(driver: Any, entries: JsonObject) -> None:
    """Print the headline figures."""
    from rich.text import Text

    figures = importlib.import_module('bench.figures')
    rows = []
    for name, entry in entries.items():
        if 'figures' not in entry:
            why = entry.get('absent') or entry.get('failed')
            rows.append(
                (
                    name,
                    why,
                    '',
                    '',
                    '',
                    Text('absent', 'yellow') if 'absent' in entry else Text('failed', 'red'),
                )
            )
        for figure in driver.figures_of(entry):
            sign = '>=' if figure.better == 'higher' else '<='
            rows.append(
                (
                    name,
                    figure.name,
                    figures.shown(figure),
                    'this machine' if figure.kind == 'absolute' else figure.kind,
                    '' if figure.target is None else f'{sign} {figures.number(figure.target)}',
                    Text(*VERDICTS[figure.met]),
                )
            )
    print_table(('benchmark', 'figure', 'value', 'kind', 'target', ''), rows)


def compared(file: Path, worse: list[str]) -> str:
    """Return what the comparison found, a line each."""
    where = os.path.relpath(file)
    if not worse:
        return f'Nothing got worse since {where}.'
    return '\n'.join([f'Worse than in {where}:', *(f'  {line}' for line in worse)])
