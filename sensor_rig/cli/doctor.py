"""Look at this machine: which ROS 2, RMW and renderers work, which optional parts are there.

For everything that is missing it says what that costs and what to do about it.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

NAME = 'doctor'
GROUP = 'set up'
HELP = 'check what works on this machine, and say how to install what is missing'
EPILOG = 'exit code: 0 when everything required is there, 1 otherwise'

MARKS = {'ok': 'green', 'missing': 'yellow', 'failed': 'red'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json."""
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print the findings, and fail if a required one is not well."""
    from rich.text import Text

    from sensor_rig.cli.support.probes import examine
    from sensor_rig.cli.support.progress import spinner

    with spinner('looking at ROS, renderers and optional parts'):
        findings = examine()
    healthy = all(finding.state == 'ok' for finding in findings if finding.required)
    if args.json:
        print_json({'healthy': healthy, 'findings': [asdict(finding) for finding in findings]})
        return 0 if healthy else 1
    print_table(
        ('what', '', 'found', 'what to do'),
        [(f.name, Text(f.state, MARKS[f.state]), f.detail, f.advice) for f in findings],
    )
    if not any(f.state == 'ok' for f in findings if f.name.startswith('renderer')):
        print('No renderer works: cameras are not available, everything else is.')
    if not healthy:
        names = ', '.join(f.name for f in findings if f.required and f.state != 'ok')
        print(f'Required and not well: {names}.')
    return 0 if healthy else 1
