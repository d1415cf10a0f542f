"""The messages that carry simulated time between the nodes of a rig, as bytes.

All three are sensor_msgs/TimeReference, so any tool can show and record them:

- `world/_tick` says how far the world is. `header.stamp`: simulated time. `header.frame_id`: truth
  messages sent since the episode began, `imu=7 lidar=1`. `time_ref`: the host's clock. `source`:
  `run=5f3a.0 episode=0 seed=7 phase=run lockstep=true`; in a barrier `phase=barrier-3`, where 3
  is the round, and at its end who reads what: ` readers=imu:/emulator imu/data_raw:/sync:/log`.
  In real time it ends with ` pace=1.0 ahead=4000000`.
- `world/settled` follows when every emulator has answered: the same, but `header.frame_id` counts
  the messages they have sent, by topic: `imu/data_raw=1`. Outside lockstep it comes with the tick.
- `world/_ack` answers. `header.stamp`: the tick. `header.frame_id`: messages sent since the last
  answer, by topic. `time_ref`: when the node must be woken next; it promises to send nothing
  before. `source`: its name; when it joins, also in which round of a barrier (0 in none) and what
  it takes care of: `/emulator joins 3 imu`, and what it reads: ` reads:imu`.

In one process they are handed over as they are; ticks are published too where somebody listens.

The counts are there in lockstep only: DDS keeps the order inside a topic, never between topics,
so a node that has a tick may still miss data that was sent before it. It waits for the count.
Counts are totals, so that a tick that was lost is made good by the next.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from rig_common.cdr import HEADER_BYTES, LITTLE_ENDIAN_HEADER, Buffer, CdrError
from rig_common.times import NEVER_NS, NS_PER_S

TICK_TOPIC = 'world/_tick'
SETTLED_TOPIC = 'world/settled'
ACK_TOPIC = 'world/_ack'
TYPE_NAME = 'sensor_msgs/msg/TimeReference'

LONGEST_TEXT = 1 << 20
"""Bytes of a text in these messages; the counts of ten thousand topics need less."""
SHOWN = 80
"""Characters of a wrong text that are quoted."""

BARRIER = 'barrier-'
RUN = 'run'
READERS = ' readers='
READS = 'reads:'
"""No name of a sensor or topic has a colon."""

_STAMP_LENGTH = struct.Struct('<iII')
"""A time and the length of the string behind it."""
_TEXT = HEADER_BYTES + _STAMP_LENGTH.size
_PADDING = (b'\0\0\0\0', b'\0\0\0', b'\0\0', b'\0')
"""A string's closing NUL and what aligns the number behind it, by its length modulo 4."""


@dataclass(frozen=True, slots=True)
class Tick:
    """The world has reached `time_ns`; everything before it is decided."""

    time_ns: int
    """Simulated time, ns."""
    wall_ns: int = 0
    """Host clock at that time, ns since 1970; 0 where it says nothing about it."""
    episode: int = 0
    """Number of resets since this seed came; selects the random numbers."""
    seed: int = 0
    """Seed of this episode."""
    round: int = 0
    """Number of the barrier's round while the world waits for nodes to join, else 0."""
    lockstep: bool = False
    """The world waits for an answer."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Messages sent since the episode began, by sensor (tick) or topic (settled)."""
    run: str = ''
    """Tells this start of the world from every other; a new one begins at time 0."""
    readers: Mapping[str, Collection[str]] = field(default_factory=dict)
    """In a barrier: names of the nodes that count each sensor's truth or each topic. Whoever sends
    it answers once it knows them all: DDS tells a writer of a reader when it likes."""
    pace: float = 0.0
    """Simulated time in host time, where the world follows the host's clock; else 0."""
    ahead_ns: int = 0
    """For how long it does so before another tick says how it goes on, ns."""

    def encode(self) -> bytes:
        """Return the CDR bytes."""
        phase = f'{BARRIER}{self.round}' if self.round else RUN
        source = (
            f'run={self.run} episode={self.episode} seed={self.seed} phase={phase} '
            f'lockstep={"true" if self.lockstep else "false"}'
        )
        if self.pace:
            source += f' pace={self.pace} ahead={self.ahead_ns}'
        if self.readers:
            source += READERS + ' '.join(
                ':'.join((key, *names)) for key, names in self.readers.items()
            )
        return _write(self.time_ns, format_counts(self.sent), self.wall_ns, source)

    @classmethod
    def decode(cls, buf: Buffer) -> Tick:
        """Read a tick; raises CdrError where the bytes are no tick."""
        time_ns, counts, wall_ns, source = _read(buf)
        source, _, readers = source.partition(READERS)
        run, episode, seed, round_, lockstep, pace, ahead_ns = _parse_source(source)
        return cls(
            time_ns,
            wall_ns,
            episode,
            seed,
            round_,
            lockstep,
            parse_counts(counts),
            run,
            {key: names for key, *names in (each.split(':') for each in readers.split())},
            pace,
            ahead_ns,
        )


