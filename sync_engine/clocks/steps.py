"""Tells a clock that stepped from a message that was slow, message by message.

A clock that steps by S moves arrival - stamp by -S, for good, against its usual value. So does a
latency that changes. The stamps' own spacing tells which:

    period 33 ms        stamp spacing   arrival spacing    arrival - stamp
    frames as usual     33              33                 20
    one frame lost      67              67                 20       does not move: no question
    clock steps +50     83 (odd)        33 (usual)         -30      the clock
    messages held up    33 (usual)      83 (odd)           70       the latency
    clock steps +33     67 (multiple)   33 (seen often)    -13      the clock, more likely
    the same, lossy     67 (seen)       33 (seen)          -13      cannot be told at once

A frame that leaves the grid while arrival - stamp stays is none of this: rates vary, throttles
thin out, exposures move the stamp. Changes below a few milliseconds, or inside the usual spread,
are left to the filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from rig_common.times import NS_PER_MS, NS_PER_S
from sync_engine.clocks.spacings import FITTING, ODD, SEEN, Spacings

_LEAST_STEP_NS = 5.0 * NS_PER_MS
_SPREADS = 3.5
"""A change of arrival - stamp below the least step, or this many of its spreads, is no step. The
spread is known to a tenth, and a step of four spreads must be seen."""
_FIRST_SPREAD_NS = 2.0 * NS_PER_MS
_GAIN, _SPREAD_GAIN = 0.05, 0.02
"""Share of a new arrival - stamp in the usual one, and in its spread."""
_SURE_NS = 100 * NS_PER_MS
"""Before any spacing is known only a change this large is called a step. A single stamp this far
ahead would make every frame until then look late, so it is held until a second one agrees."""
_LASTS_NS = 2 * NS_PER_S
_LASTS = 5
"""A change that holds for so long, and so many messages, is there to stay."""
_CONFIRMED, _BELIEVED = 2, 3
"""Messages that must agree on a step: where the spacing shows it, and where it may be either."""
_FLOOR_RISE = 5e-5
"""How fast the smallest arrival - stamp is forgotten (s/s): as fast as a clock may drift."""
_TOGETHER = 0.2
"""Messages that come within this share of the period of each other come out of a queue."""
_SLIP_MESSAGES = 4
_WARY = 3
"""Messages as usual that end a doubt: one of them may be a slow one after a step."""
_AGREE = 1.5
"""Thresholds by which messages of one run may differ: the first may have been a slow one."""


class Verdict(Enum):
    """What one more stamp says."""

    FINE = auto()
    ODD = auto()
    """The clock may have stepped; the next one decides."""
    STEP = auto()
    """The clock stepped by `StepDetector.step_ns`."""
    UNSURE = auto()
    """Clock or latency changed by `StepDetector.step_ns`, for good; nothing shows which."""
    HOLD = auto()
    """So far away that it must not be used before a second one agrees."""
    RESTART = auto()
    """Two stamps agree on a clock that has nothing to do with the old one."""


JUMPS = frozenset({Verdict.STEP, Verdict.UNSURE, Verdict.RESTART})
"""Verdicts after which frames from before fit nothing any more."""


class _Cause(Enum):
    CLOCK = auto()
    LATENCY = auto()
    UNCLEAR = auto()


@dataclass(slots=True)
class _Away:
    """A run of messages whose arrival - stamp is not the usual one."""

    cause: _Cause
    since_ns: int
    step_ns: float
    """Step of the clock that would explain it, the mean over the run."""
    size_ns: float | None
    """The same to the precision of the grid, from the first message; None where it shows none."""
    least_ns: float
    """Smallest arrival - stamp of the run."""
    count: int = 1


@dataclass(slots=True)
class _Seen:
    stamp_ns: int
    arrival_ns: int


class StepDetector:
    """Watches one stream's (stamp, arrival) pairs."""

    def __init__(self, restart_jump_ns: int) -> None:
        self._restart_ns = restart_jump_ns
        self.step_ns = 0
        self.step_spread_ns = 0.0
        """How uncertain the size of the last step is."""
        self.step_since_ns = 0
        """Arrival of the first message after it."""
        self.reset()

    def reset(self) -> None:
        """Forget everything but the limits."""
        self.spacings = Spacings()
        self._stamp_ns: int | None = None
        self.arrival_ns: int | None = None
        """Arrival of the last stamp that was believed."""
        self._usual_ns = 0.0
        """Usual arrival - stamp."""
        self._spread_ns = _FIRST_SPREAD_NS
        self._threshold_ns = 2.0 * _SPREADS * _FIRST_SPREAD_NS
        self._count = 0
        self._slip_ns, self._slip_count = 0.0, -_SLIP_MESSAGES
        """By how much the stamps last left their grid, and when."""
        self._floor_ns = 0.0
        """Smallest arrival - stamp, slowly forgotten."""
        self.least_delay_ns = -(2**62)
        """arrival - stamp below this would be a negative latency; the filter knows."""
        self._came_ns = 0
        """Arrival of the last message of all."""
        self._held: _Seen | None = None
        self._away: _Away | None = None
        self._wary = 0
        """Messages as usual that are still wanted after a doubt."""
        self.grid_held = True
        """Whether the stamps have kept to a grid since this was last set: then the clock has not
        stepped, but by whole periods."""

    @property
    def period_ns(self) -> float:
        """Usual spacing of the stamps; 0 before it is known."""
        return self.spacings.period_ns

    @property
    def spread_ns(self) -> float:
        """Usual spread of arrival - stamp."""
        return self._spread_ns

    @property
    def in_doubt(self) -> bool:
        """Whether the clock may have stepped; what comes next decides."""
        away = self._away
        if self._held is not None or self._wary:
            return True
        if away is None or away.cause is _Cause.LATENCY:
            return False
        # A message that is late by chance is no reason to doubt; two that agree are.
        return away.cause is _Cause.CLOCK or away.step_ns > 0.0 or away.count > 1

    def observe(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        """Judge one message."""
        if self._stamp_ns is None or self.arrival_ns is None:
            self._usual_ns = self._floor_ns = float(arrival_ns - stamp_ns)
            return self._believe(stamp_ns, arrival_ns)
        spacing = stamp_ns - self._stamp_ns
        delay = arrival_ns - stamp_ns
        moved = delay - self._usual_ns
        came_ns, self._came_ns = self._came_ns, arrival_ns
        if -self._threshold_ns < moved < self._threshold_ns:
            if self._wary:
                self._wary -= 1
            if self._away is not None:
                self._return(self._away)
            self._held = None
            if spacing <= 0:
                return Verdict.FINE  # out of order
            self._learn(spacing, delay, moved, arrival_ns)
            return self._believe(stamp_ns, arrival_ns)
        queued = arrival_ns - came_ns < _TOGETHER * self.spacings.period_ns
        return self._examine(stamp_ns, arrival_ns, spacing, queued)

    def _believe(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        self._stamp_ns, self.arrival_ns = stamp_ns, arrival_ns
        self._came_ns = arrival_ns
        return Verdict.FINE

    def _learn(self, spacing: int, delay: int, moved: float, arrival_ns: int) -> None:
        """Take a message that is as usual."""
        spacings = self.spacings
        spacings.add(spacing)
        self._count += 1
        if not spacings.on_grid(spacing):
            self.grid_held = False
            if spacings.is_periodic:
                self._slip_ns = spacing - spacings.nearest(spacing + moved)
                self._slip_count = self._count
        gain = max(_GAIN, 1.0 / (self._count + 1))
        self._usual_ns += gain * moved
        self._spread_by(abs(moved))
        elapsed_ns = 0 if self.arrival_ns is None else arrival_ns - self.arrival_ns
        self._floor_ns = min(delay, self._floor_ns + _FLOOR_RISE * elapsed_ns)

    def _spread_by(self, moved: float) -> None:
        # 1.25: mean absolute to standard deviation of a normal distribution
        gain = max(_SPREAD_GAIN, 1.0 / (self._count + 8))
        self._spread_ns += gain * (1.25 * moved - self._spread_ns)
        self._threshold_ns = max(_LEAST_STEP_NS, _SPREADS * self._spread_ns)

    def _return(self, away: _Away) -> None:
        """A run has ended as it began: part of the spread, and how low arrival - stamp may be."""
        if away.cause is not _Cause.LATENCY and away.count > 1:
            self._wary = _WARY
        self._floor_ns = min(self._floor_ns, away.least_ns)
        moved = min(abs(away.step_ns), 2.0 * self._threshold_ns)  # a long stall counts as a few
        for _ in range(min(away.count, _LASTS)):
            self._spread_by(moved)
        self._away = None

    def _examine(self, stamp_ns: int, arrival_ns: int, spacing: int, queued: bool) -> Verdict:
        """Judge a message whose arrival - stamp is not the usual one."""
        delay = arrival_ns - stamp_ns
        step = self._usual_ns - delay
        if self._is_far(spacing, step, delay):
            return self._far(stamp_ns, arrival_ns)
        away = self._away
        if away is None or abs(step - away.step_ns) > _AGREE * self._threshold_ns:
            away = self._away = self._begin(spacing, step, arrival_ns, queued)
        else:
            away.count += 1
            away.step_ns += (step - away.step_ns) / away.count
            away.least_ns = min(away.least_ns, delay)
        verdict = self._settle(away, delay, arrival_ns)
        follows = verdict is Verdict.FINE and away.cause is not _Cause.CLOCK and spacing > 0
        if follows or verdict in JUMPS:
            self._believe(stamp_ns, arrival_ns)
        return verdict

    def _begin(self, spacing: int, step: float, arrival_ns: int, queued: bool) -> _Away:
        """Return the run that this message begins; its spacing shows what changed."""
        delay = self._usual_ns - step
        was = self._away
        slower = was is not None and was.cause is _Cause.LATENCY and was.count > 1
        by = step - was.step_ns if was is not None and slower else step
        away = _Away(self._cause(spacing, by, delay), arrival_ns, step, None, delay)
        if self.spacings.is_periodic:
            self._measure(away, spacing, by)
        if queued and away.cause is not _Cause.LATENCY:
            away.cause = _Cause.LATENCY if step < 0.0 else _Cause.UNCLEAR
        return away

    def _measure(self, away: _Away, spacing: int, by: float) -> None:
        """Hold a run against the grid: by how much the stamps left it, and whether that fits."""
        size = away.step_ns - by + spacing - self.spacings.nearest(spacing - by)
        fits = abs(size - away.step_ns) <= _AGREE * self._threshold_ns
        if abs(size) < 0.5 * abs(away.step_ns):  # the grid has not moved, unless before
            slipped = self._slipped(away.step_ns)
            away.cause = _Cause.CLOCK if slipped else _Cause.LATENCY
            away.size_ns = self._slip_ns if slipped else None
        elif not fits:
            away.cause = _Cause.UNCLEAR if away.cause is _Cause.CLOCK else away.cause
        else:
            away.size_ns = size
            if not self.spacings.on_grid(spacing):
                away.cause = _Cause.CLOCK

    def _cause(self, spacing: int, step: float, delay: float) -> _Cause:
        """Compare how usual the spacing is as stamped, and without the step."""
        spacings = self.spacings
        if not spacings.period_ns:
            shown = spacing <= 0 or delay < self.least_delay_ns
            return _Cause.CLOCK if shown and abs(step) >= _SURE_NS else _Cause.LATENCY
        jitter_ns = min(self._threshold_ns, max(2.0 * self._spread_ns, 0.2 * spacings.period_ns))
        as_stamped = ODD if delay < self.least_delay_ns else spacings.usual(spacing)
        without = spacings.usual(spacing - step, jitter_ns)
        blurred = jitter_ns > 0.5 * spacings.period_ns
        if blurred and abs(step) < 2.0 * (jitter_ns + spacings.period_ns):
            # within the jitter it fits to anything, and proves little
            without = min(without, FITTING if spacings.is_periodic else as_stamped)
        if without > as_stamped:
            return _Cause.CLOCK
        hidden = step > 0.0 and not spacings.is_periodic  # its first message may have been slow
        if as_stamped == without or hidden or (as_stamped < SEEN and self._is_new_low(delay)):
            return _Cause.UNCLEAR
        return _Cause.LATENCY

    def _slipped(self, step: float) -> bool:
        """Return whether the grid moved by `step` a moment ago, behind a message that was slow."""
        recent = self._count - self._slip_count < _SLIP_MESSAGES
        enough = abs(self._slip_ns) > 0.5 * abs(step)  # an exposure moves a stamp by 1.4 ms, too
        return recent and enough and abs(self._slip_ns - step) < self._threshold_ns

    def _is_new_low(self, delay: float) -> bool:
        """Return whether arrival - stamp is below all that was seen, as latencies hardly fall."""
        return delay < self._floor_ns - 0.5 * self._threshold_ns

    def _settle(self, away: _Away, delay: int, arrival_ns: int) -> Verdict:
        """Return what a run of messages that agree comes to."""
        lasts = away.count >= _LASTS and arrival_ns - away.since_ns >= _LASTS_NS
        if away.cause is _Cause.LATENCY:
            if lasts:
                self._usual_ns -= away.step_ns
                self._away = None
            return Verdict.FINE
        if away.cause is _Cause.CLOCK:
            if away.count >= _CONFIRMED:
                return self._step(away, Verdict.STEP, 0.0)
            return self._odd(away)
        if away.count >= _BELIEVED and self._is_new_low(delay):
            return self._step(away, Verdict.STEP, 0.5 * abs(away.step_ns))
        if lasts:
            return self._step(away, Verdict.UNSURE, abs(away.step_ns))
        return self._odd(away) if self.in_doubt else Verdict.FINE

    @staticmethod
    def _odd(away: _Away) -> Verdict:
        return Verdict.HOLD if away.step_ns > _SURE_NS else Verdict.ODD

    def _step(self, away: _Away, verdict: Verdict, spread_ns: float) -> Verdict:
        """Take the new level for the usual one."""
        self.step_since_ns = away.since_ns
        size = away.size_ns if verdict is Verdict.STEP else None
        self.step_ns = round(away.step_ns if size is None else size)
        known_ns = self._spread_ns if size is None else self.spacings.scatter_ns
        self.step_spread_ns = max(spread_ns, known_ns)
        self._usual_ns -= away.step_ns
        self._floor_ns -= away.step_ns
        if verdict is Verdict.STEP:
            self.least_delay_ns -= self.step_ns
        self._away = self._held = None
        self._wary = 0
        return verdict

    def _is_far(self, spacing: int, step: float, delay: int) -> bool:
        """Return whether this stamp has nothing to do with the clock so far.

        Not where it changed little since the last message, as in a queue that drains, and not
        where messages were merely held up: later, but on the grid as before.
        """
        assert self._stamp_ns is not None and self.arrival_ns is not None
        change = delay - (self.arrival_ns - self._stamp_ns)
        if min(abs(step), abs(change)) <= self._restart_ns:
            return False
        if step > 0.0 or spacing <= 0:
            return True
        return self.spacings.is_periodic and not self.spacings.on_grid(spacing)

    def _far(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        held, self._held = self._held, _Seen(stamp_ns, arrival_ns)
        if held is None:
            return Verdict.HOLD
        spacing = stamp_ns - held.stamp_ns
        disagreement = abs(spacing - (arrival_ns - held.arrival_ns))
        if spacing <= 0 or disagreement > self._restart_ns / 2:
            return Verdict.HOLD
        self.reset()
        self.observe(stamp_ns, arrival_ns)
        return Verdict.RESTART
