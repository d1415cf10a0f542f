"""How a node follows the world's time: hears ticks, does what is due, says when to call it next.

The same object serves an emulator (on `world/tick`) and the sync node (on `world/settled`, which
comes when every emulator has answered). Outside lockstep nobody waits for its answers, but the
world still uses their wake times: a tick goes out where somebody needs one, not at every step.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from rclpy.node import Node
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.handover import Handover
from rig_common.lockstep import ACK_TOPIC, TICK_TOPIC, Ack, Tick
from rig_common.malformed import Malformed
from rig_common.ros import qos
from rig_common.times import NEVER_NS

Handler = Callable[[int], int]
"""Called with the simulated time; publishes what is due and returns when it must be called next.
Nothing may be published between the two."""


class Follower:
    """A node's place in the rig's time."""

    def __init__(self, node: Node, on_time: Handler, *, serves: Sequence[str] = (),
                 topic: str = TICK_TOPIC, on_episode: Callable[[Tick], None] | None = None,
                 ready: Callable[[], bool] | None = None,
                 handover: Handover | None = None) -> None:
        """Follow `topic` of the rig that `node` belongs to.

        `serves` names the sensors this node answers for. `on_episode` is called when the world
        starts again at time 0, and once at the start. `ready` says whether all connections of the
        node stand; until then it does not join. With `handover` the world is in this process.
        """
        self.malformed = Malformed(node.get_name())
        """What came on the topics of time and was none."""
        self._on_time = on_time
        self._topic = topic
        self._on_episode = on_episode
        self._ready = ready or (lambda: True)
        self._name = node.get_fully_qualified_name()
        self._serves = tuple(serves)
        self._waiting: Tick | None = None
        self._heard_ns = -1
        self._due: Counter[str] = Counter()
        self._sent: Counter[str] = Counter()
        self.counted: set[str] = set()
        """What this node receives, by the names ticks use; other counts do not concern it."""
        self.joined = False
        """Whether the world knows this node."""
        self.now_ns = 0
        """Latest simulated time heard of, ns."""
        self.wake_ns = 0
        """Time of the next tick this node needs, ns."""
        self._episode: tuple[str, int] | None = None
        self._round = 0
        self.lockstep = False
        """Whether the world waits for this node's answers."""
        self._handover = handover
        if handover is None:
            prefix = rig_namespace(node)
            publisher = node.create_publisher(TimeReference, prefix + ACK_TOPIC, qos.beat_out())
            self._answer: Callable[[Ack], None] = lambda ack: publisher.publish(ack.encode())
            node.create_subscription(TimeReference, prefix + topic, self._on_tick,
                                     qos.internal(), raw=True)
        else:
            self._answer = handover.ack
            handover.follow(topic, self, self._hear)

    def received(self, key: str) -> None:
        """Count a message that ticks count too: truth by sensor, samples by topic."""
        if self.lockstep:
            self._due[key] -= 1
            if self._waiting is not None:
                self._try()

    def sent(self, topic: str) -> None:
        """Count a published message, so that those behind this node can wait for it."""
        if self.lockstep:
            self._sent[topic] += 1

    def wake_at(self, wake_ns: int) -> None:
        """Ask for an earlier tick than the one promised, after a change or late data."""
        if self.joined and wake_ns < self.wake_ns:
            self.wake_ns = wake_ns
            self._answer(Ack(self._name, self.now_ns, wake_ns))

    def leave(self) -> None:
        """Say that nobody needs to wait for this node any more; lockstep still misses it."""
        if self.joined and not self.lockstep:
            self._answer(Ack(self._name, self.now_ns))
        if self._handover is not None:
            self._handover.leave(self._topic, self)

    def rejoin(self) -> None:
        """Have the world wait for new connections of this node before it goes on (lockstep)."""
        if self.lockstep:
            self.joined = False

    # ---- ticks ------------------------------------------------------------------------------

    def _on_tick(self, buf: bytes) -> None:
        try:
            tick = Tick.decode(buf)
        except CdrError as error:
            self.malformed.note(self._topic, error)
            return
        self._hear(tick)

    def _hear(self, tick: Tick) -> None:
        self.lockstep = tick.lockstep
        if (tick.run, tick.episode) != self._episode:
            self.joined = False
            self._episode = (tick.run, tick.episode)
            self.now_ns = self.wake_ns = tick.time_ns
            self._waiting = None
            if self._on_episode is not None:
                self._on_episode(tick)
        if tick.round or not self.joined:
            self._join(tick)
        elif tick.time_ns > self._heard_ns:  # an unanswered tick is repeated
            self._heard_ns = tick.time_ns
            for key, count in tick.sent.items():
                if key in self.counted:
                    self._due[key] += count
            # One that collects is called for everything that was sent, not at its own times only.
            if tick.time_ns >= self.wake_ns or (tick.sent and not self._serves):
                self._waiting = tick
                self._try()
            else:
                self.now_ns = tick.time_ns

    def _join(self, tick: Tick) -> None:
        """Answer a barrier, or ask for one; counting starts afresh behind it.

        Its ticks are repeated until all have answered, so one may come when the counting is on.
        """
        if self.joined and tick.round == self._round:
            self._answer(self._joining(tick))
            return
        self._due.clear()
        self._sent.clear()
        self._waiting = None
        self.now_ns = self._heard_ns = tick.time_ns
        if not self._ready():
            return
        self.joined, self._round = bool(tick.round) or not tick.lockstep, tick.round
        self._call()
        self._answer(self._joining(tick))

    def _joining(self, tick: Tick) -> Ack:
        return Ack(self._name, tick.time_ns, self.wake_ns, serves=self._serves, round=tick.round)

    def _try(self) -> None:
        """Handle the waiting tick once everything it counts is here."""
        tick = self._waiting
        if tick is None or (tick.lockstep and max(self._due.values(), default=0) > 0):
            return
        self._waiting = None
        self.now_ns = tick.time_ns
        self._call()
        sent, self._sent = self._sent, Counter()
        self._answer(Ack(self._name, tick.time_ns, self.wake_ns, sent))

    def _call(self) -> None:
        self.wake_ns = min(max(self._on_time(self.now_ns), self.now_ns + 1), NEVER_NS)


def rig_namespace(node: Node) -> str:
    """Return the namespace of the whole rig, with a slash at its end.

    A node of one environment lives in `.../env_3/`; the world's time is one level up.
    """
    namespace: str = node.get_namespace().rstrip('/') + '/'
    return re.sub(r'env_\d+/\Z', '', namespace)
