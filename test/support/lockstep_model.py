"""A rig in lockstep on a network that a search can drive: every order, loss, cut and restart.

The Conductor and the Followings are the real ones. Around them is as little as possible: a world
that sends one truth per sensor and tick, emulators that send a sample for each truth a tick later,
a node that collects the samples, and channels that keep the order inside a topic and between no
two topics, as DDS does. A writer learns of a reader late, if the size says so, and what it sends
before does not reach that reader. A cut makes writers forget their readers, and loses what is on
its way; they learn of each other again at any time after.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from types import MethodType
from typing import Any

from rig_common.lockstep import following as protocol
from rig_common.lockstep.again import Again, Kept
from rig_common.lockstep.following import Following
from rig_common.lockstep.messages import Ack, Tick
from rig_common.times import TimeBase
from sim_sensors.timekeeping.conductor import REPEAT_S, Conductor

MS = 1_000_000
FOREVER_S = 1e9
DATA = ('truth', 'sample')
"""Kinds of channels, first word of their names; the last word is the node, the others control."""


@dataclass(frozen=True)
class Size:
    """How large a rig is searched, and what may go wrong in it."""

    emulators: int
    ticks: int
    losses: int = 0
    """Ticks, settlements and answers that may be lost."""
    early: int = 0
    """Repetitions while anything is on its way: messages are asked for that will come."""
    restarts: int = 0
    """Nodes that may end and come back; the world too."""
    resets: int = 0
    """New episodes."""
    discovery: bool = False
    """Writers of data have to learn of their readers, at any time."""
    cuts: int = 0
    """Connections that DDS forgets: of one writer to one reader, or all of a node's."""


@dataclass
class Node:
    """An emulator or the node that collects: what it has received, and what it was called for."""

    got: list[Any] = field(default_factory=list)
    """Numbers of the truths, or samples, that have come in this episode, in their order."""
    called_ns: int = -1
    """Time of the last tick it was called for."""
    sent: int = 0
    """Samples sent in this episode."""
    incarnation: int = 0


class WrongError(AssertionError):
    """Something that must not happen, happened."""


