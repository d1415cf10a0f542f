"""A SyncEngine with the calls of a SetMatcher: sets of decoded messages by a configuration."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from rig_common.errors import RigError
from rig_common.times import seconds_to_ns
from sync_engine.config import SyncConfig
from sync_engine.engine import SyncEngine
from sync_engine.filters.typed_messages import TypedCodec, typed_imu, typed_reader
from sync_engine.filters.waits import WaitLog, Waits
from sync_engine.matching.bundle import Bundle
from sync_engine.streams.payload import MessageSet, Payload

_NO_STAMP_NS = -1
"""A stamp that the engine refuses and counts."""


class EngineSets:
    """Makes sets for AdaptiveTimeSynchronizer; a set is a list of messages, None or lists."""

    POLL_PERIOD_S = 0.01
    """How late a deadline may be noticed while nothing arrives (wall time)."""

    def __init__(self, config: SyncConfig) -> None:
        import_module('filterpy.kalman')  # brings scipy: here, or the first message waits for it
        self._names = list(config.inputs)
        self._imu = (
            self._names.index(config.imu_sensor_id) if config.imu_sensor_id in self._names else -1
        )
        readers = {
            name: typed_reader(given.cue)
            for name, given in config.inputs.items()
            if given.cue != 'none'
        }
        self.engine = SyncEngine(config, {name: TypedCodec() for name in self._names}, readers)
        self.has_jobs = bool(readers)
        self._log = WaitLog()

    def push(
        self, index: int, stamp_ns: int, message: Payload, arrival_ns: int
    ) -> list[MessageSet] | None:
        """Take one message and return the sets that leave with it, each in the inputs' order."""
        if index == self._imu:
            self.engine.push_imu(stamp_ns, *typed_imu(message))
        bundles = self.engine.push(self._names[index], stamp_ns, message, arrival_ns)
        return self._sets(bundles) if bundles else None

    def refuse(self, index: int) -> None:
        """Count a message without a stamp."""
        engine = self.engine
        engine.push(self._names[index], _NO_STAMP_NS, None, engine.now_ns)

    def poll(self, now_ns: int) -> list[MessageSet]:
        """Let host time pass: return the sets whose deadline has come."""
        return self._sets(self.engine.poll(now_ns))

    def flush(self) -> list[MessageSet]:
        """Return the sets that the waiting messages make, as if every deadline had passed."""
        made: list[MessageSet] = []
        while (due_ns := self.engine.next_deadline_ns) is not None:
            made += self.poll(due_ns)
        return made

    def work(self) -> None:
        """Do one piece of what motion cues need."""
        self.engine.run_cues(1)

    def _sets(self, bundles: Iterable[Bundle]) -> list[MessageSet]:
        return [self._messages(bundle) for bundle in bundles]

    def _messages(self, bundle: Bundle) -> MessageSet:
        messages: MessageSet = []
        inputs = self.engine.config.inputs
        last_ns = 0
        for name in self._names:
            member = bundle.members.get(name)
            if member is None:
                continue  # an input with member: false
            last_ns = max(last_ns, member.arrival_ns)
            messages.append(
                [packet.payload for packet in member.collected]
                if inputs[name].collect
                else member.payload
            )
        self._log.note(bundle.emitted_ns - last_ns)
        return messages

    @property
    def waits(self) -> Waits:
        """How long sets waited after their last message had come."""
        return self._log.waits(self.engine.reorder_ns)

    @property
    def slop_ns(self) -> int:
        """Half-width of the window when nothing moves."""
        return seconds_to_ns(self.engine.config.window.max_ms / 1e3)

    @slop_ns.setter
    def slop_ns(self, value: int) -> None:
        raise RigError(
            'slop cannot be set: this synchronizer has a configuration; set window.max_ms in it'
        )

    @property
    def queue_size(self) -> int:
        """Messages of one input that may wait."""
        return self.engine.config.buffer.max_size

    @queue_size.setter
    def queue_size(self, value: int) -> None:
        raise RigError(
            'queue_size cannot be set: this synchronizer has a configuration; set '
            'buffer.max_size in it'
        )

    @property
    def queues(self) -> list[dict[int, Payload]]:
        """For every input the messages that wait, by stamp in ns."""
        return [self.engine.waiting(name) for name in self._names]
