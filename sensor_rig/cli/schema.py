"""Print the JSON Schema of a rig file, for editors and other checkers.

It knows every key with its type, range and meaning, in rig files and datasheets. What is missing,
and what several keys or the model have to agree on, is left to "rig check".
"""

from __future__ import annotations

import argparse

from sensor_rig.cli.support.arguments import output_file
from sensor_rig.cli.support.output import print_json

NAME = 'schema'
GROUP = 'set up'
HELP = 'print the JSON Schema of a rig file'
EPILOG = """for completion and help in an editor that uses yaml-language-server (VS Code with
the YAML extension, Neovim, Emacs and others):
  rig schema --output rig.schema.json
and as the first line of a rig file beside it:
  # yaml-language-server: $schema=rig.schema.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where the schema goes."""
    parser.add_argument(
        '--output',
        '-o',
        metavar='FILE',
        type=output_file,
        help='the file to write (without it, the schema is printed)',
    )


def run(args: argparse.Namespace) -> int:
    """Print or write the schema."""
    from rig_common.jsonable import json_text
    from rig_common.saving import save_text
    from sensor_rig.rigfile.rig_schema import rig_schema

    schema = rig_schema()
    if args.output is None:
        print_json(schema)
        return 0
    save_text(args.output, json_text(schema, 1))
    print(
        f'written: {args.output}; an editor uses it in rig files beside it whose first line is\n'
        f'# yaml-language-server: $schema={args.output.name}'
    )
    return 0
