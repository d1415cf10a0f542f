"""Print the JSON Schema of a rig file, for editors and other checkers.

It describes what stands below `/**: ros__parameters:`.
"""

from __future__ import annotations

import argparse

from sensor_rig.cli.output import print_json

NAME = 'schema'
HELP = 'print the JSON Schema of a rig file'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: there is one schema."""


def run(args: argparse.Namespace) -> int:
    """Print the schema."""
    from sensor_rig.rigschema import rig_schema

    print_json(rig_schema())
    return 0
