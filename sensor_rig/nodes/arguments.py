"""Which rig a node belongs to, from its command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rig_common.errors import RigError
from sensor_rig.rigfile import RigConfig, load_rig

ROS_ARGS, ROS_END = '--ros-args', '--'
PARAMS = '--params-file'


def rig_from_arguments(description: str, arguments: Sequence[str] | None = None) -> RigConfig:
    """Return the rig of `--rig FILE`, or of the first `--params-file FILE` of the ROS arguments.

    The file is read whole, not through rcl: a rig file may extend another one. Values given with
    `-p` and in further parameter files still win, when the node declares its parameters.
    The first argument is the program's name. `--help` prints the options; others are refused.
    """
    own, ros = _split(list(sys.argv if arguments is None else arguments)[1:])
    parser = argparse.ArgumentParser(
        description=description,
        epilog=f'ROS arguments follow {ROS_ARGS}: -p NAME:=VALUE, -r OLD:=NEW, {PARAMS} FILE, '
        '--log-level LEVEL',
        allow_abbrev=False,
    )
    where = 'rig file, or the name of a shipped one'
    parser.add_argument('--rig', metavar='FILE', help=where)
    parser.add_argument(
        PARAMS, metavar='FILE', help=f'the same; also among the ROS arguments: {where}'
    )
    given = parser.parse_args(own)
    name = given.rig or given.params_file or _params_file(ros)
    if name:
        return load_rig(name)
    raise RigError(
        'no rig file given; start the node with --rig FILE, or with --ros-args --params-file FILE'
    )


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return our own arguments and those between `--ros-args` and `--`."""
    own: list[str] = []
    ros: list[str] = []
    into = own
    for argument in arguments:
        if argument == ROS_ARGS:
            into = ros
        elif argument == ROS_END and into is ros:
            into = own
        else:
            into.append(argument)
    return own, ros


def _params_file(ros: list[str]) -> str:
    for index, argument in enumerate(ros):
        if argument.startswith(PARAMS + '='):
            return argument.partition('=')[2]
        if argument == PARAMS:
            if index + 1 == len(ros):
                raise RigError(f'{PARAMS} needs the name of a rig file after it')
            return ros[index + 1]
    return ''
