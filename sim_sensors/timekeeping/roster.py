"""The nodes that follow the world's time: who takes part, who left, who needs a tick when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from rig_common.times import NEVER_NS, NS_PER_MS

SLACK_NS = 2 * NS_PER_MS
"""How far, in simulated time, the world may run ahead of a node outside lockstep. More would let
samples go out late when the machine is slow; it is the clock that has to wait then."""
MOST_MEMBERS = 1000
"""Nodes that a world takes in; one more is a stranger that invents names."""
MOST_READS = 10_000
"""Topics that a node may count; more are no rig's."""


@dataclass(slots=True)
class Participant:
    """A node that follows the world's time."""

    serves: tuple[str, ...]
    """Its sensors; empty for one that collects (the sync node)."""
    reads: tuple[str, ...]
    """What it counts: truth by sensor, samples by topic."""
    wake_ns: int
    """Next time it needs a tick."""
    sent: Counter[str] = field(default_factory=Counter)
    """Messages by topic that it has sent since they were last taken."""

    @property
    def collects(self) -> bool:
        """Whether it is served after the emulators, with what they have sent."""
        return not self.serves


class Roster:
    """The participants by name. Times count from the start of the run, ns."""

    def __init__(self) -> None:
        self.members: dict[str, Participant] = {}
        self.left: dict[str, Participant] = {}
        """Those who were given up; they take part again as soon as they say something."""

    def admit(
        self, name: str, serves: tuple[str, ...], wake_ns: int, reads: tuple[str, ...] = ()
    ) -> bool:
        """Take a node in, or in again; return whether there was room for it."""
        if name not in self.members and len(self.members) + len(self.left) >= MOST_MEMBERS:
            return False
        if len(reads) > MOST_READS:
            return False
        self.left.pop(name, None)
        before = self.members.get(name)  # what it sent before it joined again still counts
        self.members[name] = Participant(
            serves, reads, wake_ns, before.sent if before else Counter()
        )
        return True

    def readers(self) -> dict[str, list[str]]:
        """Return the names of those who count each truth and each topic."""
        readers: dict[str, list[str]] = {}
        for name, member in self.members.items():
            for key in member.reads:
                readers.setdefault(key, []).append(name)
        return readers

    def counts(self, key: str) -> bool:
        """Return whether somebody counts this truth."""
        return any(key in member.reads for member in self.members.values())

    def find(self, name: str) -> Participant | None:
        """Return a node that speaks; one that was given up is a member again."""
        if name not in self.members and name in self.left:
            self.members[name] = self.left.pop(name)
        return self.members.get(name)

    def give_up(self, names: Iterable[str]) -> None:
        """Go on without these."""
        for name in names:
            self.left[name] = self.members.pop(name)

    def behind(self, now_ns: int) -> list[str]:
        """Return who needed a tick so long ago that the world, outside lockstep, waits for it."""
        return [
            name for name, member in self.members.items() if member.wake_ns + SLACK_NS <= now_ns
        ]

    def earliest_ns(self) -> int:
        """Return the earliest time that somebody has to answer."""
        return min([member.wake_ns for member in self.members.values()], default=NEVER_NS)

    def next_tick_ns(self, after_ns: int, lead_ns: int) -> int:
        """Return the earliest time, later than `after_ns`, at which somebody needs a tick.

        An emulator gets it earlier by `lead_ns`, and then waits on the host's clock.
        """
        needed = [
            member.wake_ns - (0 if member.collects else lead_ns)
            for member in self.members.values()
        ]
        return min([time_ns for time_ns in needed if time_ns > after_ns], default=NEVER_NS)

    def emulators_due(self, now_ns: int) -> set[str]:
        """Return the emulators that need a tick now."""
        return {
            name
            for name, member in self.members.items()
            if not member.collects and member.wake_ns <= now_ns
        }

    def collectors_due(self, now_ns: int, *, news: bool) -> set[str]:
        """Return those who collect: all of them if there is something new, else who is due."""
        return {
            name
            for name, member in self.members.items()
            if member.collects and (news or member.wake_ns <= now_ns)
        }

    def take_sent(self) -> Counter[str]:
        """Return what all have sent since the last call, by topic."""
        sent: Counter[str] = Counter()
        for member in self.members.values():
            sent.update(member.sent)
            member.sent.clear()
        return sent
