"""Single topics with right stamps while they come: each message at once, without a bundle."""

from __future__ import annotations

from collections import OrderedDict

from sync_engine.clocks.offset_state import OffsetState
from sync_engine.config import SyncConfig
from sync_engine.engine import SyncEngine
from sync_engine.wire.correction import Corrector

CORRECTED = 'corrected/'
SLEW = 0.005
"""By how much the offset in use follows the estimate, s a s: stamps never go back for it."""
JUMP_NS = 5_000_000
"""An estimate further away than this is taken at once: the clock stepped, or is known at last."""
REMEMBERED = 64
"""Stamps whose offset is kept, so that an image and its camera_info keep equal stamps."""


class LiveCorrections:
    """Corrects messages of the inputs that `correct.inputs` names by what the engine knows now."""

    def __init__(self, config: SyncConfig, engine: SyncEngine) -> None:
        self._config, self._engine = config, engine
        self._corrector = Corrector(config, self._offset_ns)
        self.topics = {name: corrected_topic(config.inputs[name].topic) for name in
                       config.correct.inputs}  # fmt: skip
        """Where each of these inputs goes out, by its name."""
        self._states = {OffsetState.LOCKED} | (
            {OffsetState.CONVERGING} if config.correct.min_state == 'converging' else set()
        )
        self._known: OrderedDict[tuple[str, int], int | None] = OrderedDict()
        self._in_use: dict[str, tuple[int, int]] = {}
        """Clock -> (offset, newest stamp), ns."""

    def correct(self, sensor_id: str, raw: bytes, arrival_ns: int) -> bytes:
        """Return a message that the engine has taken, with its right stamp.

        As it came, while its clock is not known well enough.
        """
        return self._corrector.correct(sensor_id, raw, arrival_ns).raw

    def _offset_ns(self, name: str, stamp_ns: int, arrival_ns: int) -> int | None:
        clock = self._config.inputs[name].clock_of or name
        key = clock, stamp_ns
        if key not in self._known:
            self._known[key] = self._followed_ns(clock, stamp_ns)
            if len(self._known) > REMEMBERED * len(self.topics):
                self._known.popitem(last=False)
        return self._known[key]

    def _followed_ns(self, clock: str, stamp_ns: int) -> int | None:
        known = self._engine.correction(clock, to_host=self._config.correct.to == 'host')
        if known.state not in self._states:
            self._in_use.pop(clock, None)
            return None
        offset_ns, newest_ns = self._in_use.get(clock, (known.offset_ns, stamp_ns))
        away_ns = known.offset_ns - offset_ns
        if abs(away_ns) <= JUMP_NS:
            most_ns = int(SLEW * max(stamp_ns - newest_ns, 0))
            away_ns = min(max(away_ns, -most_ns), most_ns)
        self._in_use[clock] = offset_ns + away_ns, max(stamp_ns, newest_ns)
        return offset_ns + away_ns


def corrected_topic(topic: str) -> str:
    """Return where a corrected topic goes out."""
    return CORRECTED + topic.lstrip('/')
