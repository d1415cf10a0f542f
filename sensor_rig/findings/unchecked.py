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

MOST_NAMES = 3
NO_TIMES = ('the file', 'headers', 'contents', 'the type', 'fields of the clouds')
"""What kinds rest on that need no stamps."""
QUICK = 'the comparison of motion, which --quick and --live leave out'


Lack = str | int | float
"""What is missing: in words, so many messages, or so many seconds."""


def in_words(lack: Lack) -> str:
    """Return what is missing as a sentence has it."""
    if isinstance(lack, str):
        return lack
    return f'{lack} messages' if isinstance(lack, int) else f'{lack:g} s'


@dataclass(frozen=True)
class Unchecked:
    """Kinds of findings that nobody looked for, on which topics, and why."""

    codes: tuple[str, ...]
    topics: tuple[str, ...]
    lacks: tuple[Lack, ...]
    """What the recording would need."""

    @property
    def missing(self) -> str:
        """What the recording would need, in words."""
        return ' and '.join(map(in_words, self.lacks))

    @property
    def sentence(self) -> str:
        """One line: what, where, why."""
        return self._line([code.replace('_', ' ') for code in self.codes], 6)

    @property
    def short(self) -> str:
        """The sentence without the names of many kinds."""
        names = [code.replace('_', ' ') for code in self.codes]
        return self._line(names if len(names) <= MOST_NAMES else [f'{len(names)} kinds'], 3)

    def _line(self, names: Sequence[str], topics: int) -> str:
        where = f' on {listed(self.topics, topics)}' if self.topics else ''
        return f'{", ".join(names)}{where}: needs {self.missing}'

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

    @property
    def brief(self) -> list[Unchecked]:
        """What was not checked, for people: the kinds for which a topic is too short as one."""
        short: dict[str, list[Unchecked]] = {}
        rest = []
        for each in self.unchecked:
            if isinstance(each.lacks[0], str):
                rest.append(each)
                continue
            for topic in each.topics:
                short.setdefault(topic, []).append(each)
        alike: dict[tuple[Lack, ...], list[str]] = {}
        for topic, own in short.items():
            most = [
                max((e.lacks[0] for e in own if type(e.lacks[0]) is kind), default=None)
                for kind in (int, float)
            ]
            alike.setdefault(tuple(each for each in most if each is not None), []).append(topic)
        return [
            Unchecked(
                tuple(dict.fromkeys(c for t in topics for each in short[t] for c in each.codes)),
                tuple(topics),
                lacks,
            )
            for lacks, topics in alike.items()
        ] + rest


def coverage(
    records: Sequence[TopicRecord],
    facts: Sequence[TopicFacts],
    motion: Mapping[str, str],
    *,
    damaged: bool = False,
) -> Coverage:
    """Return what could be checked; `motion` says by topic what its comparison lacks.

    What lost bytes look like is not told from damage.
    """
    heard = sensors_of(records)
    gaps: dict[tuple[Lack, tuple[str, ...]], list[str]] = {}
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
        by_reason: dict[Lack, list[str]] = {}
        for name, lack in lacks.items():
            if lack:
                by_reason.setdefault(lack, []).append(name)
        if not lacks and kind.needs == () and kind.of is Of.STAMPED:
            by_reason['stamped messages'] = []
        for lack, names in by_reason.items():
            gaps.setdefault((lack, tuple(names)), []).append(kind.code)
    return Coverage(
        checked,
        [Unchecked(tuple(codes), topics, (lack,)) for (lack, topics), codes in gaps.items()],
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
    motion: Mapping[str, str],
) -> Lack | None:
    """Return what a topic lacks for a kind; empty for nothing, None where it has no meaning."""
    if Need.PUBLISH in kind.needs and record.on_the_way_s is None:
        return None  # most recorders write none, and nothing is wrong with that
    lack = lack_of(kind, record, heard)
    if not lack and (Need.MOTION in kind.needs or Need.TILTING in kind.needs):
        return _lacks_motion(record, facts, motion)
    return lack


def lack_of(kind: FindingKind, record: TopicRecord, heard: Sequence[TopicRecord]) -> Lack:
    """Return what the messages of a topic lack for a kind; empty for nothing."""
    if Need.ARRIVALS in kind.needs and record.count and not arrivals_tell(record.line):
        return Need.ARRIVALS.value
    if record.count < kind.messages:
        return kind.messages
    if kind.code == 'zero_stamps':
        return ''
    if record.stamped and record.count and not record.line.count and kind.basis not in NO_TIMES:
        return 'stamps that are not zero'
    if record.stamped and record.line.count and record.line.span_s < kind.seconds:
        return float(kind.seconds)
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
    record: TopicRecord, facts: Sequence[TopicFacts], motion: Mapping[str, str]
) -> str | None:
    about = next((each for each in facts if each.name == record.name), None)
    if about is not None and about.shares_stamps_with and record.type_name != IMU_TYPE:
        return None  # its clock is that of another topic
    return motion.get(record.name, '')
