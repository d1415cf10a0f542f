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
"""

from __future__ import annotations

from bisect import bisect_left

from rig_common.times import LONG_AGO_NS, NS_PER_MS, NS_PER_S
from sync_engine.filters.set_queue import BLOCK, EARLY, SetQueue
from sync_engine.filters.waits import WaitLog, Waits
from sync_engine.streams.ledger import Ledger
from sync_engine.streams.payload import MessageSet, Payload

_BACK_NS = NS_PER_S
"""Two messages in a row, each this far behind what was given out: time went back."""
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
        self._left: list[MessageSet] = []
        """Sets that waited when time went back; they leave before the first ones after it."""
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
        stamps = queue.stamps
        if stamp_ns > queue.latest_ns:
            queue.seen = seen = queue.seen + 1
            if seen <= BLOCK or not seen % BLOCK:
                queue.learn(stamp_ns)
            stamps.append(stamp_ns)
            queue.latest_ns = stamp_ns
            blocked_on = self._blocked_on
            goes_on = blocked_on == _ANY or (
                index == blocked_on and stamp_ns >= self._blocked_until_ns
            )
        else:
            if not self._may_enter(queue, stamp_ns):
                return None
            queue.insert_late(stamp_ns)
            self._head_ns = LONG_AGO_NS  # it may be nearer than what was chosen, or the new head
            goes_on = True
        queue.messages[stamp_ns] = message
        queue.arrivals[stamp_ns] = arrival_ns
        if len(stamps) > self.queue_size:
            return self._overflow(queue, goes_on)
        made = self._serve() if goes_on else None
        if self._left:
            made, self._left = self._left + (made or []), []
        return made

    def _may_enter(self, queue: SetQueue, stamp_ns: int) -> bool:
        """Return whether a stamp that is not the latest is wanted; count it if not."""
        if stamp_ns in queue.messages or stamp_ns == queue.floor_ns:
            queue.counts.duplicate += 1
            return False
        full = len(queue.stamps) >= self.queue_size
        passed_ns = max(queue.floor_ns, queue.stamps[0] if full else LONG_AGO_NS)
        if stamp_ns > passed_ns:
            return True
        before_ns, seen = queue.suspect
        queue.suspect = (stamp_ns, queue.seen)
        if seen == queue.seen and before_ns < stamp_ns < passed_ns - _BACK_NS:
            self._left = self.flush()
            self.reset()
            return True
        queue.counts.late += 1
        return False

    def _overflow(self, queue: SetQueue, goes_on: bool) -> list[MessageSet] | None:
        """Bring a queue back to its size; waiting for late messages ends here."""
        made = self._serve() if goes_on else None
        stamps = queue.stamps
        while len(stamps) > self.queue_size and (queue is self._reference or self._straggling):
            more = self._serve(forced=True)
            made = made + more if made and more else made or more
        if len(stamps) > self.queue_size:
            # The frame that the waiting reference frame will take is kept beside the others.
            heads = self._reference.stamps
            pinned = bool(heads) and abs(stamps[0] - heads[0]) < min(
                self.slop_ns, abs(stamps[1] - heads[0]) + 1
            )
            if len(stamps) > self.queue_size + pinned:
                queue.evict(int(pinned))
                self._head_ns = LONG_AGO_NS  # it may have been chosen
        return made

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

    def reset(self) -> None:
        """Remove every frame, because time started again."""
        for queue in self.inputs:
            queue.counts.flushed += len(queue.stamps)
            queue.start_over()
        self._rest()

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
                    self._drop_head()
                    break
                chosen.append(stamp_ns)
            else:
                if reference.seen < EARLY and not forced and self._is_last(head_ns, chosen):
                    self._blocked_on, self._straggling = _ANY, True
                    return made
                made = made or []
                made.append(self._take(head_ns, chosen))
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
        stamps = queue.stamps
        at = bisect_left(stamps, head_ns)
        before_ns = stamps[at - 1] if at else LONG_AGO_NS
        stamp_ns, away_ns = before_ns, head_ns - before_ns
        if at < len(stamps):
            after_ns = stamps[at]
            if after_ns == head_ns:
                return head_ns
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

    def _take(self, head_ns: int, chosen: list[int]) -> MessageSet:
        """Return the messages of a set in the inputs' order."""
        chosen.insert(self._reference.index, head_ns)
        last_ns, messages = 0, []
        for queue, stamp_ns in zip(self.inputs, chosen, strict=True):
            arrival_ns, message = queue.take(stamp_ns)
            messages.append(message)
            if arrival_ns > last_ns:
                last_ns = arrival_ns
        self._log.note(self._now_ns - last_ns)
        return messages

    def _drop_head(self) -> None:
        reference = self._reference
        counts = reference.counts
        if len(reference.stamps) > self.queue_size:
            counts.overflow += 1
        else:
            counts.unmatched += 1
        reference.floor_ns = reference.stamps[0]
        reference.drop_first()
        self._head_ns = LONG_AGO_NS

    # -- state ------------------------------------------------------------------------------

    def buffered(self) -> dict[str, int]:
        """Return how many messages of every input are still inside."""
        return {
            name: len(queue.stamps) for name, queue in zip(self._names, self.inputs, strict=True)
        }

    @property
    def waits(self) -> Waits:
        """What waiting cost."""
        return self._log.waits(max(queue.allowance_ns for queue in self.inputs))

    @property
    def queues(self) -> list[dict[int, Payload]]:
        """For every input the messages that wait, by stamp in ns."""
        return [queue.messages for queue in self.inputs]
