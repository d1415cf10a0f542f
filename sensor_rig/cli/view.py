"""Look at a recording in other viewers: a file for rerun, a layout for Foxglove, poses for evo.

Without an option it writes RECORDING.rrd. Foxglove opens the recording itself (MCAP), the layout
arranges its topics.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sensor_rig.cli.support.arguments import add_sidecar_argument, refuse_existing
from sensor_rig.cli.support.output import add_json_argument, print_json

if TYPE_CHECKING:
    from sensor_rig.bags.reader import BagReader

NAME = 'view'
GROUP = 'look'
HELP = 'look at a recording in rerun, Foxglove or evo'
EPILOG = """examples:
  rig view drive/                          drive.rrd, for "rerun drive.rrd"
  rig view drive/ --foxglove layout.json   a layout that shows its topics
  rig view drive/ --tum poses/             a file of poses per topic, for evo
  rig view drive/ --evo poses/             and evo's pictures of them"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the recording and what to write."""
    parser.add_argument('recording', metavar='RECORDING', type=Path, help='the recording')
    parser.add_argument(
        '--rerun',
        metavar='FILE',
        type=Path,
        help="a file for rerun's viewer (.rrd), with timelines for capture, stamp "
        'and arrival; needs rerun-sdk',
    )
    parser.add_argument(
        '--foxglove', metavar='FILE', type=Path, help='a Foxglove layout (.json) for its topics'
    )
    parser.add_argument(
        '--tum',
        metavar='FOLDER',
        type=Path,
        help='a trajectory per topic with poses, as evo reads them (.tum)',
    )
    parser.add_argument(
        '--evo',
        metavar='FOLDER',
        type=Path,
        help="as --tum, with evo's pictures of the trajectories (PNG); needs evo",
    )
    add_sidecar_argument(parser)
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Write what was asked for and say where it is."""
    from sensor_rig.bags.reader import BagReader
    from sensor_rig.cli.support.progress import tell_problems

    if args.evo:
        from sensor_rig.sweep.running.trajectory_error import require_evo

        require_evo('--evo draws trajectories')
        args.tum = args.evo
    if not (args.rerun or args.foxglove or args.tum):
        args.rerun = Path(f'{str(args.recording).rstrip("/")}.rrd')
    for file, suffix in ((args.rerun, '.rrd'), (args.foxglove, '.json')):
        _require_file(file, suffix)
    done: dict[str, Any] = {}
    with BagReader(args.recording, args.sidecar) as bag:
        if args.foxglove:
            done['foxglove'] = _foxglove(bag, args.foxglove)
        if args.tum:
            done['tum'] = _tum(bag, args.tum, draws=args.evo is not None)
        if args.rerun:
            done['rerun'] = _rerun(bag, args.rerun)
        problems = list(bag.problems)
    if args.json:
        print_json({'version': 1, 'recording': str(args.recording), 'problems': problems, **done})
    else:
        for line in _sentences(args, done):
            print(line)
    return tell_problems(problems)


def _require_file(file: Path | None, suffix: str) -> None:
    """Raise RigError where a file cannot be written, before a long recording is read."""
    from rig_common.errors import RigError

    if file is None:
        return
    if file.suffix.lower() != suffix:
        raise RigError(f'{file} should end in {suffix}')
    if not file.parent.is_dir():
        raise RigError(f'{file} cannot be written: there is no folder {file.parent}')
    refuse_existing(file)


def _foxglove(bag: BagReader, out: Path) -> dict[str, object]:
    from rig_common.saving import save_text
    from sensor_rig.view.foxglove import layout

    save_text(out, layout(bag.topics))
    return {'output': str(out)}


def _tum(bag: BagReader, folder: Path, *, draws: bool) -> dict[str, object]:
    from sensor_rig.view.trajectories import draw_with_evo, write_trajectories

    poses = write_trajectories(bag, folder)
    found: dict[str, object] = {'output': str(folder), 'poses': poses}
    return found | {'pictures': draw_with_evo(folder, list(poses))} if draws else found


def _rerun(bag: BagReader, out: Path) -> dict[str, object]:
    from rig_common.saving import saving
    from sensor_rig.cli.support.progress import progress
    from sensor_rig.view.rerun_file import RerunFile

    with saving(out) as part, progress(f'writing {out.name}', bag.message_count) as advance:
        file = RerunFile(part)
        file.write(bag, advance)
        file.close()
    return {'output': str(out), 'messages': dict(file.counts)}


def _sentences(args: argparse.Namespace, done: dict[str, Any]) -> list[str]:
    lines = []
    if 'foxglove' in done:
        lines.append(
            f'written: {args.foxglove}; in Foxglove open the recording, then import this layout'
        )
    if 'tum' in done:
        lines.append(f'written: {args.tum}; for instance: evo_traj tum {args.tum}/*.tum')
        lines += [f'written: {each}' for each in done['tum'].get('pictures', ())]
    if 'rerun' in done:
        lines.append(f'written: {args.rerun}; open it with: rerun {args.rerun}')
    return lines
