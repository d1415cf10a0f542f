"""Sync a recording offline: the same engine as the sync node's, on recorded receive times."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from rig_common.jsonable import JsonObject
from sensor_rig.cli.support.arguments import (
    add_sidecar_argument,
    add_storage_arguments,
    add_trajectory_argument,
)
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.syncing.bag_sync import BagSync

NAME = 'sync'
GROUP = 'repair'
HELP = 'sync a recording into a new one, with a report'
EPILOG = """example: rig sync drive/ drive_synced/ --rig robot.yaml
OUT is a rosbag2 recording with synced/..., sync/bundle and sync/offset/..., and report.html
beside them. "rig inspect IN --write robot.yaml" makes a rig file to start from."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recordings, the rig and how to write."""
    parser.add_argument('input', metavar='IN', type=Path, help='a rosbag2 folder, .mcap or .db3')
    parser.add_argument('output', metavar='OUT', type=Path, help='the recording to write')
    parser.add_argument(
        '--rig',
        required=True,
        metavar='FILE',
        help='a rig file with a sync: section, or the name of a shipped one',
    )
    add_storage_arguments(parser)
    parser.add_argument(
        '--copy',
        action='store_true',
        help='copy the messages of IN to OUT, too, but for what an earlier sync made',
    )
    add_sidecar_argument(parser)
    add_trajectory_argument(parser)
    parser.add_argument(
        '--causal',
        action='store_true',
        help='decide like a live node, from what has come so far; without it the '
        'recording is processed twice and every offset is smoothed',
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Sync the recording and say what came out."""
    import shutil

    from sensor_rig.bags.reader import BagReader
    from sensor_rig.bags.writer import BagWriter
    from sensor_rig.cli.support.progress import tell_problems
    from sensor_rig.rigfile import load_rig
    from sensor_rig.syncing.bag_sync import BagSync, fitted, write_report

    config = load_rig(args.rig).required_sync
    with BagReader(args.input, args.sidecar, args.trajectory) as bag:
        fitted(config, bag)  # a mistake is told before OUT is made
        writer = BagWriter(args.output, args.storage, compress=args.compress)
        try:
            with writer:
                job = BagSync(bag, writer, config, f'Sync of {args.input.name}')
                document = processed(job, bag, causal=args.causal, copy=args.copy)
            page = write_report(args.output, document)
        except BaseException:
            shutil.rmtree(args.output, ignore_errors=True)  # nothing half done is left
            raise
        problems = bag.problems
    if args.json:
        print_json(
            {
                'output': str(args.output),
                'report': str(page),
                'problems': problems,
                'replaced': job.replaced,
                **summary(document),
            }
        )
    else:
        print_document(document)
        if job.replaced:
            print(f'of an earlier sync, so not copied: {", ".join(job.replaced)}')
        print(f'written: {args.output} and {page}')
    return tell_problems(problems)


def processed(
    job: BagSync, bag: BagReader, *, causal: bool = False, copy: bool = False
) -> JsonObject:
    """Return what a sync job came to; unless `causal`, the recording is processed twice."""
    from sensor_rig.cli.support.progress import progress

    if not causal:
        with progress(f'learning {bag.path.name}', bag.message_count) as advance:
            job.learn(advance)
    with progress(f'syncing {bag.path.name}', bag.message_count) as advance:
        return job.run(advance, copy=copy)


def summary(document: JsonObject) -> JsonObject:
    """Return the figures of a run without its series."""
    from sensor_rig.measures.keys import measures_of

    return {
        'bundles': document['bundles'],
        'complete': document['complete'],
        'reference_frames': _reference_frames(document),
        'reference_frames_without_bundle': _reference_frames(document) - document['bundles'],
        'duration_s': document['duration_s'],
        'causal': document['causal'],
        'measures': measures_of(document),
        'sensors': {
            name: {
                'topic': sensor['topic'],
                'counts': sensor['counts'],
                'pairing': sensor['pairing'],
                'missing': sensor['missing'],
                'mounting': sensor['mounting'],
                **sensor['last'],
            }
            for name, sensor in document['sensors'].items()
        },
    }


def print_document(document: JsonObject) -> None:
    """Print what a run came to."""
    from sensor_rig.syncing.drops import DROP_FATES, SPARE, fates
    from sync_engine.streams.ledger import USED

    print(
        f'{document["bundles"]} bundles in {document["duration_s"]:.1f} s, '
        f'{document["complete"]} of them complete; {_unpaired(document)}'
    )
    reference = document['reference']
    rows = []
    for name, sensor in document['sensors'].items():
        counts, last, pairing = sensor['counts'], sensor['last'], sensor['pairing']
        went = fates(document, name)
        rows.append(
            (
                name,
                sensor['topic'],
                counts['received'],
                sum(went[each.value] for each in USED),
                went[SPARE],
                sum(went[fate] for fate in DROP_FATES),
                'reference' if name == reference else _offset(last),
                last.get('state', '-'),
                '-' if not pairing['count'] else f'{pairing["p95_s"] * 1e3:.2f}',
            )
        )
    print_table(
        (
            'input',
            'topic',
            'received',
            'used',
            'spare',
            'dropped',
            'offset (ms)',
            'state',
            'pairing p95 (ms)',
        ),
        rows,
    )
    for sentence in contradictions(document):
        print(f'{sentence}.')


def _reference_frames(document: JsonObject) -> int:
    received: int = document['sensors'][document['reference']]['counts']['received']
    return received


def _unpaired(document: JsonObject) -> str:
    frames = _reference_frames(document)
    lost = max(frames - document['bundles'], 0)
    return f'{lost} of {frames} frames of {document["reference"]} are in no bundle'


def contradictions(document: JsonObject) -> list[str]:
    """Return a sentence for every declared rotation that the motion contradicts."""
    mountings = [sensor.get('mounting') for sensor in document['sensors'].values()]
    return [
        mounting['contradiction']
        for mounting in mountings
        if mounting is not None and mounting['contradiction']
    ]


def _offset(last: dict[str, object]) -> str:
    return f'{last["offset_ms"]:+.3f} ± {last["sigma_ms"]:.3f}' if last else '-'
