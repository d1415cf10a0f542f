"""A reference frame that waits for its partners: watermarks and deadlines.

A stream *settles* a reference frame once a message has come whose stamp is late enough. Earlier
stamps can then only come by reordering, and the amount seen so far is allowed for. With a partner
that is 37 ms ahead of the reference and was seen 5 ms out of order, a reference frame stamped
100 ms is settled by the first message of that partner stamped 142 ms or later. A stream that does
not settle it by its deadline is given up for this frame: if the frame arrived at 120 ms (host
time) and the partner's `deadline_s` is 0.2, that is at 320 ms, and the bundle is made with the
frames that are there.
"""

from __future__ import annotations

from collections.abc import Sequence

from sync_engine.clocks.offset import Offset
from sync_engine.matching.selection import Choice
from sync_engine.streams.buffer import Packet
from sync_engine.streams.relative_clocks import RelativeClocks
from sync_engine.streams.stream import Stream


class Pending:
    """The earliest reference frame while its partners come in."""

    __slots__ = (
        'awaits_next', 'choices', 'deadline_ns', 'next_deadline_ns', 'offsets', 'packet',
        'settles_at_ns', 'timed_out', 'window_ns',
    )  # fmt: skip

    def __init__(self, packet: Packet) -> None:
        self.packet = packet
        self.offsets: dict[str, Offset] = {}
        """Of each partner's clock to the reference's."""
        self.choices: dict[str, Choice] = {}
        self.settles_at_ns: dict[str, int] = {}
        """Streams that have not settled it yet: the stamp (on their clock) that does."""
        self.timed_out: set[str] = set()
        """Streams that were given up."""
        self.awaits_next = False
        """Whether the next reference frame has to come first."""
        self.next_deadline_ns: int
        """When the next stream is given up (host); set by `give_up`."""
        self.deadline_ns: int
        """When the last of them is given up (host)."""
        self.window_ns: int
        """Half-width of the window that its partners were chosen in."""

    def see(self, stream: Stream) -> None:
        """Take note that a message of `stream` has come."""
        settles_ns = self.settles_at_ns.get(stream.sensor_id)
        if settles_ns is not None and stream.order.reached(settles_ns):
            del self.settles_at_ns[stream.sensor_id]


class WaitingRoom:
    """Decides which streams a reference frame waits for, and until when."""

    def __init__(
        self, reference: Stream, partners: Sequence[Stream], clocks: RelativeClocks
    ) -> None:
        self._reference, self._partners, self._clocks = reference, partners, clocks

    def open(self, packet: Packet) -> Pending:
        """Find where `packet` lies on every partner's clock, and which partners it waits for."""
        head = Pending(packet)
        now_ns = packet.arrival_ns
        for stream in self._partners:
            offset = head.offsets[stream.sensor_id] = self._clocks.to_partner(stream, now_ns)
            settles_ns = packet.stamp_ns + offset.offset_ns + stream.order.allowance_ns
            if not stream.order.reached(settles_ns) and not stream.is_silent(now_ns):
                head.settles_at_ns[stream.sensor_id] = settles_ns
        # A reference that comes out of order is itself waited for, so that none comes late.
        settles_ns = packet.stamp_ns + self._reference.order.allowance_ns
        if not self._reference.order.reached(settles_ns):
            head.settles_at_ns[self._reference.sensor_id] = settles_ns
        self.give_up(head, now_ns)
        return head

    def give_up(self, head: Pending, now_ns: int) -> None:
        """Stop waiting for the streams whose deadline has passed; find the next deadline."""
        arrival_ns = head.packet.arrival_ns
        soonest, latest = None, arrival_ns
        for stream in (*self._partners, self._reference):
            due_ns = arrival_ns + stream.deadline_ns
            if stream is not self._reference:
                latest = max(latest, due_ns)
            if stream.sensor_id not in head.settles_at_ns:
                continue
            if due_ns <= now_ns:
                del head.settles_at_ns[stream.sensor_id]
                head.timed_out.add(stream.sensor_id)
                continue
            soonest = due_ns if soonest is None else min(soonest, due_ns)
        head.deadline_ns = latest
        head.next_deadline_ns = latest if soonest is None else soonest
