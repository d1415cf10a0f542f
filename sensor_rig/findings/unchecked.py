"""What could not be checked, and what the recording lacks for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rig_common.jsonable import JsonObject
from rig_common.msgs.catalogue import known
from sensor_rig.bags.inspect import CLOUD_TYPE, INFO_TYPE, SCAN_TYPE, TopicFacts
from sensor_rig.bags.starter import IMU_TYPE
from sensor_rig.findings.clocks import arrivals_tell
from sensor_rig.findings.explaining import BY_DAMAGE
from sensor_rig.findings.kinds import KINDS, FindingKind, Need, Of
from sensor_rig.findings.model import Finding, listed
from sensor_rig.findings.pairs import IMAGE_TYPES
from sensor_rig.findings.record import TopicRecord, sensors_of

QUICK = 'the comparison of motion, which --quick and --live leave out'


@dataclass(frozen=True)
class Unchecked:
    """Kinds of findings that nobody looked for, on which topics, and why."""

    codes: tuple[str, ...]
    topics: tuple[str, ...]
    missing: str
    """What the recording would need."""

    @property
    def sentence(self) -> str:
        """One line: what, where, why."""
        return self._line(len(self.codes), 6)

    @property
    def short(self) -> str:
        """The sentence without the names of many kinds."""
        return self._line(3, 3)

    def _line(self, kinds: int, topics: int) -> str:
        where = f' on {listed(self.topics, topics)}' if self.topics else ''
        names = [code.replace('_', ' ') for code in self.codes]
        return f'{listed(names, kinds)}{where}: needs {self.missing}'

    def as_json(self) -> JsonObject:
        """Return it as plain values."""
        return {
            'codes': list(self.codes),
            'topics': list(self.topics),
            'missing': self.missing,
            'sentence': self.sentence,
        }


@dataclass(frozen=True)
class Coverage:
    """What was looked for, and what was not."""

    checked: int
    """Kinds that were looked for on one topic at least, of those that take some time to see."""
    unchecked: list[Unchecked]


def coverage(
    records: Sequence[TopicRecord],
    facts: Sequence[TopicFacts],
    motion: Mapping[str, str] | None,
    *,
    damaged: bool = False,
) -> Coverage:
    """Return what could be checked; `motion` says by topic what its comparison lacks.

    Without `motion` nothing was compared. What lost bytes look like is not told from damage.
    """
    heard = sensors_of(records)
    gaps: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    checked = 0
    for kind in KINDS.values():
        lacks = {
            record.name: lack
            for record in _concerned(kind, heard)
            if (lack := _lacks(kind, record, heard, facts, motion)) is not None
        }
        if damaged and kind.code in BY_DAMAGE:
            lacks = dict.fromkeys(lacks, 'a file without damage')
        told = [name for name, lack in lacks.items() if not lack]
        checked += bool(told) and kind.seconds > 0.0
        by_reason: dict[str, list[str]] = {}
        for name, lack in lacks.items():
            if lack:
                by_reason.setdefault(lack, []).append(name)
        if not lacks and kind.needs == () and kind.of is Of.STAMPED:
            by_reason['stamped messages'] = []
        for lack, names in by_reason.items():
            gaps.setdefault((lack, tuple(names)), []).append(kind.code)
    return Coverage(
        checked,
        [Unchecked(tuple(codes), topics, lack) for (lack, topics), codes in gaps.items()],
    )


def _concerned(kind: FindingKind, heard: Sequence[TopicRecord]) -> Iterable[TopicRecord]:
    stamped = [record for record in heard if record.stamped]
    return {
        Of.ALL: heard,
        Of.STAMPED: stamped,
        Of.CLOUDS: [each for each in stamped if each.type_name == CLOUD_TYPE],
        Of.SCANS: [each for each in stamped if each.type_name == SCAN_TYPE],
        Of.SWEEPS: [each for each in stamped if each.type_name in (CLOUD_TYPE, SCAN_TYPE)],
        Of.IMUS: [each for each in stamped if each.type_name == IMU_TYPE],
        Of.IMAGES: [each for each in stamped if each.type_name in IMAGE_TYPES],
        Of.SENSORS: [
            each
            for each in stamped
            if 'image' in known(each.type_name).cues() or known(each.type_name).cue != 'none'
        ],
    }[kind.of]


def _lacks(
    kind: FindingKind,
    record: TopicRecord,
    heard: Sequence[TopicRecord],
    facts: Sequence[TopicFacts],
    motion: Mapping[str, str] | None,
) -> str | None:
    """Return what a topic lacks for a kind; empty for nothing, None where it has no meaning."""
    if Need.PUBLISH in kind.needs and record.on_the_way_s is None:
        return None  # most recorders write none, and nothing is wrong with that
    lack = lack_of(kind, record, heard)
    if not lack and (Need.MOTION in kind.needs or Need.TILTING in kind.needs):
        return _lacks_motion(record, facts, motion)
    return lack


def lack_of(kind: FindingKind, record: TopicRecord, heard: Sequence[TopicRecord]) -> str:
    """Return what the messages of a topic lack for a kind; empty for nothing."""
    if Need.ARRIVALS in kind.needs and record.count and not arrivals_tell(record.line):
        return Need.ARRIVALS.value
    if record.count < kind.messages:
        return f'{kind.messages} messages'
    if record.stamped and record.line.span_s < kind.seconds:
        return f'{kind.seconds:g} s'
    if kind.code == 'zero_stamps':
        return ''
    if record.stamped and not record.line.count and kind.seconds:
        return 'stamps that are not zero'
    if Need.SEVERAL in kind.needs and sum(each.stamped for each in heard) < 2:
        return Need.SEVERAL.value
    if Need.POINT_TIMES in kind.needs and not any(cloud.field for cloud in record.clouds):
        return Need.POINT_TIMES.value
    if kind.code == 'camera_info_differs' and not any(
        each.type_name == INFO_TYPE for each in heard
    ):
        return 'a camera_info'
    return ''


def well_founded(finding: Finding, heard: Mapping[str, TopicRecord]) -> bool:
    """Return whether one of its topics has what the kind of a finding needs."""
    kind, records = KINDS[finding.code], list(heard.values())
    own = [heard[name] for name in finding.topics if name in heard]
    return not own or any(not lack_of(kind, record, records) for record in own)


def _lacks_motion(
    record: TopicRecord, facts: Sequence[TopicFacts], motion: Mapping[str, str] | None
) -> str | None:
    about = next((each for each in facts if each.name == record.name), None)
    if about is not None and about.shares_stamps_with and record.type_name != IMU_TYPE:
        return None  # its clock is that of another topic
    return QUICK if motion is None else motion.get(record.name, '')
