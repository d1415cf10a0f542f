"""Write the RViz view of a rig: its streams raw and synced, truth, frames, scene and robot."""

from __future__ import annotations

import argparse

from sensor_rig.cli.support.arguments import output_file

NAME = 'rviz'
GROUP = 'look'
HELP = 'write the RViz view of a rig file'
EPILOG = """examples:
  rig rviz demo --output demo.rviz      then: rviz2 -d demo.rviz
  rig rviz my_rig.yaml --namespace r1   for a rig that was launched with namespace:=r1"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the rig, where its topics are and where the view goes."""
    parser.add_argument('rig', metavar='RIG', help='a rig file, or the name of a shipped one')
    parser.add_argument(
        '--output',
        metavar='FILE',
        type=output_file,
        help='the .rviz file to write (without it, it is printed)',
    )
    parser.add_argument(
        '--namespace', metavar='NS', default='', help='namespace in which the rig runs'
    )


def run(args: argparse.Namespace) -> int:
    """Write the view."""
    from rig_common.saving import save_text
    from sensor_rig.cli.support.progress import note
    from sensor_rig.rigfile import load_rig
    from sensor_rig.view.rviz_config import not_shown, view_text

    rig = load_rig(args.rig)
    text = view_text(rig, args.namespace)
    left_out = not_shown(rig)
    if left_out:
        note(f'RViz itself has no display for {", ".join(left_out)}')
    if args.output is None:
        print(text, end='')
        return 0
    save_text(args.output, text)
    print(f'written: {args.output} (show it with "rviz2 -d {args.output}")')
    return 0
