"""How a node follows the world's time: hears ticks, does what is due, says when to call it next.

The same object serves an emulator (on `world/_tick`) and the sync node (on `world/settled`, which
comes when every emulator has answered). Outside lockstep nobody waits for its answers, but the
world still uses their wake times: a tick goes out where somebody needs one, not at every step.

Pure bookkeeping: no ROS. `rig_common.ros.follower` connects it to topics, and
`test/sim_sensors/timekeeping/test_lockstep_model.py` tries every order of its messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from rig_common.lockstep.again import Again, Kept
from rig_common.lockstep.messages import Ack, Tick
from rig_common.times import NEVER_NS

OnTime = Callable[[int], int]
"""Called with the simulated time; publishes what is due and returns when it must be called next.
Nothing may be published between the two."""
PATIENCE = 20
"""Repetitions of a tick, of 50 ms each, for which a node waits before it asks for what is missing:
where ticks come, DDS brings all else that it still knows of."""


class Following:
    """A node's place in the rig's time."""

    def __init__(
        self,
        name: str,
        on_time: OnTime,
        answer: Callable[[Ack], None],
        *,
        serves: Sequence[str] = (),
        on_episode: Callable[[Tick], None] | None = None,
        ready: Callable[[], bool] | None = None,
        deliver: Callable[[str, bytes], None] | None = None,
        send_again: Callable[[Again], None] = lambda again: None,
    ) -> None:
        """Follow the ticks that `hear` is called with; `answer` sends to the world.

        `name` is the node's, `serves` names the sensors it answers for. `on_episode` is called
        when the world starts again at time 0, and once at the start. `ready` says whether all
        connections of the node stand; until then it does not join. `deliver` takes a message that
        came again, by what it is counted as; without it the node cannot ask for any. What is
        asked and answered goes to `send_again`.
        """
        self._name = name
        self._on_time = on_time
        self._answer = answer
        self._serves = tuple(serves)
        self._on_episode = on_episode
        self._ready = ready or (lambda: True)
        self._deliver, self._send_again = deliver, send_again
        self._waiting: Tick | None = None
        self._heard_ns = -1
        self._answered: Ack | None = None
        """Answer to the last tick, in case it gets lost."""
        self._due: Mapping[str, int] = {}
        """Messages sent since the episode began, as the last tick counts them."""
        self._received: Counter[str] = Counter()
        """Messages that have come, counted as ticks do: they start with what had been sent before
        the barrier."""
        self._settled_in: set[str] = set()
        """Keys that are counted since a barrier; the others start with the next one."""
        self._repeats = 0
        """Repetitions heard while something is missing, modulo `PATIENCE`."""
        self._came_again: dict[str, list[bytes]] = {}
        """Messages that came again, whose first copies may still come."""
        self._sent: Counter[str] = Counter()
        self.kept = Kept()
        """Messages sent at the last tick that this node was called for."""
        self.counted: set[str] = set()
        """What this node receives, by the names ticks use; other counts do not concern it."""
        self.readers: Mapping[str, Collection[str]] = {}
        """Nodes that count what is sent, as the last barrier says; `ready` looks for its own."""
        self.joined = False
        """Whether the world knows this node."""
        self.now_ns = 0
        """Latest simulated time heard of, ns."""
        self.wake_ns = 0
        """Time of the next tick this node needs, ns."""
        self._episode: tuple[str, int] | None = None
        self._joined_in = self._round = 0
        """Rounds of barriers: the first that this node answered in this episode, and the last."""
        self._asks = False
        """Whether this node, which takes part, wants a barrier."""
        self.lockstep = False
        """Whether the world waits for this node's answers."""

    def received(self, key: str) -> None:
        """Count a message that ticks count too: truth by sensor, samples by topic."""
        if self.lockstep:
            self._received[key] += 1
            if self._waiting is not None:
                self._try()

    def is_late(self, key: str, raw: bytes) -> bool:
        """Return whether a message has been delivered already, when it came again."""
        again = self._came_again.get(key)
        if not again:
            return False
        if raw in again:
            del again[: again.index(raw) + 1]
            return True
        again.clear()  # a topic keeps its order
        return False

    def sent(self, topic: str, raw: bytes | None = None) -> None:
        """Count a published message, so that those behind this node can wait for it.

        With its bytes it can be sent again to one who has lost it.
        """
        if self.lockstep:
            self._sent[topic] += 1
            if raw is not None:
                self.kept.add(topic, raw)

    def wake_at(self, wake_ns: int) -> None:
        """Ask for an earlier tick than the one promised, after a change or late data."""
        if self.joined and wake_ns < self.wake_ns:
            self.wake_ns = wake_ns
            self._answer(Ack(self._name, self.now_ns, wake_ns))

    def pass_to(self, now_ns: int) -> None:
        """Do what is due at a time between two ticks, outside lockstep."""
        if self.joined and not self.lockstep and now_ns > self.now_ns:
            self.now_ns = now_ns
            if now_ns >= self.wake_ns:
                self._call()
                self._answer(Ack(self._name, now_ns, self.wake_ns))

    def leave(self) -> None:
        """Say that nobody needs to wait for this node any more; lockstep still misses it."""
        if self.joined and not self.lockstep:
            self._answer(Ack(self._name, self.now_ns))

    def rejoin(self) -> None:
        """Have the world wait for new connections of this node before it goes on (lockstep)."""
        self._asks = self.lockstep

    # ---- ticks ------------------------------------------------------------------------------

    def hear(self, tick: Tick) -> None:
        """Take a tick; what is due then is done as soon as all that it counts has come."""
        self.lockstep = tick.lockstep
        if (tick.run, tick.episode) != self._episode:
            self._begin(tick)
        if tick.round or not self._is_in:
            self._join(tick)
        elif tick.time_ns > self._heard_ns:
            self._heard_ns = tick.time_ns
            self._due, self._repeats = tick.sent, 0
            # In lockstep one that collects is called for everything that was sent.
            if tick.time_ns >= self.wake_ns or (tick.lockstep and not self._serves):
                self._waiting = tick
                self._try()
            else:
                self.now_ns = tick.time_ns
        elif tick.lockstep and tick.time_ns == self._heard_ns:
            if self._waiting is not None:
                self._miss(tick)
            elif self._answered is not None and self._answered.time_ns == tick.time_ns:
                self._answer(self._answered)  # a tick is repeated until its answer is heard
        if self._asks and self._is_in and self._waiting is None and not tick.round:
            self._answer(self._joining(tick))

    def hear_again(self, again: Again) -> None:
        """Take a message that came again, or a request for some; those of others are ignored."""
        if not again.raw:
            if self._answered is not None and self._answered.time_ns == again.time_ns:
                for each in self.kept.answers(again):
                    self._send_again(each)
        elif (
            self._deliver is not None
            and again.time_ns == self._heard_ns
            and again.key in self._missing
            and again.index == self._received[again.key] + 1
        ):
            self._came_again.setdefault(again.key, []).append(again.raw)
            self._deliver(again.key, again.raw)

    @property
    def _missing(self) -> set[str]:
        """Keys of which not all that is due has come."""
        return {
            key
            for key in self.counted & self._settled_in
            if self._received[key] < self._due.get(key, 0)
        }

    def _miss(self, tick: Tick) -> None:
        """Ask, now and then, for what does not come: DDS may have lost a connection."""
        self._repeats = (self._repeats + 1) % PATIENCE
        if self._repeats == 0 and self._deliver is not None:
            for key in self._missing:
                self._send_again(Again(key, self._received[key], self._due[key], tick.time_ns))

    @property
    def _is_in(self) -> bool:
        """Whether this node takes part: it has joined, and answered more than one round.

        In lockstep, one that has not was started again when all others had answered: they do not
        know that it is new, and it does not know what they have sent.
        """
        return self.joined and not (self.lockstep and self._round == self._joined_in)

    def _begin(self, tick: Tick) -> None:
        """Start over with a new world, or a new episode of the same."""
        self.joined = self._asks = False
        self._episode = (tick.run, tick.episode)
        self.now_ns = self.wake_ns = tick.time_ns
        self._waiting = self._answered = None
        self._received.clear()
        self._sent.clear()
        self.kept.forget()
        self._came_again.clear()
        self._settled_in.clear()
        self._joined_in = 0
        if self._on_episode is not None:
            self._on_episode(tick)

    def _join(self, tick: Tick) -> None:
        """Answer a barrier, or ask for one.

        Its ticks are repeated until all have answered, so one may come when the counting is on.
        In lockstep a node is called, and publishes, at ticks only: nothing is sent in a barrier.
        So counts are cut there. What is more than counted came from a node that was ended before
        it could tell.
        """
        if self.joined and tick.round == self._round:
            self._answer(self._joining(tick))
            return
        self._due = tick.sent
        self._waiting = None
        self.now_ns = self._heard_ns = tick.time_ns
        self.readers = tick.readers
        if tick.round and self._missing:
            self._miss(tick)
            return
        if not self._ready():
            return
        self.wake_ns = self.now_ns + 1
        if not tick.lockstep:
            self.joined = True
            self._call()
        elif tick.round:
            self.joined, self._asks, self._round = True, False, tick.round
            self._joined_in = self._joined_in or tick.round
            self._settled_in = set(self.counted)  # `ready` may have added some
            self._received = Counter({key: tick.sent.get(key, 0) for key in self.counted})
        self._answer(self._joining(tick))

    def _joining(self, tick: Tick) -> Ack:
        return Ack(
            self._name,
            tick.time_ns,
            self.wake_ns,
            serves=self._serves,
            round=tick.round,
            reads=tuple(sorted(self.counted)),
        )

    def _try(self) -> None:
        """Handle the waiting tick once everything it counts is here."""
        tick = self._waiting
        if tick is None or (tick.lockstep and self._missing):
            return
        self._waiting = None
        self.kept.forget()
        self.now_ns = tick.time_ns
        self._call()
        sent, self._sent = self._sent, Counter()
        self._answered = Ack(self._name, tick.time_ns, self.wake_ns, sent)
        self._answer(self._answered)

    def _call(self) -> None:
        self.wake_ns = min(max(self._on_time(self.now_ns), self.now_ns + 1), NEVER_NS)
