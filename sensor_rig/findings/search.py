"""All searches over the topics of one recording: evidence, then causes.

What is found on a topic is undone before the next search looks at it: units, sources, disorder,
jumps, the time domain. What all topics show at one moment is undone on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from sensor_rig.bags.inspect import TopicFacts, facts_of
from sensor_rig.findings import declared as declared
from sensor_rig.findings.arrivals import double_findings, end_finding, loss_findings, rate_findings
from sensor_rig.findings.batches import batch_findings, grains
from sensor_rig.findings.clocks import arrivals_tell, source_findings, trend_findings
from sensor_rig.findings.domains import (
    CLOCK_TYPE,
    HOST,
    Domain,
    domain_finding,
    domain_of,
    simulated,
)
from sensor_rig.findings.explaining import explained
from sensor_rig.findings.kinds import found
from sensor_rig.findings.levels import (
    JUMP_S,
    LATEST_S,
    LevelChange,
    disorder,
    jumps_of,
    longest_part,
    steps_with_sides,
    stray,
    without,
)
from sensor_rig.findings.model import INFO, WRONG, Finding, Span, date, lasting
from sensor_rig.findings.order import (
    back_findings,
    order_finding,
    repeat_findings,
    repeats,
    spans_of,
    stray_finding,
    without_repeats,
    zero_finding,
)
from sensor_rig.findings.pairs import IMU_TYPE, copy_findings, header_findings, pair_findings
from sensor_rig.findings.points import point_findings, sweep_findings
from sensor_rig.findings.publishing import publish_findings
from sensor_rig.findings.record import SYNCED, TopicRecord, sensors_of
from sensor_rig.findings.sources import two_sources
from sensor_rig.findings.steps import daylight_of, named_jumps, step_finding
from sensor_rig.findings.timeline import TimeLine
from sensor_rig.findings.together import (
    hiccup_finding,
    hiccups_of,
    host_steps,
    latency_steps,
    loop_or_joint,
    moments,
    span_of,
)
from sensor_rig.findings.unchecked import well_founded
from sensor_rig.findings.units import odd_pace, rounded, unit_mistake

TICK_NS = 1_500_000
"""Steps of receive times above this are those of a simulation's clock."""
FEW = 5
"""Messages below which a topic's times say nothing."""
LEAST_LATENCY_S = 0.02
"""Smaller changes of the latency are not worth a word."""


class Searched(NamedTuple):
    """What the searches came to."""

    facts: list[TopicFacts]
    """The table of the topics, as they were recorded."""
    findings: list[Finding]
    """Worst first."""


@dataclass
class Look:
    """One topic while it is looked at."""

    record: TopicRecord
    line: TimeLine
    """What is left when all that was found is undone."""
    delays_known: bool = True
    """Whether arrival minus stamp still means something."""
    grid_s: float = 0.0
    """To which its stamps are rounded."""
    changes: list[LevelChange] = field(default_factory=list)
    domain: Domain = HOST
    told: list[Span] = field(default_factory=list)
    """Times at which gaps have a cause that was said."""
    steady: list[Span] = field(default_factory=list)
    """Longest times without a jump, in which drift can be measured."""

    @property
    def name(self) -> str:
        """Of the topic."""
        return self.record.name

    def undo(self, changes: list[LevelChange], *, like_the_first: bool = False) -> None:
        """Undo jumps of the stamps."""
        if changes:
            self.steady.append(longest_part(self.line, changes))
            self.line = without(self.line, changes, like_the_first=like_the_first)

    def steady_part(self, line: TimeLine) -> TimeLine:
        """Return the longest time without a jump."""
        for begin_ns, end_ns in self.steady:
            line = line.only((line.arrivals_ns >= begin_ns) & (line.arrivals_ns <= end_ns))
        return line


def search(records: Sequence[TopicRecord], problems: Sequence[str] = ()) -> Searched:
    """Return the table of the topics and what was found, worst first.

    `problems` are what the reader could not read.
    """
    facts, evidence = evidence_of(records, problems)
    return Searched(facts, explained(evidence, facts))


def evidence_of(
    records: Sequence[TopicRecord], problems: Sequence[str] = ()
) -> tuple[list[TopicFacts], list[Finding]]:
    """Return the table of the topics, and all that the searches saw."""
    heard = [record for record in records if record.count]
    timeless = [*_no_receive_times(heard), *_simulated_receive_times(heard)]
    for record in heard:
        if timeless and record.stamped:
            record.arrive_when_stamped()
        record.finish()
    facts = facts_of(heard)
    named = {record.name: record for record in heard}
    seen = (each for each in _evidence(heard, facts) if well_founded(each, named))
    return facts, [*_damage(problems, sum(each.count for each in heard)), *timeless, *seen]


