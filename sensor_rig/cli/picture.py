"""Make a picture that explains what synced stamps are good for.

before-after  the same LiDAR scans on a map, by their raw stamps and by their synced ones (PNG, SVG
              or PDF); needs no ROS
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sensor_rig.cli.support.arguments import add_simulation_arguments

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
    parser.add_argument('--sensor', metavar='NAME', help='which LiDAR (the first one)')
    add_simulation_arguments(parser, rig='demo', seconds=15.0, after=15.0)


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
