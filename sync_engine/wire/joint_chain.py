"""How a link of a robot is turned, from its joint positions and the URDF's joint axes.

Only rotations are followed: an arm's joint states then tell how its wrist turns, to be compared
with what a camera on it sees.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from math import cos, sin, sqrt
from pathlib import Path

from rig_common.cdr import CdrError
from rig_common.errors import RigError
from rig_common.msgs.decode import read_joint_positions
from rig_common.quaternions import Quaternion, product
from sync_engine.streams.payload import CueValues

_TURNING = ('revolute', 'continuous')
_STILL = ('fixed', 'prismatic')


@dataclass(frozen=True)
class _Joint:
    name: str
    parent: str
    child: str
    origin: Quaternion
    axis: tuple[float, float, float] | None
    """Unit axis in the child's frame; None for a joint that does not turn."""
    source: str
    """Whose position it follows, mostly its own ..."""
    multiplier: float
    offset: float
    """... as multiplier * position + offset (rad)."""

    def turned(self, positions: dict[str, float]) -> Quaternion:
        """Return the rotation from the child's frame to the parent's."""
        if self.axis is None:
            return self.origin
        if self.source not in positions:
            raise CdrError(f'no position of the joint {self.source!r}')
        half = 0.5 * (self.multiplier * positions[self.source] + self.offset)
        x, y, z = (sin(half) * part for part in self.axis)
        return product(self.origin, (cos(half), x, y, z))


class JointChain:
    """Reads a JointState as the orientation of one link in the frame of another."""

    def __init__(self, urdf: Path, base: str, tip: str) -> None:
        joints = {joint.child: joint for joint in _joints_of(urdf)}
        self._chain: list[_Joint] = []
        link = tip
        while link != base:
            joint = joints.get(link)
            if joint is None or joint in self._chain:
                links = sorted({*joints, *(each.parent for each in joints.values())})
                raise RigError(
                    f'{urdf}: no chain of joints leads from {base!r} to {tip!r}; '
                    f'its links are {", ".join(links)}'
                )
            self._chain.insert(0, joint)
            link = joint.parent
        if not any(joint.axis for joint in self._chain):
            raise RigError(f'{urdf}: no joint between {base!r} and {tip!r} turns')

    def __call__(self, raw: bytes) -> CueValues:
        """Return `orientation` [4] (x, y, z, w) of the tip."""
        _, positions = read_joint_positions(raw)
        turn: Quaternion = (1.0, 0.0, 0.0, 0.0)
        for joint in self._chain:
            turn = product(turn, joint.turned(positions))
        w, x, y, z = turn
        return {'orientation': (x, y, z, w)}


def _joints_of(urdf: Path) -> list[_Joint]:
    try:
        root = ElementTree.parse(urdf).getroot()
    except OSError as error:
        raise RigError(f'{urdf} cannot be read: {error.strerror}') from None
    except ElementTree.ParseError as error:
        raise RigError(f'{urdf} is no URDF: {error}') from None
    return [_joint(element, urdf) for element in root.findall('joint')]


def _joint(element: ElementTree.Element, urdf: Path) -> _Joint:
    name, kind = element.get('name', ''), element.get('type', '')
    if kind not in (*_TURNING, *_STILL):
        raise RigError(
            f'{urdf}: joint {name!r} is of type {kind!r}; followed are '
            f'{", ".join((*_TURNING, *_STILL))}'
        )
    parent, child = ((element.find(part)) for part in ('parent', 'child'))
    if parent is None or child is None:
        raise RigError(f'{urdf}: joint {name!r} lacks its parent or child')
    roll, pitch, yaw = _numbers(element.find('origin'), 'rpy', '0 0 0', name, urdf)
    x, y, z = _numbers(element.find('axis'), 'xyz', '1 0 0', name, urdf)
    size = sqrt(x * x + y * y + z * z)
    turns = kind in _TURNING and size > 0.0
    mimic = element.find('mimic')
    follows = {} if mimic is None else mimic.attrib
    return _Joint(
        name,
        parent.get('link', ''),
        child.get('link', ''),
        product(product(_about(2, yaw), _about(1, pitch)), _about(0, roll)),
        (x / size, y / size, z / size) if turns else None,
        follows.get('joint', name),
        float(follows.get('multiplier', 1.0)),
        float(follows.get('offset', 0.0)),
    )


def _numbers(
    element: ElementTree.Element | None, key: str, otherwise: str, name: str, urdf: Path
) -> tuple[float, float, float]:
    text = otherwise if element is None else element.get(key, otherwise)
    try:
        x, y, z = (float(part) for part in text.split())
    except ValueError:
        raise RigError(f'{urdf}: {key} of joint {name!r} is {text!r}, not three numbers') from None
    return x, y, z


def _about(axis: int, angle: float) -> Quaternion:
    parts = [cos(0.5 * angle), 0.0, 0.0, 0.0]
    parts[1 + axis] = sin(0.5 * angle)
    return parts[0], parts[1], parts[2], parts[3]
