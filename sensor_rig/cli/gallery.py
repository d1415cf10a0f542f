"""Draw a picture sheet: every sensor of a rig, what it measured over what was true."""

from __future__ import annotations

import argparse

from sensor_rig.cli.support.arguments import add_simulation_arguments, output_file

NAME = 'gallery'
GROUP = 'look'
HELP = 'draw what every sensor of a rig measures, against the truth'
EPILOG = """examples:
  gallery sheet.png                     the shipped rig with one sensor of every type
  gallery mine.svg --rig robot.yaml     your own rig; png, svg and pdf are known"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to draw."""
    parser.add_argument('output', metavar='OUT', type=output_file, help='the picture to write')
    add_simulation_arguments(parser, rig='everything', seconds=6.0, after=3.0)


def run(args: argparse.Namespace) -> int:
    """Simulate the rig, draw the sheet."""
    from sensor_rig.cli.support.progress import progress, spinner
    from sensor_rig.pictures.figures import require_picture
    from sensor_rig.pictures.gallery import draw, record
    from sensor_rig.rigfile import load_rig

    require_picture(args.output)
    rig = load_rig(args.rig)
    with progress(f'simulating {rig.path.name}', args.after + args.seconds) as advance:
        takes = record(rig, args.seconds, args.after, advance)
    with spinner(f'drawing {len(takes)} panels'):
        draw(
            takes,
            f'Rig "{rig.path.stem}": measured against true',
            f'{len(takes)} sensors, {args.seconds:g} s of simulated time from {args.after:g} s '
            f'on, seed {rig.seed}; every sample at the true time of its capture',
            args.output,
        )
    print(f'written: {args.output}')
    return 0
