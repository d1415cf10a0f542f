"""Topics that no input names, but that carry the stamps of one: they move with it.

A camera_info has the stamps of its image, a transform those of the odometry that made it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from rig_common.cdr import CdrError, Reader, read_stamp_ns
from rig_common.msgs.decode import read_transforms
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import OURS
from sync_engine.config.input_config import TF_TYPE

LOOKED_AT_NS = 60 * NS_PER_S
"""Of the recording, from its start."""
ALIKE = 0.9
"""Share of stamps that two topics must have in common."""
FEWEST = 5
ODOMETRY = 'nav_msgs/msg/Odometry'


class Followers(NamedTuple):
    """What moves with which input."""

    topics: dict[str, str]
    """Topic -> input."""
    frames: dict[tuple[str, str], str]
    """(Frame, child frame) of transforms -> input."""
    moving: frozenset[str]
    """Topics with transforms that change."""


def find_followers(bag: BagReader, names: Mapping[str, str]) -> Followers:
    """Return what moves with the inputs of `names` (topic -> input), by the first minute."""
    stamps: dict[str, set[int]] = {
        name: set()
        for name, topic in bag.topics.items()
        if topic.stamped and (name in names or not OURS.match(name))
    }
    transforms: dict[tuple[str, str], set[int]] = {}
    odometries: dict[str, tuple[str, str]] = {}
    moving = frozenset(
        name
        for name, topic in bag.topics.items()
        if topic.type_name == TF_TYPE and not name.endswith('tf_static')
    )
    end_ns = bag.start_ns + LOOKED_AT_NS
    for topic, receive_ns, raw, _ in bag.messages({*stamps, *moving}):
        if receive_ns > end_ns:
            break
        with suppress(CdrError):
            if topic in moving:
                for each in read_transforms(raw):
                    pair = each.frame_id.strip('/'), each.child_frame_id.strip('/')
                    transforms.setdefault(pair, set()).add(each.stamp_ns)
                continue
            stamps[topic].add(read_stamp_ns(raw))
            if topic in names and topic not in odometries:
                if bag.topics[topic].type_name == ODOMETRY:
                    odometries[topic] = _frames(raw)
    topics = {
        topic: names[owner]
        for topic, mine in stamps.items()
        if topic not in names and (owner := _owner(topic, mine, names, stamps))
    }
    frames = {
        pair: names[topic]
        for topic, pair in odometries.items()
        if _share(transforms.get(pair, set()), stamps[topic]) >= ALIKE
    }
    return Followers(topics, frames, moving)


def _frames(raw: bytes) -> tuple[str, str]:
    """Return (frame, child frame) of an Odometry."""
    reader = Reader(raw)
    return reader.header()[1].strip('/'), reader.string().strip('/')


def _owner(
    topic: str, mine: set[int], names: Mapping[str, str], stamps: Mapping[str, set[int]]
) -> str:
    """Return the input's topic whose stamps a topic has, empty for none."""
    for owner in sorted(names, key=lambda name: -_common(topic, name)):
        theirs = stamps.get(owner, set())
        near = topic.rpartition('/')[0] == owner.rpartition('/')[0] != ''
        if _share(mine, theirs) >= ALIKE and (near or _share(theirs, mine) >= ALIKE):
            return owner
    return ''


def _common(one: str, other: str) -> int:
    """Return how many parts of two names are equal, from the start."""
    pairs = zip(one.split('/'), other.split('/'), strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), 0)


def _share(mine: set[int], theirs: set[int]) -> float:
    """Return the share of my stamps that are theirs, too; 0 where there are few."""
    own = mine - {0}
    return len(own & theirs) / len(own) if len(own) >= FEWEST else 0.0
