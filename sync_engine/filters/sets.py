"""Complete sets by the nearest stamps: what `queue_size, slop` means. No clock is estimated.

One input is the reference. Its frames are served in the order of their stamps; each takes the
nearest frame of every other input, at most `slop` away, and a frame is used once. A set leaves as
soon as no better one can be expected. For a stream of 50 Hz (`|` now, stamps in ms):

    reference 100, partner 80 100 |            100 is there: it leaves
    reference 100, partner 97 |                the next is due at 117: 97 is nearest, it leaves
    reference 100, partner 60 80 |             nothing at 100 yet: it waits for the partner
    reference 100, partner 60 80 120 |         a hole at 100: late or lost? It waits until the
                                               partner is past 100 + its reorder allowance
    reference 80 120 |, 80 has left            a hole at 100: 120 waits in the same way, so that
                                               100 can leave before it

The reorder allowance of a stream is the largest disorder of its last 512 to 1024 messages and one
period more; 0 where all came in order; ten periods, at least 250 ms, for the first 512, of which
little is known. A wait for something late ends when a queue is full. As long as no period is
known (the first four frames), a set waits for a later message on any input.

A frame that got no partner, or comes when later ones have left, stays in its queue for an exact
partner (the same stamp on every input) until the queue is full. So a set of exact partners leaves
whenever all of them are in their queues together, if need be after later sets.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, islice

from rig_common.times import LONG_AGO_NS, NS_PER_MS, NS_PER_S
from sync_engine.filters.set_queue import BLOCK, EARLY, SetQueue
from sync_engine.filters.waits import WaitLog, Waits
from sync_engine.streams.ledger import Ledger
from sync_engine.streams.payload import MessageSet, Payload

_BACK_NS = NS_PER_S
"""How far behind its stream a message must be to show that time went back."""
_BACK_COUNT, _BACK_COUNT_SCRAMBLED = 2, 8
"""Such messages in a row after which it is believed: of streams that came in order, and, times the
inputs, of others, whose messages do not rise for so long by chance."""
PATIENCE_NS = 5 * NS_PER_S
"""Host time after which a reference frame leaves with what there is."""
EARLY_PATIENCE_NS = 250 * NS_PER_MS
"""The same for the first frames, which may be the only ones."""
_ANY = -1
"""In place of the input that is waited for."""
_WAIT = LONG_AGO_NS + 1
_NONE = LONG_AGO_NS + 2
"""In place of a stamp."""


class SetMatcher:
    """Makes sets of `len(names)` inputs. One owner: calls come from one thread or under a lock."""

    POLL_PERIOD_S = 0.1
    """How late the end of a frame's patience may be noticed while nothing arrives (wall time)."""
    has_jobs = False

    def __init__(
        self, names: list[str], queue_size: int, slop_ns: int, reference: int = 0
    ) -> None:
        self.ledger = Ledger(names)
        self.queue_size = max(queue_size, 1)
        self.slop_ns = slop_ns
        self.inputs = [SetQueue(index, self.ledger[name]) for index, name in enumerate(names)]
        self._names = names
        self._reference = self.inputs[reference]
        self._partners = [queue for queue in self.inputs if queue.index != reference]
        self._now_ns = 0
        self._log = WaitLog()
        self._behind: dict[tuple[int, int], None] = {}
        """(input, stamp) of the last messages in a row that were far behind."""
        self._in_order = True
        """Whether no message came behind a later one of its input, but where time went back."""
        self._rest()

    def _rest(self) -> None:
        """Wait for a reference frame; none is being served."""
        self._head_ns = LONG_AGO_NS
        self._chosen: list[int] = []
        self._blocked_on = self._reference.index
        self._blocked_until_ns = LONG_AGO_NS
        self._straggling = False
        """Whether it waits for a late message, rather than for a stream to reach a stamp."""

    # -- the data's way ---------------------------------------------------------------------

    def push(
        self, index: int, stamp_ns: int, message: Payload, arrival_ns: int
    ) -> list[MessageSet] | None:
        """Take one message and return the sets that leave with it, each in the inputs' order."""
        queue = self.inputs[index]
        queue.counts.received += 1
        self._now_ns = arrival_ns
        if stamp_ns > queue.latest_ns:
            queue.seen = seen = queue.seen + 1
            if seen <= BLOCK or not seen % BLOCK:
                queue.learn(stamp_ns)
            queue.stamps.append(stamp_ns)
            queue.latest_ns = stamp_ns
            if self._behind:
                self._behind.clear()
                self._in_order = False
            blocked_on = self._blocked_on
            goes_on = blocked_on == _ANY or (
                index == blocked_on and stamp_ns >= self._blocked_until_ns
            )
        elif stamp_ns in queue.messages or stamp_ns == queue.floor_ns:
            queue.counts.duplicate += 1
            return None
        else:
            went_back = self._goes_back(queue, stamp_ns)
            if not self._insert_late(queue, stamp_ns):
                return None
            self._head_ns = LONG_AGO_NS  # it may be nearer than what was chosen, or the new head
            goes_on = True
            if went_back:
                queue.messages[stamp_ns] = message
                queue.arrivals[stamp_ns] = arrival_ns
                return self._start_over()
        queue.messages[stamp_ns] = message
        queue.arrivals[stamp_ns] = arrival_ns
        full = len(queue.messages) > self.queue_size
        if full:
            self._set_beside(queue, stamp_ns)
        if stamp_ns <= self._reference.floor_ns and self._is_exact(stamp_ns):
            self._head_ns = LONG_AGO_NS
            return [self._take([stamp_ns] * len(self.inputs)), *(self._serve() or ())]
        if full:
            return self._overflow(queue, goes_on)
        return self._serve() if goes_on else None

    def _goes_back(self, queue: SetQueue, stamp_ns: int) -> bool:
        """Return whether this message and those before it show that time went back."""
        behind, index = self._behind, queue.index
        far = stamp_ns < queue.latest_ns - _BACK_NS
        if not far or any(one == index and before > stamp_ns for one, before in behind):
            behind.clear()
            self._in_order = False
        if far:
            behind[index, stamp_ns] = None
        if len(behind) < _BACK_COUNT:
            return False
        in_order = self._in_order and all(each.seen >= 2 * EARLY for each in self.inputs)
        return in_order or len(behind) >= _BACK_COUNT_SCRAMBLED * len(self.inputs)

    def _start_over(self) -> list[MessageSet]:
        """Begin again with the messages that showed that time went back."""
        kept = [
            (index, stamp_ns, *self.inputs[index].remove(stamp_ns))
            for index, stamp_ns in self._behind
            if stamp_ns in self.inputs[index].messages
        ]
        self._behind.clear()
        made = self.flush()
        for queue in self.inputs:
            queue.counts.flushed += len(queue.messages)
            queue.start_over()
        self._rest()
        for index, stamp_ns, arrival_ns, message in kept:
            self.inputs[index].counts.received -= 1
            made += self.push(index, stamp_ns, message, arrival_ns) or []
        return made

    def _insert_late(self, queue: SetQueue, stamp_ns: int) -> bool:
        """Put a stamp that is not the latest into its place; count it if there is no room."""
        if len(queue.messages) >= self.queue_size and not self._is_exact(stamp_ns, queue):
            held = list(self._held(queue, stamp_ns))
            if len(held) >= self.queue_size and stamp_ns < held[0]:
                if (queue.index, stamp_ns) not in self._behind:
                    queue.counts.late += 1
                    return False
        queue.insert_late(stamp_ns)
        return True

    def _is_exact(self, stamp_ns: int, besides: SetQueue | None = None) -> bool:
        """Return whether all inputs (`besides` one) hold a frame of this stamp."""
        for queue in self.inputs:
            if queue is not besides and stamp_ns not in queue.messages:
                return False
        return True

    def _held(self, queue: SetQueue, newest_ns: int) -> Iterator[int]:
        """Yield the stamps that need a place in a queue, in order.

        Exact sets that wait for their turn need none.
        """
        for stamp_ns in chain(queue.passed, queue.stamps):
            if stamp_ns in queue.beside:
                continue
            if self._straggling and stamp_ns != newest_ns and self._is_exact(stamp_ns):
                continue
            yield stamp_ns

    def _set_beside(self, queue: SetQueue, newest_ns: int) -> None:
        """Take their places from the earliest frames that a full queue has no room for."""
        if self._straggling:
            excess = sum(1 for _ in self._held(queue, newest_ns)) - self.queue_size
        else:
            excess = len(queue.messages) - len(queue.beside) - self.queue_size
        if excess > 0:
            queue.beside.update(list(islice(self._held(queue, newest_ns), excess)))

    def _overflow(self, queue: SetQueue, goes_on: bool) -> list[MessageSet] | None:
        """Bring a queue back to its size; waiting for late messages ends here."""
        made = self._serve() if goes_on else None
        stamps, size = queue.stamps, self.queue_size
        size += sum(index == queue.index for index, _ in self._behind)
        while len(queue.messages) > size and not queue.make_room(self._behind):
            exact = [at for at in stamps if self._is_exact(at)] if self._straggling else []
            if exact:
                made = [*(made or ()), self._take([exact[0]] * len(self.inputs))]
                self._head_ns = LONG_AGO_NS
            elif queue is self._reference or self._straggling:
                more = self._serve(forced=True)
                made = made + more if made and more else made or more
            else:
                self._evict(queue, size)
                break
        return made

    def _evict(self, queue: SetQueue, size: int) -> None:
        """Remove the earliest frame; what the waiting reference frame will take is kept beside."""
        stamps, heads = queue.stamps, self._reference.stamps
        pinned = bool(heads) and abs(stamps[0] - heads[0]) < self.slop_ns
        if pinned and len(stamps) > 1:
            pinned = abs(stamps[0] - heads[0]) <= abs(stamps[1] - heads[0])
        if len(queue.messages) > size + pinned:
            queue.evict(int(pinned and len(stamps) > 1))
            self._head_ns = LONG_AGO_NS  # it may have been chosen

    def refuse(self, index: int) -> None:
        """Count a message without a stamp."""
        self.inputs[index].counts.received += 1
        self.inputs[index].counts.invalid += 1

    def work(self) -> None:
        """There is no other work."""

    def poll(self, now_ns: int) -> list[MessageSet]:
        """Let host time pass: return the sets of frames that have waited for too long."""
        made: list[MessageSet] = []
        self._now_ns = max(self._now_ns, now_ns)
        stamps, arrivals = self._reference.stamps, self._reference.arrivals
        patience_ns = PATIENCE_NS if self._reference.seen >= EARLY else EARLY_PATIENCE_NS
        while stamps and now_ns - arrivals[stamps[0]] > patience_ns:
            made += self._serve(forced=True) or []
        return made

    def flush(self) -> list[MessageSet]:
        """Return the sets that the waiting frames can make, without waiting for better ones."""
        made: list[MessageSet] = []
        while self._reference.stamps:
            made += self._serve(forced=True) or []
        return made

    # -- sets -------------------------------------------------------------------------------

    def _serve(self, forced: bool = False) -> list[MessageSet] | None:
        """Serve reference frames, earliest first, while possible; `forced`: one without waiting.

        None is an empty list that costs nothing.
        """
        made: list[MessageSet] | None = None
        reference, partners = self._reference, self._partners
        stamps = reference.stamps
        while stamps:
            head_ns = stamps[0]
            forced |= len(stamps) > self.queue_size
            if head_ns != self._head_ns:
                if not forced and self._awaits_order(head_ns):
                    return made
                self._head_ns = head_ns
                self._chosen = []
            chosen = self._chosen
            for queue in partners[len(chosen) :]:
                stamp_ns = self._choose(queue, head_ns, forced)
                if stamp_ns == _WAIT:
                    return made
                if stamp_ns == _NONE:
                    reference.pass_over(1)
                    self._head_ns = LONG_AGO_NS
                    break
                chosen.append(stamp_ns)
            else:
                if reference.seen < EARLY and not forced and self._is_last(head_ns, chosen):
                    self._blocked_on, self._straggling = _ANY, True
                    return made
                made = made or []
                chosen.insert(reference.index, head_ns)
                made.append(self._take(chosen))
            forced = False
        self._rest()
        return made

    def _is_last(self, head_ns: int, chosen: list[int]) -> bool:
        """Return whether nothing is later than this set: an earlier one may have been late."""
        last_ns = max([head_ns, *chosen])
        return self.queue_size > 1 and not any(queue.latest_ns > last_ns for queue in self.inputs)

    def _awaits_order(self, head_ns: int) -> bool:
        """Return whether an earlier reference frame may still come, and wait for it then."""
        reference = self._reference
        floor_ns = reference.floor_ns
        if floor_ns == LONG_AGO_NS or head_ns - floor_ns <= 1.5 * reference.period_ns:
            return False
        until_ns = head_ns + reference.allowance_ns
        if reference.latest_ns >= until_ns:
            return False
        self._wait_for(reference, until_ns, straggling=True)
        return True

    def _choose(self, queue: SetQueue, head_ns: int, forced: bool) -> int:
        """Return the stamp of the frame for the reference frame, `_NONE` or `_WAIT`."""
        if head_ns in queue.messages:
            return head_ns
        stamps = queue.stamps
        at = bisect_left(stamps, head_ns)
        before_ns = stamps[at - 1] if at else LONG_AGO_NS
        stamp_ns, away_ns = before_ns, head_ns - before_ns
        if at < len(stamps):
            after_ns = stamps[at]
            if after_ns - head_ns < away_ns:
                stamp_ns, away_ns = after_ns, after_ns - head_ns
        if not forced and self._better_may_come(queue, head_ns, away_ns):
            return _WAIT
        if away_ns >= self.slop_ns:
            return _NONE
        if stamp_ns < head_ns:
            return stamp_ns
        return self._or_next(queue, stamp_ns, before_ns, head_ns, forced)

    def _better_may_come(self, queue: SetQueue, head_ns: int, away_ns: int) -> bool:
        """Return whether a frame nearer than `away_ns` is to be expected, and wait for it then."""
        slop_ns, latest_ns = self.slop_ns, queue.latest_ns
        period_ns = queue.period_ns if queue.seen >= EARLY else 0
        if latest_ns < head_ns:
            early_ns = min(period_ns // 4, slop_ns)  # nearer than that, the next one is further
            if head_ns - latest_ns < early_ns and away_ns == head_ns - latest_ns:
                return False
            self._wait_for(queue, head_ns - early_ns)
            return True
        if away_ns > 0.6 * period_ns and (period_ns or away_ns >= slop_ns):
            # A hole: the nearest frame of all is late or lost.
            gone = len(queue.stamps) >= self.queue_size and queue.stamps[0] > head_ns + slop_ns
            until_ns = head_ns + (0 if gone else queue.allowance_ns)
        else:
            until_ns = head_ns
        if away_ns >= slop_ns:
            until_ns = max(until_ns, head_ns + slop_ns)
        if latest_ns >= until_ns:
            return False
        self._wait_for(
            queue, until_ns, straggling=latest_ns >= head_ns + slop_ns or away_ns < slop_ns
        )
        return True

    def _or_next(
        self, queue: SetQueue, stamp_ns: int, before_ns: int, head_ns: int, forced: bool
    ) -> int:
        """Return the frame after the target, unless the next reference frame is nearer to it."""
        reference, lead_ns = self._reference, stamp_ns - head_ns
        if len(reference.stamps) < 2:
            if forced or not reference.period_ns or lead_ns <= reference.period_ns // 2:
                return stamp_ns
            self._wait_for(reference, head_ns)
            return _WAIT
        if abs(reference.stamps[1] - stamp_ns) >= lead_ns:
            return stamp_ns
        lately_ns = head_ns - 4 * (queue.latest_ns - stamp_ns)
        if before_ns == LONG_AGO_NS and queue.evicted_ns > lately_ns:
            return stamp_ns  # the queue is too short: by then this frame may have left it, too
        return before_ns if head_ns - before_ns < self.slop_ns else _NONE

    def _wait_for(self, queue: SetQueue, until_ns: int, straggling: bool = False) -> None:
        """Continue when `queue` has reached this stamp, or when a late frame comes."""
        self._blocked_on = queue.index
        self._blocked_until_ns = until_ns
        self._straggling = straggling

    def _take(self, chosen: list[int]) -> MessageSet:
        """Return the messages of a set, given by their stamps in the inputs' order."""
        last_ns, messages = 0, []
        for queue, stamp_ns in zip(self.inputs, chosen, strict=True):
            arrival_ns, message = queue.take(stamp_ns)
            messages.append(message)
            if arrival_ns > last_ns:
                last_ns = arrival_ns
        self._log.note(self._now_ns - last_ns)
        return messages

    # -- state ------------------------------------------------------------------------------

    def buffered(self) -> dict[str, int]:
        """Return how many messages of every input are still inside."""
        return {
            name: len(queue.messages) for name, queue in zip(self._names, self.inputs, strict=True)
        }

    @property
    def waits(self) -> Waits:
        """What waiting cost."""
        return self._log.waits(max(queue.allowance_ns for queue in self.inputs))

    @property
    def queues(self) -> list[dict[int, Payload]]:
        """For every input the messages that wait, by stamp in ns."""
        return [queue.messages for queue in self.inputs]
