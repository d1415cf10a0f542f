"""All detectors over the topics of one recording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sensor_rig.bags.inspect import TopicFacts, facts_of
from sensor_rig.bags.starter import OURS
from sensor_rig.findings.arrivals import arrival_findings, hiccup_finding, hiccups_of
from sensor_rig.findings.model import Finding, worst_first
from sensor_rig.findings.pairs import (
    domain_mix,
    header_findings,
    loop_findings,
    pair_findings,
)
from sensor_rig.findings.points import point_findings, sweep_findings
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.stamps import (
    domain_findings,
    domain_of,
    has_wrapped,
    order_findings,
    simulated_finding,
    source_findings,
    step_findings,
)

FEW = 5
"""Messages below which a topic's times say nothing."""


def search(records: Sequence[TopicRecord]) -> tuple[list[TopicFacts], list[Finding]]:
    """Return the table of the topics and what was found, worst first."""
    heard = [record for record in records if record.count]
    for record in heard:
        record.finish()
    facts = facts_of(heard)
    return facts, worst_first(list(_all(heard, facts)))


def _all(heard: Sequence[TopicRecord], table: Sequence[TopicFacts]) -> Iterator[Finding]:
    facts = {each.name: each for each in table}
    sensors = [record for record in heard if not OURS.match(record.name)]
    stamped = [record for record in sensors if record.stamped and len(record.stamps_ns) >= FEW]
    start_ns = min((record.first_arrival_ns for record in heard), default=0)
    loops, looped = loop_findings(stamped, start_ns)
    yield from loops
    hiccups = hiccups_of(
        [record for record in stamped if not facts[record.name].shares_stamps_with]
    )
    yield from hiccup_finding(stamped, hiccups, start_ns)
    jumped = looped | {record.name for record in stamped if has_wrapped(record)}
    steady = [record for record in stamped if record.name not in jumped]
    yield from domain_mix(steady, facts)
    domains = {
        record.name: domain_of(record, facts[record.name])[0]
        for record in steady
        if facts[record.name].source != 'none'
    }
    paced = simulated_finding(heard, domains)
    yield from paced
    simulated = {name for each in paced for name in each.topics}
    jumped |= simulated
    for record in stamped:
        about = facts[record.name]
        if about.shares_stamps_with:
            yield from arrival_findings(record, hiccups)
            continue  # its stamps are those of another topic, which is looked at itself
        alone = 'host' not in {each for name, each in domains.items() if name != record.name}
        if record.name not in jumped:
            yield from domain_findings(record, about, alone=alone)
        yield from order_findings(record, record.name in looped)
        steps = [] if record.name in looped | simulated else list(step_findings(record, about))
        yield from steps
        if record.name not in jumped:
            yield from source_findings(record, about, steady=not steps)
        points = list(point_findings(record, about))
        yield from points
        if not any(each.code == 'stamp_point' for each in points):
            yield from sweep_findings(record, about)
        yield from arrival_findings(record, hiccups)
    for record in sensors:
        yield from header_findings(record)
    yield from pair_findings(stamped)
