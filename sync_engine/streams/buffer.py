"""One stream's packets in stamp order.

The heap of the design notes (push, peek, pop, evict from the earliest) that also answers "closest
to t" in O(log n): two parallel sorted lists, of stamps for bisection and of packets. Streams come
nearly in order, so the usual push is an append; a packet out of order is inserted where it
belongs, after those of the same stamp (its sequence number is higher).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from sync_engine.streams.payload import Payload


class Packet:
    """One message as it was received. The payload is never copied and never looked into."""

    __slots__ = ('arrival_ns', 'nbytes', 'payload', 'sequence', 'stamp_ns', 'used')

    def __init__(
        self, stamp_ns: int, sequence: int, payload: Payload, arrival_ns: int, nbytes: int
    ) -> None:
        self.stamp_ns = stamp_ns
        self.sequence = sequence
        self.payload = payload
        self.arrival_ns = arrival_ns
        self.nbytes = nbytes
        self.used = False

    def __repr__(self) -> str:
        return f'Packet(stamp_ns={self.stamp_ns}, sequence={self.sequence})'


class SensorBuffer:
    """Packets of one sensor, earliest stamp first; bounded by count, bytes and age."""

    __slots__ = ('_packets', 'max_bytes', 'max_size', 'nbytes', 'stamps', 'timeout_ns')

    def __init__(self, max_size: int, timeout_ns: int, max_bytes: int) -> None:
        self.max_size = max_size
        self.timeout_ns = timeout_ns
        self.max_bytes = max_bytes
        self.nbytes = 0
        self.stamps: list[int] = []
        """Sorted; for reading only."""
        self._packets: list[Packet] = []

    def __len__(self) -> int:
        return len(self.stamps)

    def __contains__(self, stamp_ns: int) -> bool:
        index = bisect_left(self.stamps, stamp_ns)
        return index < len(self.stamps) and self.stamps[index] == stamp_ns

    def push(self, packet: Packet) -> bool:
        """Insert `packet` in stamp order, behind those of the same stamp.

        Returns whether a bound is exceeded now, at the packet's arrival: time to evict.
        """
        stamps = self.stamps
        if not stamps or packet.stamp_ns >= stamps[-1]:
            stamps.append(packet.stamp_ns)
            self._packets.append(packet)
        else:
            index = bisect_right(stamps, packet.stamp_ns)
            stamps.insert(index, packet.stamp_ns)
            self._packets.insert(index, packet)
        self.nbytes += packet.nbytes
        return (
            self._packets[0].arrival_ns < packet.arrival_ns - self.timeout_ns
            or len(stamps) > self.max_size
            or self.nbytes > self.max_bytes
        )

    def peek(self) -> Packet | None:
        """Return the earliest packet and leave it there."""
        return self._packets[0] if self._packets else None

    def peek_second(self) -> Packet | None:
        """Return the packet after the earliest one."""
        return self._packets[1] if len(self._packets) > 1 else None

    def pop(self) -> Packet | None:
        """Remove and return the earliest packet."""
        taken = self._take(1)
        return taken[0] if taken else None

    def evict_expired(self, now_ns: int) -> list[Packet]:
        """Remove, from the earliest on, the packets that arrived before `now_ns` - timeout."""
        limit_ns = now_ns - self.timeout_ns
        packets = self._packets
        if not packets or packets[0].arrival_ns >= limit_ns:
            return []
        count = 1
        while count < len(packets) and packets[count].arrival_ns < limit_ns:
            count += 1
        return self._take(count)

    def evict_overflow(self) -> list[Packet]:
        """Remove, from the earliest on, what exceeds the bounds on count and bytes."""
        count = max(len(self.stamps) - self.max_size, 0)
        excess = self.nbytes - self.max_bytes - sum(p.nbytes for p in self._packets[:count])
        while excess > 0:
            excess -= self._packets[count].nbytes
            count += 1
        return self._take(count)

    def take_through(self, stamp_ns: int) -> list[Packet]:
        """Remove and return every packet with a stamp up to and including `stamp_ns`."""
        return self._take(bisect_right(self.stamps, stamp_ns))

    def take_before(self, stamp_ns: int) -> list[Packet]:
        """Remove and return every packet with a stamp below `stamp_ns`."""
        return self._take(bisect_left(self.stamps, stamp_ns))

    def clear(self) -> list[Packet]:
        """Remove and return everything."""
        return self._take(len(self.stamps))

    def closest(self, target_ns: int, window_ns: int) -> Packet | None:
        """Return the packet nearest to `target_ns` if it is within `window_ns`, else None.

        Of two that are equally near the earlier one is taken.
        """
        stamps = self.stamps
        index = bisect_left(stamps, target_ns)
        past_end = index == len(stamps)
        if past_end or (index and target_ns - stamps[index - 1] <= stamps[index] - target_ns):
            index -= 1
        if index < 0 or abs(stamps[index] - target_ns) > window_ns:
            return None
        return self._packets[index]

    def payloads(self) -> dict[int, Payload]:
        """Return what is held, by stamp (ns)."""
        return {packet.stamp_ns: packet.payload for packet in self._packets}

    def before(self, stamp_ns: int) -> Packet | None:
        """Return the last packet with a stamp below `stamp_ns`."""
        index = bisect_left(self.stamps, stamp_ns)
        return self._packets[index - 1] if index else None

    def last_through(self, stamp_ns: int) -> Packet | None:
        """Return the last packet with a stamp up to and including `stamp_ns`."""
        index = bisect_right(self.stamps, stamp_ns)
        return self._packets[index - 1] if index else None

    def after(self, stamp_ns: int) -> Packet | None:
        """Return the first packet with a stamp of at least `stamp_ns`."""
        index = bisect_left(self.stamps, stamp_ns)
        return self._packets[index] if index < len(self._packets) else None

    def _take(self, count: int) -> list[Packet]:
        if count == 1 and self._packets:  # a full buffer comes here with every push
            first = self._packets.pop(0)
            del self.stamps[0]
            self.nbytes -= first.nbytes
            return [first]
        taken = self._packets[:count]
        if taken:
            del self._packets[:count]
            del self.stamps[:count]
            for packet in taken:
                self.nbytes -= packet.nbytes
        return taken
