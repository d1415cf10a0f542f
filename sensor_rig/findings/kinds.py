"""What a kind of finding is, which kinds there are, and how one is made.

A kind declares once what its finding does to fusion, what to do about it, how to confirm it by
hand, and what a recording must have for it. The searches give figures only; the page
docs/findings.md and the list of what was not checked come from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sensor_rig.findings.model import Evidence, Finding, Severity, Span


class Need(Enum):
    """What a recording must have besides messages, in words."""

    IMU = 'an IMU (sensor_msgs/msg/Imu), or a second payload that shows turns'
    CUE = 'a payload that shows turns: a scan, a cloud, an odometry, a pose or an Image'
    SPEED = 'an odometry or a pose, whose speed can be compared with it'
    CAMERA_INFO = "a camera_info with the images' stamps"
    MOTION = 'turning that both sensors show'
    TILTING = '20 s of tilting, without stronger pushes'
    ARRIVALS = 'receive times that are not copies of the stamps'
    PUBLISH = 'publish times (MCAP, written by a recorder that fills them)'
    POINT_TIMES = 'points with times of their own'
    SEVERAL = 'a second stamped topic'


class Of(Enum):
    """Which topics a kind can be found on."""

    STAMPED = 'stamped topics'
    CLOUDS = 'point clouds'
    SCANS = 'laser scans'
    SWEEPS = 'laser scans and point clouds'
    IMUS = 'IMUs'
    IMAGES = 'images'
    SENSORS = 'stamped topics other than the IMU'
    ALL = 'all topics'


@dataclass(frozen=True)
class FindingKind:
    """One kind of finding."""

    code: str
    says: str
    """What the recording shows, as a heading."""
    effect: str
    """What it does to fusion."""
    change: str
    """What to change."""
    confirm: str
    """How to see it without this tool."""
    of: Of = Of.STAMPED
    messages: int = 5
    """Messages of a topic that it needs at least."""
    seconds: float = 1.0
    """Length that it needs at least, s."""
    needs: tuple[Need, ...] = ()
    basis: str = ''
    """On what it rests, where the needs do not say it."""

    @property
    def rests_on(self) -> str:
        """What of a recording shows it, in words."""
        shown = (text for need, text in RESTS_ON.items() if need in self.needs)
        return self.basis or next(shown, 'stamps')


RESTS_ON = {
    Need.MOTION: 'motion',
    Need.TILTING: 'motion',
    Need.PUBLISH: 'publish and receive times',
    Need.POINT_TIMES: 'point times',
    Need.ARRIVALS: 'stamps and receive times',
}
KINDS: dict[str, FindingKind] = {}


GROUPS: dict[str, list[str]] = {}
"""Heading -> the codes of its kinds, as docs/findings.md has them."""


def declare(heading: str, *kinds: FindingKind) -> None:
    """Add kinds to those that there are."""
    for kind in kinds:
        assert kind.code not in KINDS, kind.code
        KINDS[kind.code] = kind
    GROUPS[heading] = [kind.code for kind in kinds]


def found(
    code: str,
    severity: Severity,
    topics: str | Sequence[str],
    what: str,
    evidence: Evidence | None = None,
    *,
    change: str | None = None,
    related: Sequence[str] = (),
    spans: Sequence[Span] = (),
    rests_on: str = '',
) -> Finding:
    """Return a finding of a kind; `change`, `rests_on` where they are not its kind's."""
    kind = KINDS[code]
    return Finding(
        code,
        severity,
        (topics,) if isinstance(topics, str) else tuple(topics),
        what,
        kind.effect,
        kind.change if change is None else change,
        rests_on or kind.rests_on,
        evidence or {},
        tuple(related),
        (),
        tuple(spans),
    )
