"""Which time scale a topic's stamps are of: the host's, another epoch, another zone, its own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sensor_rig.bags.inspect import seconds_between as between
from sensor_rig.findings.kinds import found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, date, lasting, listed
from sensor_rig.findings.timeline import TimeLine, robust_sigma
from sensor_rig.findings.units import pace_of

CLOCK_TYPE = 'rosgraph_msgs/msg/Clock'
TAI_S, GPS_S = 37.0, 18.0
"""TAI and GPS time minus UTC since 2017."""
GPS_EPOCH_S = 315_964_800.0
"""GPS time began in 1980."""
EPOCHS_S = {
    '1900 (NTP), cut to 32 bits': -(2.0**32) + 2_208_988_800.0,
    '1904': -(2.0**32) + 2_082_844_800.0,
    '1980-01-01': -315_532_800.0,
    '2000-01-01': -946_684_800.0,
    '2000-01-01 12:00 (J2000)': -946_728_000.0,
    '2001-01-01': -978_307_200.0,
    'a GPS week number that rolled over (1024 weeks)': -619_315_200.0,
    'two GPS week rollovers (2048 weeks)': -1_238_630_400.0,
}
"""What is added to the time since 1970."""
EPOCH_SLACK_S = 40.0
"""Leap seconds and latency beside an epoch."""
QUARTER_HOUR_S, MOST_ZONE_S = 900.0, 14.5 * 3600.0
POWER_UP_S = 1e8
"""Stamps below this count from a power-up: three years."""
DATE_S = 1e9
"""Host times above this are dates."""
OWN_EPOCH_S = 1.0
CRYSTAL_PPM, STEADY_S = 1000.0, 0.02
"""Beyond this pace, or this much wander, no clock of a device is: simulated or replayed time."""


class Domain(NamedTuple):
    """The time scale of a topic's stamps."""

    code: str
    """`host`, or the code of the finding."""
    offset_s: float
    """Stamps minus the host's time."""
    name: str = ''
    """Of an epoch."""

    @property
    def nominal_s(self) -> float:
        """The part of the offset that the domain explains; the rest may be latency."""
        if self.code == 'host':
            return 0.0
        if self.code == 'clock_time_zone':
            return round(self.offset_s / QUARTER_HOUR_S) * QUARTER_HOUR_S
        amount_s = {
            'clock_tai': TAI_S,
            'clock_gps': GPS_S,
            'clock_gps_epoch': GPS_EPOCH_S - GPS_S,
        }.get(self.code, abs(self.offset_s))
        return math.copysign(amount_s, self.offset_s)

    @property
    def explains_latency(self) -> bool:
        """Whether what is left of the offset is a delay that can be judged."""
        return self.code in ('host', 'clock_tai', 'clock_gps', 'clock_time_zone')


HOST = Domain('host', 0.0)


def domain_of(line: TimeLine) -> Domain:
    """Return the time domain of a topic's stamps."""
    offset_s = -float(np.median(line.delays_s))
    stamp_s, host_s = float(np.median(line.stamps_ns)) / 1e9, line.arrivals_ns[0] / 1e9
    if abs(offset_s) < OWN_EPOCH_S:
        return Domain('host', offset_s)
    for name, amount_s in (
        ('clock_tai', TAI_S),
        ('clock_gps', GPS_S),
        ('clock_gps_epoch', GPS_S - GPS_EPOCH_S),
    ):
        # Behind by as much: the leap seconds were taken off where there were none.
        if min(abs(offset_s - amount_s), abs(offset_s + amount_s)) < OWN_EPOCH_S:
            return Domain(name, offset_s)
    if host_s > DATE_S and 0.0 <= stamp_s < POWER_UP_S:
        return Domain('clock_power_up', offset_s)
    for name, amount_s in EPOCHS_S.items():
        if host_s > DATE_S and abs(offset_s - amount_s) < EPOCH_SLACK_S:
            return Domain('clock_epoch', offset_s, name)
    nearest_s = round(offset_s / QUARTER_HOUR_S) * QUARTER_HOUR_S
    if 0.0 < abs(nearest_s) <= MOST_ZONE_S and abs(offset_s - nearest_s) < OWN_EPOCH_S:
        return Domain('clock_time_zone', offset_s)
    return Domain('clock_other', offset_s)


