"""From the sensor to the host: what is lost, when the rest arrives, and what its stamp says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Ints
from rig_common.errors import RigError
from rig_common.times import LONG_AGO_NS, seconds_to_ns
from sim_sensors.timing.arrays import Rows
from sim_sensors.timing.arrays.columns import Column, chosen, column, larger, truncated
from sim_sensors.timing.clocks import SensorClock
from sim_sensors.timing.config import TimingConfig
from sim_sensors.timing.fates import CaptureFate
from sim_sensors.timing.faults import HEALTHY, Condition, Faults
from sim_sensors.timing.latency import make_latency
from sim_sensors.timing.link import LinkShare
from sim_sensors.timing.loss import MOST_TRIES, LossChannel
from sim_sensors.timing.randomness.noise_stream import Captures
from sim_sensors.timing.randomness.random_streams import RandomStreams
from sim_sensors.timing.schedule import Schedule


class Passage(NamedTuple):
    """How the rows of one batch of captures travel."""

    stamp_ns: Column
    arrival_ns: Column
    lost: Flags | None
    """Rows that never arrive; None when all do."""
    twice: Flags | None = None
    """Rows that arrive twice; None when none does."""


@dataclass(slots=True)
class CaptureNumbers:
    """Captures by their numbers alone, for whoever has no batch of a pipeline; see `Captures`."""

    envs: Rows
    index: Ints
    time_ns: Ints


@dataclass(frozen=True)
class StreamTraits:
    """What is known of a stream beside its config; a recorded one needs none of it."""

    duration_ns: int = 0
    """How long a capture takes; latency counts from its end, ns."""
    stamp_points_ns: Mapping[str, int] = field(default_factory=dict)
    """From the capture's time to its start, middle and end, ns."""
    schedule: Schedule | None = None
    """When captures are made; without one they come one after another, at `rate_hz`."""
    size_bytes: int = 0
    """Size of a message, bytes."""
    link: LinkShare | None = None
    """The line it shares with others."""
    start_ns: int = 0
    """What the clock shows at the start of the run, where its errors are zero, ns."""


