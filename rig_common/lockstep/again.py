"""Messages sent again to a node in lockstep that counts them and cannot get them any more.

After a cut longer than its lease, DDS has forgotten who read what: it connects both ends anew and
sends nothing of before. A node that waits for such a message asks for it on `<ticks>/_again`, and
whoever sent it answers there, with its number. So nobody gets a message twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rig_common.cdr import Buffer, CdrError, Reader, Writer

AGAIN = '/_again'
"""Behind the topic that a node follows: where it asks, and is answered."""
TYPE_NAME = 'std_msgs/msg/UInt8MultiArray'


@dataclass(frozen=True, slots=True)
class Again:
    """A message sent again; without bytes, a request for those behind number `index`."""

    key: str
    """Sensor of a truth, or topic, as ticks name it."""
    index: int
    """Number of the message in this episode, from 1."""
    total: int
    """How many the tick counts."""
    time_ns: int
    """The tick."""
    raw: bytes = b''

    def encode(self) -> bytes:
        """Return the CDR bytes: `std_msgs/UInt8MultiArray` with one dimension."""
        writer = Writer()
        writer.u32(1)
        writer.string(f'{self.time_ns} {self.key}')
        writer.u32(self.index)
        writer.u32(self.total)
        writer.u32(0)
        writer.octets(self.raw)
        return writer.finish()

    @classmethod
    def decode(cls, buf: Buffer) -> Again:
        """Read one; raises CdrError where the bytes are none."""
        reader = Reader(buf)
        dimensions, label = reader.u32(), reader.string()
        index, total, _ = reader.u32(), reader.u32(), reader.u32()
        time_ns, _, key = label.partition(' ')
        if dimensions != 1 or not key or not time_ns.isdecimal():
            raise CdrError(f'{label[:80]!r} is not the label of a message sent again')
        return cls(key, index, total, int(time_ns), bytes(reader.octets()))


class Kept:
    """What was sent, in order, and may have to be sent again."""

    def __init__(self) -> None:
        self._raw: dict[str, list[bytes]] = {}

    def add(self, key: str, raw: bytes) -> None:
        """Keep a message that was sent."""
        self._raw.setdefault(key, []).append(raw)

    def forget(self, keys: Iterable[str] | None = None) -> None:
        """Let go of what has come, of everything without `keys`."""
        for key in list(self._raw) if keys is None else keys:
            self._raw.pop(key, None)

    def answers(self, asked: Again) -> list[Again]:
        """Return what is asked for; the last message kept is number `asked.total`."""
        raw = self._raw.get(asked.key, [])
        first = asked.total - len(raw) + 1
        return [
            replace(asked, index=index, raw=each)
            for index, each in enumerate(raw, first)
            if index > asked.index
        ]