def domain_finding(
    name: str, line: TimeLine, domain: Domain, *, alone: bool, daylight: str = ''
) -> Finding:
    """Return the finding of stamps that are of another epoch than the host's time.

    `alone`: no other topic is on the host's time, so that nothing is mixed.
    """
    offset_s = domain.offset_s
    later = 'ahead of' if offset_s > 0.0 else 'behind'
    first, host = date(int(line.stamps_ns[0])), date(int(line.arrivals_ns[0]))
    hours = round(offset_s / QUARTER_HOUR_S) / 4
    up = lasting(line.stamps_ns[0] / 1e9)
    what = {
        'clock_tai': f'is {offset_s:+.3f} s from the host, the leap seconds between TAI and UTC',
        'clock_gps': f'is {offset_s:+.3f} s from the host, the leap seconds between GPS time '
        'and UTC',
        'clock_gps_epoch': 'counts from the GPS epoch of 1980: it says '
        f'{first} when the host has {host}',
        'clock_epoch': f'counts from {domain.name} instead of 1970: it says {first} when the '
        f'host has {host}',
        'clock_time_zone': f'is off by {hours:+g} h: a local time taken for UTC{daylight}',
        'clock_power_up': f'counts from its power-up, {up} before the first message, not '
        f'from 1970: the host has {host}',
        'clock_other': f'is on a clock of its own, {lasting(offset_s)} {later} the host'
        + (f': it says {first} when the host has {host}' if abs(offset_s) > 60.0 else ''),
    }[domain.code]
    return found(
        domain.code,
        WARNING if alone else WRONG,
        name,
        what,
        {'offset_s': offset_s, 'nominal_s': domain.nominal_s},
    )


def simulated(
    lines: Mapping[str, TimeLine], domains: Mapping[str, Domain], has_clock: bool
) -> list[Finding]:
    """Return the finding of stamps that are of simulated or replayed time, not of a device."""
    own = {
        topic: domain
        for topic, domain in domains.items()
        if domain.code in ('clock_power_up', 'clock_other')
    }
    if not own:
        return []
    offsets = [domain.offset_s for domain in own.values()]
    one_clock = max(offsets) - min(offsets) < 10.0
    odd = [topic for topic in own if varies(lines[topic])]
    if not one_clock or not (has_clock or len(odd) == len(own) > 1):
        return []
    others = [topic for topic, domain in domains.items() if topic not in own]
    pace = pace_of(lines[min(own)])
    told = 'the time of /clock' if has_clock else 'a time of its own'
    told += f' that runs at {pace:.3g} of the pace of the receive times'
    if others:
        return [
            found(
                'sim_time_mixed',
                WRONG,
                sorted(own),
                f'stamped with {told} ({date(int(lines[min(own)].stamps_ns[0]))} at the start), '
                f'while {listed(others)} {"is" if len(others) == 1 else "are"} in wall time',
                {'offset_s': offsets[0]},
            )
        ]
    return [
        found(
            'simulated_time',
            INFO,
            sorted(own),
            f'stamped with {told}, simulated or replayed: delays and drift against the host '
            'tell how fast it runs, not how good the clocks are',
        )
    ]


def varies(line: TimeLine) -> bool:
    """Return whether stamps run at a pace that no clock of a device has."""
    if line.span_s < 5.0 or line.count < 40:
        return False
    parts = np.array_split(np.arange(line.count), 8)
    middles = np.array([float(np.median(line.delays_s[part])) for part in parts])
    times = between(
        np.full(8, line.arrivals_ns[0]),
        line.arrivals_ns[np.array([int(part[len(part) // 2]) for part in parts])],
    )
    slope = float(np.polyfit(times, middles, 1)[0])
    rest = middles - np.polyval(np.polyfit(times, middles, 1), times)
    noise = robust_sigma(line.delays_s - np.interp(line.since_s, times, middles))
    return abs(slope) * 1e6 > CRYSTAL_PPM or float(np.ptp(rest)) > max(STEADY_S, 3.0 * noise)
