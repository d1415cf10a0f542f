"""Tells a clock that stepped from a message that was slow, message by message.

When arrival - stamp changes, either the stamps' own spacing broke (the clock stepped) or it did
not (the latency changed). A periodic stream shows which: its stamps stay on a grid of its period
through jitter, stalls and lost frames, and leave it only when the clock steps. One odd stamp is a
glitch; a second one that agrees makes it a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from rig_common.times import NS_PER_MS

_LEARN = 9
"""Spacings seen before the period is believed."""
_QUIET_NS = 4 * NS_PER_MS
"""Changes of arrival - stamp below this are left to the filter."""
_HOLD_NS = 100 * NS_PER_MS
"""A single stamp this far ahead would make every frame until then look late."""
_GIVE_UP = 4
"""Odd stamps in a row that agree on no step; then the latest is simply the new base."""
_DELAY_GAIN = 0.1
"""Share of a new arrival - stamp in the usual one."""


class Verdict(Enum):
    """What one more stamp says."""

    FINE = auto()
    ODD = auto()
    """Off the grid; the next one decides."""
    STEP = auto()
    """The clock stepped by `StepDetector.step_ns`; the second stamp agrees."""
    HOLD = auto()
    """So far away that it must not be used before a second one agrees."""
    RESTART = auto()
    """Two stamps agree on a clock that has nothing to do with the old one."""


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
        self.reset()

    def reset(self) -> None:
        """Forget everything but the limits."""
        self.period_ns = 0.0
        self.scatter_ns = 0.0
        self._spacings: list[int] = []
        self._stamp_ns: int | None = None
        self.arrival_ns: int | None = None
        """Arrival of the last stamp that was believed."""
        self._delay_ns = 0.0
        """Usual arrival - stamp: the last one alone may have been slow."""
        self.least_delay_ns = -(2**62)
        """arrival - stamp below this would be a negative latency; the filter knows."""
        self._held: _Seen | None = None
        self._odd: int | None = None
        self._odd_stamp_ns = 0
        self._odd_count = 0

    def observe(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        """Judge one message."""
        if self._stamp_ns is None or self.arrival_ns is None:
            return self._base(stamp_ns, arrival_ns, 1.0)
        spacing = stamp_ns - self._stamp_ns
        change = arrival_ns - self.arrival_ns - spacing
        if -_QUIET_NS < change < _QUIET_NS and self._odd is None and spacing > 0:
            self._held = None
            if self.period_ns:
                error = spacing - self.period_ns
                if -0.3 * self.period_ns < error < 0.3 * self.period_ns:
                    self.period_ns += 0.02 * error
                    self.scatter_ns += 0.05 * (abs(error) - self.scatter_ns)
            else:
                self._learn(spacing)
            self._stamp_ns = stamp_ns
            self.arrival_ns = arrival_ns
            self._delay_ns += _DELAY_GAIN * (arrival_ns - stamp_ns - self._delay_ns)
            return Verdict.FINE
        return self._examine(stamp_ns, arrival_ns, spacing, change)

    @property
    def tolerance_ns(self) -> float:
        """How far from the grid a stamp may lie."""
        return max(1.0 * NS_PER_MS, 6.0 * self.scatter_ns)

    @property
    def is_periodic(self) -> bool:
        """Whether the stamps keep to a grid that is fine enough to show a step."""
        return self.period_ns > 0.0 and self.tolerance_ns < 0.25 * self.period_ns

    @property
    def in_doubt(self) -> bool:
        """Whether the last stamp may belong to a clock that has stepped; the next one decides."""
        return self._odd is not None or self._held is not None

    def _base(self, stamp_ns: int, arrival_ns: int, delay_gain: float = _DELAY_GAIN) -> Verdict:
        """Count from this message on; a `delay_gain` of 1 forgets how long others took."""
        self._delay_ns += delay_gain * (arrival_ns - stamp_ns - self._delay_ns)
        self._stamp_ns, self.arrival_ns = stamp_ns, arrival_ns
        self._held = self._odd = None
        self._odd_count = 0
        return Verdict.FINE

    def _learn(self, spacing: int) -> None:
        self._spacings.append(spacing)
        if len(self._spacings) < _LEARN:
            return
        ordered = sorted(self._spacings)
        self.period_ns = float(ordered[_LEARN // 2])
        errors = sorted(abs(value - self.period_ns) for value in ordered)
        self.scatter_ns = errors[_LEARN // 2]
        self._spacings.clear()

    def _examine(self, stamp_ns: int, arrival_ns: int, spacing: int, change: int) -> Verdict:
        if abs(change) > self._restart_ns and not self._is_stall(spacing, change):
            return self._far(stamp_ns, arrival_ns)
        delay_ns = arrival_ns - stamp_ns
        step = (self._off_grid(spacing, change, delay_ns) if self.is_periodic
                else self._unexplained(spacing, change, delay_ns))
        if step is None:
            if spacing <= 0:
                return Verdict.FINE  # out of order, or too little known to say more
            if not self.period_ns:
                self._learn(spacing)
            return self._base(stamp_ns, arrival_ns)
        odd, self._odd_count = self._odd, self._odd_count + 1
        if odd is not None and (abs(step - odd) < self._agreement_ns(step)
                                or self._is_settled(stamp_ns)):
            self.step_ns = (step + odd) // 2
            self.step_spread_ns = self._spread(step, odd, spacing)
            self.least_delay_ns -= self.step_ns
            self._delay_ns -= self.step_ns
            self._base(stamp_ns, arrival_ns)
            return Verdict.STEP
        self._odd, self._odd_stamp_ns = step, stamp_ns
        if self._odd_count > _GIVE_UP:
            self._base(stamp_ns, arrival_ns, 1.0)
        return Verdict.HOLD if step > _HOLD_NS else Verdict.ODD

    def _agreement_ns(self, step: int) -> float:
        """Return how far two odd stamps may be apart that mean one step."""
        known = 2.0 * self.tolerance_ns
        return known if self.is_periodic else max(known, 0.1 * abs(step))

    def _unexplained(self, spacing: int, change: int, delay_ns: int) -> int | None:
        """Return a step (ns) that no latency explains where no grid is known yet, or None.

        Stamps that go back, or come before they could have been written, and whatever follows
        such a one; small ones are left to the filter.
        """
        if abs(change) < _HOLD_NS:
            return None
        odd = spacing <= 0 or delay_ns < self.least_delay_ns or self._odd is not None
        return -change if odd else None

    def _is_settled(self, stamp_ns: int) -> bool:
        """Return whether odd stamps that agree on no step are on one grid all the same.

        Arrivals that jitter by half a period leave open by how many periods the clock stepped,
        but not that it did.
        """
        apart = stamp_ns - self._odd_stamp_ns
        return (self.is_periodic and self._odd_count > _GIVE_UP and apart > 0
                and self._grid_error(apart) is None)

    def _spread(self, step: int, odd: int, spacing: int) -> float:
        """Return how uncertain the size of a step is, ns."""
        if not self.is_periodic:
            return max(abs(step - odd), _QUIET_NS)
        if spacing > 0 and self._grid_error(spacing) is None:
            # Known from arrivals alone, and yet a whole number of periods.
            return max(abs(step - odd), abs(step - self.period_ns * round(step / self.period_ns)))
        return abs(step - odd)

    def _is_stall(self, spacing: int, change: int) -> bool:
        """Return whether the messages were merely held up: later, but on the grid as before."""
        if change < 0 or spacing <= 0:
            return False
        return not self.is_periodic or self._grid_error(spacing) is None

    def _grid_error(self, spacing: int) -> float | None:
        """Return the distance of `spacing` from the grid, None where it is on it."""
        error = spacing - self.period_ns * round(spacing / self.period_ns)
        # The period is known to a share of the scatter; over many periods that adds up.
        allowed = self.tolerance_ns + 1e-4 * abs(spacing)
        return None if abs(error) <= allowed else error

    def _off_grid(self, spacing: int, change: int, delay_ns: int) -> int | None:
        """Return by how much the clock seems to have stepped (ns), None where it did not."""
        if spacing > 0 and self._grid_error(spacing) is None:
            # Whole periods ahead: lost frames would have taken as long to arrive. The latency
            # may have fallen, as at the end of a stall, but not below nothing.
            return -change if change < -_QUIET_NS and delay_ns < self.least_delay_ns else None
        elapsed = spacing + delay_ns - self._delay_ns
        return round(spacing - self.period_ns * max(1, round(elapsed / self.period_ns)))

    def _far(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        held, self._held = self._held, _Seen(stamp_ns, arrival_ns)
        if held is None:
            return Verdict.HOLD
        spacing = stamp_ns - held.stamp_ns
        disagreement = abs(spacing - (arrival_ns - held.arrival_ns))
        if spacing <= 0 or disagreement > self._restart_ns / 2:
            return Verdict.HOLD
        self.reset()
        self._base(stamp_ns, arrival_ns, 1.0)
        return Verdict.RESTART
