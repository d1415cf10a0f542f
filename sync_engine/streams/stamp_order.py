"""In which order the stamps of one input come: the latest one, and how far back others lay."""

from __future__ import annotations

_FADE = 0.95
"""Share of the measured allowance that is kept after each bundle."""


class StampOrder:
    """The latest stamp of one input, and its reorder allowance (ns, on the sensor's clock)."""

    __slots__ = ('allowance_ns', 'latest_ns')

    def __init__(self) -> None:
        self.latest_ns: int | None = None
        self.allowance_ns = 0
        """How far behind the latest stamp another one may still come, as seen so far."""

    def see(self, stamp_ns: int) -> bool:
        """Take a stamp; return whether it is later than every one before it."""
        latest_ns = self.latest_ns
        if latest_ns is None or stamp_ns > latest_ns:
            self.latest_ns = stamp_ns
            return True
        self.allowance_ns = max(self.allowance_ns, latest_ns - stamp_ns)
        return False

    def reached(self, stamp_ns: int) -> bool:
        """Return whether this stamp or a later one has come."""
        return self.latest_ns is not None and self.latest_ns >= stamp_ns

    def fade(self) -> None:
        """Forget disorder slowly, so that one bad second does not delay bundles for ever."""
        if self.allowance_ns:
            self.allowance_ns = int(self.allowance_ns * _FADE)
