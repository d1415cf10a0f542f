"""The executable `emulator`: `emulator --rig FILE`, or with `--ros-args --params-file FILE`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rig_common.ros.executor import run_node
from sensor_rig.nodes.arguments import rig_from_arguments
from sensor_rig.nodes.building import make_emulator

DESCRIPTION = 'Publishes the streams of the simulated sensors of a rig file.'


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until a signal ends it."""
    return run_node(
        lambda: make_emulator(rig_from_arguments(DESCRIPTION, args)),
        sys.argv if args is None else args,
    )


if __name__ == '__main__':
    sys.exit(main())
