"""A line that several sensors share: how long a message waits and is sent, and what is dropped.

    camera  |####################|              900 kB at t = 0 on 100 Mbit/s: sent until 72 ms
    imu        .................#  .#           t = 5 ms waits for the camera's end: 67 ms late

The load follows from the rig file: every message of every sensor on the link is sent when its
capture is complete, whether or not anybody reads it. So each process that serves one of these
sensors computes the same line. All environments have the same line, from their episode's start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ints
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.timing.arrays import arrays_holding
from sim_sensors.timing.config import LinkConfig
from sim_sensors.timing.schedule import Schedule

BLOCK_MESSAGES = 2048
"""Messages that are computed together, about."""
KEPT_BLOCKS = 64


class Served(NamedTuple):
    """What a line did with messages, in the order they came."""

    leave_ns: Ints
    """When each has been sent, ns [n]; for a dropped one, as if it had been sent at once."""
    dropped: Flags
    free_ns: int
    """When the line has sent all of them, ns."""


def serve(enter_ns: Ints, service_ns: Ints, free_ns: int, queue_ns: int) -> Served:
    """Send messages that come at `enter_ns` (rising) and take `service_ns` each.

    The line is busy until `free_ns`. A message is dropped if it and those before it would take
    longer than `queue_ns` (0: never).
    """
    if not len(enter_ns):
        return Served(enter_ns, np.zeros(0, np.bool_), free_ns)
    sent = np.cumsum(service_ns)
    # leave_k = max(enter_k, leave_(k-1)) + service_k, with the sum of the services taken out
    start = np.maximum.accumulate(np.maximum(enter_ns, free_ns) - (sent - service_ns))
    leave, dropped = start + sent, np.zeros(len(enter_ns), np.bool_)
    if not queue_ns or not (leave - enter_ns > queue_ns).any():
        return Served(leave, dropped, max(free_ns, int(leave[-1])))
    times = zip(enter_ns.tolist(), service_ns.tolist(), strict=True)
    for row, (enter, service) in enumerate(times):
        done = max(enter, free_ns) + service
        if done - enter > queue_ns:
            dropped[row], done = True, enter + service
        else:
            free_ns = done
        leave[row] = done
    return Served(leave, dropped, free_ns)


@dataclass(frozen=True)
class LinkMember:
    """One sensor on a link."""

    schedule: Schedule
    duration_ns: int
    """From a capture to when its message is handed to the link, ns."""
    size_bytes: int


class _Block(NamedTuple):
    first: dict[str, int]
    """Capture index of each member's first message in it."""
    delay_ns: dict[str, Ints]
    dropped: dict[str, Flags]


