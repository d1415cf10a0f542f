"""Run any rig: its world, its emulators and its sync node, over ROS 2."""

from __future__ import annotations

import argparse

from sensor_rig.cli.support.rig_runs import (
    add_run_arguments,
    exit_code,
    loaded,
    print_summary,
    run_rig,
)

NAME = 'run'
GROUP = 'run'
TAKES_SIGNALS = True
HELP = 'run a rig file over ROS 2 and print a summary at the end'
EPILOG = """No other machine can reach the rig unless ROS_AUTOMATIC_DISCOVERY_RANGE,
ROS_STATIC_PEERS, ROS_DISCOVERY_SERVER or a Fast DDS profile of your own says so
(docs/security.md)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('rig', metavar='RIG', help='a rig file, or the name of a shipped one')
    add_run_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Run the rig."""
    summary = run_rig(loaded(args), args)
    print_summary(summary, args.json)
    return exit_code(summary, args.seconds)
