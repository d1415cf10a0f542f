"""Degrades a recording into a new one: constant memory, in order of arrival, every message booked.

result = degrade_recording('drive', 'drive_late', load_rig('faults.yaml'))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.errors import RigError
from rig_common.jsonable import JsonObject
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.recorder import RigNote
from sensor_rig.bags.writer import BagWriter, Storage
from sensor_rig.degrade.ledger import Account, require_balance
from sensor_rig.degrade.session import DegradeSession
from sensor_rig.degrade.stream import SAME_EPOCH_NS
from sensor_rig.rigfile import RigConfig
from sensor_rig.rigfile.stream_topics import assign
from sim_sensors.timing.clock_config import ClockConfig

VERSION = 1
"""Of the JSON document; it grows when a key changes its meaning or goes."""
FATES = 'fates.csv'
FATES_COLUMNS = (
    'stream',
    'topic',
    'number',
    'fate',
    'stamp_ns',
    'new_stamp_ns',
    'receive_ns',
    'arrival_ns',
)
TOO_FAST = 1.1
"""Factor on a topic's rate from which `rate_hz` is taken for a mistake."""
END_NS = 2**63
"""After every arrival."""
LONGEST_NS = 60 * NS_PER_S
"""Longest time between a stamp and its receive time with `base: stamp`; it is kept in memory."""


@dataclass(frozen=True)
class DegradeResult:
    """What came of a recording."""

    source: Path
    target: Path
    seed: int
    accounts: dict[str, Account]
    """By topic of the input."""
    delays: dict[str, JsonObject]
    """Quantiles of the new delay of each stream, s."""
    problems: list[str] = field(default_factory=list)
    """What of the input could not be read, and why: a sentence each."""
    notes: list[str] = field(default_factory=list)
    """What is worth knowing about the input."""

    def as_dict(self) -> JsonObject:
        """Return the document of `--json`."""
        return {
            'version': VERSION,
            'input': str(self.source),
            'output': str(self.target),
            'fates': str(fates_of(self.target)),
            'seed': self.seed,
            'problems': self.problems,
            'notes': self.notes,
            'delays': self.delays,
            'topics': {topic: each.as_dict() for topic, each in self.accounts.items()},
        }


def degrade_recording(
    source: str | Path,
    target: str | Path,
    rig: RigConfig,
    *,
    storage: Storage | None = None,
    compress: bool = False,
    advance: Callable[[float], None] = lambda count: None,
) -> DegradeResult:
    """Degrade the recording `source` into `target` as `rig.streams` say.

    `advance` gets the number of messages done now and then. A mistake raises before `target` is
    made. A recording that breaks off gives what was before the break, and `problems` say so.
    """
    if not rig.streams:
        raise RigError(f'{rig.path} has no streams: section, so there is nothing to degrade')
    with BagReader(source, keep_seq=storage in (None, 'bag')) as bag:
        job = BagDegrade(bag, rig)
        writer = BagWriter.like(bag, target, storage, compress=compress)
        try:
            with writer:
                job.run(writer, advance)
        except (KeyboardInterrupt, RigError) as error:
            if isinstance(error, KeyboardInterrupt) or not any(writer.counts.values()):
                writer.discard()  # nothing half done is left
            raise
        problems = bag.problems
    require_balance(job.session.accounts)
    return DegradeResult(
        Path(source),
        Path(target),
        rig.seed,
        job.session.accounts,
        {name: each.summary() for name, each in job.session.delays.items()},
        problems,
        job.notes,
    )


