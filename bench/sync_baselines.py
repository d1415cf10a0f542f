"""Other ways to pair frames, for comparison: what people do today, and the first design.

Every pairer takes messages in order of arrival and returns pairs of true capture times (s):
(reference, partner).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import numpy as np
from support.sync_streams import Message, Pairs


def floor_pairs(messages: Iterable[Message], reference: str, partner: str) -> Pairs:
    """Pair every reference frame with the partner frame that was truly captured nearest."""
    captures: dict[str, list[float]] = {reference: [], partner: []}
    for message in messages:
        if message.sensor_id in captures:
            captures[message.sensor_id].append(message.capture_s)
    there = np.sort(captures[partner])
    pairs = []
    for time in captures[reference]:
        at = int(np.searchsorted(there, time))
        near = there[max(0, at - 1) : at + 1]
        pairs.append((time, float(near[np.argmin(np.abs(near - time))])))
    return pairs


def latest_value(messages: Iterable[Message], reference: str, partner: str) -> Pairs:
    """Pair every reference frame with the partner frame that arrived last."""
    newest: float | None = None
    pairs = []
    for message in messages:
        if message.sensor_id == partner:
            newest = message.capture_s
        elif message.sensor_id == reference and newest is not None:
            pairs.append((message.capture_s, newest))
    return pairs


class FirstDesign:
    """The engine of the original design notes, line by line: heap, peek, scalar filter.

    Reference frames are taken as soon as every buffer has one, the partner is the nearest inside
    the window, and the pairing residual is fed to a filter with R = base_r * residual variance.
    """

    TIMEOUT_S = 1.0
    WINDOW_S = 0.1
    Q, R, RESIDUALS = 1e-4, 1e-3, 20

    def __init__(self, reference: str, partners: list[str]) -> None:
        self.reference = reference
        self.heaps: dict[str, list[tuple[float, int, float]]] = {
            name: [] for name in (reference, *partners)
        }
        self.offsets = dict.fromkeys(partners, 0.0)
        self._p = dict.fromkeys(partners, 1.0)
        self._r = dict.fromkeys(partners, self.R)
        self._residuals = {name: deque[float](maxlen=self.RESIDUALS) for name in partners}
        self._sequence = 0
        self.pairs: dict[str, Pairs] = {name: [] for name in partners}

    def push(self, message: Message) -> None:
        """Insert, evict by age, and select whenever all sensors have data."""
        heap = self.heaps.get(message.sensor_id)
        if heap is None:
            return
        self._sequence += 1
        stamp_s = message.stamp_ns / 1e9
        heapq.heappush(heap, (stamp_s, self._sequence, message.capture_s))
        for name, other in self.heaps.items():
            newest = max((entry[0] for entry in other), default=0.0)
            while other and other[0][0] < newest - self.TIMEOUT_S:
                heapq.heappop(self.heaps[name])
        while all(self.heaps.values()):
            self._select()

    def _select(self) -> None:
        t_ref, _, capture = heapq.heappop(self.heaps[self.reference])
        for name, offset in self.offsets.items():
            target = t_ref + offset
            near = [entry for entry in self.heaps[name] if abs(entry[0] - target) <= self.WINDOW_S]
            if not near:
                continue
            best = min(near, key=lambda entry: abs(entry[0] - target))
            self.pairs[name].append((capture, best[2]))
            self._update(name, best[0] - t_ref)
            while self.heaps[name] and self.heaps[name][0] <= best:
                heapq.heappop(self.heaps[name])

    def _update(self, name: str, observation: float) -> None:
        self._p[name] += self.Q
        residual = observation - self.offsets[name]
        gain = self._p[name] / (self._p[name] + self._r[name])
        self.offsets[name] += gain * residual
        self._p[name] *= 1.0 - gain
        self._residuals[name].append(residual)
        if len(self._residuals[name]) >= self.RESIDUALS // 2:
            variance = float(np.var(self._residuals[name]))
            self._r[name] = float(np.clip(self.R * variance, 0.1 * self.R, 10.0 * self.R))


def approximate_time_class() -> Any | None:
    """Return message_filters' ApproximateTimeSynchronizer, None where it is not installed."""
    try:
        from message_filters import ApproximateTimeSynchronizer
    except ImportError:
        return None
    return ApproximateTimeSynchronizer


def approximate_time(
    messages: Iterable[Message], names: list[str], queue: int, slop_s: float
) -> list[tuple[float, ...]] | None:
    """Return what ApproximateTimeSynchronizer makes of the raw stamps, None without it."""
    made = approximate_time_class()
    if made is None:
        return None
    from message_filters import SimpleFilter
    from rclpy.time import Time

    inputs = {name: SimpleFilter() for name in names}
    synchronizer = made(list(inputs.values()), queue, slop_s)
    out: list[tuple[float, ...]] = []
    synchronizer.registerCallback(lambda *found: out.append(tuple(f.capture_s for f in found)))
    for message in messages:
        if message.sensor_id in inputs:
            stamp = Time(nanoseconds=message.stamp_ns).to_msg()
            frame = SimpleNamespace(
                header=SimpleNamespace(stamp=stamp), capture_s=message.capture_s
            )
            inputs[message.sensor_id].signalMessage(frame)
    return out
