"""The timing of the topics of a recording or a live graph, and a config made from it.

A stamp and an arrival per message are enough to see how regular each is. Stamps that are regular
while arrivals are not were written by the device; stamps as restless as the arrivals, and close
to them, were written by the host; stamps from another date are a clock of their own.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.jsonable import JsonObject
from rig_common.msgs.decode import read_cloud, read_scan
from sync_engine.wire.restamp import point_times_s

INFO_TYPE = 'sensor_msgs/msg/CameraInfo'
SCAN_TYPE, CLOUD_TYPE = 'sensor_msgs/msg/LaserScan', 'sensor_msgs/msg/PointCloud2'
KEPT = 20_000
"""Messages per topic whose times are looked at; the first ones."""
OWN_EPOCH_S = 1.0
"""Stamps further than this from their arrival are on a clock of their own."""
SWEEPS = 10
"""Scans per topic whose sweep is looked at; the first ones."""
LONGEST_SWEEP = 1.5
"""Periods; a longer sweep is a driver's mistake in the unit, and is not believed."""
FAR_S = 4e9
"""Times further apart than this (127 years) can overflow int64 when they are subtracted."""
STEADY_S = 2e-5
"""Nobody stamps arrivals as steadily as this."""
VAGUE_PPM = 20.0
"""A drift with a larger sigma is not told."""
COPIED_S = 1e-6
"""Receive times this close to the stamps, all of them, are copies."""
CLOSE_S = 0.005
"""A host stamps within this of handing a message on."""


@dataclass
class TopicTimes:
    """The times of one topic's messages, as they come."""

    name: str
    type_name: str
    stamped: bool
    count: int = 0
    nbytes: int = 0
    stamps_ns: array[int] = field(default_factory=lambda: array('q'))
    arrivals_ns: array[int] = field(default_factory=lambda: array('q'))
    publishes_ns: array[int] = field(default_factory=lambda: array('q'))
    """When its publisher sent it; as long as the arrivals, or empty where nobody wrote it down."""
    sizes: array[int] = field(default_factory=lambda: array('q'))
    """Bytes of each message whose times are kept."""
    last_arrival_ns: int = 0
    first_arrival_ns: int = 0
    unreadable: int = 0
    sweeps_s: list[float] = field(default_factory=list)
    kept: int = KEPT

    def add(self, raw: bytes, arrival_ns: int, publish_ns: int = 0) -> bool:
        """Take one message; return whether its times are kept."""
        if not self.count:
            self.first_arrival_ns = arrival_ns
        self.count += 1
        self.nbytes += len(raw)
        self.last_arrival_ns = arrival_ns
        if len(self.arrivals_ns) >= self.kept:
            return False
        stamp_ns = arrival_ns
        if self.stamped:
            try:
                stamp_ns = read_stamp_ns(raw)
            except CdrError:
                self.unreadable += 1
                return False
            if len(self.sweeps_s) < SWEEPS:
                self.sweeps_s.append(sweep_s(self.type_name, raw))
        self.arrivals_ns.append(arrival_ns)
        self.stamps_ns.append(stamp_ns)
        self.sizes.append(len(raw))
        if publish_ns:
            self.publishes_ns.append(publish_ns)
        return True

    @property
    def on_the_way_s(self) -> NDArray[np.float64] | None:
        """Receive minus publish times; None where these are missing or copies."""
        arrivals = np.array(self.arrivals_ns, np.int64)
        publishes = np.array(self.publishes_ns, np.int64)
        if not len(publishes) or len(publishes) != len(arrivals) or (publishes == arrivals).all():
            return None
        return seconds_between(publishes, arrivals)


def sweep_s(type_name: str, raw: bytes) -> float:
    """Return how long after its stamp the last ray of a scan or cloud was measured; 0 elsewhere.

    A LaserScan is stamped at its first ray. A cloud says it in its points' times, which end at 0
    where a driver stamps the last point.
    """
    found = 0.0
    try:
        if type_name == SCAN_TYPE:
            scan = read_scan(raw)
            found = scan.time_increment_s * len(scan.ranges) or scan.scan_time_s
        elif type_name == CLOUD_TYPE:
            times = point_times_s(read_cloud(raw))
            found = 0.0 if times is None else float(times.max())
    except CdrError:
        return 0.0
    return found if 0.0 < found < math.inf else 0.0


@dataclass(frozen=True)
class TopicFacts:
    """What a topic's times came to. Times in seconds."""

    name: str
    type_name: str
    stamped: bool
    count: int
    rate_hz: float
    mean_bytes: float
    arrival_jitter_s: float
    """Robust sigma of the time between arrivals."""
    stamp_jitter_s: float
    """Robust sigma of the time between stamps."""
    delay_s: float
    """Median of arrival minus stamp."""
    delay_spread_s: float
    """From the 5th to the 95th percentile of arrival minus stamp."""
    drift_ppm: float
    """Slope of the smallest delays; NaN below 10 s."""
    source: str
    """`device`, `host`, or `none` (no header, or zero stamps)."""
    why: str
    shares_stamps_with: str = ''
    """Another topic with the same stamps."""
    sweep_s: float = 0.0
    """From the stamp to the last ray of a scan or cloud."""
    transport_s: float = math.nan
    """Median of receive minus publish time; NaN where nobody wrote publish times down."""
    drift_sigma_ppm: float = math.nan
    """One sigma of `drift_ppm`; both are NaN where the delays do not tell a drift."""

    @property
    def driver_s(self) -> float:
        """Median time from the stamp to the publish time."""
        return self.delay_s - self.transport_s


