"""The engine with serialised messages at both ends.

    sync = WireSync(config)
    for bundle in sync.push('camera', raw, arrival_ns):
        for output in sync.outputs(bundle): publish(output.topic, output.raw)
    sync.run_cues()

A message is kept as the bytes it came in. Its stamp is read from them; its content is decoded
only where the engine needs it (the IMU, cues, interpolation). Going out, the bytes get the new
stamp and nothing else, so every stamped type there is can be synced.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.msgs.decode import read_imu
from rig_common.times import NEVER_NS, NS_PER_S
from sync_engine.config import IMU_TYPE, SyncConfig
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import Bundle, Member
from sync_engine.wire.batch import BATCH, BATCH_TYPE, batch_message
from sync_engine.wire.codecs import codec_of
from sync_engine.wire.cue_readers import TRANSFORMS, Lenses, find_transform, readers_of
from sync_engine.wire.facts import (
    BUNDLE_TOPIC,
    BUNDLE_TYPE,
    OFFSET_TOPICS,
    OFFSET_TYPE,
    bundle_message,
    offset_template,
    offset_topic,
)
from sync_engine.wire.restamp import restamp

SYNCED = 'synced/'
MOST_KEPT = 64
"""Messages that `offer` keeps. A bundle may wait for so many pushes, of about 10 us each."""
_NO_STAMP_NS = -1
"""What the engine books as invalid: bytes in which no stamp can be read."""


class Output(NamedTuple):
    """A message to publish or to record."""

    topic: str
    """Relative, as the inputs' topics are."""
    type_name: str
    raw: bytes

    def __repr__(self) -> str:
        """Return one line, without the bytes."""
        return f'Output({self.topic}, {self.type_name}, {len(self.raw)} bytes)'


