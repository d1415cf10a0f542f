"""What a correction did, stream by stream and topic by topic."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from rig_common.jsonable import JsonObject
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.offset_track import OffsetTrack


@dataclass
class StreamReport:
    """One input: what is known of its clock, and why it was left alone."""

    topic: str
    state: OffsetState
    offset_ms: float
    """Its clock minus the one that the stamps are put on, median; NaN where it is not known."""
    drift_ppm: float
    sigma_ms: float
    pieces: int
    """Stretches between steps and restarts of its clock."""
    why: str = ''
    """Why its stamps stay as they are; empty where they were corrected."""
    note: str = ''
    jitter_ms: float = 0.0
    """Jitter of stamps written on arrival that was taken out, one sigma."""

    @classmethod
    def of(cls, topic: str, track: OffsetTrack | None, state: OffsetState) -> StreamReport:
        """Begin the report of a stream."""
        if track is None:
            return cls(topic, state, nan, nan, nan, 0)
        found = track.summary
        return cls(
            topic, state, found.median_ns / 1e6, found.drift_ppm, found.sigma_s * 1e3, found.starts
        )

    def as_dict(self) -> JsonObject:
        """Return the stream as JSON values; null for what is not known."""
        return {
            'topic': self.topic,
            'corrected': not self.why,
            'why': self.why,
            'note': self.note,
            'state': self.state.value,
            'offset_ms': self.offset_ms,
            'sigma_ms': self.sigma_ms,
            'drift_ppm': self.drift_ppm,
            'steps': max(self.pieces - 1, 0),
            'jitter_ms': self.jitter_ms,
        }


class TopicReport:
    """By how much the stamps of one topic moved."""

    def __init__(self, messages: int) -> None:
        self.messages = messages
        self.follows = ''
        """The input whose clock it shares without being named."""
        self.count = 0
        """Messages whose stamp was moved."""
        self._least_ns = self._most_ns = 0
        self._sum_ns = 0

    def moved(self, by_ns: int) -> None:
        """Note new stamp minus old stamp of a message."""
        if not self.count:
            self._least_ns = self._most_ns = by_ns
        self.count += 1
        self._sum_ns += by_ns
        self._least_ns, self._most_ns = min(self._least_ns, by_ns), max(self._most_ns, by_ns)

    @property
    def mean_ms(self) -> float:
        """Mean of the moves; NaN where nothing moved."""
        return self._sum_ns / self.count / 1e6 if self.count else nan

    @property
    def least_ms(self) -> float:
        """The move furthest back."""
        return self._least_ns / 1e6

    @property
    def most_ms(self) -> float:
        """The move furthest forward."""
        return self._most_ns / 1e6

    def as_dict(self) -> JsonObject:
        """Return the topic as JSON values; null where nothing moved."""
        return {
            'messages': self.messages,
            'moved': self.count,
            'follows': self.follows,
            'moved_ms': {
                'mean': self.mean_ms,
                'min': self.least_ms,
                'max': self.most_ms,
            }
            if self.count
            else None,
        }
