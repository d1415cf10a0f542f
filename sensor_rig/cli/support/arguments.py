"""Numbers and files in a command line: what each may be, in one wording for all commands."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from rig_common.errors import RigError

LAST_PORT = 65_535


def positive(text: str) -> float:
    """Return the number in an argument, which must be more than zero."""
    value = _number(text)
    if value is None or not 0.0 < value < float('inf'):
        raise _wrong(text, 'a number more than zero')
    return value


def not_negative(text: str) -> float:
    """Return the number in an argument, which must be zero or more."""
    value = _number(text)
    if value is None or not 0.0 <= value < float('inf'):
        raise _wrong(text, 'a number, zero or more')
    return value


def port(text: str) -> int:
    """Return the port in an argument; 0 is any free one."""
    if not re.fullmatch('[0-9]{1,6}', text) or int(text) > LAST_PORT:
        raise _wrong(text, f'a whole number from 1 to {LAST_PORT}, or 0 for any free port')
    return int(text)


def output_file(text: str) -> Path:
    """Return the file in an argument, if one can be written there; asked before any work."""
    path = Path(text)
    if path.is_dir():
        raise _wrong(text, 'a file, and there is a folder of that name')
    if not path.parent.is_dir():
        raise _wrong(text, f'in a folder that exists, and {path.parent} does not')
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise _wrong(text, 'a file that you may write')
    return path


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _wrong(text: str, rule: str) -> argparse.ArgumentTypeError:
    # `registry.Parser` puts the option's name in front of "is".
    return argparse.ArgumentTypeError(f'is {text!r}; it should be {rule}')


def refuse_existing(path: Path | None) -> None:
    """Raise RigError where a file to be written is there already; before any work is done."""
    if path is not None and path.exists():
        raise RigError(f'{path} exists already; choose another name or remove it first')


def add_storage_arguments(parser: argparse.ArgumentParser, *, ros1: bool = False) -> None:
    """Add how a recording is written; with `ros1` a ROS 1 bag comes out as one unless told."""
    parser.add_argument(
        '--storage',
        choices=('mcap', 'sqlite3', 'bag') if ros1 else ('mcap', 'sqlite3'),
        default=None if ros1 else 'mcap',
        help=f'how OUT is stored ({"bag for a ROS 1 bag, else " if ros1 else ""}mcap)',
    )
    parser.add_argument('--compress', action='store_true', help='compress OUT with zstd')


def add_simulation_arguments(
    parser: argparse.ArgumentParser, *, rig: str, seconds: float, after: float
) -> None:
    """Add which rig is simulated for a picture, and which part of the run is shown."""
    parser.add_argument(
        '--rig',
        default=rig,
        metavar='FILE',
        help=f'a rig file, or the name of a shipped one ({rig})',
    )
    parser.add_argument(
        '--seconds',
        type=positive,
        default=seconds,
        metavar='N',
        help=f'how long to show, simulated ({seconds:g})',
    )
    parser.add_argument(
        '--after',
        type=not_negative,
        default=after,
        metavar='S',
        help=f'simulated time before that ({after:g})',
    )


def add_trajectory_argument(parser: argparse.ArgumentParser) -> None:
    """Add trajectories that are read beside a recording."""
    parser.add_argument(
        '--trajectory',
        metavar='FILE',
        type=Path,
        action='append',
        default=[],
        help='read poses beside the recording, as the topic /trajectory/NAME: TUM, KITTI (with '
        'its times.txt), or CSV with a header; may be given again',
    )


def add_sidecar_argument(parser: argparse.ArgumentParser) -> None:
    """Add the file of corrections that `inspect --sidecar` writes."""
    parser.add_argument(
        '--sidecar',
        metavar='FILE',
        type=Path,
        help='read the recording with the corrections of this file',
    )
