"""Test on a recording itself whether its offsets can be trusted."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import add_sidecar_argument, output_file
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sync_engine.config import SyncConfig

NAME = 'trust'
GROUP = 'find out'
HELP = 'test on a recording itself whether its estimated offsets can be trusted'
EPILOG = """example: rig trust drive/ --rig robot.yaml --html trust.html
Known changes are put into the stamps and must be followed, found or refused; disjoint stretches
must agree within their claims. Without --rig, a rig file is made from the recording as "inspect
--write" does. Exit code 1: the claims do not hold, or the recording is too short to show it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recording, the rig and where to write."""
    parser.add_argument('bag', metavar='BAG', type=Path, help='a rosbag2 folder, .mcap or .db3')
    parser.add_argument(
        '--rig', metavar='FILE', help='a rig file with a sync: section (made from the recording)'
    )
    parser.add_argument(
        '--html', metavar='FILE', type=output_file, help='write the page to this file'
    )
    add_sidecar_argument(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Score the recording and say what can be trusted."""
    from rig_common.saving import save_text
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.support.progress import progress, tell_problems
    from sensor_rig.trust.report import trust_recording
    from sensor_rig.trust.trust_page import trust_page

    config = _config(args.rig, args.bag, args.sidecar)
    with BagReader(args.bag) as bag:
        count, problems = bag.message_count, bag.problems
    with progress(f'reading {args.bag.name}', count) as advance:
        report = trust_recording(args.bag, config, advance, args.sidecar)
    document = report.document()
    if args.html is not None:
        save_text(args.html, trust_page(document))
    if args.json:
        print_json({**document, 'problems': problems})
        return tell_problems(problems) or (0 if report.holds else 1)
    for name, sensor in document['sensors'].items():
        rows = [
            (each['change'], 'yes' if each['passed'] else 'NO', each['says'])
            for each in sensor['responses']
        ]
        print_table((f'{name}: change', 'passed', 'what the estimate did'), rows)
        print(sensor['verdict'])
    if args.html is not None:
        print(f'written: {args.html}')
    return tell_problems(problems) or (0 if report.holds else 1)


def _config(rig: str | None, bag: Path, sidecar: Path | None) -> SyncConfig:
    """Return the `sync:` of a rig file, or of what `inspect --write` writes for the recording."""
    from tempfile import TemporaryDirectory

    from sensor_rig.bags.inspect import facts_of
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.bags.starter import starter_rig
    from sensor_rig.rigfile import load_rig

    if rig is not None:
        return load_rig(rig).required_sync
    with BagReader(bag, sidecar) as reader, TemporaryDirectory() as folder:
        file = Path(folder) / 'found.yaml'
        file.write_text(starter_rig(facts_of(reader.times().values()), str(bag)), encoding='utf-8')
        return load_rig(file).required_sync
