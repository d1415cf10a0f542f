"""Run a rig for long, in lockstep, with random faults, and say whether anything grew or was lost.

Sensors die, stutter and step their clocks, nodes are restarted, the world is reset, strangers
publish rubbish. All of it is drawn from the seed. Memory, threads, open files, queues and the
ledger of every message are watched.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import positive
from sensor_rig.cli.support.live import require_ros
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.running.ros.soaking import SoakReport

NAME = 'soak'
GROUP = 'maintain'
TAKES_SIGNALS = True
HELP = 'run a rig for a long time with random faults; check memory, queues, the ledger'
EPILOG = 'exit code: 0 when nothing grew and nothing was lost, 1 when something did'
VIOLATED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add how long, which faults, which rig."""
    parser.add_argument(
        '--minutes',
        type=positive,
        required=True,
        metavar='N',
        help='length of the run, simulated minutes',
    )
    parser.add_argument('--seed', type=int, default=0, metavar='S', help='seed of the faults (0)')
    parser.add_argument(
        '--rig',
        default='soak',
        metavar='FILE',
        help='a rig file, or the name of a shipped one (default: soak, a light one)',
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Soak, print what happened, and fail on a violation."""
    from sensor_rig.cli.support.progress import note, progress
    from sensor_rig.rigfile import load_rig
    from sensor_rig.running.middleware import prepare_middleware

    rig = load_rig(args.rig)
    prepare_middleware(note)
    require_ros()
    from sensor_rig.running.ros.soaking import soak

    with progress(f'soaking {rig.path.stem}', args.minutes * 60.0) as advance:
        report = soak(rig, args.minutes * 60.0, args.seed, advance)
    if args.json:
        print_json(report.as_dict())
    else:
        print_report(report)
    return VIOLATED if report.violations else 0


def print_report(report: SoakReport) -> None:
    """Print the run, the faults and the judgement."""
    facts = report.as_dict()
    speed = report.simulated_s / report.wall_s if report.wall_s else 0.0
    print(
        f'{report.simulated_s / 60.0:.1f} simulated minutes in {report.wall_s / 60.0:.1f} '
        f'minutes ({speed:.1f} times real time), {sum(report.faults.values())} faults'
    )
    print_table(('fault', 'times'), facts['faults'].items())
    (first, last), threads, files = facts['rss_mib'], facts['threads'], facts['files']
    print_table(
        ('what', 'begin', 'end'),
        [
            ('memory (MiB)', f'{first:.1f}', f'{last:.1f}'),
            ('threads', *threads),
            ('open files', *files),
        ],
    )
    print(
        f'memory slope: {facts["rss_slope_mib_per_h"]:+.2f} MiB per simulated hour; longest '
        f'queue: {facts["longest_queue"]} messages'
    )
    print(
        f'{report.bundles} bundles; the longest time without one: '
        f'{report.longest_silence_s:.1f} simulated s'
    )
    for sentence in report.violations:
        print(f'VIOLATION: {sentence}')
    if not report.violations:
        print(
            f'nothing was lost, and nothing grew after the first third of the run; until then '
            f'buffers fill (memory at the begin {first:.0f} MiB, at the end {last:.0f} MiB)'
        )