class Network:
    """The whole system; `actions` says what can happen next, `do` lets it happen."""

    def __init__(self, size: Size) -> None:
        self.size = size
        self.names = [f'/e{index}' for index in range(size.emulators)]
        self.nodes = {name: Node() for name in (*self.names, '/sync')}
        self.channels: dict[str, list[Any]] = {}
        self.left = {
            'loss': size.losses,
            'early': size.early,
            'restart': size.restarts,
            'reset': size.resets,
            'cut': size.cuts,
        }
        self.truths = 0
        """Truths sent to each emulator in this episode."""
        self.expected: list[Any] = []
        """Samples sent since the node that collects has joined."""
        self.unknown: set[tuple[str, str]] = set()
        """(reader, writer) of which the writer has not learnt."""
        for name in self.nodes:
            self._appear(name)
        self.episode = self.starts = 0
        self.wall_s = 0.0
        self.world_ns = -MS
        self.end_ns = size.ticks * MS
        self.followings = {name: self._following(name) for name in self.nodes}
        self.conductor = self._conductor()

    # ---- the real objects ---------------------------------------------------------------------

    def _conductor(self) -> Conductor:
        return Conductor(
            dt_ns=MS,
            seed=1,
            lockstep=True,
            sensors=[name[1:] for name in self.names],
            collectors=['sync'],
            timeout_s=FOREVER_S,
            send_tick=partial(self._say, 'tick'),
            send_settled=partial(self._say, 'settled'),
            connected=partial(self._knows, 'world'),
            time_base=TimeBase(),
            kept=Kept(),
            run=f'w{self.starts}',
        )

    def _following(self, name: str) -> Following:
        follower = Following(
            name,
            partial(self._on_time, name),
            partial(self._answer, name),
            serves=(name[1:],) if name in self.names else (),
            on_episode=partial(self._on_episode, name),
            deliver=partial(self._take, name),
            send_again=partial(self._send_again, name),
            ready=lambda: self._knows(name, self.followings[name].readers),
        )
        follower.counted = (
            {name[1:]} if name in self.names else {f'{each[1:]}/out' for each in self.names}
        )
        return follower

    def _appear(self, name: str) -> None:
        """Have nobody know the readers of a node, and the node know nobody's."""
        if self.size.discovery:
            self.unknown |= {pair for pair in self._pairs if name in pair}

    @property
    def _pairs(self) -> set[tuple[str, str]]:
        return {(name, 'world') for name in self.names} | {('/sync', name) for name in self.names}

    def _knows(self, writer: str, readers: Mapping[str, Collection[str]]) -> bool:
        wrote = {name[1:] for name in self.names} if writer == 'world' else {f'{writer[1:]}/out'}
        return not any(
            (reader, writer) in self.unknown for key in wrote for reader in readers.get(key, ())
        )

    def _say(self, what: str, tick: Tick) -> None:
        for name in self.names if what == 'tick' else ['/sync']:
            self._put(f'{what} {name}', tick)

    def _answer(self, name: str, ack: Ack) -> None:
        self._put(f'ack {name}', ack)

    def _send_again(self, name: str, again: Again) -> None:
        """An emulator asks the world, and answers the node that collects, which asks them all."""
        if name == '/sync':
            for each in self.names:
                self._put(f'asked {each}', again)
        else:
            self._put('again /sync' if again.raw else f'asks {name}', again)

    def _put(self, channel: str, message: Any) -> None:
        self.channels.setdefault(channel, []).append(message)

    # ---- what the nodes do --------------------------------------------------------------------

    def _on_episode(self, name: str, tick: Tick) -> None:
        self.nodes[name] = Node(incarnation=self.nodes[name].incarnation)
        if name == '/sync':
            self.expected.clear()

    def _on_time(self, name: str, now_ns: int) -> int:
        node = self.nodes[name]
        if self.followings[name]._waiting is not None:
            raise WrongError(f'{name} was called at {now_ns} in the middle of another call')
        if name == '/sync':
            return now_ns + 1000 * MS
        # A truth of tick k becomes a sample at k + 1.
        while node.sent < len(node.got) and (node.got[node.sent] + 2) * MS <= now_ns:
            node.sent += 1
            sample = (name, node.incarnation, node.got[node.sent - 1])
            self.followings[name].sent(f'{name[1:]}/out', sample)
            if ('/sync', name) not in self.unknown:
                self._put(f'sample {name} /sync', sample)
            if self.conductor.in_barrier:
                raise WrongError(f'{name} has sent {sample} in a barrier')
            if self.followings['/sync'].joined:
                self.expected.append(sample)
        return now_ns + MS if node.sent < len(node.got) else now_ns + 2 * MS

    # ---- what can happen ----------------------------------------------------------------------

    @property
    def done(self) -> bool:
        return self.world_ns >= self.end_ns and not self.conductor.blocked

    def actions(self) -> Iterator[tuple[str, str]]:
        """Yield (kind, what): everything that can happen now."""
        busy = False
        for channel, queue in self.channels.items():
            if queue:
                kind = channel.split(' ')[0]
                busy = True
                if self._may_come(channel):
                    yield 'deliver', channel
                if kind in ('tick', 'settled', 'ack') and self.left['loss']:
                    yield 'lose', channel
        if self.left['cut'] and not self.done:
            for reader, writer in sorted(self._pairs - self.unknown):
                yield 'cut', f'{reader} {writer}'
            for name in self.nodes:
                yield 'cut', name
        for reader, writer in sorted(self.unknown):
            yield 'learn', f'{reader} {writer}'
        conductor = self.conductor
        if conductor.blocked:
            if (
                conductor.in_barrier
                and not conductor.missing()
                and self._knows('world', conductor.roster.readers())
            ):
                yield 'attend', ''
            elif not busy:
                yield 'repeat', ''
            elif self.left['early']:
                yield 'early', ''
        elif self.world_ns < self.end_ns:
            yield 'advance', ''
        if self.left['restart'] and not self.done:
            for name in (*self.nodes, 'world'):
                yield 'restart', name
        if self.left['reset'] and not conductor.blocked and self.world_ns >= 0:
            yield 'reset', ''

    def _may_come(self, channel: str) -> bool:
        """Data of before a barrier reaches a node before its last round is over.

        No count can tell a new reader how much of that is on its way, nor anybody what a node
        sent that was ended before it could tell. DDS has handed it over long before two rounds of
        questions and answers are through; this is the one thing assumed.
        """
        if channel.split(' ')[0] not in ('tick', 'settled'):
            return True
        tick = self.channels[channel][0]
        name = channel.split(' ')[1]
        new = not self.followings[name]._settled_in
        data = [
            each
            for other, queue in self.channels.items()
            if other.endswith(name) and other.split(' ')[0] in DATA
            for each in queue
            if new or (name == '/sync' and each[1] < self.nodes[each[0]].incarnation)
        ]
        return not (tick.round and data)

    def do(self, kind: str, what: str) -> None:
        if kind in ('deliver', 'lose'):
            message = self.channels[what].pop(0)
            if kind == 'lose':
                self.left['loss'] -= 1
            else:
                self._deliver(what, message)
        elif kind in ('attend', 'repeat', 'early'):
            self.left['early'] -= kind == 'early'
            self.conductor.attend(self.wall_s, self.world_ns)
            self.conductor.attend(self.wall_s + 2 * REPEAT_S, self.world_ns)
            self.conductor._since_s = None
        elif kind == 'cut':
            self.left['cut'] -= 1
            self._cut(what)
        elif kind == 'learn':
            reader, writer = what.split(' ')
            self.unknown.discard((reader, writer))
        elif kind == 'advance':
            self._advance()
        elif kind == 'restart':
            self.left['restart'] -= 1
            self._restart(what)
        else:
            self.left['reset'] -= 1
            self._begin()
            self.episode += 1
            self.conductor.new_episode(self.episode, 1, -MS)

    def _deliver(self, channel: str, message: Any) -> None:
        kind, *_, name = channel.split(' ')
        follower = self.followings[name]
        if kind == 'ack':
            self.conductor.on_ack(message)
        elif kind == 'asks':
            for again in self.conductor.answers(message):
                self._put(f'again {name}', again)
        elif kind in DATA:
            late = kind == 'sample' and follower.is_late(f'{message[0][1:]}/out', message)
            if not late:
                self._take(name, '', message)
        else:
            (follower.hear_again if kind in ('asked', 'again') else follower.hear)(message)
        self._check(name)

    def _take(self, name: str, key: str, message: Any) -> None:
        """Receive a truth or a sample. Truth that is not newer than the last is left alone."""
        got = self.nodes[name].got
        if name == '/sync':
            got.append(message)
            self.followings[name].received(f'{message[0][1:]}/out')
        elif not got or message[0] > got[-1]:
            got.append(message[0])
            self.followings[name].received(name[1:])

    def _cut(self, what: str) -> None:
        """Lose what is on its way over some connections, and have writers forget the readers."""
        if ' ' in what:
            reader, writer = what.split(' ')
            pairs = {(reader, writer)}
            lost = [f'truth {reader}' if writer == 'world' else f'sample {writer} {reader}']
        else:
            pairs = {pair for pair in self._pairs if what in pair}
            lost = [each for each in self.channels if what in each.split(' ')]
            if what == '/sync':
                lost += [f'asked {each}' for each in self.names]
            else:
                lost.append('again /sync')
        for channel in lost:
            self.channels.pop(channel, None)
        self.unknown |= pairs
        if 'world' in {writer for _, writer in pairs}:
            self.conductor.lost_reader()

    def _advance(self) -> None:
        """Step to where the next tick is due, a truth for everybody at every step."""
        conductor = self.conductor
        stop_ns = min(
            conductor.next_tick_ns, max(conductor.limit_ns, self.world_ns + MS), self.end_ns
        )
        sent = dict.fromkeys((name[1:] for name in self.names), 0)
        while self.world_ns < stop_ns:
            self.world_ns += MS
            for name in self.names:
                truth, known = (self.truths,), (name, 'world') not in self.unknown
                counted = self.conductor.counts(name[1:])
                sent[name[1:]] += known or counted
                if counted:
                    self.conductor._kept.add(name[1:], truth)
                if known:
                    self._put(f'truth {name}', truth)
            self.truths += 1
        conductor.tick(self.world_ns, 0, sent)

    def _begin(self) -> None:
        """Put the world back to its start; what is on its way is of the past, and is dropped."""
        self.world_ns, self.truths = -MS, 0
        self.expected.clear()
        for channel, queue in self.channels.items():
            if channel.split(' ')[0] in DATA:
                queue.clear()

    def _restart(self, name: str) -> None:
        if name == 'world':
            self._begin()
            for channel in [each for each in self.channels if each.split(' ')[0] != 'ack']:
                self.channels[channel].clear()
            self.starts += 1
            self.episode = 0
            self._appear('world')
            self.conductor = self._conductor()
            return
        for channel in [each for each in self.channels if each.endswith(name)]:
            self.channels[channel].clear()
        if name == '/sync':
            self.expected.clear()
        # what it had sent, but not told of, may come any time
        self.expected = [
            each for each in self.expected if each[0] != name or each in self.nodes['/sync'].got
        ]
        self.nodes[name] = Node(incarnation=self.nodes[name].incarnation + 1)
        self._appear(name)
        self.followings[name] = self._following(name)

    # ---- what must be true --------------------------------------------------------------------

    def _check(self, name: str) -> None:
        """A tick is handled once, with all that was sent before it and nothing from after it."""
        follower, node = self.followings[name], self.nodes[name]
        answered = follower._answered
        if answered is None or answered.time_ns == node.called_ns:
            return
        if answered.time_ns < node.called_ns:
            raise WrongError(f'{name} answered {answered.time_ns} after {node.called_ns}')
        node.called_ns = answered.time_ns
        if name != '/sync':
            due = answered.time_ns // MS + 1
            if node.got and node.got[-1] >= due:
                raise WrongError(f'{name} had {node.got} at {answered.time_ns}')
            first = node.got[0] if node.got and self.size.restarts else 0
            if node.got != list(range(first, due)):
                raise WrongError(
                    f'{name} had {node.got} at {answered.time_ns}, not all until {due}'
                )
        elif not set(self.expected) <= set(node.got):
            raise WrongError(
                f'{name} was called at {answered.time_ns} with {node.got}; '
                f'{self.expected} had been sent'
            )
        if len(set(node.got)) != len(node.got):
            raise WrongError(f'{name} received twice: {node.got}')

    # ---- states -------------------------------------------------------------------------------

    def save(self) -> bytes:
        """Return the state as bytes; equal states mostly give equal bytes."""
        last: Any = self.conductor._last
        # A partial of a partial is one with both arguments: which topic, which tick.
        shown = ('barrier',) if isinstance(last, MethodType) else last.args
        conductor = {
            key: value
            for key, value in vars(self.conductor).items()
            if not callable(value) and key not in ('_base', '_last', '_repeat_s')
        }
        followings = {
            name: {key: value for key, value in vars(follower).items() if not callable(value)}
            for name, follower in self.followings.items()
        }
        own = {
            key: value
            for key, value in vars(self).items()
            if key not in ('conductor', 'followings', 'size')
        }
        own['channels'] = {key: queue for key, queue in sorted(self.channels.items()) if queue}
        return pickle.dumps((conductor, shown, followings, own), 5)

    def load(self, state: bytes) -> None:
        conductor, shown, followings, own = pickle.loads(state)
        vars(self).update(own)
        vars(self.conductor).update(conductor)
        sends = {'tick': self.conductor._send_tick, 'settled': self.conductor._send_settled}
        self.conductor._last = (
            self.conductor._send_barrier
            if shown[0] == 'barrier'
            else partial(sends[shown[0]], shown[1])
        )
        for name, values in followings.items():
            vars(self.followings[name]).update(values)


