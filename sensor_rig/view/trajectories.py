"""Trajectories of a recording as TUM files: a line `time x y z qx qy qz qw` per pose, for evo."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from rig_common.cdr import CdrError
from rig_common.errors import RigError, why
from rig_common.msgs.catalogue import CATALOGUE
from rig_common.msgs.decode import MotionMessage, PoseMessage
from rig_common.probing import run_python
from sensor_rig.bags.reader import BagReader

TRUTH = 'truth_odom.tum'
Pose = MotionMessage | PoseMessage


def pose_types() -> list[str]:
    """Return the message types that hold poses."""
    return [row.name for row in CATALOGUE.values() if row.view in ('motion', 'pose')]


def read_pose_of(type_name: str, raw: bytes) -> Pose:
    """Return the pose in a message of one of `pose_types`."""
    decode = CATALOGUE[type_name].decode
    if decode is None:
        raise CdrError(f'{type_name} has no decoder')
    reading: Pose = decode(raw)
    return reading


def pose_topics(bag: BagReader) -> list[str]:
    """Return the topics of a recording that hold poses."""
    return sorted(name for name, topic in bag.topics.items() if topic.type_name in pose_types())


def file_name(topic: str) -> str:
    """Return the file of a topic: `/truth/odom` is `truth_odom.tum`.

    >>> file_name('/truth/odom')
    'truth_odom.tum'
    """
    return re.sub(r'[^A-Za-z0-9_.-]', '_', topic.strip('/')) + '.tum'


def write_trajectories(bag: BagReader, folder: Path) -> dict[str, int]:
    """Write a file for every topic with poses; return how many poses each holds, by file name.

    Times are the stamps, s.
    """
    topics = pose_topics(bag)
    if not topics:
        raise RigError(
            f'{bag.path} has no topic with poses; those are of the types {", ".join(pose_types())}'
        )
    counts = dict.fromkeys(map(file_name, topics), 0)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        files: dict[str, TextIO] = {
            topic: (folder / file_name(topic)).open('w') for topic in topics
        }
        try:
            for topic, _, raw, _ in bag.messages(topics):
                counts[file_name(topic)] += _write(files[topic], bag.topics[topic].type_name, raw)
        finally:
            for file in files.values():
                file.close()
    except OSError as error:
        for name in counts:
            (folder / name).unlink(missing_ok=True)
        raise RigError(f'{folder} cannot be written: {why(error)}') from None
    return counts


def draw_with_evo(folder: Path, files: Sequence[str]) -> list[str]:
    """Draw trajectories by evo, laid over the true one if it is there; return the pictures."""
    reference = TRUTH if TRUTH in files and len(files) > 1 else ''
    given = [str(folder / each) for each in files if each != reference]
    against = ['--ref', str(folder / reference), '--align'] if reference else []
    made = ['--save_plot', str(folder / 'evo.png'), '--plot_mode', 'xy', '--no_warnings']
    code, said = run_python(
        f'import sys; from evo.cli.entry_points import traj\n'
        f'sys.argv[1:] = {["tum", *given, *against, *made]!r}\nsys.exit(traj())',
        MPLBACKEND='Agg',
    )
    if code:
        raise RigError(f'evo cannot draw the trajectories in {folder}: {said}')
    return sorted(str(each) for each in folder.glob('evo_*.png'))


def _write(file: TextIO, type_name: str, raw: bytes) -> int:
    """Write one pose; return 0 for a message that is none."""
    try:
        pose = read_pose_of(type_name, raw)
    except CdrError:
        return 0
    seconds, rest = divmod(pose.stamp_ns, 10**9)
    values = ' '.join(f'{value:.9g}' for value in (*pose.position_m, *pose.orientation_xyzw))
    file.write(f'{seconds}.{rest:09d} {values}\n')
    return 1
