"""What a sync run was like, gathered bundle by bundle in constant memory.

`SyncRecord` is fed by whoever runs the engine (the bag command, a recording run); its
`document()` is plain JSON that the HTML page is made of and that can be kept beside it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rig_common.jsonable import JsonObject
from rig_common.quantiles import ExactQuantiles, LogHistogram
from sensor_rig.syncing.series import Decimated, Presence
from sync_engine.config import SyncConfig
from sync_engine.matching.bundle import Bundle, Member

ZOOM_BUNDLES = 12
ZOOM_MESSAGES = 400
TRUTH_KEPT = 2000
"""Messages whose true capture time is remembered until their bundle comes."""
NAN = float('nan')

Quantiles: TypeAlias = Callable[[], LogHistogram]


class _SensorRecord:
    """One sensor's series."""

    def __init__(self, quantiles: Quantiles) -> None:
        self.presence = Presence()
        self.count = 0
        self.span_s = [0.0, 0.0]  # of the first and of the last arrival
        self.stamps_ns: deque[int] = deque(maxlen=ZOOM_MESSAGES)
        self.offset: Decimated[float] = Decimated()
        self.delta: Decimated[float] = Decimated()
        self.delta_size = quantiles()
        self.missing: Counter[str] = Counter()
        self.interpolated = 0
        self.to_host_ns = 0
        self.last: JsonObject = {}
        self.captures_ns: dict[int, int] = {}
        self.true_offset_ns: int | None = None
        self.offset_error = quantiles()
        self.true_delta = quantiles()
        self.latency = quantiles()

    def arrive(self, time_s: float, stamp_ns: int, arrival_ns: int) -> None:
        """Take a message."""
        if stamp_ns in self.captures_ns:
            self.latency.add((arrival_ns - self.captures_ns[stamp_ns]) / 1e9)
        self.presence.add(time_s)
        self.stamps_ns.append(stamp_ns)
        self.span_s = [self.span_s[0] if self.count else time_s, time_s]
        self.count += 1

    @property
    def rate_hz(self) -> float:
        """Messages a second from the first to the last, as `inspect` counts them."""
        span_s = self.span_s[1] - self.span_s[0]
        return (self.count - 1) / span_s if span_s > 0.0 else 0.0

    def truth(self, stamp_ns: int, capture_ns: int) -> None:
        """Take what a stamp should have been."""
        self.true_offset_ns = stamp_ns - capture_ns
        self.captures_ns[stamp_ns] = capture_ns
        if len(self.captures_ns) > TRUTH_KEPT:
            del self.captures_ns[next(iter(self.captures_ns))]

    def add(self, time_s: float, member: Member, bundle: Bundle, to: _SensorRecord) -> None:
        """Take a bundle's member; `to` is the reference's record."""
        reference = to is self
        self.to_host_ns = bundle.stamp_ns - member.target_ns
        true_ms = NAN
        if self.true_offset_ns is not None and to.true_offset_ns is not None:
            true_ms = (self.true_offset_ns - to.true_offset_ns) / 1e6
            self.offset_error.add(abs(member.offset_ns / 1e6 - true_ms) / 1e3)
        self.last = {
            'offset_ms': member.offset_ns / 1e6,
            'sigma_ms': member.offset_sigma_s * 1e3,
            'state': member.offset_state.value,
        }
        if not reference:
            self.offset.add(time_s, member.offset_ns / 1e6, member.offset_sigma_s * 1e3, true_ms)
        if member.missing:
            self.missing[member.reason.value or 'unknown'] += 1
            return
        self.interpolated += member.interpolated
        if not (reference or member.interpolated or member.collected):
            self.delta.add(time_s, member.time_delta_ns / 1e6)
            self.delta_size.add(abs(member.time_delta_ns) / 1e9)
            captured_ns = self.captures_ns.get(member.stamp_ns)
            wanted_ns = to.captures_ns.get(bundle.members[bundle.reference_id].stamp_ns)
            if captured_ns is not None and wanted_ns is not None:
                self.true_delta.add(abs(captured_ns - wanted_ns) / 1e9)

    def document(self) -> JsonObject:
        return {
            'rate_hz': self.rate_hz,
            'presence': {'slice_s': self.presence.slice_s, 'counts': self.presence.counts},
            'offset': self.offset.rows,
            'delta': self.delta.rows,
            'pairing': self.delta_size.summary(),
            'missing': dict(self.missing),
            'interpolated': self.interpolated,
            'last': self.last,
            'truth': {
                'offset_error': self.offset_error.summary(),
                'pairing': self.true_delta.summary(),
                'latency': self.latency.summary(),
            },
        }


