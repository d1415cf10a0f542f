"""Assert measures of one run: of the JSON of "rig run" or "rig sync", or of a recording.

A recording is measured by the bundles in it, or with --rig by running that rig's sync engine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sensor_rig.cli.support.arguments import add_sidecar_argument
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

NAME = 'assert'
GROUP = 'stress'
HELP = 'assert measures of a run, with an exit code for CI'
EPILOG = """examples:
  rig run demo --lockstep --rtf 0 --seconds 20 --json > run.json
  rig assert run.json --that "camera.offset_error_ms.p95 < 2" "bundles >= 150"
  rig assert drive/ --rig robot.yaml --that "completeness > 0.95"
  rig assert drive/                            list what can be asserted
exit code: 0 all hold; 1 one does not; 2 a mistake, also a measure that the run does not have"""
VERSION = 1
OFFSETS = {
    'live': 'live, as a node knows them at each moment',
    'smoothed': 'smoothed over the whole recording, in two passes',
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the run and the claims."""
    parser.add_argument(
        'run', metavar='RUN', type=Path, help='a JSON summary, or a rosbag2 folder, .mcap or .db3'
    )
    parser.add_argument(
        '--that',
        metavar='CLAIM',
        nargs='+',
        action='extend',
        default=[],
        help='what must hold, such as "camera.offset_error_ms.p95 < 2"; without '
        'it, the measures are listed',
    )
    parser.add_argument(
        '--rig', metavar='FILE', help='sync the recording with the sync: section of this rig file'
    )
    parser.add_argument(
        '--smoothed',
        action='store_true',
        help='with --rig: process the recording in two passes, as "rig sync" does; without it the '
        'offsets are those that a live node had, with wider sigmas',
    )
    add_sidecar_argument(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Judge the claims."""
    from sensor_rig.measures.claims import Claim

    claims = [Claim.parse(text, '--that ') for text in args.that]
    found, offsets = _measures(args)
    if not claims:
        _list(found, offsets, args.json)
        return 0
    judged = [(claim, value := claim.value_in(found), claim.holds(value)) for claim in claims]
    holds = all(held for _, _, held in judged)
    if args.json:
        print_json(
            {
                'version': VERSION,
                'holds': holds,
                'offsets': offsets,
                'claims': [
                    {'claim': str(claim), 'key': claim.key, 'value': value, 'holds': held}
                    for claim, value, held in judged
                ],
            }
        )
    else:
        print_table(
            ('claim', 'value', 'holds'),
            [(str(claim), f'{value:g}', 'yes' if held else 'NO') for claim, value, held in judged],
        )
        _tell_offsets(offsets)
    return 0 if holds else 1


def _list(found: dict[str, float], offsets: str, as_json: bool) -> None:
    if as_json:
        print_json(
            {'version': VERSION, 'offsets': offsets, 'measures': dict(sorted(found.items()))}
        )
    else:
        print_table(
            ('measure', 'value'), [(key, f'{value:g}') for key, value in sorted(found.items())]
        )
        _tell_offsets(offsets)


def _tell_offsets(offsets: str) -> None:
    if offsets:
        print(f'\noffsets and their sigma: {OFFSETS[offsets]}')


def _measures(args: argparse.Namespace) -> tuple[dict[str, float], str]:
    """Return the measures, and how the offsets in them were estimated (a key of `OFFSETS`)."""
    from rig_common.errors import RigError
    from sensor_rig.bags.files import looks_like_recording
    from sensor_rig.measures.summaries import summary_measures

    if not args.run.exists():
        raise RigError(f'there is neither a summary nor a recording at {args.run}')
    if not looks_like_recording(args.run):
        for given, option in (
            (args.rig, '--rig'),
            (args.sidecar, '--sidecar'),
            (args.smoothed, '--smoothed'),
        ):
            if given:
                raise RigError(f'{option} is for a recording, and {args.run} is a summary')
        return summary_measures(args.run)
    offsets = '' if args.rig is None else 'smoothed' if args.smoothed else 'live'
    return _recorded(args), offsets


def _recorded(args: argparse.Namespace) -> dict[str, float]:
    from rig_common.errors import RigError
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.support.progress import progress, tell_problems
    from sensor_rig.measures.recorded import recorded_measures
    from sensor_rig.rigfile import load_rig

    if args.smoothed and args.rig is None:
        raise RigError('--smoothed needs --rig, which says how to sync the recording')
    sync = None if args.rig is None else load_rig(args.rig).required_sync
    with BagReader(args.run, args.sidecar) as bag:
        count = bag.message_count
        tell_problems(bag.problems)
    with progress(f'reading {args.run.name}', count) as advance:
        return recorded_measures(
            args.run, sync, learn=args.smoothed, sidecar=args.sidecar, advance=advance
        )