def facts_of(topics: Iterable[TopicTimes]) -> list[TopicFacts]:
    """Return the facts of every topic that had messages, by name."""
    heard = sorted((topic for topic in topics if topic.count), key=lambda topic: topic.name)
    owners: dict[str, str] = {}
    by_stamps = sorted(
        (t for t in heard if t.stamped and t.stamps_ns),
        key=lambda t: (t.type_name == INFO_TYPE, -t.nbytes / t.count),
    )
    for index, topic in enumerate(by_stamps):
        for owner in by_stamps[:index]:
            if owner.name not in owners and _share(topic.stamps_ns, owner.stamps_ns) > 0.9:
                owners[topic.name] = owner.name
                break
    return [_facts(topic, owners.get(topic.name, '')) for topic in heard]


def _share(mine: Sequence[int], theirs: Sequence[int]) -> float:
    """Return how many of the stamps are in both; a fast topic that hits every slow one has few."""
    one, other = (np.unique(np.asarray(each, np.int64)) for each in (mine, theirs))
    both = np.intersect1d(one, other, assume_unique=True)
    return np.count_nonzero(both) / max(len(one), len(other), 1)  # many write no stamp


def _facts(topic: TopicTimes, owner: str) -> TopicFacts:
    arrivals = np.array(topic.arrivals_ns, np.int64)
    stamps = np.array(topic.stamps_ns, np.int64)
    span_s = (topic.last_arrival_ns - topic.first_arrival_ns) / 1e9
    delays = seconds_between(stamps, arrivals)
    arrival_jitter, stamp_jitter = _jitter(arrivals), _jitter(stamps)
    low = middle = high = drift_ppm = drift_sigma = math.nan
    if not topic.stamped:
        source, why = 'none', 'the type has no header'
    elif not len(stamps) or np.count_nonzero(stamps) * 2 < len(stamps):
        source, why = 'none', 'its stamps are zero'
    else:
        low, middle, high = np.percentile(delays, (5, 50, 95))
        source, why = _source(arrival_jitter, stamp_jitter, float(middle), float(high - low))
        if float(np.abs(delays).max()) < COPIED_S:
            why = 'its receive times are copies of its stamps'
        else:
            drift_ppm, drift_sigma = _drift_ppm(arrivals, delays)
    rate_hz = (topic.count - 1) / span_s if span_s > 0.0 else 0.0
    sweep = statistics.median(topic.sweeps_s) if topic.sweeps_s else 0.0
    return TopicFacts(
        topic.name,
        topic.type_name,
        topic.stamped,
        topic.count,
        rate_hz,
        topic.nbytes / topic.count,
        arrival_jitter,
        stamp_jitter,
        float(middle),
        float(high - low),
        drift_ppm,
        source,
        why,
        owner,
        sweep if sweep * rate_hz <= LONGEST_SWEEP else 0.0,
        math.nan if topic.on_the_way_s is None else float(np.median(topic.on_the_way_s)),
        drift_sigma,
    )


def seconds_between(
    earlier_ns: NDArray[np.int64], later_ns: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the differences, s; exact, but for times so far apart that int64 cannot hold them."""
    rough: NDArray[np.float64] = (later_ns.astype(np.float64) - earlier_ns) / 1e9
    if len(rough) and np.abs(rough).max() > FAR_S:
        return rough
    exact: NDArray[np.float64] = (later_ns - earlier_ns) / 1e9
    return exact


def _jitter(times_ns: NDArray[np.int64]) -> float:
    """Return the robust sigma of the spacing (s)."""
    if len(times_ns) < 3:
        return math.nan
    steps = seconds_between(times_ns[:-1], times_ns[1:])
    return float(np.median(np.abs(steps - np.median(steps))) * 1.4826)


def _source(
    arrival_jitter: float, stamp_jitter: float, delay_s: float, spread_s: float
) -> tuple[str, str]:
    if abs(delay_s) > OWN_EPOCH_S:
        return 'device', f"its clock is {-delay_s:+.1f} s from the host's"
    if delay_s < -0.001:
        return 'device', f'it is stamped {-delay_s * 1e3:.1f} ms after it arrives'
    if stamp_jitter < 0.3 * arrival_jitter:
        return 'device', 'its stamps are steadier than its arrivals'
    is_close = 0.0 <= delay_s < CLOSE_S and spread_s < max(0.5 * arrival_jitter, 0.001)
    if is_close and stamp_jitter > STEADY_S:
        return 'host', 'it is stamped where it arrives'
    return 'device', f'it arrives {delay_s * 1e3:.1f} ms after its stamp'


def _drift_ppm(arrivals: NDArray[np.int64], delays: NDArray[np.float64]) -> tuple[float, float]:
    """Return how fast the smallest delays grow (a clock that is slow grows them), and its sigma.

    Both in ppm; NaN where they are too restless to tell.
    """
    if len(arrivals) < 20 or seconds_between(arrivals[:1], arrivals[-1:])[0] < 10.0:
        return math.nan, math.nan
    parts = np.array_split(np.arange(len(arrivals)), 10)
    chosen = np.array([part[np.argmin(delays[part])] for part in parts])
    times_s = seconds_between(arrivals[:1], arrivals[chosen])
    least = np.array([delays[part].min() for part in parts])
    if np.ptp(times_s) <= 0.0:
        return math.nan, math.nan
    slope, level = np.polyfit(times_s, least, 1)
    rest = least - (level + slope * times_s)
    spread = float(((times_s - times_s.mean()) ** 2).sum())
    sigma = float(np.sqrt((rest**2).sum() / (len(rest) - 2) / spread)) * 1e6
    if sigma > VAGUE_PPM:
        return math.nan, math.nan
    return float(slope) * 1e6, sigma


def as_dict(facts: TopicFacts) -> JsonObject:
    """Return the facts as JSON values."""
    return dict(facts.__dict__)
