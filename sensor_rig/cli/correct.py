"""Write the same recording with right stamps: same topics, same order, same bytes otherwise."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import add_sidecar_argument, add_storage_arguments
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.correct.recording import CorrectResult

NAME = 'correct'
GROUP = 'repair'
HELP = 'write the same recording with right stamps'
EPILOG = """examples:
  rig correct drive/ drive_right/                      what inspect finds, put right
  rig correct drive/ drive_right/ --rig robot.yaml     with what is known of the sensors
  rig correct drive/ drive_right/ --sidecar fix.yaml   these corrections and no others
Streams whose clocks are not known well enough stay as they are, and are listed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recordings, what is known, and what is to be corrected."""
    parser.add_argument(
        'input', metavar='IN', type=Path, help='a rosbag2 folder, .mcap or .db3, or a ROS 1 .bag'
    )
    parser.add_argument(
        'output', metavar='OUT', type=Path, help='the recording to write (rosbag2)'
    )
    parser.add_argument(
        '--rig',
        metavar='FILE',
        help='a rig file with a sync: section, or the name of a shipped one; without it, the '
        'inputs are found as "inspect --write" does',
    )
    add_sidecar_argument(parser)
    parser.add_argument(
        '--only', nargs='+', metavar='INPUT', default=[], help='inputs to correct (all)'
    )
    parser.add_argument(
        '--topics', nargs='+', metavar='T', default=[], help='topics to correct (all)'
    )
    parser.add_argument(
        '--to',
        choices=('host', 'reference'),
        help="the clock that stamps are put on: the host's (default), or the reference input's, "
        'whose stamps then stay',
    )
    parser.add_argument(
        '--min-state',
        choices=('locked', 'converging'),
        help='how well a clock must be known to be corrected (locked)',
    )
    parser.add_argument(
        '--smooth-arrivals',
        action='store_true',
        help='take the jitter out of stamps that were written on arrival, too',
    )
    add_storage_arguments(parser, ros1=True)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Correct the recording and say what moved by how much."""
    from rig_common.memory import keep_freed_memory
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.support.progress import progress, tell_problems
    from sensor_rig.correct.recording import CorrectOptions, correct_recording
    from sensor_rig.rigfile import load_rig

    sync, given = None, None
    if args.rig is not None:
        sync = load_rig(args.rig).required_sync
        given = sync.correct
    options = CorrectOptions(
        to=args.to or (given.to if given else 'host'),
        min_state=args.min_state or (given.min_state if given else 'locked'),
        only=tuple(args.only or (given.inputs if given else ())),
        topics=tuple(args.topics),
        smooth_arrivals=args.smooth_arrivals or bool(given and given.smooth_arrivals),
    )
    keep_freed_memory()
    with BagReader(args.input) as bag:
        count = bag.message_count
    with progress(f'correcting {args.input.name}', 2 * count) as advance:
        result = correct_recording(
            args.input,
            args.output,
            sync,
            options,
            sidecar=args.sidecar,
            storage=args.storage,
            compress=args.compress,
            advance=advance,
        )
    if args.json:
        print_json(result.as_dict())
    else:
        print_result(result)
    return tell_problems(result.problems)


def print_result(result: CorrectResult) -> None:
    """Print what moved, and what stayed as it was."""
    if result.already:
        print(
            f'{result.source} has been corrected before (its metadata say so), so nothing was '
            f'changed\nwritten: {result.target}, an unchanged copy'
        )
        return
    print_table(
        ('input', 'topic', 'clock', 'offset ms', '± ms', 'drift ppm', 'steps'),
        [
            (
                name,
                each.topic,
                each.state.value,
                _number(each.offset_ms, '+.3f'),
                _number(each.sigma_ms, '.3f'),
                _number(each.drift_ppm, '+.1f'),
                max(each.pieces - 1, 0),
            )
            for name, each in result.streams.items()
        ],
    )
    moved = {name: each for name, each in result.topics.items() if each.count}
    print_table(
        ('topic', 'messages', 'moved', 'by ms (mean)', 'least', 'most', 'follows'),
        [
            (
                name,
                each.messages,
                each.count,
                f'{each.mean_ms:+.3f}',
                f'{each.least_ms:+.3f}',
                f'{each.most_ms:+.3f}',
                each.follows or '-',
            )
            for name, each in moved.items()
        ],
    )
    for name, each in result.streams.items():
        if each.why:
            print(f'as it was: {name} ({each.topic}): {each.why}')
        if each.jitter_ms:
            print(f'{name}: jitter of {each.jitter_ms:.3f} ms (1 sigma) taken out')
        if each.note:
            print(f'{name}: {each.note}')
    print(f'written: {result.target}')


def _number(value: float, form: str) -> str:
    return '-' if value != value else format(value, form)
