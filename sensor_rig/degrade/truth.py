"""The truth beside a degraded stream: when a message was captured, and what became of it."""

from __future__ import annotations

from contextlib import suppress

from rig_common import msgs
from rig_common.cdr import CdrError
from rig_common.cdr.stamp import MIN_STAMP_NS, PACK_STAMP, STAMP_END
from rig_common.msgs import read_time_reference
from rig_common.times import MAX_STAMP_NS, NS_PER_S
from rig_common.topics import truth_time_topic, truth_topic
from sensor_rig.degrade.ledger import Fate
from sensor_rig.degrade.messages import Outgoing
from sensor_rig.degrade.stream import KEPT

TIME_TYPE = 'sensor_msgs/msg/TimeReference'


class StreamTruth:
    """Makes the messages of `truth/time/<stream>` and `truth/fate/<stream>`."""

    def __init__(self, name: str) -> None:
        self.time_topic = f'/{truth_time_topic(name)}'
        self.fate_topic = f'/{truth_topic(f"fate/{name}")}'
        self._pieces = {
            fate: _pieces(name, name if fate is Fate.DELIVERED else fate.value) for fate in Fate
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

    def about(self, original_ns: int, outgoing: Outgoing) -> tuple[str, bytes]:
        """Return topic and message for a capture stamped `original_ns`.

        Its header has the capture time where the input knows it, else the original stamp.
        """
        if self._captures is not None:
            original_ns = self._captures.get(original_ns, original_ns)
        is_delivered = outgoing.fate is Fate.DELIVERED
        head, middle, tail = self._pieces[outgoing.fate]
        told_ns = outgoing.stamp_ns if is_delivered else outgoing.arrival_ns
        return self.time_topic if is_delivered else self.fate_topic, b''.join(
            (head, _time(original_ns), middle, _time(told_ns), tail)
        )


def _time(time_ns: int) -> bytes:
    """Return a builtin_interfaces/Time; a receive time that it cannot hold becomes its end."""
    return PACK_STAMP(*divmod(min(max(time_ns, MIN_STAMP_NS), MAX_STAMP_NS), NS_PER_S))


def _pieces(frame_id: str, source: str) -> tuple[bytes, bytes, bytes]:
    """Return a TimeReference without its stamp and its time_ref: what comes around them."""
    template = msgs.time_reference(frame_id, source)
    message, at = template.fill(0), template.blocks['time_ref'].offset
    return message[: STAMP_END - 8], message[STAMP_END:at], message[at + 8 :]