class SyncRecord:
    """Gathers a run."""

    def __init__(
        self, config: SyncConfig, title: str, source: str, *, exact: bool = False
    ) -> None:
        """Start; `exact` keeps every value that quantiles are told of, 8 bytes each."""
        quantiles: Quantiles = ExactQuantiles if exact else LogHistogram
        self._config = config
        self._titles = {'title': title, 'source': source}
        self._sensors = {name: _SensorRecord(quantiles) for name in config.inputs}
        self._start_ns: int | None = None
        self._end_ns = 0
        self._window: Decimated[float] = Decimated()
        self._waiting, self._latency = quantiles(), quantiles()
        self._presence = Presence()
        self._zoom: deque[tuple[int, dict[str, int]]] = deque(maxlen=ZOOM_BUNDLES)
        self.bundles = 0
        self.complete = 0
        self._epoch = 0

    def message(self, sensor_id: str, stamp_ns: int, arrival_ns: int) -> None:
        """Take a message as it was pushed."""
        self._sensors[sensor_id].arrive(self._time_s(arrival_ns), stamp_ns, arrival_ns)

    def truth(self, sensor_id: str, stamp_ns: int, capture_ns: int) -> None:
        """Take the true capture time of a stamp, where it is known (a recorded simulation)."""
        self._sensors[sensor_id].truth(stamp_ns, capture_ns)

    def bundle(self, bundle: Bundle) -> None:
        """Take a bundle as it came out."""
        time_s = self._time_s(bundle.emitted_ns)
        self.bundles += 1
        self.complete += bundle.complete
        self._epoch = bundle.epoch
        self._presence.add(time_s)
        self._window.add(time_s, bundle.window_ns / 1e6)
        arrivals = [m.arrival_ns for m in bundle.members.values() if m.arrival_ns]
        if arrivals:
            self._waiting.add(max(bundle.emitted_ns - max(arrivals), 0) / 1e9)
        reference = self._sensors[bundle.reference_id]
        captured_ns = reference.captures_ns.get(bundle.members[bundle.reference_id].stamp_ns)
        if captured_ns is not None:
            self._latency.add(max(bundle.emitted_ns - captured_ns, 0) / 1e9)
        for name, member in bundle.members.items():
            self._sensors[name].add(time_s, member, bundle, reference)
        self._zoom.append(
            (
                bundle.stamp_ns,
                {
                    name: member.corrected_timestamp_ns
                    for name, member in bundle.members.items()
                    if not member.missing and not member.collected
                },
            )
        )

    def start(self, time_ns: int) -> None:
        """Count time from here on, unless it is counted already."""
        self._time_s(time_ns)

    def offsets(self) -> dict[str, list[Any]]:
        """Return (time s, offset ms, sigma ms, true offset ms or NaN) of every sensor."""
        return {name: record.offset.rows for name, record in self._sensors.items()}

    def document(
        self, ledger: Mapping[str, Mapping[str, int]], buffered: Mapping[str, int]
    ) -> JsonObject:
        """Return the whole run as JSON values; `ledger` and `buffered` are the engine's last."""
        sensors = {}
        for name, record in self._sensors.items():
            given = self._config.inputs[name]
            sensors[name] = {
                'topic': given.topic,
                'type': given.type,
                'stamp_source': given.stamp_source,
                'counts': {**ledger[name], 'buffered': buffered[name]},
                **record.document(),
            }
        return {
            **self._titles,
            'kind': 'sync',
            'duration_s': self._time_s(self._end_ns),
            'start_ns': self._start_ns or 0,
            'reference': self._config.reference_sensor_id,
            'bundles': self.bundles,
            'complete': self.complete,
            'epoch': self._epoch,
            'bundle_presence': {
                'slice_s': self._presence.slice_s,
                'counts': self._presence.counts,
            },
            'window': self._window.rows,
            'waiting': self._waiting.summary(),
            'latency': self._latency.summary(),
            'zoom': self._zoom_document(),
            'sensors': sensors,
        }

    def _zoom_document(self) -> dict[str, object]:
        """Return the last bundles and the messages around them, in s since the run began."""
        if not self._zoom:
            return {'bundles': [], 'messages': {}}
        first_ns, last_ns = self._zoom[0][0], self._zoom[-1][0]
        start_ns = self._start_ns or 0
        margin_ns = (last_ns - first_ns) // 10 + 20_000_000
        messages = {}
        for name, record in self._sensors.items():
            moments = (stamp_ns + record.to_host_ns for stamp_ns in record.stamps_ns)
            messages[name] = [
                (moment - start_ns) / 1e9
                for moment in moments
                if first_ns - margin_ns <= moment <= last_ns + margin_ns
            ]
        bundles = [
            {
                'stamp_s': (stamp_ns - start_ns) / 1e9,
                'members': {name: (moment - start_ns) / 1e9 for name, moment in members.items()},
            }
            for stamp_ns, members in self._zoom
        ]
        return {'bundles': bundles, 'messages': messages}

    def _time_s(self, time_ns: int) -> float:
        if self._start_ns is None:
            self._start_ns = time_ns
        self._end_ns = max(self._end_ns, time_ns)
        return (time_ns - self._start_ns) / 1e9
