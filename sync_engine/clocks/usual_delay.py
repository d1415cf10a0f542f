"""What arrival - stamp of a stream usually is, how much it scatters, and how low it may be.

A message counts as usual inside half of `threshold_ns`. Example, delays in ms after some hundred
of 20 +- 2: usual 20, spread 2, threshold 7 (3.5 spreads, and at least 5).

    21.0  as usual           usual 20.05
    24.2  beyond a half      may begin a run (steps.py); learnt when the next is as usual
    31.0  beyond the whole   begins one, and is not learnt
"""

from __future__ import annotations

from rig_common.times import NS_PER_MS

_LEAST_STEP_NS = 5.0 * NS_PER_MS
_SPREADS = 3.5
"""A change of arrival - stamp below the least step, or this many of its spreads, is no step. The
spread is known to a tenth, and a step of four spreads must be seen."""
_FEW = 10
"""Messages after which the usual value and the spread are known only half as well."""
_FIRST_SPREAD_NS = 2.0 * NS_PER_MS
_GAIN, _SPREAD_GAIN = 0.05, 0.02
"""Share of a new arrival - stamp in the usual one, and in its spread."""
_FLOOR_RISE = 5e-5
"""How fast the smallest arrival - stamp is forgotten (s/s): as fast as a clock may drift."""


class UsualDelay:
    """The usual arrival - stamp of one stream, ns."""

    def __init__(self) -> None:
        self.level_ns = 0.0
        self.spread_ns = _FIRST_SPREAD_NS
        self.threshold_ns = 2.0 * _SPREADS * _FIRST_SPREAD_NS
        """Changes from here on may be steps."""
        self.count = 0
        """Messages that were learnt from."""
        self._floor_ns = 0.0

    def begin(self, delay_ns: int) -> None:
        """Take the first message."""
        self.level_ns = self._floor_ns = float(delay_ns)

    def learn(self, delay_ns: int, elapsed_ns: int) -> None:
        """Take a message that is as usual, `elapsed_ns` after the one before."""
        moved = delay_ns - self.level_ns
        self.count += 1
        self.level_ns += self._gain * moved
        self._spread_by(abs(moved))
        floor_ns = self._floor_ns + _FLOOR_RISE * elapsed_ns
        self._floor_ns = delay_ns if delay_ns < floor_ns else floor_ns

    def widen(self, step_ns: float, messages: int, least_ns: float, by_chance: bool) -> None:
        """Some messages were off and came back: part of the spread, and how low it may be.

        By chance: they are part of the usual value as well.
        """
        self._floor_ns = min(self._floor_ns, least_ns)
        moved = min(abs(step_ns), 2.0 * self.threshold_ns)  # a long stall counts as a few
        if by_chance:
            self.level_ns -= messages * self._gain * step_ns
        for _ in range(messages):
            self._spread_by(moved)

    def shift(self, by_ns: float, floor_by_ns: float) -> None:
        """The clock stepped, or something did that looks the same: move the usual value, and how
        low it may be."""
        self.level_ns += by_ns
        self._floor_ns += floor_by_ns

    @property
    def is_known(self) -> bool:
        """Whether enough messages were learnt from to say what is unusual."""
        return self.count >= _FEW

    def is_outvoted(self, messages: int) -> bool:
        """Return whether so few are known that `messages` which agree, two at least, are more."""
        return not self.is_known and messages > max(self.count, 1)

    def is_new_low(self, delay_ns: float) -> bool:
        """Return whether arrival - stamp is below all that was seen, as latencies hardly fall."""
        return self.is_known and delay_ns < self._floor_ns - 0.5 * self.threshold_ns

    @property
    def _gain(self) -> float:
        share = 1.0 / (self.count + 1)
        return share if share > _GAIN else _GAIN

    def _spread_by(self, moved: float) -> None:
        gain = 1.0 / (self.count + 8)
        if gain < _SPREAD_GAIN:
            gain = _SPREAD_GAIN
        # 1.25: mean absolute to standard deviation of a normal distribution
        self.spread_ns += gain * (1.25 * moved - self.spread_ns)
        unsure = 1.0 + (_FEW / (self.count + 1)) ** 2
        step_ns = _SPREADS * unsure * self.spread_ns
        self.threshold_ns = step_ns if step_ns > _LEAST_STEP_NS else _LEAST_STEP_NS
