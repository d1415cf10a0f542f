"""Learned clocks as plain JSON values, so that a restarted engine starts locked."""

from __future__ import annotations

from typing import Any

from rig_common.errors import RigError
from sync_engine.stream import Stream

_VERSION = 1


def dump_clocks(streams: dict[str, Stream]) -> dict[str, Any]:
    """Return the learned clocks of all sensors that have one."""
    clocks = {name: stream.clock.dump() for name, stream in streams.items()}
    return {
        'version': _VERSION,
        'clocks': {name: clock for name, clock in clocks.items() if clock is not None},
    }


def load_clocks(streams: dict[str, Stream], values: dict[str, Any]) -> list[str]:
    """Give saved clocks back to the streams that still exist; return their names.

    Each is taken up with its sensor's next message, unless that message shows another clock.
    """
    if not isinstance(values, dict) or values.get('version') != _VERSION:
        raise RigError(f'saved offsets must be of version {_VERSION}; these are not.')
    clocks = values.get('clocks')
    if not isinstance(clocks, dict):
        raise RigError("saved offsets must map sensors to clocks under 'clocks'.")
    taken = [name for name in clocks if name in streams]
    for name in taken:
        try:
            streams[name].clock.restore(clocks[name])
        except (KeyError, TypeError, ValueError) as error:
            raise RigError(f"saved offset of '{name}' cannot be read: {error}.") from None
    return taken