class BagDegrade:
    """One pass over a recording."""

    def __init__(self, bag: BagReader, rig: RigConfig) -> None:
        """Check the streams against the recording; nothing is written yet."""
        self._bag = bag
        self.notes: list[str] = []
        note = RigNote.of(bag.note)
        self._step_ns = note.step_ns if note else 1
        self._origin_ns = note.start_time_ns if note else bag.start_ns
        self.session = DegradeSession(
            rig.streams,
            rig.seed,
            origin_ns=self._origin_ns,
            captures_ns=note.captures_ns if note else None,
        )
        self._of = assign(bag.topics, rig.streams, bag.path)
        for topic in bag.topics.values():
            self.session.add_topic(topic.name, topic.type_name, stamped=topic.stamped)
        self.session.require_noise()
        for name in self._of:
            self._check_first(name)
            self._check_rate(name)
        self._early_ns = self._most_early_ns()

    # ---- what can be told before ----------------------------------------------------------------

    def _check_first(self, topic: str) -> None:
        """Look at a topic's first stamp: is there one, and can it carry the clock's error?"""
        name = self._of[topic]
        config = self.session.streams[name].config
        first = next(self._bag.messages([topic]), None)
        if first is None or not self._bag.topics[topic].stamped:
            return
        try:
            stamp_ns = read_stamp_ns(first.raw)
        except CdrError:
            return
        away_ns = abs(first.receive_ns - stamp_ns)
        if (
            stamp_ns == 0
            and away_ns > SAME_EPOCH_NS
            and (config.clock != ClockConfig() or config.clock_of or config.base == 'stamp')
        ):
            raise RigError(
                f'streams.{name}: the stamps of {topic} are zero, so nobody stamps it; '
                f'it takes delay, loss and rate only'
            )
        if config.base == 'stamp' and away_ns > LONGEST_NS:
            raise RigError(
                f'streams.{name}.base is stamp, but {topic} is stamped '
                f'{stamp_ns / 1e9:.3f} s and was received at '
                f'{first.receive_ns / 1e9:.3f} s, which is another epoch; use base: '
                f'arrival'
            )
        if away_ns > SAME_EPOCH_NS and config.start_time_s < 0.0:
            self.notes.append(
                f'{topic} is stamped in another epoch than it was received '
                f'({stamp_ns / 1e9:.3f} s at {first.receive_ns / 1e9:.3f} s): '
                f'drift and faults of {name} count from its first stamp'
            )

    def _check_rate(self, topic: str) -> None:
        config = self.session.streams[self._of[topic]].config
        count, duration_s = self._bag.topics[topic].message_count, self._bag.duration_s
        if not config.rate_hz or count < 10 or not duration_s:
            return
        rate_hz = (count - 1) / duration_s
        if config.rate_hz > TOO_FAST * rate_hz:
            raise RigError(
                f'streams.{self._of[topic]}.rate_hz is {config.rate_hz:g}, but {topic} '
                f'has only {rate_hz:.3g} messages a second; messages can be left out, '
                f'not made'
            )

    def _most_early_ns(self) -> int:
        """Return by how much a message may arrive before it was received in the input, ns.

        With `base: stamp` the delay of the input is taken away. To keep the order of arrival, one
        reading finds out how much that is at most; the rest of the run then waits so long.
        """
        topics = [
            topic
            for topic, name in self._of.items()
            if self.session.streams[name].config.base == 'stamp'
        ]
        most_ns = 0
        for message in self._bag.messages(topics) if topics else ():
            try:
                late_ns = message.receive_ns - read_stamp_ns(message.raw)
            except CdrError:
                continue
            if abs(late_ns) > LONGEST_NS:
                raise RigError(
                    f'streams.{self._of[message.topic]}.base is stamp, but a message '
                    f'of {message.topic} was received {late_ns / 1e9:.3f} s after its '
                    f'stamp; more than {LONGEST_NS // NS_PER_S} s is another epoch, '
                    f'use base: arrival'
                )
            most_ns = max(most_ns, late_ns)
        return most_ns

    # ---- the run --------------------------------------------------------------------------------

    def run(self, writer: BagWriter, advance: Callable[[float], None]) -> None:
        """Write the degraded recording."""
        self._announce(writer)
        with fates_of(writer.path).open('w', newline='', encoding='utf-8') as file:
            file.write(','.join(FATES_COLUMNS) + '\n')
            self.session.on_fates = lambda rows: file.writelines(
                [
                    f'{_quoted(a)},{_quoted(b)},{c},{d},{e},{f},{g},{h}\n'
                    for a, b, c, d, e, f, g, h in rows
                ]
            )
            for block in self._bag.blocks():
                end_ns = block[-1].receive_ns - self._early_ns
                try:
                    self.session.push(block)
                except RigError as error:
                    self._write(writer, end_ns)
                    raise RigError(
                        f'{error} ({writer.path} holds the {sum(writer.counts.values())} '
                        f'messages before that)'
                    ) from None
                self._write(writer, end_ns)
                advance(len(block))
            self._write(writer, END_NS)

    def _announce(self, writer: BagWriter) -> None:
        for topic in self._bag.topics.values():
            writer.add_topic_like(topic)
        for name, type_name in self.session.truth_topics().items():
            writer.add_topic(name, type_name)
        for key, value in self._bag.note.items():
            writer.note(key, value)

    def _write(self, writer: BagWriter, end_ns: int) -> None:
        """Write what has arrived by `end_ns`."""
        arrived = self.session.due(end_ns)
        step_ns = self._step_ns
        if step_ns > 1:  # a simulated rig is recorded at its physics steps
            arrived = [
                (topic, arrival_ns + (self._origin_ns - arrival_ns) % step_ns, raw, publish_ns)
                for topic, arrival_ns, raw, publish_ns in arrived
            ]
        writer.write_all(arrived)


def fates_of(target: Path) -> Path:
    """Return the table of fates in the folder of a recording, or beside a ROS 1 bag."""
    return target / FATES if target.is_dir() else target.with_suffix(f'.{FATES}')


@cache
def _quoted(name: object) -> str:
    """Return a name as CSV has it; csv.writer takes three times as long for the numbers."""
    text = str(name)
    return text if text.replace('/', '').isidentifier() else '"' + text.replace('"', '""') + '"'
