"""Reads `sync/bundle` back: the bundles that an engine made in another process, or long ago."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from contextlib import suppress

from rig_common.cdr import CdrError
from rig_common.msgs import Status, read_diagnostic_array
from sensor_rig.measures.keys import Measures, measures_of
from sensor_rig.syncing.sync_record import SyncRecord
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.config import InputConfig, SyncConfig
from sync_engine.matching.bundle import Bundle, Member, MissingReason
from sync_engine.streams.buffer import Packet

MOST_WAITING = 10_000
MOST_INPUTS = 1000
"""Most members of a bundle; a larger one was not made by this project and is ignored."""
LARGEST_FIRST = 1 << 20
"""Bytes of the bundle message whose names are kept."""
COLLECTED = (Packet(0, 0, None, 0, 0),)
"""Stands for the packets of a member that was collected, which the message does not hold."""


class HeardBundles:
    """Gathers the measures of bundles that are heard, beside the truth about their stamps."""

    def __init__(self, *, exact: bool = True) -> None:
        """Start; without `exact` quantiles are known to 3 % and memory stays constant."""
        self._exact = exact
        self._record: SyncRecord | None = None
        self._waiting: deque[tuple[str, int, int]] = deque(maxlen=MOST_WAITING)
        """Truths that came before the first bundle said which inputs there are."""
        self._topics: dict[str, str] = {}

    def truth(self, sensor: str, stamp_ns: int, capture_ns: int) -> None:
        """Take when a sensor truly captured what it stamped `stamp_ns`."""
        if self._record is None:
            self._waiting.append((sensor, stamp_ns, capture_ns))
            return
        for name, topic in self._topics.items():
            if sensor in (name, topic.strip('/').split('/')[0]):
                self._record.truth(name, stamp_ns, capture_ns)

    def bundle(self, raw: bytes) -> None:
        """Take a `sync/bundle` message; one that cannot be read is left out."""
        # Any node may have sent it: reading raises CdrError, KeyError or ValueError, and
        # OverflowError for numbers out of range.
        with suppress(CdrError, KeyError, ValueError, OverflowError):
            head, *members = read_diagnostic_array(raw)[1]
            found = _bundle(head, members)
            modest = len(members) <= MOST_INPUTS and len(raw) <= LARGEST_FIRST
            if self._record is None and modest:
                self._begin(found.reference_id, {each.name: each.hardware_id for each in members})
            if self._record is not None and found.members.keys() <= self._topics.keys():
                self._record.bundle(found)

    def _begin(self, reference: str, topics: dict[str, str]) -> None:
        """Keep a record of these inputs, with the truths that came before it."""
        config = SyncConfig(
            inputs={name: InputConfig(topic=topic) for name, topic in topics.items()},
            reference_sensor_id=reference,
        )
        self._topics = topics
        self._record = SyncRecord(config, '', '', exact=self._exact)
        for each in self._waiting:
            self.truth(*each)
        self._waiting.clear()

    def measures(self, received: Mapping[str, int]) -> Measures:
        """Return what was heard; `received` counts the messages by topic, without a slash."""
        if self._record is None:
            return {}
        counts = {
            name: {'received': received.get(topic.lstrip('/'), 0)}
            for name, topic in self._topics.items()
        }
        document = self._record.document(counts, dict.fromkeys(counts, 0))
        found = measures_of(document)
        unknown = {
            f'{name}.received'
            for name, topic in self._topics.items()
            if topic.lstrip('/') not in received
        } | {'duration_s'}
        if f'{document["reference"]}.received' in unknown:
            unknown.add('coverage')
        return {key: value for key, value in found.items() if key not in unknown}


def _bundle(head: Status, members: list[Status]) -> Bundle:
    values = head.values
    stamp_ns = int(values['stamp_ns'])
    return Bundle(
        sequence=int(values['sequence']),
        epoch=int(values['epoch']),
        stamp_ns=stamp_ns,
        reference_id=values['reference'],
        members={each.name: _member(each.name, each.values, stamp_ns) for each in members},
        window_ns=round(float(values['window_ms']) * 1e6),
        emitted_ns=int(values['emitted_ns']),
    )


def _member(name: str, values: Mapping[str, str], bundle_ns: int) -> Member:
    stamp_ns = int(values['stamp_ns'])
    return Member(
        sensor_id=name,
        payload=None,
        stamp_ns=stamp_ns,
        arrival_ns=int(values['arrival_ns']),
        target_ns=stamp_ns - round(float(values['time_delta_ms']) * 1e6),
        offset_ns=round(float(values['offset_ms']) * 1e6),
        offset_sigma_s=float(values['offset_sigma_ms']) / 1e3,
        offset_state=OffsetState(values['offset_state']),
        corrected_timestamp_ns=int(values['corrected_timestamp_ns']),
        interpolated=values['interpolated'] == 'true',
        missing=values['missing'] == 'true',
        reason=MissingReason(values['reason']),
        collected=COLLECTED if 'collected' in values else (),
    )
