"""Which rig a node belongs to, from its command line."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rig_common.errors import RigError
from sensor_rig.rigfile import RigConfig, load_rig


def rig_from_arguments(arguments: Sequence[str] | None = None) -> RigConfig:
    """Return the rig of `--rig FILE`, or of the first `--params-file FILE` of the ROS arguments.

    The file is read whole, not through rcl: a rig file may extend another one. Values given with
    `-p` and in further parameter files still win, when the node declares its parameters.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    for option in ('--rig', '--params-file'):
        for index, argument in enumerate(given):
            if argument.startswith(option + '='):
                return load_rig(argument.partition('=')[2])
            if argument == option:
                if index + 1 == len(given):
                    raise RigError(f'{option} needs the name of a rig file after it')
                return load_rig(given[index + 1])
    raise RigError(
        'no rig file given; start the node with --rig FILE, or with --ros-args --params-file FILE'
    )
