"""The truth beside a degraded stream: when messages were captured, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from rig_common import msgs
from rig_common.cdr import CdrError
from rig_common.cdr.stamp import HEADER_BYTES, MIN_STAMP_NS, STAMP_END
from rig_common.msgs import read_time_reference
from rig_common.times import MAX_STAMP_NS, NS_PER_S
from rig_common.topics import truth_time_topic, truth_topic
from sensor_rig.degrade.ledger import Fate
from sensor_rig.degrade.stream import KEPT

TIME_TYPE = 'sensor_msgs/msg/TimeReference'


class StreamTruth:
    """Makes the messages of `truth/time/<stream>` and `truth/fate/<stream>`."""

    def __init__(self, name: str) -> None:
        self.time_topic = f'/{truth_time_topic(name)}'
        self.fate_topic = f'/{truth_topic(f"fate/{name}")}'
        templates = {
            fate: msgs.time_reference(name, name if fate is Fate.DELIVERED else fate.value)
            for fate in Fate
        }
        self._told_at = templates[Fate.DELIVERED].blocks['time_ref'].offset
        self._rows = {
            fate: np.frombuffer(each.fill(0), np.uint8) for fate, each in templates.items()
        }
        self._captures: dict[int, int] | None = None

    def learn(self, raw: bytes) -> None:
        """Remember a capture time that the input itself knows, by the stamp it was given there."""
        if self._captures is None:
            self._captures = {}
        with suppress(CdrError):
            capture_ns, _, stamp_ns, _ = read_time_reference(raw)
            self._captures[stamp_ns] = capture_ns
            if len(self._captures) > KEPT:
                del self._captures[next(iter(self._captures))]

    def messages(
        self, fate: Fate, originals_ns: Sequence[int], told_ns: Sequence[int]
    ) -> list[bytes]:
        """Return the messages for captures of one fate, stamped `originals_ns`.

        Their headers have the capture time where the input knows it, else the original stamp.
        """
        if self._captures is not None:
            originals_ns = [self._captures.get(each, each) for each in originals_ns]
        rows = np.tile(self._rows[fate], (len(originals_ns), 1))
        rows[:, HEADER_BYTES:STAMP_END] = _times(originals_ns)
        rows[:, self._told_at : self._told_at + 8] = _times(told_ns)
        return [row.tobytes() for row in rows]


def _times(times_ns: Sequence[int]) -> NDArray[np.uint8]:
    """Return builtin_interfaces/Time [n, 8]; a time that it cannot hold becomes its end."""
    clipped = np.clip(np.array(times_ns, np.int64), MIN_STAMP_NS, MAX_STAMP_NS)
    return np.stack(np.divmod(clipped, NS_PER_S), axis=1).astype('<i4').view(np.uint8)
