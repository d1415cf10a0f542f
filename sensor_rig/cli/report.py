"""Make one HTML page of a run: of a recording, synced for it, or of a run that kept its data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from sensor_rig.cli.support.arguments import output_file
from sensor_rig.cli.support.output import add_json_argument, print_json

NAME = 'report'
GROUP = 'look'
HELP = 'make one self-contained HTML page of a run or a recording'
EPILOG = """examples:
  rig report drive/ --rig robot.yaml     sync the recording for the report only
  rig report drive_synced/               the page of what "rig sync" made"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run, its rig and where to write."""
    parser.add_argument(
        'run', metavar='RUN', type=Path, help='a recording, or a folder with report.json'
    )
    parser.add_argument(
        '--rig', metavar='FILE', help='the rig file that says how to sync the recording'
    )
    parser.add_argument(
        '--output',
        '-o',
        metavar='FILE',
        type=output_file,
        help='where to write the page (RUN/report.html, or RUN.html)',
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Make the page and say where it is."""
    from rig_common.saving import save_text
    from sensor_rig.cli.support.progress import tell_problems
    from sensor_rig.syncing.bag_sync import REPORT_PAGE
    from sensor_rig.syncing.sync_page import sync_page

    problems: list[str] = []
    document = _saved(args.run) if args.rig is None else _synced(args.run, args.rig, problems)
    folder = args.run if args.run.is_dir() else None
    output = args.output or (folder / REPORT_PAGE if folder else args.run.with_suffix('.html'))
    save_text(output, sync_page(document))
    if args.json:
        from sensor_rig.cli.sync import summary

        print_json({'report': str(output), 'problems': problems, **summary(document)})
    else:
        print(f'written: {output}')
    return tell_problems(problems)


def _saved(folder: Path) -> dict[str, object]:
    """Return the data that a run kept."""
    from rig_common.errors import RigError
    from rig_common.jsonable import with_nan
    from sensor_rig.syncing.bag_sync import REPORT_DATA

    if not folder.exists():
        raise RigError(f'there is no run at {folder}')
    file = folder / REPORT_DATA if folder.is_dir() else folder
    if not file.exists():
        raise RigError(
            f'{folder} has no {REPORT_DATA}; if it is a recording, say with --rig how to sync it'
        )
    try:
        document = with_nan(json.loads(file.read_text(encoding='utf-8')))
    except (ValueError, OSError):
        raise RigError(
            f'{file} is not the data of a report; if it is a recording, say with '
            f'--rig how to sync it'
        ) from None
    if not isinstance(document, dict) or document.get('kind') != 'sync':
        raise RigError(f'{file} is not the data of a sync report')
    return document


def _synced(path: Path, rig_file: str, problems: list[str]) -> dict[str, object]:
    """Sync a recording and keep nothing but the report's data, and what is missing of it."""
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.sync import processed
    from sensor_rig.rigfile import load_rig
    from sensor_rig.syncing.bag_sync import BagSync

    config = load_rig(rig_file).required_sync
    with BagReader(path) as bag:
        job = BagSync(bag, None, config, f'Sync of {path.name}')
        document = processed(job, bag)
        problems += bag.problems
    return document