@dataclass
class Found:
    """What a search came to."""

    states: int
    stuck: list[list[tuple[str, str]]]
    """Ways to states from which the end cannot be reached any more."""


def search(size: Size, limit: int = 2_000_000) -> Found:
    """Visit every state; raise WrongError with the way to it where a rule is broken."""
    patience, protocol.PATIENCE = protocol.PATIENCE, 1  # ask at once, and sooner than need be
    try:
        return _search(size, limit)
    finally:
        protocol.PATIENCE = patience


def _search(size: Size, limit: int) -> Found:
    network = Network(size)
    start = network.save()
    first = _name(start)
    came: dict[bytes, tuple[bytes, tuple[str, str]] | None] = {first: None}
    before: dict[bytes, list[bytes]] = {}
    ends: list[bytes] = []
    todo = [(first, start)]
    while todo:
        state, content = todo.pop()
        network.load(content)
        if network.done:
            ends.append(state)
            continue
        for action in list(network.actions()):
            network.load(content)
            try:
                network.do(*action)
            except WrongError as error:
                way = [*_way(came, state), action]
                raise WrongError(f'{error}\n' + '\n'.join(map(str, way))) from None
            saved = network.save()
            following = _name(saved)
            if action[0] not in ('lose', 'restart', 'early', 'reset', 'cut'):
                before.setdefault(following, []).append(state)
            if following not in came:
                came[following] = (state, action)
                todo.append((following, saved))
        assert len(came) < limit, f'more than {limit} states'
    good = set(ends)
    spread = list(ends)
    while spread:
        for state in before.get(spread.pop(), ()):
            if state not in good:
                good.add(state)
                spread.append(state)
    return Found(len(came), [_way(came, state) for state in came if state not in good][:1])


def _name(state: bytes) -> bytes:
    """Return what stands for a state: a million of them whole would be tens of gigabytes."""
    return blake2b(state, digest_size=16).digest()


def _way(
    came: dict[bytes, tuple[bytes, tuple[str, str]] | None], state: bytes
) -> list[tuple[str, str]]:
    way: list[tuple[str, str]] = []
    step = came[state]
    while step is not None:
        way.append(step[1])
        step = came[step[0]]
    return way[::-1]
