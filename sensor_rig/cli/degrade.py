"""Put delay, clock error, loss and faults on streams that exist: a recording, or live topics.

The rig file's streams: say which topics, with the keys of a simulated sensor. The truth goes
beside them: truth/time/<stream> (header: original stamp, time_ref: new stamp), and what was lost
or duplicated in truth/fate/<stream> and fates.csv.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import add_storage_arguments
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.degrade.ledger import Account
    from sensor_rig.degrade.recording import DegradeResult

NAME = 'degrade'
GROUP = 'stress'
HELP = 'apply delay, clock error, loss and faults to a recording or to live topics'
EPILOG = """examples:
  rig degrade drive/ drive_late/ --rig faults.yaml     a recording into a new one
  rig degrade --live --rig faults.yaml                 live: <topic> to degraded/<topic>
exit code: 1 when part of the recording could not be read (OUT has the rest), 2 for a mistake"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recordings, the rig and how to write."""
    parser.add_argument(
        'input', metavar='IN', type=Path, nargs='?', help='a rosbag2 folder, .mcap or .db3'
    )
    parser.add_argument(
        'output', metavar='OUT', type=Path, nargs='?', help='the recording to write'
    )
    parser.add_argument(
        '--rig', required=True, metavar='FILE', help='a rig file with a streams: section'
    )
    add_storage_arguments(parser, ros1=True)
    parser.add_argument(
        '--live',
        action='store_true',
        help='degrade live topics until Ctrl-C, instead of a recording',
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Degrade the recording or the live topics and say where the messages went."""
    from rig_common.errors import RigError
    from rig_common.memory import keep_freed_memory
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.support.progress import note, progress, tell_problems
    from sensor_rig.degrade.recording import degrade_recording
    from sensor_rig.rigfile import load_rig

    if args.live:
        return _live(args)
    if args.input is None or args.output is None:
        raise RigError('degrade needs a recording IN and a new one OUT (see degrade --help)')
    rig = load_rig(args.rig)
    keep_freed_memory()
    with BagReader(args.input) as bag:
        count = bag.message_count
    with progress(f'degrading {args.input.name}', count) as advance:
        result = degrade_recording(
            args.input,
            args.output,
            rig,
            storage=args.storage,
            compress=args.compress,
            advance=advance,
        )
    for text in result.notes:
        note(text)
    if args.json:
        print_json(result.as_dict())
    else:
        print_result(result)
    return tell_problems(result.problems)


def _live(args: argparse.Namespace) -> int:
    from rig_common.errors import RigError
    from sensor_rig.cli.support.live import require_ros
    from sensor_rig.rigfile import load_rig

    if args.input is not None:
        raise RigError(
            f'--live degrades live topics, so {args.input} has nothing to do there; '
            f'leave one of them out'
        )
    require_ros()
    from rig_common.ros.executor import run_node
    from sensor_rig.degrade.ros.degrade_node import DegradeNode
    from sensor_rig.nodes.building import make_degrade

    rig = load_rig(args.rig)
    made: list[DegradeNode] = []

    def make() -> DegradeNode:
        made.append(make_degrade(rig))
        return made[0]

    code = run_node(make, [])
    if made and code == 0:
        accounts = made[0].session.accounts
        if args.json:
            print_json(
                {
                    'version': 1,
                    'topics': {topic: each.as_dict() for topic, each in accounts.items()},
                }
            )
        else:
            print_accounts(accounts)
    return code


def print_result(result: DegradeResult) -> None:
    """Print where the messages went and how late they are."""
    print_accounts(result.accounts)
    print_table(
        ('stream', 'delay p50 ms', 'p99 ms', 'max ms'),
        [
            (name, *(f'{each[key] * 1e3:.3f}' for key in ('p50_s', 'p99_s', 'max_s')))
            for name, each in result.delays.items()
        ],
    )
    print(f'written: {result.target}')


def print_accounts(accounts: Mapping[str, Account]) -> None:
    """Print where the messages of each topic went."""
    print_table(
        (
            'topic',
            'stream',
            'read',
            'duplicated',
            'lost by loss',
            'by fault',
            'thinned',
            'written',
        ),
        [
            (
                topic,
                each.stream or '-',
                each.read,
                each.duplicated,
                each.lost_by_loss,
                each.lost_by_fault,
                each.thinned,
                each.written,
            )
            for topic, each in sorted(accounts.items())
            if not each.replaced
        ],
    )