class Link:
    """The line, computed block after block of time from the start of an episode."""

    def __init__(self, name: str, config: LinkConfig, members: Mapping[str, LinkMember]) -> None:
        """Carry the messages of `members`; where several come at once, by their names."""
        self.config = config
        self._members = dict(sorted(members.items()))
        self._service = {each: _ns(member.size_bytes, config) for each, member in members.items()}
        self._queue_ns = _ns(config.queue_bytes, config) if config.queue_bytes else 0
        self._check(name)
        rate_hz = sum(member.schedule.rate_hz for member in members.values())
        self._span_ns = max(int(BLOCK_MESSAGES / rate_hz * NS_PER_S), 1)
        self._free_ns = [0]
        """When the line has sent what came before each block, ns."""
        self._blocks: OrderedDict[int, _Block] = OrderedDict()

    @property
    def load(self) -> float:
        """The load of the line, as a fraction of its bandwidth."""
        bits = sum(
            8.0 * each.size_bytes * each.schedule.rate_hz for each in self._members.values()
        )
        return bits / self.config.bandwidth_bps

    def most_ns(self, name: str) -> int:
        """Return the longest that a message of member `name` takes, ns.

        Without a queue's limit and below full load: all members' messages at once, each twice
        because captures are rounded to physics steps.
        """
        if self._queue_ns:
            return max(self._queue_ns, self._service[name])
        return 2 * sum(self._service.values())

    def _check(self, name: str) -> None:
        if not self._queue_ns and self.load >= 1.0:
            raise RigError(
                f'links.{name}: its sensors send {self.load * 100:.0f} % of what '
                f'{self.config.bandwidth_bps:g} bit/s carry, so messages would wait '
                'longer and longer; give queue_bytes, more bandwidth_bps or less rate'
            )
        for each, service_ns in self._service.items():
            if self._queue_ns and service_ns > self._queue_ns:
                raise RigError(
                    f'links.{name}: queue_bytes is {self.config.queue_bytes}; a '
                    f'message of {each!r} has {self._members[each].size_bytes} bytes '
                    'and would never fit'
                )
            if service_ns > 60 * NS_PER_S:
                raise RigError(
                    f'links.{name}: a message of {each!r} '
                    f'({self._members[each].size_bytes} bytes) takes '
                    f'{service_ns / NS_PER_S:.3g} s; at most 60 s'
                )

    def at(self, name: str, index: int) -> tuple[int, bool]:
        """Return how long message `index` of member `name` takes, ns, and if it is dropped."""
        member = self._members[name]
        enter_ns = member.schedule.time_of(index) + member.duration_ns
        block = self._block(enter_ns // self._span_ns)
        row = index - block.first[name]
        return int(block.delay_ns[name][row]), bool(block.dropped[name][row])

    def _block(self, number: int) -> _Block:
        found = self._blocks.get(number)
        if found is not None:
            return found
        for missing in range(len(self._free_ns) - 1, number):
            self._compute(missing)
        found = self._blocks[number] = self._compute(number)
        if len(self._blocks) > KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return found

    def _compute(self, number: int) -> _Block:
        start_ns, end_ns = number * self._span_ns, (number + 1) * self._span_ns
        first: dict[str, int] = {}
        enters: list[Ints] = []
        for name, member in self._members.items():
            lag_ns = member.duration_ns
            first[name] = member.schedule.index_before(start_ns - lag_ns - 1) + 1
            end = member.schedule.index_before(end_ns - lag_ns - 1) + 1
            enters.append(member.schedule.times_of(np.arange(first[name], end)) + lag_ns)
        enter_ns = np.concatenate(enters)
        counts = [len(each) for each in enters]
        service_ns = np.repeat(np.array([self._service[name] for name in self._members]), counts)
        order = np.argsort(enter_ns, kind='stable')
        served = serve(enter_ns[order], service_ns[order], self._free_ns[number], self._queue_ns)
        if number + 1 == len(self._free_ns):
            self._free_ns.append(served.free_ns)
        delay_ns, dropped = np.empty_like(enter_ns), np.empty(len(enter_ns), np.bool_)
        delay_ns[order], dropped[order] = served.leave_ns - enter_ns[order], served.dropped
        ends = np.cumsum(counts)[:-1]
        return _Block(
            first,
            dict(zip(self._members, np.split(delay_ns, ends), strict=True)),
            dict(zip(self._members, np.split(dropped, ends), strict=True)),
        )


class LinkShare:
    """A link as one of its sensors sees it."""

    def __init__(self, link: Link, name: str) -> None:
        """Look at `link` as member `name`."""
        self._link, self._name = link, name
        self.reliable = link.config.reliable
        self.round_trip_ns = seconds_to_ns(link.config.round_trip_s)
        self.most_ns = link.most_ns(name)

    def at(self, index: Ints) -> tuple[Ints, Flags]:
        """Return the delays of captures `index` [n], ns, and which are dropped, [n] each."""
        xp = arrays_holding(index)
        delay_ns, dropped = xp.empty(len(index), np.int64), xp.empty(len(index), np.bool_)
        for each in sorted(set(index.tolist())):
            rows = index == each
            delay_ns[rows], dropped[rows] = self._link.at(self._name, each)
        return delay_ns, dropped


def _ns(size_bytes: int, config: LinkConfig) -> int:
    """Return how long the link takes to send `size_bytes`, ns."""
    return round(size_bytes * 8 * NS_PER_S / config.bandwidth_bps)
