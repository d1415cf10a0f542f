"""Tells a clock that stepped from a message that was slow, message by message.

A clock that steps by S moves arrival - stamp by -S, for good, against its usual value
(usual_delay.py). So does a latency that changes; the stamps' own spacing tells which
(step_cause.py). Messages that are off by about the same are a run. Example on a stream whose rate
varies, so that its stamps show nothing; usual delay 20, spread 3, threshold 10 ms; the clock steps
by 12 ms with the third message:

    delay            21   19    7   11    9   18    8    6   ...
    off by            1   -1  -13   -9  -11   -2  -12  -14
    run, its mean     -    -  -13  -11  -11    -  -11  -12         "as usual" within half of 10
    in doubt          no   no  yes  yes  yes  yes  yes  yes        18 was a slow one: one as usual
                                                                   does not end a run, three do

After two seconds the run is there to stay: clock or latency, nothing shows which. With stamps on a
grid the third message shows it, and the fourth confirms it.

A frame that leaves the grid while arrival - stamp stays is none of this: rates vary, throttles
thin out, exposures move the stamp. Changes below a few milliseconds, or inside the usual spread,
are left to the filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from math import inf

from rig_common.times import LONG_AGO_NS, NS_PER_S
from sync_engine.clocks.spacings import Spacings
from sync_engine.clocks.step_cause import AGREE, SURE_NS, Cause, CauseFinder
from sync_engine.clocks.usual_delay import UsualDelay

_USUAL = 0.5
"""Share of the threshold within which a message is as usual: nearer to it than to a step."""
_MATTERS = (1.0, 0.9, 0.8)
"""Shares of the threshold that the last message, or the mean of the last two or three, must reach:
several together are surer than one."""
_LASTS_NS = 2 * NS_PER_S
_LASTS = 8
"""A change that holds for so long, and so many messages, is there to stay."""
_CONFIRMED = 2
"""Messages that must agree on a step where the spacing shows it. Where it may be either, it has to
last: of a measured trace six in a row came early by 7 to 18 ms, and nothing had stepped."""
_SUSPECTED = 3
"""Messages that are late alike, after which a clock that went back is possible where the stamps
cannot show it: a stream without a grid, whole periods while frames get lost. As many must agree on
a step that leaves a grid of a few stamps."""
_TOGETHER = 0.2
"""Messages that come within this share of the period of each other come out of a queue."""
_BACK = 3
"""Messages as usual, in a row, that end a doubt: one of them may be a slow one after a step."""


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


@dataclass(slots=True)
class _Off:
    """A message whose arrival - stamp is off."""

    arrival_ns: int
    step_ns: float
    """Step of the clock that would explain it."""


class _Run:
    """Messages whose arrival - stamp is off by about the same."""

    def __init__(self, cause: Cause, size_ns: float | None, first: _Off, before_ns: float) -> None:
        self.cause, self.size_ns = cause, size_ns
        """What its first message shows; the step to the precision of the grid, if it shows one."""
        self.before_ns = before_ns
        """What messages were off by before, which were slow."""
        self.since_ns, self.step_ns = first.arrival_ns, first.step_ns
        """Its first arrival, and its mean."""
        self.most_ns = first.step_ns
        self.count = 1
        """Messages that belong to it, less those as usual in between."""
        self.moments = 1
        """The same, but what comes out of a queue at once counts once."""
        self.matters = False
        """Whether it is too large to be left to the filter."""
        self.back = 0
        """Messages as usual since the last that belongs to it."""
        self._latest = [first]

    def agrees(self, step: float, threshold_ns: float) -> bool:
        """Return whether a message that asks for `step` is one of them."""
        return step * self.step_ns > 0.0 and abs(step - self.step_ns) <= AGREE * threshold_ns

    def join(self, message: _Off, queued: bool) -> None:
        """Take one more message."""
        self.count += 1
        self.moments += not queued
        self.back = 0
        self.step_ns += (message.step_ns - self.step_ns) / self.count
        self.most_ns = max(self.most_ns, message.step_ns)
        self._latest = [*self._latest[1 - len(_MATTERS) :], message]

    def weigh(self, threshold_ns: float) -> None:
        """See whether it is too large for the filter; if so it begins there, not with chance."""
        for count, share in enumerate(_MATTERS, 1):
            last = self._latest[-count:]
            mean = sum(each.step_ns for each in last) / len(last)
            if not self.matters and abs(mean) >= share * threshold_ns:
                self.matters = True
                self.count, self.step_ns, self.since_ns = len(last), mean, last[0].arrival_ns
                self.moments = min(self.moments, self.count)

    def lasts(self, arrival_ns: int) -> bool:
        """Return whether it is there to stay."""
        return self.count >= _LASTS and arrival_ns - self.since_ns >= _LASTS_NS

    @property
    def is_doubt(self) -> bool:
        """Whether the clock may have stepped."""
        if self.cause is Cause.LATENCY or not self.matters:
            return False
        # A message that is late by chance is no reason to doubt; two that agree are.
        several = self.count > 1 or self.back > 0
        return self.cause is Cause.CLOCK or self.step_ns > 0.0 or several


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
        """Arrival of the first message after it, or after a restart."""
        self.reset()

    def reset(self) -> None:
        """Forget everything but the limits."""
        self.spacings = Spacings()
        self._usual = UsualDelay()
        self._causes = CauseFinder(self._usual, self.spacings)
        self._stamp_ns: int | None = None
        self.arrival_ns: int | None = None
        """Arrival of the last stamp that was believed."""
        self._came_ns = 0
        """Arrival of the last message of all."""
        self._held: _Seen | None = None
        self._run: _Run | None = None
        self._suspect_for = 0
        """Messages as usual, in a row, that end a suspicion: one was off, and not on the grid."""
        self.left_grid_ns = LONG_AGO_NS
        """Arrival of the last message whose stamp was beside the grid: the clock has not stepped
        since, but by whole periods."""

    def shown_s(self, since_ns: int) -> float:
        """Return how large a step of the clock must be for the stamps to show it, and that there
        was none since `since_ns` (s); infinite where they prove nothing."""
        proven = self.spacings.is_periodic and self.left_grid_ns < since_ns
        return 2e-9 * self.spacings.tolerance_ns if proven else inf

    @property
    def period_ns(self) -> float:
        """Usual spacing of the stamps; 0 before it is known."""
        return self.spacings.period_ns

    @property
    def spread_ns(self) -> float:
        """Usual spread of arrival - stamp."""
        return self._usual.spread_ns

    @property
    def in_doubt(self) -> bool:
        """Whether the clock may have stepped; what comes next decides."""
        doubted = self._run is not None and self._run.is_doubt
        return self._held is not None or self._suspect_for > 0 or doubted

    def observe(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        """Judge one message."""
        delay = arrival_ns - stamp_ns
        if self._stamp_ns is None or self.arrival_ns is None:
            self._usual.begin(delay)
            return self._believe(stamp_ns, arrival_ns)
        spacing = stamp_ns - self._stamp_ns
        if spacing > 0 and not self.spacings.on_grid(spacing):
            self.left_grid_ns = arrival_ns
        came_ns, self._came_ns = self._came_ns, arrival_ns
        usual_ns = _USUAL * self._usual.threshold_ns
        if -usual_ns < delay - self._usual.level_ns < usual_ns:
            if self._run is not None:
                self._come_back(self._run)
            self._held = None
            self._suspect_for = max(self._suspect_for - 1, 0)
            if spacing <= 0:
                return self._overtaken(stamp_ns)
            self._usual.learn(delay, arrival_ns - self.arrival_ns)
            return self._believe(stamp_ns, arrival_ns)
        step = self._usual.level_ns - delay
        if self._is_far(spacing, step, delay):
            return self._far(stamp_ns, arrival_ns)
        if spacing < 0 and self.spacings.has_room(stamp_ns):
            self._usual.widen(step, 1, delay, abs(step) < self._usual.threshold_ns)
            return self._overtaken(stamp_ns)
        queued = arrival_ns - came_ns < _TOGETHER * self.spacings.period_ns
        run = self._join(spacing, _Off(arrival_ns, step), queued)
        if run.matters and self.spacings.is_periodic and not self.spacings.on_grid(spacing):
            self._suspect_for = _BACK
        verdict = self._settle(run, arrival_ns)
        follows = verdict is Verdict.FINE and spacing > 0
        if verdict in JUMPS or (follows and not (run.matters and run.cause is Cause.CLOCK)):
            self._believe(stamp_ns, arrival_ns)
        return verdict

    def _believe(self, stamp_ns: int, arrival_ns: int) -> Verdict:
        self.spacings.add(stamp_ns)
        self._stamp_ns, self.arrival_ns = stamp_ns, arrival_ns
        self._came_ns = arrival_ns
        return Verdict.FINE

    def _overtaken(self, stamp_ns: int) -> Verdict:
        """Take a message that others overtook: its stamp says nothing of the clock."""
        if self.spacings.has_room(stamp_ns):
            self.spacings.add(stamp_ns)
        return Verdict.FINE

    def _come_back(self, run: _Run) -> None:
        """Take a message as usual after a run, which may end it."""
        run.back += 1
        doubted = run.is_doubt and (run.count > 1 or run.back > 1)
        run.count = max(run.count - 1, 1)
        run.moments = min(run.moments, run.count)
        if doubted and run.back < _BACK:
            return
        least_ns = self._usual.level_ns - run.most_ns
        self._usual.widen(run.step_ns, min(run.count, _LASTS), least_ns, not run.matters)
        self._run = None

    def _join(self, spacing: int, message: _Off, queued: bool) -> _Run:
        """Return the run that this message belongs to, or begins."""
        run, step = self._run, message.step_ns
        if run is None or not run.agrees(step, self._usual.threshold_ns):
            slower = run is not None and run.cause is Cause.LATENCY and run.count > 1
            before = run.step_ns if run is not None and slower and run.matters else 0.0
            run = self._run = _Run(*self._causes.judge(spacing, step, before), message, before)
        else:
            if self.spacings.is_periodic and (not run.matters or run.count == 1):
                # what came so far may have been chance; the grid shows it, rates that vary do not
                cause, size = self._causes.judge(spacing, step)
                if cause > run.cause:
                    run.cause, run.size_ns = cause, size
            run.join(message, queued)
        shows_nothing = self.spacings.period_ns and not self.spacings.is_periodic
        if run.count >= _SUSPECTED and run.matters and not queued and shows_nothing:
            run.cause = max(run.cause, Cause.UNCLEAR)
        run.weigh(self._usual.threshold_ns)
        return run

    def _settle(self, run: _Run, arrival_ns: int) -> Verdict:
        """Return what a run of messages that agree comes to."""
        if run.step_ns > 0.0 and self._usual.is_outvoted(run.count):
            self._usual.level_ns -= run.step_ns  # a stream may begin with slow messages
            self._run = None
            self._suspect_for = 0
            return Verdict.FINE
        lasts = run.lasts(arrival_ns)
        if run.cause is Cause.LATENCY or not run.matters:
            if lasts and self._suspect_for:
                return self._step(run, Verdict.UNSURE, abs(run.step_ns))
            if lasts:
                self._usual.level_ns -= run.step_ns
                self._run = None
            return Verdict.FINE
        if run.cause is Cause.CLOCK:
            few = self.spacings.is_periodic and not self._usual.is_known
            if run.moments >= (_SUSPECTED if few else _CONFIRMED):
                return self._step(run, Verdict.STEP, 0.0)
            return self._odd(run)
        if not lasts:
            return self._odd(run) if self.in_doubt else Verdict.FINE
        kept_grid = run.size_ns is None and self.spacings.is_periodic  # a clock would have left it
        if not kept_grid and self._usual.is_new_low(self._usual.level_ns - run.step_ns):
            return self._step(run, Verdict.STEP, 0.5 * abs(run.step_ns))
        return self._step(run, Verdict.UNSURE, abs(run.step_ns))

    @staticmethod
    def _odd(run: _Run) -> Verdict:
        return Verdict.HOLD if run.step_ns > SURE_NS else Verdict.ODD

    def _step(self, run: _Run, verdict: Verdict, spread_ns: float) -> Verdict:
        """Take the new level for the usual one."""
        self.step_since_ns = run.since_ns
        size = run.size_ns if verdict is Verdict.STEP else None
        self.step_ns = round(run.step_ns if size is None else size)
        known_ns = self._usual.spread_ns if size is None else self.spacings.scatter_ns
        self.step_spread_ns = max(spread_ns, known_ns)
        if abs(self.step_ns + run.before_ns - run.step_ns) > 0.25 * self.spacings.period_ns:
            # frames were lost or slow there: the grid shows it but for whole periods
            self.step_spread_ns = max(self.step_spread_ns, self.spacings.period_ns)
        if verdict is Verdict.STEP:
            self._usual.shift(-run.step_ns, -self.step_ns)
            self.spacings.shift(self.step_ns)
        else:
            self._usual.shift(-run.step_ns, min(-run.step_ns, 0.0))
        self._run = self._held = None
        self._suspect_for = 0
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
        self.step_since_ns = held.arrival_ns
        return Verdict.RESTART