def _no_receive_times(heard: Sequence[TopicRecord]) -> Iterator[Finding]:
    """Yield a recording in which all messages have one receive time, and their stamps have not."""
    first = {each.first_arrival_ns for each in heard}
    count = sum(each.count for each in heard)
    lasting_s = (
        max((float(np.ptp(each.stamps_ns)) for each in heard if each.stamps_ns), default=0.0) / 1e9
    )
    if (
        len(first | {each.last_arrival_ns for each in heard}) == 1
        and count > FEW
        and lasting_s > 1.0
    ):
        yield found(
            'no_receive_times',
            WRONG,
            'the recording',
            f'all {count} messages have one receive time, {date(first.pop())}, while stamps go on '
            f'for {lasting(lasting_s)}',
            {'messages': count, 'stamps_s': lasting_s},
        )


def _simulated_receive_times(heard: Sequence[TopicRecord]) -> Iterator[Finding]:
    """Yield receive times that stand still between two messages of /clock."""
    if not any(each.type_name == CLOCK_TYPE for each in heard):
        return
    arrivals = np.concatenate([np.array(each.arrivals_ns, np.int64) for each in heard])
    steps = np.diff(np.unique(arrivals))
    if 1.5 * len(steps) > len(arrivals) or len(steps) < FEW or np.percentile(steps, 5) < TICK_NS:
        return
    yield found(
        'simulated_time',
        INFO,
        sorted(each.name for each in heard if each.stamped),
        f'recorded in simulated time: receive times go in steps of '
        f'{lasting(float(np.median(steps)) / 1e9)}, those of /clock, and tell nothing of delays',
    )


def _damage(problems: Sequence[str], left: int) -> Iterator[Finding]:
    if problems:
        more = f' (and {len(problems) - 3} more)' if len(problems) > 3 else ''
        what = f'{"; ".join(problems[:3])}{more}; {left} messages are left'
        yield found('damaged', WRONG, 'the recording', what, {'left': left})


def _evidence(heard: Sequence[TopicRecord], facts: Sequence[TopicFacts]) -> Iterator[Finding]:
    table = {each.name: each for each in facts}
    sensors = sensors_of(heard)
    stamped = [record for record in sensors if record.stamped]
    start_ns = min((record.first_arrival_ns for record in heard), default=0)
    for record in sensors:
        yield from header_findings(record)
        yield from publish_findings(record)
    for record in stamped:
        yield from zero_finding(record)
        yield from double_findings(record)
    looks = [
        Look(record, record.line)
        for record in stamped
        if record.line.count >= FEW and not table[record.name].shares_stamps_with
    ]
    for look in looks:
        yield from _stamps(look)
    looks = [look for look in looks if look.line.count >= FEW]
    yield from _jumps(looks, start_ns, LATEST_S)
    for look in looks:
        yield from _order(look)
    yield from _jumps(looks, start_ns, JUMP_S)
    yield from _domains(looks, any(record.type_name == CLOCK_TYPE for record in heard))
    yield from _levels(looks, start_ns)
    hiccups = hiccups_of({look.name: look.line for look in looks})
    yield from hiccup_finding({look.name: look.line for look in looks}, hiccups, start_ns)
    grain_s = grains({look.name: look.line for look in looks})
    end_ns = max((look.line.span[1] for look in looks), default=0)
    for look in looks:
        yield from _rest(look, [*look.told, *hiccups], grain_s[look.name])
        yield from end_finding(look.record, look.line, end_ns)
    told = {look.name: look.told for look in looks if not look.changes and not look.steady}
    for record in stamped:
        owner = table[record.name].shares_stamps_with
        if owner in told:  # else its stamps jump, and gaps say nothing
            yield from loss_findings(record, record.line, [*hiccups, *told[owner]])
        if owner:
            yield from batch_findings(record.name, record.line)
    yield from pair_findings([record for record in stamped if record.line.count >= FEW])
    yield from copy_findings(stamped)


def _stamps(look: Look) -> Iterator[Finding]:
    """Yield what is wrong with stamps one by one, and undo it."""
    name = look.name
    unit = unit_mistake(name, look.line) if arrivals_tell(look.line) else None
    if unit is not None:
        yield unit.finding
        look.line, look.delays_known = unit.line, unit.delays_known
    coarse = rounded(name, look.line) if unit is None else None
    if coarse is not None:
        yield coarse.finding
        look.grid_s = coarse.grid_s
        look.line, look.delays_known = coarse.line, look.delays_known and coarse.delays_known
    yield from repeat_findings(name, look.line)
    if not SYNCED.match(name):  # what is collected for a bundle comes with it
        yield from batch_findings(name, look.line, of_imu=look.record.type_name == IMU_TYPE)
    look.told += repeats(look.line)[2]
    look.line = without_repeats(look.line)


