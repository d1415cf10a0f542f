"""The executables: they read the rig file and start the nodes of the two halves."""

from __future__ import annotations

import sys
from importlib import import_module

from rig_common.early import end_quietly_on_interrupt, end_with_parent

end_quietly_on_interrupt()
end_with_parent()


def start(executable: str) -> int:
    """Run an executable and return its exit code; a library that is missing is one sentence."""
    from rig_common.errors import RigError  # after the first line, which an interrupt may meet

    try:
        return int(import_module('sensor_rig.nodes.executables').run(executable))
    except RigError as error:
        sentence = str(error)
    except ModuleNotFoundError as error:
        from rig_common.requirements import HELP

        sentence = f'the Python module {error.name} is not installed: {HELP}'
    print(f'{executable}: {sentence}', file=sys.stderr)
    return RigError.EXIT_CODE
