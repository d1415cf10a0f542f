"""Install now what commands need beside the usual packages; `./rig` does it when they start.

Only what is missing is fetched, and the script says before it begins what that is.
"""

from __future__ import annotations

import argparse

NAME = 'setup'
GROUP = 'set up'
HELP = 'install now what commands need beside the usual packages'
EXTRAS = ('test', 'bench', 'docs', 'sweep', 'ray', 'view')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the commands to install for."""
    parser.add_argument('extras', nargs='*', type=_extra, metavar='FOR', help=', '.join(EXTRAS))
    parser.add_argument('--all', action='store_true', help='for all of them')


def _extra(text: str) -> str:
    if text not in EXTRAS:
        raise argparse.ArgumentTypeError(f'is {text!r}; it should be one of {", ".join(EXTRAS)}')
    return text


def run(args: argparse.Namespace) -> int:
    """Say how it is done with pip; the script `rig` does it itself."""
    from rig_common.installing import install_extra

    print(install_extra(','.join(EXTRAS if args.all else args.extras) or 'view'))
    return 0
