"""A transit with no sensor and no world: captures by their number, at a rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common.validation import validated
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import CaptureNumbers, StreamTraits, Transit

MS = 1_000_000


@dataclass
class MadeTransit:
    """A transit, and what asks it for captures."""

    transit: Transit
    streams: RandomStreams
    schedule: Schedule
    num_envs: int

    def capture(self, k: int) -> CaptureNumbers:
        """Return capture `k` of every environment."""
        every = np.full(self.num_envs, k)
        return CaptureNumbers(np.arange(self.num_envs), every, self.schedule.times_of(every))


def transit(
    keys: dict[str, Any],
    num_envs: int = 1,
    *,
    rate_hz: float = 100.0,
    seed: int = 1,
    episode: int = 0,
    **stream: Any,
) -> MadeTransit:
    """Return a transit of `keys`; `stream` are keys of `StreamTraits`."""
    config = validated(TimingConfig, {'rate_hz': rate_hz, **keys}, 'test')
    streams = RandomStreams(seed, 'test', num_envs, episode=episode)
    schedule = Schedule(rate_hz, MS)
    made = Transit(config, streams, StreamTraits(schedule=schedule, **stream))
    return MadeTransit(made, streams, schedule, num_envs)


def arrivals(
    made: MadeTransit, count: int, chosen: Iterable[int] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return arrivals (ns) and losses of captures, [captures, num_envs] each."""
    rows, lost = [], []
    for k in range(count) if chosen is None else chosen:
        passage = made.transit.send(made.capture(k))
        rows.append(np.broadcast_to(passage.arrival_ns, made.num_envs))
        lost.append(np.zeros(made.num_envs, np.bool_) if passage.lost is None else passage.lost)
    return np.array(rows), np.array(lost)


def latencies_ns(keys: dict[str, Any], count: int, num_envs: int = 1) -> NDArray[np.int64]:
    """Return the latencies of `count` captures, ns [count, num_envs]."""
    made = transit(keys, num_envs)
    found, _ = arrivals(made, count)
    return np.asarray(found - made.schedule.times_of(np.arange(count))[:, None])


def stamps(made: MadeTransit, chosen: Iterable[int]) -> NDArray[np.int64]:
    """Return the stamps of captures, ns [captures, num_envs]."""
    return np.array(
        [
            np.broadcast_to(made.transit.send(made.capture(k)).stamp_ns, made.num_envs)
            for k in chosen
        ]
    )
