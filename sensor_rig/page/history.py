"""The last seconds of a run, as the page draws them. No ROS, no drawing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rig_common.times import NS_PER_S

MOST_EVENTS = 1000
"""Changes, faults and bundles that are kept, as many as a person could look at."""
MOST_MARKS = 10_000
"""Samples of one sensor that are kept; real ones are some thousand in two seconds."""


class Mark(NamedTuple):
    """One sample with its three times, ns."""

    capture_ns: int
    stamp_ns: int
    arrival_ns: int


class OffsetPoint(NamedTuple):
    """What was believed of a clock at one moment, against what is true; ms."""

    time_s: float
    offset_ms: float
    sigma_ms: float
    true_ms: float


class WindowPoint(NamedTuple):
    """The sync window and what it follows."""

    time_s: float
    window_ms: float
    intensity: float


class Occurrence(NamedTuple):
    """Something that was done to the rig: a fault, a changed setting."""

    time_s: float
    name: str
    """In words, without the sensor."""
    sensor: str = ''
    end_s: float | None = None
    """When it is over; None: it stays."""

    @property
    def label(self) -> str:
        """Name it with its sensor."""
        return f'{self.sensor}: {self.name}' if self.sensor else self.name


STEP_MS = 3.0
"""A true offset that moves by more than this is a step; less is the noise of single stamps."""
SMOOTHING = 0.15
"""Share of a new value in a true offset without that noise."""


class History:
    """What happened within the last `span_s`; offsets, window and events within `long_s`."""

    def __init__(
        self,
        sensors: Iterable[str],
        span_s: float = 2.0,
        long_s: float = 60.0,
        planned: Iterable[Occurrence] = (),
    ) -> None:
        """Keep marks for `sensors`, in that order; `planned` events happen in every run."""
        self.span_ns = round(span_s * NS_PER_S)
        self.long_s = long_s
        self.now_ns = 0
        self.marks: dict[str, deque[Mark]] = {name: deque(maxlen=MOST_MARKS) for name in sensors}
        self.bundles: deque[dict[str, int]] = deque(maxlen=MOST_EVENTS)
        """Stamp of every member by sensor, newest last."""
        self.offsets: dict[str, deque[OffsetPoint]] = {}
        self.windows: deque[WindowPoint] = deque()
        self._planned = list(planned)
        self._events: deque[Occurrence] = deque(maxlen=MOST_EVENTS)

    @property
    def now_s(self) -> float:
        """Time since the start of the run."""
        return self.now_ns / NS_PER_S

    def add_event(self, event: Occurrence) -> None:
        """Note what was done."""
        self._events.append(event)

    def events(self) -> list[Occurrence]:
        """Return what happened within `long_s`, earliest first."""
        oldest_s = self.now_s - self.long_s
        return sorted(
            event
            for event in (*self._planned, *self._events)
            if event.time_s <= self.now_s and (event.end_s or event.time_s) >= oldest_s
        )

    def add_mark(self, sensor: str, mark: Mark) -> None:
        """Note a sample that has just arrived."""
        self.marks[sensor].append(mark)

    def add_bundle(self, members: Mapping[str, int]) -> None:
        """Note a bundle by the stamps of its members; only those that have marks are shown."""
        self.bundles.append({name: members[name] for name in self.marks if name in members})

    def add_offset(self, sensor: str, point: OffsetPoint) -> None:
        """Note an estimate."""
        line = self.offsets.setdefault(sensor, deque())
        moved_ms = point.true_ms - line[-1].true_ms if line else 0.0
        if abs(moved_ms) <= STEP_MS:
            point = point._replace(true_ms=point.true_ms - (1.0 - SMOOTHING) * moved_ms)
        line.append(point)
        while line[0].time_s < point.time_s - self.long_s:
            line.popleft()

    def add_truth(self, sensor: str, time_s: float, true_ms: float) -> None:
        """Note that a clock has stepped, without waiting for the next estimate."""
        line = self.offsets.get(sensor)
        if line and abs(line[-1].true_ms - true_ms) > STEP_MS:
            before = line[-1]._replace(time_s=time_s)
            line.extend((before, before._replace(true_ms=true_ms)))

    def add_window(self, point: WindowPoint) -> None:
        """Note the window."""
        self.windows.append(point)
        while self.windows[0].time_s < point.time_s - self.long_s:
            self.windows.popleft()

    def advance(self, now_ns: int) -> None:
        """Let time be `now_ns` and forget what is too old; a jump back forgets everything."""
        if now_ns < self.now_ns:
            self.clear()
        self.now_ns = now_ns
        oldest_ns = now_ns - self.span_ns
        for marks in self.marks.values():
            while marks and marks[0].arrival_ns < oldest_ns:
                marks.popleft()
        kept = {mark.stamp_ns for marks in self.marks.values() for mark in marks}
        while self.bundles and not any(stamp in kept for stamp in self.bundles[0].values()):
            self.bundles.popleft()
        while self._events and self._events[0].time_s < self.now_s - 2 * self.long_s:
            self._events.popleft()

    def clear(self) -> None:
        """Forget everything (the world was reset)."""
        for marks in self.marks.values():
            marks.clear()
        self.bundles.clear()
        self.offsets.clear()
        self.windows.clear()
        self._events.clear()

    def bundle_captures(self) -> list[dict[str, int]]:
        """Return, for each bundle, the true capture time of each member that is still shown."""
        by_stamp = {
            name: {mark.stamp_ns: mark.capture_ns for mark in marks}
            for name, marks in self.marks.items()
        }
        found = []
        for members in self.bundles:
            captures = {
                name: by_stamp[name][stamp]
                for name, stamp in members.items()
                if stamp in by_stamp.get(name, {})
            }
            if len(captures) > 1:
                found.append(captures)
        return found

    def last_spread_ms(self) -> float | None:
        """Return the time between the first and last true capture of the last bundle's members."""
        captures = self.bundle_captures()
        if not captures:
            return None
        last = captures[-1].values()
        return (max(last) - min(last)) / 1e6
