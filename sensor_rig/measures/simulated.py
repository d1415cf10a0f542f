"""The measures of a rig that runs in this process: its sync engine against the truth it knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rig_common.quantiles import ExactQuantiles
from rig_common.times import NS_PER_S
from sensor_rig.measures.keys import Measures, measures_of, quantiles
from sensor_rig.syncing.sync_record import SyncRecord

if TYPE_CHECKING:
    from sensor_rig.inprocess import InProcessRig
    from sim_sensors.outbox import Message


def simulated_measures(
    rig: InProcessRig, seconds: float, advance: Callable[[float], None] = lambda seconds: None
) -> Measures:
    """Run `rig` for `seconds` (simulated) and return its measures."""
    watch = RigWatch(rig)
    end_ns = rig.elapsed_ns + round(seconds * NS_PER_S)
    told_ns = max(rig.elapsed_ns, 0)
    while rig.elapsed_ns < end_ns:
        watch.take(rig.step())
        if rig.elapsed_ns - told_ns >= NS_PER_S:
            advance((rig.elapsed_ns - told_ns) / NS_PER_S)
            told_ns = rig.elapsed_ns
    return watch.measures()


class RigWatch:
    """Takes the measures of a rig step by step, for loops outside this module."""

    def __init__(self, rig: InProcessRig) -> None:
        self._rig = rig
        sync = rig.config.sync if rig.sync is not None else None
        self._record = None if sync is None else SyncRecord(sync, '', '', exact=True)
        self._inputs = (
            {}
            if sync is None
            else {
                given.topic.lstrip('/'): (name, given.stamp_shift_ns)
                for name, given in sync.inputs.items()
            }
        )
        self._latencies = {name: ExactQuantiles() for name in rig.sensors}
        self._last_index: dict[tuple[str, int], int] = {}

    def take(self, messages: list[Message]) -> None:
        """Take what `rig.step()` returned, and the bundles of that tick."""
        now_ns, record = self._rig.time_ns, self._record
        for message in messages:
            sample = message.sample
            key = (sample.sensor, sample.env)
            if self._last_index.get(key) != sample.index:  # a sample may go out on several topics
                self._last_index[key] = sample.index
                self._latencies[sample.sensor].add((now_ns - sample.capture_ns) / NS_PER_S)
            if record is not None and message.topic in self._inputs:
                name, shift_ns = self._inputs[message.topic]
                stamp_ns = message.stamp_ns + shift_ns
                record.truth(name, stamp_ns, sample.capture_ns + shift_ns)
                record.message(name, stamp_ns, now_ns)
        if record is not None:
            for bundle in self._rig.bundles:
                record.bundle(bundle)

    def measures(self) -> Measures:
        """Return what was seen so far."""
        found = {'duration_s': max(self._rig.elapsed_ns, 0) / NS_PER_S, **dict(self._streams())}
        if self._record is not None and self._rig.sync is not None:
            engine = self._rig.sync.engine
            found |= measures_of(self._record.document(engine.ledger.as_dict(), engine.buffered()))
        return found

    def _streams(self) -> Iterator[tuple[str, float]]:
        from sim_sensors.timing.fates import LOSSES, CaptureFate

        for name, latency in self._latencies.items():
            counts = self._rig.pipelines[name].counts
            yield f'{name}.received', latency.count
            if captured := counts[CaptureFate.CAPTURED]:
                yield f'{name}.lost_fraction', sum(counts[each] for each in LOSSES) / captured
            yield from quantiles(f'{name}.latency_ms', latency.summary())