@dataclass(frozen=True, slots=True)
class Ack:
    """A node has done everything that was due at `time_ns`."""

    name: str
    """The node's name."""
    time_ns: int
    """Tick it answers, ns."""
    wake_ns: int = NEVER_NS
    """It promises to publish nothing before this time and wants a tick there, ns."""
    sent: Mapping[str, int] = field(default_factory=dict)
    """Messages published since its last answer, by topic."""
    serves: tuple[str, ...] | None = None
    """Set when it joins: what it takes care of (sensors; nothing for the sync node)."""
    round: int = 0
    """Round of the barrier in which it joins; 0: it asks for one, or needs none."""
    reads: tuple[str, ...] = ()
    """When it joins: what it counts, by the names ticks use."""

    def encode(self) -> bytes:
        """Return the CDR bytes."""
        source = self.name
        if self.serves is not None:
            source = ' '.join(
                (
                    self.name,
                    'joins',
                    str(self.round),
                    *self.serves,
                    *(READS + key for key in self.reads),
                )
            )
        return _write(self.time_ns, format_counts(self.sent), self.wake_ns, source)

    @classmethod
    def decode(cls, buf: Buffer) -> Ack:
        """Read an acknowledgement; raises CdrError where the bytes are no acknowledgement."""
        time_ns, counts, wake_ns, source = _read(buf)
        name, *joins = source.split(' ')
        if not joins:
            return cls(name, time_ns, wake_ns, parse_counts(counts))
        try:
            reads = tuple(each.removeprefix(READS) for each in joins if each.startswith(READS))
            serves = tuple(each for each in joins[2:] if not each.startswith(READS))
            return cls(name, time_ns, wake_ns, parse_counts(counts), serves, int(joins[1]), reads)
        except (IndexError, ValueError):
            raise CdrError(f'{source[:SHOWN]!r} is not the source of an answer') from None


def format_counts(counts: Mapping[str, int]) -> str:
    """Return `a=1 b=2`."""
    return ' '.join([f'{name}={count}' for name, count in counts.items()])


def parse_counts(text: str) -> dict[str, int]:
    """Return the counts of `a=1 b=2`."""
    if not text:
        return {}
    try:
        return {
            name: int(count)
            for name, _, count in (part.partition('=') for part in text.split(' '))
        }
    except ValueError:
        raise CdrError(f'{text[:SHOWN]!r} is no list of counts such as "imu=1 lidar=2"') from None


@lru_cache(maxsize=64)
def _parse_source(source: str) -> tuple[str, int, int, int, bool, float, int]:
    values = dict(part.partition('=')[::2] for part in source.split(' '))
    try:
        phase = values['phase']
        round_ = 0 if phase == RUN else int(phase.removeprefix(BARRIER))
        return (
            values['run'],
            int(values['episode']),
            int(values['seed']),
            round_,
            values['lockstep'] == 'true',
            float(values.get('pace', 0.0)),
            int(values.get('ahead', 0)),
        )
    except (KeyError, ValueError):
        raise CdrError(f'{source[:SHOWN]!r} is not the source of a tick') from None


def _write(stamp_ns: int, frame_id: str, time_ref_ns: int, source: str) -> bytes:
    """Return a TimeReference; ticks are many, so this is packed in one go."""
    first, second = frame_id.encode(), source.encode()
    return b''.join(
        (
            LITTLE_ENDIAN_HEADER,
            _STAMP_LENGTH.pack(*divmod(stamp_ns, NS_PER_S), len(first) + 1),
            first,
            _PADDING[len(first) & 3],
            _STAMP_LENGTH.pack(*divmod(time_ref_ns, NS_PER_S), len(second) + 1),
            second,
            b'\0',
        )
    )


def _read(buf: Buffer) -> tuple[int, str, int, str]:
    """Return (stamp_ns, frame_id, time_ref_ns, source); the fast way for what `_write` made."""
    try:
        sec, nanosec, length = _STAMP_LENGTH.unpack_from(buf, HEADER_BYTES)
        end = _TEXT + length
        place = end + (-end & 3)
        ref_sec, ref_nanosec, ref_length = _STAMP_LENGTH.unpack_from(buf, place)
        start = place + _STAMP_LENGTH.size
        if start + ref_length > len(buf):
            raise CdrError(f'not a TimeReference: a text of {ref_length} bytes does not fit')
        if length > LONGEST_TEXT or ref_length > LONGEST_TEXT:
            raise CdrError(f'a text of {max(length, ref_length)} bytes is none of ours')
        return (
            sec * NS_PER_S + nanosec,
            str(buf[_TEXT : end - 1], 'utf-8'),
            ref_sec * NS_PER_S + ref_nanosec,
            str(buf[start : start + ref_length - 1], 'utf-8'),
        )
    except (struct.error, UnicodeDecodeError) as error:
        raise CdrError(f'not a TimeReference: {error}') from None