class Transit:
    """Latency, order, loss and clock of one stream, for every environment.

    It needs no simulated sensor: `Transit(TimingConfig(...), RandomStreams(seed, name))` times a
    recorded stream, one `CaptureNumbers` after another.

        arrival = capture + duration + link + delay + jitter or latency + faults
        hold    = max(hold, arrival + length of the stall that this sample begins)
        arrival = max(arrival, hold), and with `order: fifo` not before the arrival of the last

    With a delay of 5 ms, up to 2 ms of jitter, and a stall of 30 ms that begins at capture 1 (ms):

        capture                  0     10     20     30     40     50
        with delay and jitter   6.6   16.3   25.1   35.8   45.2   55.8
        hold                     -    46.3   46.3   46.3   46.3   46.3
        arrival                 6.6   46.3   46.3   46.3   46.3   55.8
    """

    def __init__(
        self, config: TimingConfig, streams: RandomStreams, stream: StreamTraits = StreamTraits()
    ) -> None:
        """Draw each environment's delay; it counts from the end of a capture."""
        if config.link and stream.link is None:
            raise RigError(
                f'link of {streams.sensor!r} is {config.link!r}, which is not there; '
                'links are for the sensors of a simulated rig'
            )
        num_envs, xp = len(streams.lanes), streams.xp
        self.counts: Counter[CaptureFate] = Counter()
        self.faults = Faults()
        """What makes captures late that nobody made; set by whoever has faults."""
        self._streams, self._stream, self._xp = streams, stream, xp
        self._loss = LossChannel(config.loss, streams, config.size_bytes or stream.size_bytes)
        self.clock = SensorClock(
            config, streams, stream.schedule, stream.stamp_points_ns, stream.start_ns
        )
        self.latency_ns: Ints = xp.zeros(num_envs, np.int64)
        """Least time from capture to arrival, ns [num_envs]."""
        self._hold_ns: Ints = xp.full(num_envs, LONG_AGO_NS, np.int64)
        self._last_ns: Ints = xp.full(num_envs, LONG_AGO_NS, np.int64)
        self._last: Ints = xp.full(num_envs, -1, np.int64)
        self._take_latency(config)

    def take(self, config: TimingConfig) -> None:
        """Take latency, order, clock and loss from `config`, for captures to come."""
        self.clock.take(config)
        self._loss.reconfigure(config.loss)
        self._take_latency(config)

    def _take_latency(self, config: TimingConfig) -> None:
        low, high = config.delay_range_s
        self._low_ns, self._high_ns = seconds_to_ns(low), seconds_to_ns(high)
        self._jitter_ns = seconds_to_ns(config.jitter_s)
        self._jitter = self._streams.uniforms('jitter', 1) if self._jitter_ns else None
        self._latency = make_latency(config.latency, self._streams)
        self._fixed_ns = 0
        self.spread_ns = self._jitter_ns
        """What samples may be later than `latency_ns`, at most, ns."""
        if self._latency is not None:
            self._fixed_ns = self._latency.least_ns
            self.spread_ns += self._latency.most_ns - self._latency.least_ns
        self._take_line(config)
        self._draw_delay(slice(None))

    def _take_line(self, config: TimingConfig) -> None:
        """Take what depends on earlier samples: stalls, the link, the order."""
        stalls, link = config.latency.stalls, self._stream.link
        self._fifo = config.order == 'fifo'
        self._stall = stalls.probability
        self._stall_ns = tuple(seconds_to_ns(each) for each in stalls.duration_range_s)
        self._in_turn = bool(self._fifo or self._stall)
        """Whether a sample's arrival depends on those before it."""
        if self._stall:
            self.spread_ns += self._stall_ns[1]
        if link is not None:
            self.spread_ns += link.most_ns
            if link.reliable:
                self.spread_ns += (MOST_TRIES + 1) * link.round_trip_ns

    @property
    def _reliable(self) -> bool:
        return self._stream.link is not None and self._stream.link.reliable

    @property
    def most_latency_ns(self) -> int:
        """Longest time from capture to arrival without faults, ns."""
        return self._stream.duration_ns + self._high_ns + self._fixed_ns + self.spread_ns

    @property
    def is_regular(self) -> bool:
        """True when arrival follows from the capture index alone."""
        return not (self.spread_ns or self._loss.probability)

    @property
    def takes_runs(self) -> bool:
        """Whether `send` takes captures of one environment together that follow each other.

        Else each needs what became of the one before it.
        """
        return not self._in_turn and self.clock.takes_runs

    # ---- arrival ------------------------------------------------------------------------------

    def arrival_of(self, batch: Captures) -> Column:
        """Return when captures to come arrive where no fault makes them later, ns.

        Everything is drawn by index, so this is known before a capture is made.
        """
        return self._arrivals(batch, 0)[0]

    def earliest_arrival(self, env: int, k: int, schedule: Schedule) -> int:
        """Return before when neither capture `k` of an environment nor a later one arrives, ns.

        Without faults it is exact, but for stalls: a sample that they hold up counts as if they
        did not. A capture is worth a look as long as the least latency would let it overtake:

            captures at 0, 5, 10, 15 ms, least latency 20 ms, drawn 38, 22, 21, 30 ms
            arrivals at 38, 27, 31, -> 27 ms; the capture at 15 ms cannot arrive before 35 ms
        """
        least_ns, capture_ns = int(self.latency_ns[env]), schedule.time_of(k)
        earliest = int(self.arrival_of(_one(env, k, capture_ns)))
        while not self._fifo:
            k, capture_ns = k + 1, schedule.time_of(k + 1)
            if capture_ns + least_ns >= earliest:
                break
            earliest = min(earliest, int(self._drawn(_one(env, k, capture_ns))))
        return earliest

    def send(
        self, batch: Captures, condition: Condition = HEALTHY, stamped: Captures | None = None
    ) -> Passage:
        """Return stamp, arrival and loss of a batch of captures, in order of their index.

        `stamped` has the times that the clock reads where they are not those the delay counts
        from: a recorded message is sent on from when it was received.
        """
        arrival, hold_ns = self._arrivals(batch, condition.latency_ns)
        if self._in_turn:
            self._hold_ns[batch.envs], self._last_ns[batch.envs] = hold_ns, arrival
            self._last[batch.envs] = batch.index
        stamp = self.clock.stamps(stamped or batch, arrival, condition.clock_step_ns)
        twice = self._loss.duplicated(batch) if self._loss.duplicate_probability else None
        return Passage(stamp, arrival, self._lost(batch, condition), twice)

    def _drawn(self, batch: Captures) -> Column:
        """Return arrivals as if no sample waited for another, ns."""
        arrival = column(batch.time_ns) + column(self.latency_ns[batch.envs])
        if self._jitter is not None:
            draw = column(self._jitter.at(batch.envs, batch.index)[:, 0])
            arrival = arrival + truncated(draw * self._jitter_ns)
        if self._latency is not None:
            arrival = arrival + (self._latency.at(batch.envs, batch.index) - self._fixed_ns)
        if self._stream.link is not None:
            arrival = arrival + column(self._on_link(self._stream.link, batch))
        return arrival

    def _on_link(self, link: LinkShare, batch: Captures) -> Ints:
        """Return the time on the link, ns [n]; what is lost on a reliable one is sent again."""
        delay_ns, dropped = link.at(batch.index)
        if link.reliable:
            delay_ns[dropped] = link.most_ns + link.round_trip_ns
            if self._loss.probability:
                lost = self._loss.lost(batch)
                if lost.any():
                    again_ns = self._loss.tries(batch) * link.round_trip_ns
                    delay_ns[lost] += again_ns[lost]
        return delay_ns

    def _arrivals(self, batch: Captures, late_ns: int) -> tuple[Column, Column]:
        """Return arrivals and what they hold up, ns; nothing is remembered."""
        arrival = self._drawn(batch)
        if late_ns:
            arrival = arrival + late_ns
        if not self._in_turn:
            return arrival, arrival
        hold_ns, last_ns = self._hold_ns[batch.envs], self._last_ns[batch.envs]
        if self._stream.schedule is not None:
            skipped = batch.index - self._last[batch.envs] - 1
            if skipped.any():
                hold_ns, last_ns = self._caught_up(batch, skipped, self._stream.schedule)
        return self._waited(batch, arrival, column(hold_ns), column(last_ns))

    def _waited(
        self, batch: Captures, arrival: Column, hold_ns: Column, last_ns: Column
    ) -> tuple[Column, Column]:
        if self._stall:
            draws = self._streams.uniform_at('stalls', batch.envs, batch.index, 2)
            low_ns, high_ns = self._stall_ns
            length_ns = low_ns + truncated(column(draws[:, 1]) * (high_ns - low_ns))
            begins = column(draws[:, 0]) < self._stall
            hold_ns = larger(hold_ns, chosen(begins, arrival + length_ns, LONG_AGO_NS))
            arrival = larger(arrival, hold_ns)
        if self._fifo:
            arrival = larger(arrival, last_ns)
        return arrival, hold_ns

    def _caught_up(self, batch: Captures, skipped: Ints, schedule: Schedule) -> tuple[Ints, Ints]:
        """Return what captures that nobody made hold up, as if they had been made.

        Only those matter whose latest arrival lies after the earliest of the present capture.
        """
        ids = self._xp.arange(len(self._last))[batch.envs]
        hold_ns, last_ns = self._hold_ns[ids], self._last_ns[ids]
        origin_ns = batch.time_ns - schedule.times_of(batch.index)
        window = schedule.captures_in(self.spread_ns + self.faults.most_latency_ns)
        for back in range(min(int(skipped.max()), window), 0, -1):
            rows = self._xp.indices(skipped >= back)
            index = batch.index[rows] - back
            times_ns = schedule.times_of(index) + origin_ns[rows]
            past = CaptureNumbers(ids[rows], index, times_ns)
            arrival = self._drawn(past)
            if self.faults:
                late = [self.faults.at(each).latency_ns for each in times_ns.tolist()]
                arrival = arrival + column(self._xp.asarray(np.array(late)))
            last_ns[rows], hold_ns[rows] = self._waited(
                past, arrival, column(hold_ns[rows]), column(last_ns[rows])
            )
        return hold_ns, last_ns

    # ---- loss ---------------------------------------------------------------------------------

    def _lost(self, batch: Captures, condition: Condition) -> Flags | None:
        captures = len(batch.index)
        self.counts[CaptureFate.CAPTURED] += captures
        lost = self._loss.advance(batch) if self._loss.probability else None
        if condition.dead:
            self.counts[CaptureFate.DEAD] += captures
            return self._xp.full(captures, True, np.bool_)
        if self._reliable:
            lost = None  # it was sent again, see `_on_link`
        if lost is not None and (captures > 1 or lost[0]):
            self.counts[CaptureFate.LOST] += int(lost.sum())
        if self._stream.link is not None and not self._reliable:
            lost = self._also(lost, self._stream.link.at(batch.index)[1], CaptureFate.QUEUE_FULL)
        if condition.passing < 1.0:
            draw = self._streams.draw('loss_burst', batch)
            lost = self._also(lost, draw < 1.0 - condition.passing, CaptureFate.FAULT_LOSS)
        return lost

    def _also(self, lost: Flags | None, more: Flags, fate: CaptureFate) -> Flags:
        """Return `lost` and `more` together; what was not lost yet counts as `fate`."""
        if lost is None:
            self.counts[fate] += int(more.sum())
            return more
        self.counts[fate] += int((more & ~lost).sum())
        return lost | more

    def reset(self, envs: Rows) -> None:
        """Draw the delays of `envs` again, for their new episode."""
        self._loss.reset(envs)
        self.clock.reset(envs)
        self._hold_ns[envs] = self._last_ns[envs] = LONG_AGO_NS
        self._last[envs] = -1
        self._draw_delay(envs)

    def _draw_delay(self, envs: Rows) -> None:
        self.latency_ns[envs] = self._stream.duration_ns + self._fixed_ns + self._low_ns
        if self._high_ns > self._low_ns:
            draw = self._streams.constant('delay', envs, 1, 'uniform')[:, 0]
            more_ns = self._xp.astype(draw * (self._high_ns - self._low_ns), np.int64)
            self.latency_ns[envs] += more_ns


def _one(env: int, k: int, capture_ns: int) -> CaptureNumbers:
    return CaptureNumbers(np.array([env]), np.array([k]), np.array([capture_ns]))
