"""The clocks that an engine has learned, for a restart or a second pass of a recording."""

from __future__ import annotations

from collections.abc import Mapping

from rig_common.errors import RigError
from rig_common.jsonable import JsonObject
from sync_engine.clocks.offset_track import OffsetTrack, offset_track
from sync_engine.clocks.smoothing import ClockTrack
from sync_engine.streams.stream import Stream

_VERSION = 1


class LearnedClocks:
    """The clocks of all sensors of one engine."""

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = streams

    def snapshot(self) -> JsonObject:
        """Return the clocks, of all sensors that have one, as JSON-able values."""
        clocks = {name: stream.clock.dump() for name, stream in self._streams.items()}
        return {
            'version': _VERSION,
            'clocks': {name: clock for name, clock in clocks.items() if clock is not None},
        }

    def restore(self, values: dict[str, object]) -> list[str]:
        """Give a snapshot back to the sensors that still exist; return their names.

        Each is taken up with its sensor's next message, unless that message shows another clock.
        """
        if not isinstance(values, dict) or values.get('version') != _VERSION:
            raise RigError(f'saved offsets must be of version {_VERSION}; these are not.')
        clocks = values.get('clocks')
        if not isinstance(clocks, dict):
            raise RigError("saved offsets must map sensors to clocks under 'clocks'.")
        taken = [name for name in clocks if name in self._streams]
        for name in taken:
            try:
                self._streams[name].clock.restore(clocks[name])
            except (KeyError, TypeError, ValueError) as error:
                raise RigError(f"saved offset of '{name}' cannot be read: {error}.") from None
        return taken

    def record(self) -> None:
        """Note how the clocks are learned, before the first message, for `smoothed`."""
        for stream in self._streams.values():
            stream.clock.record()

    def smoothed(self) -> dict[str, ClockTrack]:
        """Return every sensor's clock as the whole recording shows it (`clocks/smoothing.py`)."""
        return {
            name: stream.clock.smoothed()
            for name, stream in self._streams.items()
            if not stream.given.clock_of
        }

    def offset_tracks(self, reference_id: str, *, to_host: bool) -> dict[str, OffsetTrack]:
        """Return every sensor's offset over the recording that was noted, where it is known.

        Against the clock of `reference_id`, or by way of that against the host's.
        """
        known = self.smoothed()
        clocks = {
            name: known[stream.given.clock_of or name] for name, stream in self._streams.items()
        }
        tracks = {id(clock): offset_track(clock, clocks[reference_id], to_host=to_host)
                  for clock in known.values()}  # fmt: skip
        return {
            name: track
            for name, clock in clocks.items()
            if (track := tracks[id(clock)]) is not None
        }

    def play(self, tracks: Mapping[str, ClockTrack]) -> None:
        """Use clocks that are known instead of learning them; no cue has to be run."""
        for name, track in tracks.items():
            self._streams[name].clock.play(track)
