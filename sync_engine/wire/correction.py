"""Puts right the stamps of single messages: the same bytes with the stamp of their true capture.

    corrector = Corrector(config, offset_of)
    raw = corrector.correct('lidar', raw, arrival_ns)

Where the offset comes from is the caller's: the clocks of a whole recording, or of a live engine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rig_common.cdr import Buffer, CdrError, Reader, read_stamp_ns, write_stamp_ns
from sync_engine.config import SyncConfig
from sync_engine.config.input_config import TF_TYPE
from sync_engine.wire.restamp import corrected

OffsetOf = Callable[[str, int, int], int | None]
"""From input, stamp and arrival (ns) to how far its clock is ahead, ns; None leaves it alone."""


class Moved(NamedTuple):
    """What became of a message."""

    raw: bytes
    by_ns: int | None
    """New stamp minus old stamp; None where it stays as it was."""


class Corrector:
    """Corrects messages of the inputs of a configuration, and transforms of their frames."""

    def __init__(self, config: SyncConfig, offset_of: OffsetOf) -> None:
        self._offset_of = offset_of
        self._types = {name: given.type for name, given in config.inputs.items()}
        self._shifts_ns = {name: given.stamp_shift_ns for name, given in config.inputs.items()}
        self._frames: dict[str, list[tuple[str, str]]] = defaultdict(list)
        """Child frame -> (frame or empty for any, input)."""
        for name, given in config.inputs.items():
            if given.child_frame_id:
                self.add_frame(given.frame_id, given.child_frame_id, name)

    def add_frame(self, frame_id: str, child_frame_id: str, name: str) -> None:
        """Let transforms to `child_frame_id` (from `frame_id`, where given) follow an input."""
        self._frames[child_frame_id.strip('/')].append((frame_id.strip('/'), name))

    @property
    def has_frames(self) -> bool:
        """Whether transforms are corrected at all."""
        return bool(self._frames)

    def correct(
        self, name: str, raw: bytes, arrival_ns: int, type_name: str | None = None
    ) -> Moved:
        """Return a message of input `name`, or of a topic of `type_name` that shares its clock."""
        kind = self._types[name] if type_name is None else type_name
        try:
            if kind == TF_TYPE:
                return self.correct_transforms(raw, arrival_ns)
            stamp_ns = read_stamp_ns(raw)
            shift_ns = self._shifts_ns[name]
            offset_ns = (
                self._offset_of(name, stamp_ns + shift_ns, arrival_ns) if stamp_ns else None
            )
            if offset_ns is None:
                return Moved(raw, None)
            return Moved(corrected(kind, raw, offset_ns, -shift_ns), shift_ns - offset_ns)
        except CdrError:
            return Moved(raw, None)  # what cannot be read or held stays as it is

    def correct_transforms(self, raw: bytes, arrival_ns: int) -> Moved:
        """Return a TFMessage in which the transforms of known frames have right stamps."""
        changed: bytearray | None = None
        by_ns = None
        for place, stamp_ns, frame_id, child_frame_id in _transforms(raw):
            name = self._input_of(frame_id, child_frame_id)
            offset_ns = self._offset_of(name, stamp_ns, arrival_ns) if name and stamp_ns else None
            if offset_ns is None:
                continue
            if changed is None:
                changed = bytearray(raw)
            write_stamp_ns(changed, stamp_ns - offset_ns, place)
            by_ns = -offset_ns
        return Moved(raw if changed is None else bytes(changed), by_ns)

    def _input_of(self, frame_id: str, child_frame_id: str) -> str:
        for parent, name in self._frames.get(child_frame_id.strip('/'), ()):
            if parent in ('', frame_id.strip('/')):
                return name
        return ''


def _transforms(raw: Buffer) -> Iterator[tuple[int, int, str, str]]:
    """Yield (place of the stamp, stamp ns, frame, child frame) of a TFMessage."""
    reader = Reader(raw)
    for _ in range(reader.count(72)):
        reader.align(4)
        place = reader.pos
        stamp_ns, frame_id = reader.header()
        child_frame_id = reader.string()
        reader.array('f8', 7)
        yield place, stamp_ns, frame_id, child_frame_id
