"""Runs the sync engine over a recording, on its receive times: a new recording and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from rig_common.cdr import CdrError
from rig_common.errors import RigError
from rig_common.jsonable import JsonObject, json_text
from rig_common.msgs import read_time_reference
from rig_common.paramfile.events import Parameters
from rig_common.saving import save_text
from sensor_rig.bags.reader import BagReader, Recorded
from sensor_rig.bags.writer import BagWriter
from sensor_rig.syncing.scenery import Scenery
from sensor_rig.syncing.sync_page import sync_page
from sensor_rig.syncing.sync_record import SyncRecord
from sync_engine.config import SyncConfig
from sync_engine.engine import SyncEngine
from sync_engine.matching.bundle import Bundle
from sync_engine.wire.batch import BATCH
from sync_engine.wire.session import SYNCED, WireSync, is_made_by_sync, synced_topic

AFTER_NS = 10**12
"""How far time runs on after the last message, so that every deadline passes."""
ADVANCE_EVERY = 200
"""Messages between two steps of the progress bar."""
NO_ARRIVALS_S, NO_ARRIVALS_IMU_S, NO_ARRIVALS_WALK_S = 1.0, 1e-4, 1e-3
"""Sigma of the latency of a topic without receive times, s, of an IMU without them (its clock is
taken for the host's), and their random walk, s a root s: only motion tells of such clocks."""
REPORT_PAGE, REPORT_DATA = 'report.html', 'report.json'


def fitted(config: SyncConfig, bag: BagReader) -> tuple[SyncConfig, dict[str, str]]:
    """Return the config with the recording's types, and topic -> input of what it has.

    Raises where a required input is not in the recording, or is of another type there, and where
    the IMU input has another type than sensor_msgs/msg/Imu. What is declared of latencies does not
    count for topics without receive times.
    """
    inputs: Parameters = {}
    names: dict[str, str] = {}
    for name, given in config.inputs.items():
        found = bag.find(given.topic)
        if found is None:
            if name in config.required_sensors or name == config.reference_sensor_id:
                raise RigError(
                    f'{bag.path} has no topic {given.topic} (sync.inputs.{name}); it '
                    f'has {", ".join(bag.topics) or "none"}'
                )
            inputs[name] = given
            continue
        if given.type and given.type != found.type_name:
            raise RigError(
                f'sync.inputs.{name}.type is {given.type}, but {found.name} of '
                f'{bag.path} is {found.type_name}'
            )
        names[found.name] = name
        inputs[name] = given.model_copy(update={'type': found.type_name})
        if not found.has_arrivals:
            sigma_s = NO_ARRIVALS_IMU_S if name == config.imu_sensor_id else NO_ARRIVALS_S
            inputs[name] = inputs[name].model_copy(
                update={'stamp_source': 'device', 'latency_s': 0.0, 'latency_sigma_s': sigma_s}
            )
    found_config = config.model_copy(update={'inputs': inputs})
    if not all(bag.topics[topic].has_arrivals for topic in names):
        wander = config.adakf.model_copy(update={'latency_walk_s': NO_ARRIVALS_WALK_S})
        found_config = found_config.model_copy(update={'adakf': wander})
    if found_config.wrong_imu:
        raise RigError(f'sync in {bag.path}: {found_config.wrong_imu}')
    return found_config, names


def learn_clocks(
    bag: BagReader,
    names: Mapping[str, str],
    sync: WireSync,
    advance: Callable[[float], None],
    on_bundle: Callable[[Bundle], None] = lambda bundle: None,
) -> None:
    """Run `sync` over a recording and let it note how it learns its clocks.

    `names` says which topic is which input. What was learned is `sync.engine.clocks.smoothed()`.
    """
    sync.engine.clocks.record()
    done = 0
    for receive_ns, messages in _moments(bag.messages([*names])):
        inputs = [(names[topic], raw) for topic, _, raw, _ in messages]
        for bundle in sync.advance(inputs, receive_ns):
            on_bundle(bundle)
        done = _tell(advance, done + len(messages))


class BagSync:
    """One pass over a recording, or two with `learn`.

    Memory is bounded by the engine's buffers, not by the bag; `learn` keeps a kilobyte a second.
    """

    def __init__(
        self,
        bag: BagReader,
        writer: BagWriter | None,
        config: SyncConfig,
        title: str,
        *,
        exact: bool = False,
    ) -> None:
        """Prepare `writer` for the synced topics; without one, only the report is made.

        `exact` keeps every value that the report's quantiles are of.
        """
        self._bag, self._writer = bag, writer
        config, self._names = fitted(config, bag)
        headerless = [name for topic, name in self._names.items() if not bag.topics[topic].stamped]
        self.sync = WireSync(config, headerless)
        self.record = SyncRecord(config, title, str(bag.path), exact=exact)
        self.replaced: list[str] = []
        """Topics of an earlier sync that are not copied."""
        self._first: SyncEngine | None = None
        """The engine that has learned the clocks; None where they are learned on the way."""
        self._filtered: dict[str, list[Any]] = {}
        self._truths = self._truth_topics()
        self._scenery = Scenery(bag)
        self._scenes = set(self._scenery.topics)
        if writer is not None:
            self._announce(writer)

    def _announce(self, writer: BagWriter) -> None:
        present = {synced_topic(topic): self._bag.topics[topic] for topic in self._names}
        for topic, type_name in self.sync.output_topics().items():
            if topic in present:
                writer.add_topic('/' + topic, type_name, definition=present[topic].definition)
            elif not topic.startswith(SYNCED) or topic.removesuffix(BATCH) in present:
                writer.add_topic('/' + topic, type_name)

    def _truth_topics(self) -> dict[str, list[str]]:
        """Return `/truth/time/<sensor>` -> the inputs that sensor feeds, as far as recorded."""
        inputs: dict[str, list[str]] = {}
        for topic, name in self._names.items():
            for sensor in (topic.strip('/').split('/')[0], name):
                truth = f'/truth/time/{sensor}'
                if truth in self._bag.topics:
                    inputs.setdefault(truth, []).append(name)
                    break
        return inputs

    def learn(self, advance: Callable[[float], None]) -> None:
        """Look at the whole recording first, so that `run` knows every clock from its start on.

        Without it `run` decides like a live node, which knows nothing in its first seconds.
        """
        if self.sync.config.estimator != 'adaptive':
            return
        first = WireSync(self.sync.config, self.sync.headerless)
        seen = SyncRecord(self.sync.config, '', '')
        for message in islice(self._bag.messages([*self._names]), 1):
            seen.start(message.receive_ns)
        learn_clocks(self._bag, self._names, first, advance, seen.bundle)
        self.sync.engine.clocks.play(first.engine.clocks.smoothed())
        self._first = first.engine
        self._filtered = seen.offsets()

    def run(self, advance: Callable[[float], None], copy: bool = False) -> JsonObject:
        """Sync the whole recording; `advance` gets the number of messages done now and then.

        `copy` puts the messages of the recording itself into the new one, too.
        """
        topics = list({*self._names, *self._truths, *self._scenes})
        copied = self._copied() if copy and self._writer is not None else frozenset()
        done = 0
        for receive_ns, messages in _moments(self._bag.messages({*topics, *copied})):
            inputs = []
            for topic, _, raw, publish_ns in messages:
                if topic in copied and self._writer is not None:
                    self._writer.write(topic, receive_ns, raw, publish_ns)
                if topic in self._scenes:
                    self._scenery.take(topic, raw)
                if topic in self._truths:
                    self._note_truth(topic, raw)
                elif topic in self._names:
                    inputs.append((self._names[topic], raw))
                    self._note(self._names[topic], raw, receive_ns)
            self._write(self.sync.advance(inputs, receive_ns, cues=self._first is None))
            done = _tell(advance, done + len(messages))
        self._write(self.sync.poll_until(self._bag.end_ns + AFTER_NS))
        return self.document()

    def _copied(self) -> frozenset[str]:
        """Announce and return the topics of the recording that are copied.

        What a sync made before is replaced, not mixed with what this one makes.
        """
        assert self._writer is not None
        mine = {'/' + topic for topic in self.sync.output_topics()}
        kept = []
        for name, known in self._bag.topics.items():
            if name in mine or (is_made_by_sync(name) and name not in self._names):
                self.replaced.append(name)
                continue
            self._writer.add_topic_like(known)
            kept.append(name)
        for key, value in self._bag.note.items():
            self._writer.note(key, value)
        return frozenset(kept)

    def document(self) -> JsonObject:
        """Return the report's data."""
        engine = self.sync.engine
        document = self.record.document(engine.ledger.as_dict(), engine.buffered())
        learned = engine if self._first is None else self._first
        for name, sensor in learned.status().as_dict()['sensors'].items():
            document['sensors'][name]['mounting'] = sensor['mounting']
            document['sensors'][name]['filtered'] = self._filtered.get(name, [])
        document['causal'] = self._first is None
        document['scenery'] = self._scenery.document()
        return document

    def _note(self, name: str, raw: bytes, receive_ns: int) -> None:
        if name in self.sync.headerless:
            self.record.message(name, receive_ns, receive_ns)
            return
        try:
            stamp_ns = self.sync.stamp_ns(name, raw)
            if stamp_ns is not None:
                self.record.message(name, stamp_ns, receive_ns)
        except CdrError:
            self.record.message(name, 0, receive_ns)

    def _note_truth(self, topic: str, raw: bytes) -> None:
        with suppress(CdrError):
            capture_ns, _, stamp_ns, _ = read_time_reference(raw)
            for name in self._truths[topic]:
                shift_ns = self.sync.config.inputs[name].stamp_shift_ns
                self.record.truth(name, stamp_ns + shift_ns, capture_ns + shift_ns)

    def _write(self, bundles: Iterable[Bundle]) -> None:
        for bundle in bundles:
            self.record.bundle(bundle)
            if self._writer is None:
                continue
            for topic, _, raw in self.sync.outputs(bundle):
                self._writer.write('/' + topic, bundle.emitted_ns, raw)


def _tell(advance: Callable[[float], None], done: int) -> int:
    """Tell of `done` messages now and then; return how many are not told of yet."""
    if done < ADVANCE_EVERY:
        return done
    advance(done)
    return 0


def write_report(folder: Path, document: dict[str, object]) -> Path:
    """Write report.html and report.json into `folder`; return the page."""
    page = folder / REPORT_PAGE
    save_text(page, sync_page(document))
    save_text(folder / REPORT_DATA, json_text(document))
    return page


def _moments(messages: Iterator[Recorded]) -> Iterator[tuple[int, list[Recorded]]]:
    """Yield (receive time, messages received then)."""
    for receive_ns, group in groupby(messages, key=lambda message: message.receive_ns):
        yield receive_ns, list(group)
