"""Make a picture that explains what synced stamps are good for.

before-after  the same LiDAR scans on a map, by their raw stamps and by their synced ones (PNG, SVG
              or PDF); needs no ROS
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sensor_rig.cli.support.arguments import not_negative, positive

NAME = 'picture'
GROUP = 'look'
HELP = 'make a picture of LiDAR scans before and after sync'
EPILOG = """examples:
  picture before-after map.png                      of the shipped demo rig
  picture before-after map.svg --rig robot.yaml     of your own rig"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to draw."""
    parser.add_argument('kind', metavar='KIND', choices=('before-after',), help='before-after')
    parser.add_argument('output', metavar='OUT', type=Path, help='the picture to write')
    parser.add_argument(
        '--rig',
        default='demo',
        metavar='FILE',
        help='a rig file, or the name of a shipped one (demo)',
    )
    parser.add_argument('--sensor', metavar='NAME', help='which LiDAR (the first one)')
    parser.add_argument(
        '--seconds',
        type=positive,
        default=15.0,
        metavar='N',
        help='how long to show, simulated (15)',
    )
    parser.add_argument(
        '--after',
        type=not_negative,
        default=15.0,
        metavar='S',
        help='simulated time before that, until the clocks are learned (15)',
    )


def run(args: argparse.Namespace) -> int:
    """Simulate, draw, and say what is seen."""
    from sensor_rig.cli.support.progress import progress, spinner
    from sensor_rig.pictures.before_after import draw, fuse
    from sensor_rig.pictures.figures import require_picture
    from sensor_rig.rigfile import load_rig

    require_picture(args.output)
    rig = load_rig(args.rig)
    with progress(f'simulating {rig.path.name}', args.after + args.seconds) as advance:
        maps = fuse(rig, args.seconds, args.after, args.sensor, advance)
    title = f'What sync is for: rig "{rig.path.stem}", {args.seconds:g} s of driving'
    with spinner('drawing two maps'):
        draw(maps, title, args.output)
    print(f'{args.output}: {maps.sentence}')
    return 0
