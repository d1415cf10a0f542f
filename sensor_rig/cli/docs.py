"""Build the documentation as a site of plain files: search, light and dark, nothing fetched.

Open index.html of the folder in a browser; no server is needed. Warnings (a dead link, a page that
the navigation forgot) are printed, and the command then ends with 1.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sensor_rig.cli.arguments import output_file

NAME = 'docs'
HELP = 'build the documentation site'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add where the site goes."""
    parser.add_argument('--output', '-o', metavar='DIR', type=Path, default=Path('site'),
                        help='the folder to write (site); it is emptied first')


def run(args: argparse.Namespace) -> int:
    """Build the site."""
    from rig_common.errors import RigError
    from rig_common.installing import pip_install
    from sensor_rig.cli.bench import source_root

    try:
        import mkdocs  # noqa: F401
    except ImportError:
        raise RigError(f'the site is built by MkDocs, which is not installed: '
                       f'{pip_install("mkdocs-material")}') from None
    from sensor_rig.site import build_site

    output_file(str(args.output / 'index.html')) if args.output.exists() else None
    problems = build_site(source_root(), args.output.absolute())
    for problem in problems:
        print(f'warning: {problem}')
    print(f'written: {args.output / "index.html"}')
    return 1 if problems else 0
