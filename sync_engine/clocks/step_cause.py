"""What moved arrival - stamp: the clock or the latency. The stamps' own spacing tells.

period 33 ms        stamp spacing   arrival spacing    arrival - stamp
frames as usual     33              33                 20
one frame lost      67              67                 20       does not move: no question
clock steps +50     83 (odd)        33 (usual)         -30      the clock
messages held up    33 (usual)      83 (odd)           70       the latency
clock steps +33     67 (multiple)   33 (seen often)    -13      the clock, more likely
the same, lossy     67 (seen)       33 (seen)          -13      cannot be told at once
"""

from __future__ import annotations

from enum import IntEnum

from rig_common.times import NS_PER_MS
from sync_engine.clocks.spacings import FITTING, SEEN, Spacings
from sync_engine.clocks.usual_delay import UsualDelay

SURE_NS = 100 * NS_PER_MS
"""Before any spacing is known only a change this large is called a step. A single stamp this far
ahead would make every frame until then look late, so it is held until a second one agrees."""
AGREE = 1.5
"""Thresholds by which messages of one run may differ: the first may have been a slow one."""
_CLEARLY = 1.5
"""Tolerances of the grid by which a stamp must leave it to show a step: some do by chance."""


class Cause(IntEnum):
    """What changed; the larger, the more it looks like the clock."""

    LATENCY = 0
    UNCLEAR = 1
    CLOCK = 2


class CauseFinder:
    """Judges the first message of a run by its spacing from the one before. Times in ns."""

    def __init__(self, usual: UsualDelay, spacings: Spacings) -> None:
        self._usual = usual
        self._spacings = spacings

    def judge(self, spacing: int, step: float, before: float = 0.0) -> tuple[Cause, float | None]:
        """Return the cause, and the size of the step where the grid shows it.

        `step` of the clock would explain this message, `before` of it was there already.
        """
        by = step - before
        cause, size = self._by_usage(spacing, by, self._usual.level_ns - step), None
        if self._spacings.is_periodic:
            cause, size = self._by_grid(cause, spacing, step, by)
        if cause is Cause.LATENCY and self._usual.is_new_low(self._usual.level_ns - step):
            return Cause.UNCLEAR, None  # latencies hardly fall, whatever the grid shows
        return cause, size

    def _by_usage(self, spacing: int, step: float, delay: float) -> Cause:
        """Compare how usual the spacing is as stamped, and without the step."""
        spacings, usual = self._spacings, self._usual
        if not spacings.period_ns:
            return Cause.CLOCK if spacing <= 0 and abs(step) >= SURE_NS else Cause.LATENCY
        jitter_ns = min(usual.threshold_ns, max(2.0 * usual.spread_ns, 0.2 * spacings.period_ns))
        as_stamped = spacings.usual(spacing)
        without = spacings.usual(spacing - step, jitter_ns)
        blurred = jitter_ns > 0.5 * spacings.period_ns
        if blurred and abs(step) < 2.0 * (jitter_ns + spacings.period_ns):
            # within the jitter it fits to anything, and proves little
            without = min(without, FITTING if spacings.is_periodic else as_stamped)
        if without > as_stamped:
            # Of a rate that varies few spacings are known, and messages are late by chance.
            by_chance = -2.0 * usual.threshold_ns < step < 0.0 < spacing
            gridless = not spacings.is_periodic
            return Cause.UNCLEAR if by_chance and gridless else Cause.CLOCK
        hidden = not spacings.is_periodic  # its first message may have been slow
        if as_stamped == without or hidden or (as_stamped < SEEN and usual.is_new_low(delay)):
            return Cause.UNCLEAR
        return Cause.LATENCY

    def _by_grid(
        self, cause: Cause, spacing: int, step: float, by: float
    ) -> tuple[Cause, float | None]:
        """Hold it against the grid: by how much the stamps left it, and whether that fits."""
        size = spacing - self._spacings.nearest(spacing - by)
        together = step - by + size
        if abs(together) < 0.5 * abs(step):
            shows = abs(step) > 2.0 * self._spacings.tolerance_ns
            return Cause.LATENCY if shows else Cause.UNCLEAR, None
        if abs(together - step) > AGREE * self._usual.threshold_ns:
            moved = cause is Cause.CLOCK or not self._spacings.on_grid(spacing)
            return (Cause.UNCLEAR if moved else cause), None
        slack_ns = (_CLEARLY - 1.0) * self._spacings.tolerance_ns
        return (cause if self._spacings.on_grid(spacing, slack_ns) else Cause.CLOCK), size
