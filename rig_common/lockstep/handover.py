"""Ticks and answers between the nodes of one process, handed over without the way through DDS.

They are half of all messages of a run in lockstep. The topics stay: whoever else listens to
`world/_tick`, or answers from another process, takes part as before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial

from rig_common.lockstep.messages import Ack, Tick

Hear = Callable[[Tick], None]
HearAck = Callable[[Ack], None]


class Handover:
    """Where the world and its followers in one process meet; all in one thread.

    What is said while something is being heard waits for its turn, so that nobody is called in
    the middle of speaking.
    """

    def __init__(self) -> None:
        self._followers: dict[str, dict[object, Hear]] = {}
        self._world: HearAck | None = None
        self._said: deque[Callable[[], None]] = deque()
        self._busy = False

    def follow(self, topic: str, who: object, hear: Hear) -> None:
        """Have `who` hear the ticks of `topic`."""
        self._followers.setdefault(topic, {})[who] = hear

    def leave(self, topic: str, who: object) -> None:
        """Tell `who` no more."""
        self._followers.get(topic, {}).pop(who, None)

    def conduct(self, hear: HearAck | None) -> None:
        """Have the world hear the answers; None when it goes."""
        self._world = hear

    def tick(self, topic: str, tick: Tick) -> None:
        """Say a tick to all who follow `topic` here."""
        self._say(partial(self._tell, topic, tick))

    def ack(self, ack: Ack) -> None:
        """Say an answer to the world, if it is there."""
        self._say(partial(self._answer, ack))

    def _tell(self, topic: str, tick: Tick) -> None:
        for hear in list(self._followers.get(topic, {}).values()):
            hear(tick)

    def _answer(self, ack: Ack) -> None:
        if self._world is not None:
            self._world(ack)

    def _say(self, what: Callable[[], None]) -> None:
        self._said.append(what)
        if self._busy:
            return
        self._busy = True
        try:
            while self._said:
                self._said.popleft()()
        finally:
            self._busy = False