class WireSync:
    """One engine, its inputs as bytes, its bundles as bytes."""

    def __init__(self, config: SyncConfig, headerless: Collection[str] = ()) -> None:
        """Build the engine; `headerless` names the inputs whose type has no header."""
        codecs = {
            name: codec
            for name, given in config.inputs.items()
            if (codec := codec_of(given.type)) is not None
        }
        self._lenses = Lenses(config)
        self.engine = SyncEngine(config, codecs, readers_of(config, self._lenses))
        self.has_cues = any(given.cue != 'none' for given in config.inputs.values())
        self._transforms = {
            name: given for name, given in config.inputs.items() if given.type in TRANSFORMS
        }
        self.headerless = frozenset(headerless) - set(self._transforms)
        self._shifts_ns = {
            name: shift_ns
            for name, given in config.inputs.items()
            if (shift_ns := given.stamp_shift_ns)
        }
        """Inputs whose stamps mean another instant than by default, and how far that is, ns."""
        self._kept: list[tuple[str, bytes, int]] = []
        self._kept_of: set[str] = set()
        """Inputs of the kept messages."""
        self._order = {name: index for index, name in enumerate(config.inputs)}
        imu = config.imu_sensor_id
        self._imu_id = imu if imu and config.inputs[imu].type == IMU_TYPE else None
        self._topics = {name: given.topic for name, given in config.inputs.items()}
        self._types = {name: given.type for name, given in config.inputs.items()}
        self._offsets = {
            name: offset_template(name, config.reference_sensor_id) for name in config.inputs
        }

    @property
    def config(self) -> SyncConfig:
        """The engine's configuration, as it is now."""
        return self.engine.config

    @property
    def next_deadline_ns(self) -> int:
        """Host time at which `poll` has something to decide; `NEVER_NS` while nothing waits."""
        due_ns = self.engine.next_deadline_ns
        return NEVER_NS if due_ns is None else due_ns

    def push(self, sensor_id: str, raw: bytes, arrival_ns: int) -> list[Bundle]:
        """Take one serialised message and return the bundles that it completes."""
        if sensor_id in self.headerless:
            return self.engine.push(sensor_id, None, raw, arrival_ns, len(raw))
        try:
            found_ns = self.stamp_ns(sensor_id, raw)
            if found_ns is None:
                return []
            stamp_ns = found_ns
            if sensor_id == self._imu_id:
                self.engine.push_imu(stamp_ns, *read_imu(raw))
            self._lenses.offer(sensor_id, raw)
        except CdrError:
            stamp_ns = _NO_STAMP_NS
        return self.engine.push(sensor_id, stamp_ns, raw, arrival_ns, len(raw))

    def offer(self, sensor_id: str, raw: bytes, arrival_ns: int) -> list[Bundle]:
        """Take one message as `push` does, but keep it for a while where no bundle can come of it.

        For live streams: a process that has slept runs from cold caches, so messages cost less
        when they are taken up together. `catch_up` before you look into the engine.
        """
        self._kept.append((sensor_id, raw, arrival_ns))
        self._kept_of.add(sensor_id)
        if len(self._kept) >= MOST_KEPT or self.engine.awaits(self._kept_of, arrival_ns):
            return self.catch_up()
        return []

    def catch_up(self) -> list[Bundle]:
        """Push what `offer` has kept, and return the bundles that it completes."""
        bundles: list[Bundle] = []
        kept, self._kept = self._kept, []
        self._kept_of.clear()
        for message in kept:
            bundles += self.push(*message)
        return bundles

    def stamp_ns(self, sensor_id: str, raw: bytes) -> int | None:
        """Return a message's own stamp, moved to the instant that stamps mean by default.

        None for transforms without the one that is meant.
        """
        given = self._transforms.get(sensor_id)
        if given is None:
            stamp_ns = read_stamp_ns(raw)
            return stamp_ns + self._shifts_ns.get(sensor_id, 0) if stamp_ns else 0
        found = find_transform(given, raw)
        return None if found is None else found.stamp_ns

    def push_together(
        self, messages: Sequence[tuple[str, bytes]], arrival_ns: int
    ) -> list[Bundle]:
        """Take (sensor, message) pairs that arrived at one moment; chance does not order them.

        Deadlines before that moment come first, each at its own time; then the inputs in the
        order of the configuration. So a lockstep run and a recording of it give equal bundles.
        """
        bundles = self.poll_until(arrival_ns)
        if len(messages) > 1:
            messages = sorted(messages, key=lambda item: self._order[item[0]])
        for sensor_id, raw in messages:
            bundles += self.push(sensor_id, raw, arrival_ns)
        return bundles

    def advance(
        self, messages: Sequence[tuple[str, bytes]], now_ns: int, cues: bool = True
    ) -> Iterator[Bundle]:
        """Take what arrived at `now_ns`, yield the bundles up to then, and run all cues.

        The cues run last, when the caller has handled every bundle, so iterate to the end.
        `cues=False` is for clocks that are known already.
        """
        yield from self.push_together(messages, now_ns)
        yield from self.poll(now_ns)
        while cues and self.run_cues():
            pass

    def poll_until(self, end_ns: int) -> list[Bundle]:
        """Let every deadline before `end_ns` pass at its own time."""
        bundles: list[Bundle] = []
        last_ns = -1
        while last_ns < (due_ns := self.next_deadline_ns) < end_ns:
            bundles += self.engine.poll(due_ns)
            last_ns = due_ns
        return bundles

    def poll(self, now_ns: int) -> list[Bundle]:
        """Let time pass and return the bundles whose deadline has come."""
        return self.catch_up() + self.engine.poll(now_ns)

    def run_cues(self, max_jobs: int = 64) -> int:
        """Do the work that waited until the bundles were out; return how much is left."""
        return self.engine.run_cues(max_jobs)

    def output_topics(self) -> dict[str, str]:
        """Return every topic that `outputs` may give, with its type."""
        topics = {BUNDLE_TOPIC: BUNDLE_TYPE}
        reference = self.config.reference_sensor_id
        for name, given in self.config.inputs.items():
            if not given.member:
                continue
            topics[synced_topic(given.topic)] = given.type
            if self._has_batch(name):
                topics[synced_topic(given.topic) + BATCH] = BATCH_TYPE
            if name != reference:
                topics[offset_topic(name)] = OFFSET_TYPE
        return topics

    def outputs(
        self, bundle: Bundle, wanted: Callable[[str], bool] = lambda topic: True
    ) -> Iterator[Output]:
        """Yield the messages of a bundle: members, what was collected, batches, what is known.

        A topic that is not `wanted` (nobody listens) is not even copied.
        """
        shifts_ns: dict[str, int] = {}
        for name in sorted(bundle.members, key=lambda name: bool(bundle.members[name].collected)):
            member, topic = bundle.members[name], synced_topic(self._topics[name])
            if member.missing or not wanted(topic):
                continue
            for raw, shift_ns in self._restamped(name, member, bundle):
                shifts_ns[name] = shift_ns
                yield Output(topic, self._types[name], raw)
        for name, member in bundle.members.items():
            topic = synced_topic(self._topics[name]) + BATCH
            if member.collected and self._has_batch(name) and wanted(topic):
                codec = codec_of(self._types[name])
                yield Output(topic, BATCH_TYPE, batch_message(codec, bundle, member))
        if wanted(BUNDLE_TOPIC):
            facts = bundle_message(bundle, self._topics, shifts_ns)
            yield Output(BUNDLE_TOPIC, BUNDLE_TYPE, facts)
        reference_ns = bundle.members[bundle.reference_id].stamp_ns
        for name, member in bundle.members.items():
            topic = offset_topic(name)
            if name != bundle.reference_id and wanted(topic):
                time_ref = divmod(member.target_ns, NS_PER_S)
                yield Output(
                    topic, OFFSET_TYPE, self._offsets[name].fill(reference_ns, time_ref=time_ref)
                )

    def _has_batch(self, name: str) -> bool:
        """Whether what an input collects has stamps, so that its batch can have times."""
        return (
            self.config.inputs[name].collect
            and name not in self.headerless
            and name not in self._transforms
        )

    def _restamped(self, name: str, member: Member, bundle: Bundle) -> Iterator[tuple[bytes, int]]:
        """Yield (message, shift of its point times): one, or all that were collected."""
        policy = self.config.stamp_policy
        type_name, shift_ns = self._types[name], self._shifts_ns.get(name, 0)
        if name in self.headerless:
            for payload in self._payloads(member):
                yield payload, 0
        elif member.collected:
            to_host_ns = 0 if policy == 'raw' else bundle.stamp_ns - member.target_ns
            for packet in member.collected:
                stamp_ns = packet.stamp_ns - shift_ns
                capture_ns = stamp_ns + to_host_ns
                new_ns = stamp_ns if policy == 'raw' else capture_ns + shift_ns
                yield restamp(type_name, packet.payload, stamp_ns, new_ns, capture_ns, -shift_ns)
        else:
            capture_ns = member.corrected_timestamp_ns
            stamp_ns = {
                'bundle': bundle.stamp_ns,
                'corrected': capture_ns,
                'raw': member.stamp_ns - shift_ns,
            }[policy]
            capture_ns -= shift_ns  # points' times count from what was stamped
            if policy == 'raw':
                capture_ns = stamp_ns  # nothing moves, so the points' times do not either
            yield restamp(
                type_name,
                member.payload,
                member.stamp_ns - shift_ns,
                stamp_ns,
                capture_ns,
                0 if policy == 'raw' else -shift_ns,
            )

    @staticmethod
    def _payloads(member: Member) -> list[bytes]:
        collected = [packet.payload for packet in member.collected]
        return collected or [member.payload]


def is_made_by_sync(topic: str) -> bool:
    """Whether a topic, absolute or relative, has a name that only a sync gives."""
    return topic.lstrip('/').startswith((SYNCED, BUNDLE_TOPIC, OFFSET_TOPICS))


def synced_topic(topic: str) -> str:
    """Return where a member goes out."""
    return SYNCED + topic.lstrip('/')