def _order(look: Look) -> Iterator[Finding]:
    """Yield what is wrong with the order of messages, and undo it."""
    name = look.name
    split = None if look.grid_s else two_sources(name, look.line, len(look.record.frames))
    if split is not None:
        yield split.finding
        look.line = look.line.only(split.larger)
    for _ in range(2):  # what is stray hides disorder, and the other way round
        order = disorder(look.line)
        if order is not None:
            yield from order_finding(name, look.line, order)
            look.line = order.sorted
        alone = stray(look.line)
        if not alone.any():
            break
        yield from stray_finding(name, look.line, alone)
        look.told += spans_of(look.line, alone)
        look.line = look.line.only(~alone)


def _jumps(looks: Sequence[Look], start_ns: int, least_s: float) -> Iterator[Finding]:
    """Yield the jumps of stamps, those of all topics first, and undo them."""
    known = {look.name: look.line for look in looks if arrivals_tell(look.line)}
    groups = moments(known, {name: jumps_of(line, least_s) for name, line in known.items()})
    yield from loop_or_joint(known, groups, start_ns)
    for look in looks:
        common = [group[look.name] for group in groups if look.name in group]
        look.told += [span_of(look.line, each) for each in common]
        look.undo(common, like_the_first=True)
        changes = jumps_of(look.line, least_s)
        look.told += [span_of(look.line, each) for each in changes]
        zone = domain_of(without(look.line, changes)).code == 'clock_time_zone'
        if not (zone and daylight_of(look.line, changes)):
            yield from named_jumps(look.name, look.line, changes)
        look.undo(changes)
        look.changes += changes


def _domains(looks: Sequence[Look], has_clock: bool) -> Iterator[Finding]:
    """Yield the time domains that are not the host's, and take their offsets off."""
    known = [look for look in looks if look.delays_known and arrivals_tell(look.line)]
    for look in known:
        look.domain = domain_of(look.line)
    domains = {look.name: look.domain for look in known}
    yield from simulated({look.name: look.line for look in known}, domains, has_clock)
    for look in known:
        if look.domain.code == 'host':
            continue
        alone = 'host' not in {each.code for each in domains.values()}
        daylight = daylight_of(look.line, look.changes)
        yield domain_finding(look.name, look.line, look.domain, alone=alone, daylight=daylight)
        look.line = look.line.moved(-round(look.domain.nominal_s * 1e9))
        look.delays_known = look.domain.explains_latency
    for look in known:
        pace = odd_pace(look.line)
        if pace:
            yield found(
                'time_rate',
                WRONG,
                look.name,
                f'its stamps run at {pace:.4g} of the pace of the receive times',
                {'pace': pace},
            )
            look.delays_known = False


def _levels(looks: Sequence[Look], start_ns: int) -> Iterator[Finding]:
    """Yield lasting changes that take many messages to see: of stamps, of the host, of latency."""
    of_arrivals: dict[str, list[LevelChange]] = {}
    grain_s = grains({look.name: look.line for look in looks})
    for look in looks:
        tells = arrivals_tell(look.line) and not odd_pace(look.line)
        changes = steps_with_sides(look.line) if tells else []
        own = [each for each in changes if each.of_stamps]
        if own and look.domain.explains_latency | look.delays_known:
            yield step_finding(look.name, look.line, own)
        look.undo(own)
        of_arrivals[look.name] = [
            each
            for each in changes
            if not each.of_stamps and abs(each.size_s) > 1.2 * grain_s[look.name]
        ]
    lines = {look.name: look.line for look in looks}
    found_here, undone = host_steps(lines, of_arrivals, start_ns)
    yield from found_here
    at = [span for each in found_here for span in each.spans]
    for look in looks:
        look.line = undone[look.name]
        look.told += at
        rest = [
            each
            for each in of_arrivals[look.name]
            if abs(each.size_s) > LEAST_LATENCY_S
            and not any(begin <= each.at_ns <= end for begin, end in at)
        ]
        if rest:
            look.steady.append(longest_part(look.line, rest))
        yield from latency_steps(look.name, rest, start_ns)


def _rest(look: Look, told: Sequence[Span], grain_s: float) -> Iterator[Finding]:
    """Yield what is left to be seen on a topic."""
    name, line = look.name, look.line
    record = look.record.with_line(line)
    steady = look.record.with_line(look.steady_part(line))
    about = facts_of([steady])[0]
    yield from back_findings(name, line)
    if look.delays_known and arrivals_tell(line):
        yield from source_findings(name, about)
    if about.source == 'device' and arrivals_tell(line) and not odd_pace(line):
        yield from trend_findings(name, steady.line, grain_s)
    points = list(point_findings(record, about))
    yield from points
    told_by_points = any(each.code == 'stamp_point' for each in points)
    if look.delays_known and arrivals_tell(line) and not told_by_points:
        yield from sweep_findings(steady, about)
    yield from loss_findings(record, line, told, look.grid_s)
    yield from rate_findings(record, line)
