"""Make a picture that explains: what synced stamps are good for, and what a clock step does.

before-after  the same LiDAR scans on a map, by their raw stamps and by their synced ones (PNG, SVG
              or PDF); needs no ROS
clock-step    the drawings of the live page while the clock of a sensor steps (WebP or GIF); needs
              playwright and Chromium, no ROS
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import not_negative, positive

if TYPE_CHECKING:
    from sensor_rig.rigfile import RigConfig

NAME = 'picture'
GROUP = 'look'
HELP = 'make a picture: scans before and after sync, or a clock step on the page'
EPILOG = """examples:
  picture before-after map.png                      of the shipped demo rig
  picture before-after map.svg --rig robot.yaml     of your own rig
  picture clock-step page.webp --sensor camera      the page of the demo rig"""
KINDS = ('before-after', 'clock-step')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what to draw."""
    parser.add_argument('kind', metavar='KIND', choices=KINDS, help=f'one of {", ".join(KINDS)}')
    parser.add_argument('output', metavar='OUT', type=Path, help='the picture to write')
    parser.add_argument(
        '--rig',
        default='demo',
        metavar='FILE',
        help='a rig file, or the name of a shipped one (demo)',
    )
    parser.add_argument(
        '--sensor',
        metavar='NAME',
        help='which LiDAR (the first one), or whose clock steps (the first input '
        'that is not the reference and has a clock of its own)',
    )
    parser.add_argument(
        '--seconds',
        type=positive,
        metavar='N',
        help='how long to show, simulated (15, clock-step 8)',
    )
    parser.add_argument(
        '--after',
        type=not_negative,
        default=15.0,
        metavar='S',
        help='simulated time before that, until the clocks are learned (15)',
    )
    parser.add_argument(
        '--step-ms',
        type=float,
        default=53.0,
        metavar='MS',
        help='clock-step: by how much the clock steps (53)',
    )


def run(args: argparse.Namespace) -> int:
    """Simulate, draw, and say what is seen."""
    return {'before-after': _before_after, 'clock-step': _clock_step}[args.kind](args)


def _before_after(args: argparse.Namespace) -> int:
    from sensor_rig.cli.support.progress import progress, spinner
    from sensor_rig.pictures.before_after import draw, fuse
    from sensor_rig.pictures.figures import require_picture
    from sensor_rig.rigfile import load_rig

    require_picture(args.output)
    rig, seconds = load_rig(args.rig), args.seconds or 15.0
    with progress(f'simulating {rig.path.name}', args.after + seconds) as advance:
        maps = fuse(rig, seconds, args.after, args.sensor, advance)
    with spinner('drawing two maps'):
        draw(
            maps, f'What sync is for: rig "{rig.path.stem}", {seconds:g} s of driving', args.output
        )
    print(f'{args.output}: {maps.sentence}')
    return 0


def _clock_step(args: argparse.Namespace) -> int:
    from sensor_rig.cli.support.progress import progress
    from sensor_rig.page import film
    from sensor_rig.pictures.figures import require_picture
    from sensor_rig.rigfile import load_rig

    require_picture(args.output, film.FORMATS)
    rig, seconds = load_rig(args.rig), args.seconds or 8.0
    sensor = _clock_of(rig, args.sensor)
    film.require_browser()
    with progress(f'filming the page of {rig.path.name}', args.after + seconds) as advance:
        frames = film.film_clock_step(
            rig, sensor, args.step_ms, lead_s=args.after, seconds=seconds, advance=advance
        )
    film.save(frames, args.output)
    print(
        f'{args.output}: {len(frames)} frames, the clock of {sensor} steps by {args.step_ms:+g} ms'
    )
    return 0


def _clock_of(rig: RigConfig, wanted: str | None) -> str:
    """Return the sensor whose clock is to step; RigError where it has none that sync follows."""
    from rig_common.errors import RigError

    inputs = {} if rig.sync is None else rig.sync.inputs
    steppable = [
        name
        for name in inputs
        if name in rig.sensors
        and rig.sync is not None
        and name != rig.sync.reference_sensor_id
        and rig.sensors[name].clock.stamp_at != 'arrival'
    ]
    if wanted is None and steppable:
        return steppable[0]
    if wanted not in steppable:
        known = (
            f'clocks that sync follows are those of {", ".join(steppable)}'
            if steppable
            else 'it has no sync input with a clock of its own'
        )
        raise RigError(
            f'{rig.path.name}: the clock of {wanted!r} cannot be shown; {known}'
            if wanted
            else f'{rig.path.name}: {known}'
        )
    return wanted
