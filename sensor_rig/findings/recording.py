"""The findings of a whole recording: one pass over its messages, then motion against motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import IMU_TYPE
from sensor_rig.findings.explaining import CLOCK_CAUSES, explained
from sensor_rig.findings.imu import ImuDelay
from sensor_rig.findings.kinds import Need
from sensor_rig.findings.model import Finding
from sensor_rig.findings.motion import LOOKED_AT_S, can_be_compared, compare_motion
from sensor_rig.findings.record import TopicRecord
from sensor_rig.findings.search import evidence_of
from sensor_rig.findings.turning import AgreementCurve
from sensor_rig.findings.unchecked import QUICK, Coverage, coverage
from sensor_rig.syncing.bag_sync import ADVANCE_EVERY

CONTRADICTIONS = CLOCK_CAUSES | {'future_stamps', 'stamp_point', 'clock_drift', 'clock_wander'}
"""Findings after which stamps are not to be taken as they are."""


@dataclass(frozen=True)
class Inspection:
    """What a recording or a live graph tells of its timestamps."""

    records: list[TopicRecord]
    facts: list[TopicFacts]
    """The table of the topics."""
    findings: list[Finding]
    """Worst first."""
    coverage: Coverage
    """What was looked for, and what was not."""
    curves: dict[str, AgreementCurve] = field(default_factory=dict)
    """By topic: how well its motion agrees with the IMU's."""
    imus: dict[str, ImuDelay] = field(default_factory=dict)
    """By topic of an IMU: how late its accelerometer is against its gyro, where motion tells."""
    compared: bool = False
    """Whether the motion of sensors was compared over all of the recording."""

    @property
    def tells_no_offset(self) -> bool:
        """Whether nothing is known of the clocks' offsets, and no stamp is plainly wrong."""
        contradicted = any(each.code in CONTRADICTIONS for each in self.findings)
        return self.compared and not self.curves and not contradicted


def inspect_recording(
    bag: BagReader, advance: Callable[[int], None] = lambda count: None, *, motion: bool = True
) -> Inspection:
    """Read a recording once, and its first minute again to compare `motion`.

    `advance` is called with the number of messages that were read since the last call.
    """
    topics = {
        name: TopicRecord(name, topic.type_name, topic.stamped, best_effort=topic.best_effort)
        for name, topic in bag.topics.items()
    }
    for index, message in enumerate(bag.messages(), 1):
        topics[message.topic].add(message.raw, message.receive_ns, message.publish_ns)
        if index % ADVANCE_EVERY == 0:
            advance(ADVANCE_EVERY)
    records = list(topics.values())
    facts, evidence = evidence_of(records, bag.problems)
    if not motion:
        return without_motion(records, facts, evidence)
    if any(each.code == 'no_receive_times' for each in evidence):
        return without_motion(records, facts, evidence, Need.ARRIVALS.value)
    moved = compare_motion(bag, facts, {each.name: each.line.period_s for each in records})
    _name_odd_clocks(moved.lacks, records, evidence)
    return Inspection(
        records,
        facts,
        explained([*moved.findings, *evidence], facts),
        coverage(records, facts, moved.lacks, damaged=_is_damaged(evidence)),
        moved.curves,
        moved.imus,
        compared=bag.duration_s <= LOOKED_AT_S or not can_be_compared(facts),
    )


def _name_odd_clocks(
    lacks: dict[str, str], records: Sequence[TopicRecord], evidence: Sequence[Finding]
) -> None:
    """Say of topics that could not be compared because of their stamps that this is why."""
    odd = {
        t for each in evidence if each.severity and each.code in CLOCK_CAUSES for t in each.topics
    }
    everything = any(each.type_name == IMU_TYPE and each.name in odd for each in records)
    for name in lacks:
        if lacks[name].startswith(Need.MOTION.value) and (everything or name in odd):
            lacks[name] = 'stamps without what was found above'


def without_motion(
    records: list[TopicRecord],
    facts: list[TopicFacts],
    evidence: Sequence[Finding],
    why: str = QUICK,
) -> Inspection:
    """Return the inspection of topics whose motion was not compared, and `why`."""
    lacks = {record.name: why for record in records}
    covered = coverage(records, facts, lacks, damaged=_is_damaged(evidence))
    return Inspection(records, facts, explained(evidence, facts), covered)


def _is_damaged(evidence: Sequence[Finding]) -> bool:
    return any(each.code == 'damaged' for each in evidence)
