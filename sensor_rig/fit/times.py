"""The times that a fit looks at: of a two-column trace, or of the topics of a recording."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats, Ints
from rig_common.errors import RigError
from sensor_rig.bags.inspect import TopicFacts, TopicTimes
from sim_sensors.timing.trace_file import read_columns, read_stamps

FEWEST = 30
"""Messages below which nothing is fitted."""
STRAY_NS = 366 * 86_400 * 10**9
"""A message whose times are this far from the others' has a wrong one; no stream lasts so long."""


@dataclass(frozen=True)
class StreamTimes:
    """Receive times and stamps of one topic."""

    name: str
    receive_ns: Ints
    stamp_ns: Ints
    type_name: str = ''
    sizes: Floats | None = None
    """Bytes of each message, where they are known."""
    sweep_s: float = 0.0
    """How long after its stamp a scan ends, s."""
    host_stamped: bool = False
    """Whether the host wrote the stamps: they then tell nothing about latency."""

    @property
    def has_no_arrivals(self) -> bool:
        """Whether the receive times are copies of the stamps."""
        return bool((self.receive_ns == self.stamp_ns).all())

    def __len__(self) -> int:
        """Return the number of messages."""
        return len(self.receive_ns)

    @property
    def is_enough(self) -> bool:
        """Whether there is something to fit: messages, and time that passes."""
        return len(self) >= FEWEST and all(
            times_ns.min() < times_ns.max() for times_ns in (self.receive_ns, self.stamp_ns)
        )

    def between(self, start_s: float, end_s: float = np.inf) -> StreamTimes:
        """Return the messages received from `start_s` to `end_s` after the first one."""
        since_s = (self.receive_ns - self.receive_ns[0]) / 1e9
        return self.rows((since_s >= start_s) & (since_s < end_s))

    def without_strays(self) -> StreamTimes:
        """Return the messages that were received and stamped when the others were."""
        if not len(self):
            return self
        near = np.ones(len(self), np.bool_)
        for times_ns in (self.receive_ns, self.stamp_ns):
            # As floats: the difference of two times of int64 need not be one.
            near &= np.abs(times_ns - np.median(times_ns.astype(float))) < STRAY_NS
        return self if near.all() else self.rows(near)

    def rows(self, chosen: NDArray[np.bool_] | slice) -> StreamTimes:
        """Return some of the messages."""
        return StreamTimes(
            self.name,
            self.receive_ns[chosen],
            self.stamp_ns[chosen],
            self.type_name,
            None if self.sizes is None else self.sizes[chosen],
            self.sweep_s,
            self.host_stamped,
        )


def of_trace(file: Path) -> StreamTimes:
    """Return the times of a text file with receive and message stamps, ns."""
    if len(read_columns(file)[0]) != 2:
        raise RigError(
            f'{file} is no trace of two columns; rig fit wants receive and message '
            'stamp, ns, a message a line'
        )
    receive_ns, stamp_ns = read_stamps(file)
    return StreamTimes(file.stem, receive_ns, stamp_ns)


def of_topic(times: TopicTimes, facts: TopicFacts) -> StreamTimes:
    """Return the times of one topic of a recording."""
    return StreamTimes(
        times.name,
        np.array(times.arrivals_ns, np.int64),
        np.array(times.stamps_ns, np.int64),
        times.type_name,
        np.array(times.sizes, float),
        facts.sweep_s,
        facts.source == 'host',
    )
