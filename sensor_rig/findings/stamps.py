"""Findings about one topic's stamps: whose clock, which epoch, steps, and time that goes back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.findings.model import Finding, Severity, times
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.timeline import Event
from sensor_rig.findings.trend import steps_of, trend_of

INFO, WARNING, WRONG = Severity.INFO, Severity.WARNING, Severity.WRONG
CLOCK_TYPE = 'rosgraph_msgs/msg/Clock'
TAI_S, GPS_S = 37.0, 18.0
"""TAI and GPS time minus UTC since 2017."""
GPS_EPOCH_S = 315_964_800.0
"""GPS time began in 1980."""
QUARTER_HOUR_S, MOST_ZONE_S = 900.0, 14.5 * 3600.0
POWER_UP_S = 1e8
"""Stamps below this count from a power-up: three years."""
DATE_S = 1e9
"""Host times above this are dates."""
OWN_EPOCH_S = 1.0
WRAPS_S = {
    f'{bits}-bit counter of {unit}': 2.0**bits * scale
    for bits in (32, 31)
    for unit, scale in (('ns', 1e-9), ('us', 1e-6), ('ms', 1e-3))
    if (bits, unit) != (31, 'ns')
}
"""How far back a counter goes; 31 bits of ns are 2.1 s, which no device counts in."""
DRIFT_PPM = 8.0
"""Below this a crystal is as good as they come."""
SIGMAS = 6.0
"""Of the slope: delays hang together, so that their scatter makes it look too sure."""
WANDER_S = 0.0008
"""Slow changes below this are those of an idle network."""
LONG_ENOUGH_S = 20.0
FROZEN = 5
"""Equal stamps in a row that are no accident."""


def domain_of(record: TopicRecord, facts: TopicFacts) -> tuple[str, float]:
    """Return (time domain, its difference to the host's time in s) of a topic's stamps.

    It is `host`, or the code of the finding (`clock_tai`, ...).
    """
    offset_s = -facts.delay_s
    stamp_s = record.stamps_ns[len(record.stamps_ns) // 2] / 1e9
    host_s = record.arrivals_ns[len(record.arrivals_ns) // 2] / 1e9
    if abs(offset_s) < OWN_EPOCH_S:
        return 'host', offset_s
    if host_s > DATE_S and stamp_s < POWER_UP_S:
        return 'clock_power_up', offset_s
    for name, amount_s in (
        ('clock_tai', TAI_S),
        ('clock_gps', GPS_S),
        ('clock_gps_epoch', GPS_S - GPS_EPOCH_S),
    ):
        # Behind by as much: the leap seconds were taken off where there were none.
        if min(abs(offset_s - amount_s), abs(offset_s + amount_s)) < OWN_EPOCH_S:
            return name, offset_s
    nearest_s = round(offset_s / QUARTER_HOUR_S) * QUARTER_HOUR_S
    if 0.0 < abs(nearest_s) <= MOST_ZONE_S and abs(offset_s - nearest_s) < OWN_EPOCH_S:
        return 'clock_time_zone', offset_s
    return 'clock_other', offset_s


def nominal_s(domain: str, offset_s: float) -> float:
    """Return the part of an offset that the time domain explains, s; the rest may be latency."""
    if domain == 'clock_time_zone':
        return round(offset_s / QUARTER_HOUR_S) * QUARTER_HOUR_S
    amount_s = {
        'clock_tai': TAI_S,
        'clock_gps': GPS_S,
        'clock_gps_epoch': GPS_EPOCH_S - GPS_S,
    }.get(domain, abs(offset_s))
    return math.copysign(amount_s, offset_s)


DOMAINS = {
    'clock_tai': (
        'is {offset:+.2f} s from the host, the leap seconds between TAI and UTC',
        'let the device, its PTP master and the driver agree on UTC',
    ),
    'clock_gps': (
        'is {offset:+.2f} s from the host, the leap seconds between GPS time and UTC',
        'apply the leap seconds once: GPS time is 18 s ahead of UTC',
    ),
    'clock_gps_epoch': (
        'counts from the GPS epoch of 1980, {offset:+.0f} s from the host',
        'add 315964800 s and apply the leap seconds',
    ),
    'clock_time_zone': ('is off by {hours:+g} h: a local time taken for UTC', 'stamp in UTC'),
    'clock_power_up': (
        'counts from its power-up, not from 1970: {offset:+.0f} s from the host',
        'let the driver add the host time of the power-up, or sync it with stamp_source: device',
    ),
    'clock_other': (
        'is on a clock of its own, {offset:+.3f} s from the host',
        'set that clock (PTP, NTP), or sync it with stamp_source: device',
    ),
}


def domain_findings(record: TopicRecord, facts: TopicFacts, *, alone: bool) -> Iterator[Finding]:
    """Yield a finding where stamps are of another epoch than the host's time.

    `alone`: no other topic is on the host's time, so that nothing is mixed.
    """
    domain, offset_s = domain_of(record, facts)
    if domain == 'host' or facts.source == 'none':
        return
    what, change = DOMAINS[domain]
    yield Finding(
        domain,
        WARNING if alone else WRONG,
        (record.name,),
        what.format(offset=offset_s, hours=round(offset_s / QUARTER_HOUR_S) / 4),
        'no other sensor is near it in time: a synchronizer pairs nothing, TF finds no transform',
        change,
        {'offset_s': offset_s, 'nominal_s': nominal_s(domain, offset_s)},
    )


def simulated_finding(heard: Sequence[TopicRecord], domains: Mapping[str, str]) -> list[Finding]:
    """Return the finding of stamps that are of simulated or replayed time, not of a device.

    `domains` by topic. Host times beside them are two domains, which is a finding of its own.
    """
    told = any(record.type_name == CLOCK_TYPE for record in heard)
    if not told or set(domains.values()) not in ({'clock_power_up'}, {'clock_other'}):
        return []
    return [
        Finding(
            'simulated_time',
            INFO,
            tuple(sorted(domains)),
            'stamped with the time of /clock, simulated or replayed: delays and drift '
            'against the host tell how fast it runs, not how good the clocks are',
            'none, as long as every node runs with use_sim_time',
            'to judge the clocks, inspect what the devices themselves publish',
        )
    ]


def source_findings(record: TopicRecord, facts: TopicFacts, *, steady: bool) -> Iterator[Finding]:
    """Yield who writes the stamps, and how good that clock is; drift only of a `steady` one."""
    evidence = {
        'arrival_jitter_ms': facts.arrival_jitter_s * 1e3,
        'stamp_jitter_ms': facts.stamp_jitter_s * 1e3,
        'delay_ms': facts.delay_s * 1e3,
    }
    if facts.source == 'host':
        yield Finding(
            'host_stamps',
            INFO,
            (record.name,),
            f'stamped by the host when it arrives, jitter {facts.stamp_jitter_s * 1e3:.2f} ms',
            'the latency of the sensor is inside the stamp, and its jitter too',
            "take the device's stamps if the driver offers them",
            evidence,
        )
    if steady and facts.source == 'device':
        yield from _trend_findings(record)
    if facts.source == 'device' and -OWN_EPOCH_S < facts.delay_s < -0.001:
        yield Finding(
            'future_stamps',
            WRONG if facts.delay_s < -0.005 else WARNING,
            (record.name,),
            f'stamped {-facts.delay_s * 1e3:.1f} ms after it arrives',
            "its clock is ahead of the host's; TF would have to look into the future",
            'set its clock (PTP, NTP), or let the sync engine correct it',
            evidence,
        )


def _trend_findings(record: TopicRecord) -> Iterator[Finding]:
    """Yield a clock that drifts, or that wanders: a line is drift, what leaves it is wander."""
    trend = trend_of(record.line)
    slope_ppm, wander_s = trend.slope_ppm, trend.wander_s
    if trend.span_s < LONG_ENOUGH_S:
        return
    drifted_s = abs(slope_ppm) * 1e-6 * trend.span_s
    grain_s = record.line.period_s if record.line.is_bunched else 0.0  # beats with the polling
    if wander_s > max(WANDER_S, 2.5 * trend.wander_sigma_s, 0.06 * drifted_s, grain_s):
        yield Finding(
            'clock_wander',
            WARNING,
            (record.name,),
            f'arrival minus stamp wanders slowly by {wander_s * 1e3:.1f} ms',
            'an offset that was measured once does not stay true',
            'look whether NTP or PTP slews its clock',
            {'wander_ms': wander_s * 1e3},
        )
    elif abs(slope_ppm) > max(DRIFT_PPM, SIGMAS * trend.sigma_ppm) and drifted_s > grain_s:
        yield Finding(
            'clock_drift',
            WARNING,
            (record.name,),
            f'its clock runs {"fast" if slope_ppm < 0 else "slow"} by '
            f'{abs(slope_ppm):.0f} ppm, {abs(slope_ppm) * 0.6:.1f} ms in ten minutes',
            'offsets that were right at the start are wrong later',
            'discipline it by PTP, or let the sync engine follow it',
            {'drift_ppm': -slope_ppm, 'sigma_ppm': trend.sigma_ppm, 'wander_ms': wander_s * 1e3},
        )


def step_findings(record: TopicRecord, facts: TopicFacts) -> Iterator[Finding]:
    """Yield the jumps of a clock: steps that stay, and counters that wrap around."""
    if facts.source == 'none':
        return
    for event in record.line.backward:
        name = wrap_of(event, record.line.period_s)
        if name:
            yield Finding(
                'wrap_around',
                WRONG,
                (record.name,),
                f'a {name} wrapped around: stamps went back by {-event.amount_s:.3f} s',
                'everything after it is paired with the past, or with nothing',
                'let the driver unwrap the counter',
                {'jump_s': event.amount_s},
            )
            return
    if record.line.longest_repeat >= FROZEN:
        return  # arrival minus stamp grows while a stamp is frozen, and falls when it goes on
    steps = steps_of(record.line)
    if steps:
        at_s, size_s = max(steps, key=lambda step: abs(step[1]))
        more = f' and {len(steps) - 1} more' if len(steps) > 1 else ''
        yield Finding(
            'clock_step',
            WRONG,
            (record.name,),
            f'its clock stepped by {size_s * 1e3:+.1f} ms at {at_s:.1f} s{more}',
            'frames before and after the step are on two time scales',
            'look for NTP or PTP that was lost and came back; slew, do not step',
            {'step_ms': size_s * 1e3, 'at_s': at_s, 'steps': len(steps)},
        )


def has_wrapped(record: TopicRecord) -> bool:
    """Return whether a counter of the topic's clock wrapped around."""
    return any(wrap_of(event, record.line.period_s) for event in record.line.backward)


def wrap_of(event: Event, period_s: float) -> str:
    """Return which counter's wrap-around a jump back is; empty for none."""
    slack_s = max(1.5 * period_s, 0.002)
    for name, size_s in WRAPS_S.items():
        if abs(-event.amount_s - size_s) < max(slack_s, 1e-6 * size_s):
            return name
    return ''


def order_findings(record: TopicRecord, looped: bool) -> Iterator[Finding]:
    """Yield zero, repeated and frozen stamps, and time that goes back."""
    line, name = record.line, (record.name,)
    total = max(line.count, 1)
    if line.zero > 1 or line.zero == line.count > 0:
        share = line.zero / total
        yield Finding(
            'zero_stamps',
            WRONG if share > 0.01 else WARNING,
            name,
            f'{line.zero} of {total} stamps are zero',
            'they mean "now" or "never", depending on who reads them',
            'let the driver fill header.stamp',
            {'zero': line.zero, 'messages': total},
        )
        if share > 0.5:
            return
    if line.longest_repeat >= FROZEN:
        yield Finding(
            'frozen_stamps',
            WRONG,
            name,
            f'the same stamp up to {line.longest_repeat + 1} times in a row',
            'new data under an old time: fusion takes it for a repetition',
            'look for a device clock that stands still, or a header that is reused',
            {'longest': line.longest_repeat + 1, 'repeated': line.repeated},
        )
    elif line.repeated > max(0.005 * total, 1):
        yield Finding(
            'repeated_stamps',
            WARNING,
            name,
            f'{line.repeated} of {total} stamps repeat the one before',
            'all but one of such frames are dropped as duplicates',
            'use a clock with a finer resolution',
            {'repeated': line.repeated},
        )
    back = [event for event in line.backward if not wrap_of(event, line.period_s)]
    far = [event for event in back if -event.amount_s > 2.0 * max(line.period_s, 1e-3)]
    if far and not looped:
        worst = min(far, key=lambda event: event.amount_s)
        yield Finding(
            'time_back',
            WRONG,
            name,
            f'time goes back {times(len(far))}, by up to {-worst.amount_s:.3f} s',
            'filters reject or rewind; buffers hold frames of two pasts',
            'look for a clock that is set while it runs, or several publishers on the topic',
            {'times': len(far), 'largest_s': -worst.amount_s},
        )
    elif not far and line.backward_count > max(0.001 * total, 1) and back:
        worst = min(back, key=lambda event: event.amount_s)
        yield Finding(
            'out_of_order',
            WARNING,
            name,
            f'{line.backward_count} of {total} messages come out of order, by up to '
            f'{-worst.amount_s * 1e3:.1f} ms',
            'who takes the newest message goes back in time',
            'sort by stamp, or ask for reliable delivery',
            {'messages': line.backward_count, 'largest_ms': -worst.amount_s * 1e3},
        )
