"""Write offsets, rotations and noise in the words of other tools: Kalibr, VINS, FAST-LIO, PX4, ...

Each file says in a comment what its tool means by an offset, and what the tool cannot be told.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import add_sidecar_argument
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.export.knowledge import Knowledge

NAME = 'export'
GROUP = 'repair'
HELP = 'write offsets, rotations and noise in the words of another tool'
EPILOG = """examples:
  rig export --list                                      the tools, and what each means
  rig export drive/ --to kalibr --rig robot.yaml         print the files
  rig export drive/ --to fast_lio vins --out calib/      write them into a folder"""
VERSION = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what is known, the tools, and where to write."""
    parser.add_argument(
        'input',
        metavar='IN',
        nargs='?',
        type=Path,
        help='a recording',
    )
    parser.add_argument('--to', nargs='+', metavar='TOOL', default=[], help='see --list')
    parser.add_argument('--list', action='store_true', help='list the tools and their conventions')
    parser.add_argument(
        '--rig',
        metavar='FILE',
        help='a rig file with a sync: section; without it, the inputs of a recording are found as '
        '"inspect --write" does',
    )
    add_sidecar_argument(parser)
    parser.add_argument(
        '--extrinsics',
        metavar='FILE',
        type=Path,
        help='YAML: input to [x, y, z], m: where it is in the IMU frame; without it /tf_static of '
        'the recording says so, else a gap is marked',
    )
    parser.add_argument(
        '--out', metavar='FOLDER', type=Path, help='write files, do not print them'
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Write the files of every tool that was asked for."""
    from rig_common.errors import RigError
    from rig_common.validation import hint
    from sensor_rig.cli.support.progress import tell_problems
    from sensor_rig.export.tools import TOOLS

    if args.list:
        return _list(args.json)
    if args.input is None or not args.to:
        raise RigError('export needs what is known (IN) and tools (--to); "--list" shows them')
    for name in args.to:
        if name not in TOOLS:
            raise RigError(f'--to is {name!r}; {hint(name, list(TOOLS), "the tools are")}')
    if not args.input.exists():
        raise RigError(f'there is nothing at {args.input}')
    known = _knowledge(args)
    files = {
        f'{name}/{file}' if len(args.to) > 1 else file: text
        for name in args.to
        for file, text in TOOLS[name].write(known).items()
    }
    if args.out is not None:
        _write(args.out, files)
    if args.json:
        print_json(
            {
                'version': VERSION,
                'source': known.source,
                'imu': known.imu,
                'reference': known.reference,
                'sensors': {
                    name: {
                        'topic': each.topic,
                        'ahead_ms': each.ahead_s * 1e3 if each.known else None,
                        'sigma_ms': each.sigma_s * 1e3 if each.known else None,
                        'drift_ppm': each.drift_ppm if each.drift_ppm == each.drift_ppm else None,
                        'state': each.state,
                        'quat_wxyz': each.quat_wxyz,
                    }
                    for name, each in known.sensors.items()
                },
                'files': files,
                'problems': known.problems,
            }
        )
    elif args.out is None:
        for name, text in files.items():
            print(f'# ---- {name}\n{text}')
    else:
        print(f'written: {", ".join(str(args.out / name) for name in files)}')
    return tell_problems(known.problems)


def _knowledge(args: argparse.Namespace) -> Knowledge:
    from sensor_rig.cli.support.progress import progress
    from sensor_rig.export.learning import knowledge_of, with_declared_noise, with_positions
    from sensor_rig.rigfile import load_rig

    rig = None if args.rig is None else load_rig(args.rig)
    sync = None if rig is None else rig.required_sync
    with progress(f'learning {args.input.name}', 0) as advance:
        known = knowledge_of(args.input, sync, args.sidecar, advance)
    if rig is not None:
        known = with_declared_noise(known, rig.sensors)
    return known if args.extrinsics is None else with_positions(known, args.extrinsics)


def _write(folder: Path, files: dict[str, str]) -> None:
    from rig_common.errors import RigError, why
    from rig_common.saving import save_text

    for name in files:
        if (folder / name).exists():
            raise RigError(f'{folder / name} exists already; choose another folder or remove it')
    for name, text in files.items():
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RigError(f'cannot write {folder}: {why(error)}') from None
        save_text(folder / name, text)


def _list(as_json: bool) -> int:
    from sensor_rig.export.tools import TOOLS

    if as_json:
        print_json({'version': VERSION, 'tools': {
            name: {'title': tool.title, 'means': tool.means, 'upstream': tool.upstream}
            for name, tool in TOOLS.items()}})  # fmt: skip
    else:
        print_table(
            ('tool', 'for', 'what its offset means'),
            [(name, tool.title, tool.means) for name, tool in TOOLS.items()],
        )
    return 0
