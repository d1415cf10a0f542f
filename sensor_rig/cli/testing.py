"""Run lint (ruff), types (mypy) and the whole test suite (pytest) of the source tree.

Arguments that are not listed here go to pytest, as in: test -k window test/sync
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from sensor_rig.cli.bench import source_root

NAME = 'test'
GROUP = 'maintain'
HELP = 'run lint, type check and the test suite'
EPILOG = 'exit code: 0 only when lint and types are clean, at least one test ran and none failed'
PASSES_ON = True

CHECKS = {
    'ruff': ('ruff', 'check', '--quiet', '.'),
    'format': ('ruff', 'format', '--check', '--quiet', '.'),
    'mypy': ('mypy', '--no-error-summary'),
}
TYPED_NUMPY = (2, 3)
"""From here on the stubs of numpy fit our annotations; Python 3.10 and some ROS have older."""
WORKERS = 2
"""Test processes side by side; the suite is meant to fit two cores."""
LONG = ('-m', 'long', '--timeout', '1800')
"""What selects the long tests, and gives each of them half an hour."""
PACKAGES = ('rig_common', 'sensor_rig', 'sim_sensors', 'sync_engine')
COVERED = ('-m', 'not long and not ros', '-q', '--no-header', '--timeout', '600')
"""The tests that run again for the figure of coverage: all that need no other processes."""
CHECKS_VARIABLE = 'RIG_FAILED_CHECKS'
"""Tells the test session's summary which checks failed, so that its end shows everything."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the choice of what to run."""
    which = parser.add_mutually_exclusive_group()
    which.add_argument('--no-checks', action='store_true', help='only pytest, no ruff, no mypy')
    which.add_argument('--only-checks', action='store_true', help='only ruff and mypy')
    parser.add_argument(
        '--long',
        action='store_true',
        help='the tests that are too long for every day, instead of the others',
    )


def run(args: argparse.Namespace) -> int:
    """Run the checks, then pytest, and fail if any of them failed."""
    import subprocess

    root = source_root()
    checks = {} if args.no_checks else available_checks()
    failed = [name for name, command in checks.items() if not passes(name, command, root)]
    if args.only_checks:
        return 1 if failed else 0
    environment = dict(os.environ, **{CHECKS_VARIABLE: ','.join(failed)})
    which = [*_workers(args.passed_on), *(LONG if args.long else ())]
    command = [sys.executable, '-m', 'pytest', *which, *args.passed_on]
    code = subprocess.run(command, cwd=root, env=environment, check=False).returncode
    if args.long and not args.passed_on:
        tell_coverage(root)
    return code or (1 if failed else 0)  # pytest itself fails (5) when no test ran


def tell_coverage(root: Path) -> None:
    """Print which part of the lines the tests without ROS run, in all and for each package."""
    import json
    import subprocess

    report = root / '.coverage.json'
    packages = [f'--cov={name}' for name in PACKAGES]
    command = [sys.executable, '-m', 'pytest', *_workers([]), *COVERED, *packages]
    subprocess.run(
        [*command, f'--cov-report=json:{report}'], cwd=root, capture_output=True, check=False
    )
    if not report.is_file():
        print('coverage: the tests without ROS could not be run')
        return
    files = json.loads(report.read_text(encoding='utf-8'))['files']
    for name in PACKAGES:
        of = [each['summary'] for path, each in files.items() if path.startswith(name + '/')]
        lines, run = (sum(each[key] for each in of) for key in ('num_statements', 'covered_lines'))
        print(f'coverage of {name}: {100 * run / max(lines, 1):.1f} % of {lines} lines')


def _workers(passed_on: list[str]) -> list[str]:
    """Return the options that run whole files side by side, unless a choice was made.

    Every worker has its own ROS domain, and no test measures wall time, so they may share cores.
    """
    chosen = any(each.startswith(('-n', '--numprocesses', '--pdb', '-p')) for each in passed_on)
    return [] if chosen else ['-n', str(min(WORKERS, os.cpu_count() or 1)), '--dist', 'loadfile']


def available_checks() -> dict[str, tuple[str, ...]]:
    """Return the checks that make sense here, and say which do not."""
    from importlib import metadata

    version = metadata.version('numpy')
    if tuple(map(int, version.split('.')[:2])) >= TYPED_NUMPY:
        return CHECKS
    print(f'mypy: skipped, numpy {version} describes its types in another way than newer ones')
    return {name: command for name, command in CHECKS.items() if name != 'mypy'}


def passes(name: str, command: tuple[str, ...], root: Path) -> bool:
    """Run one check in `root`, show what it finds, and say whether it passed."""
    import subprocess

    start = time.monotonic()
    result = subprocess.run([sys.executable, '-m', *command], cwd=root, check=False)
    verdict = 'clean' if result.returncode == 0 else 'FAILED'
    print(f'{name}: {verdict} ({time.monotonic() - start:.1f} s)', flush=True)
    return result.returncode == 0
