"""Look at a model, write a rig file to start from, and a picture of where its sensors sit.

Lists the bodies, sites, joints, actuators, keyframes, cameras and sensors of a MuJoCo or URDF
model. The rig file has sensors in likely places (an IMU on the base, a camera in the head or hand,
forces in feet, fingertips and wrist) and a driver that moves the robot. It is run for a few
seconds: `mount` says when the robot fell, drifted or did not move, and which camera sees nothing.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.arguments import output_file
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from rig_common.jsonable import JsonObject
    from sensor_rig.inprocess import InProcessRig
    from sensor_rig.mounting.survey import Survey

NAME = 'mount'
GROUP = 'set up'
HELP = 'list what is in a model and write a starting rig file, with a picture of its mounts'
EPILOG = """examples:
  mount robot.xml                      robot_rig.yaml and robot_rig.png in this folder
  mount robot.urdf -o rigs/mine.yaml   another name; the picture goes beside it
  mount robot.xml --list               only list what is in it"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model and where to write."""
    parser.add_argument('model', metavar='MODEL', type=Path, help='MJCF or URDF file')
    parser.add_argument(
        '-o',
        '--out',
        metavar='FILE',
        type=output_file,
        help='rig file to write (default: MODEL_rig.yaml here)',
    )
    parser.add_argument('--force', action='store_true', help='replace a file that is there')
    parser.add_argument('--list', action='store_true', help='list only, write nothing')
    parser.add_argument('--no-picture', action='store_true', help='write no picture')
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """List, guess, write."""
    from sensor_rig.mounting.survey import look_at

    out = args.out or Path(f'{args.model.stem}_rig.yaml')
    if not args.list:
        _require_free([out, *([] if args.no_picture else [out.with_suffix('.png')])], args.force)
    survey = look_at(args.model)
    document: JsonObject = survey.as_json()
    if not args.json:
        _print_lists(survey)
    if not args.list:
        document |= _write(survey, out, picture=not args.no_picture)
        if not args.json:
            _print_written(document, survey)
    if args.json:
        print_json(document)
    return 0


def _require_free(files: list[Path], force: bool) -> None:
    from rig_common.errors import RigError

    for file in files:
        if file.exists() and not force:
            raise RigError(f'{file} is there already; give another name with -o, or --force')
        if not file.absolute().parent.is_dir():
            raise RigError(f'{file} cannot be written: there is no folder {file.parent}')


def _write(survey: Survey, out: Path, *, picture: bool) -> JsonObject:
    """Write the rig file, run it, and draw it where something renders here."""
    from rig_common.errors import RigError, UnavailableError
    from rig_common.saving import save_text
    from sensor_rig.cli.support.progress import note
    from sensor_rig.mounting.guess import Guess
    from sensor_rig.mounting.picture import draw_mounts
    from sensor_rig.mounting.starter import starter_rig
    from sensor_rig.mounting.watch import watch, watched_s

    guess = Guess(survey)
    text = starter_rig(survey, guess, out)
    try:
        rig = _tried(text, out)
    except RigError as error:
        if not str(error).startswith('world.driver'):
            raise RigError(
                f'no rig file was written, because the guess does not run: {error}'
            ) from None
        note(f'nothing drives it: {error}')
        text = starter_rig(survey, guess, out, driver='none')
        rig = _tried(text, out)
    save_text(out, text)
    written: JsonObject = {
        'rig_file': str(out),
        'picture': None,
        'mounted': sorted(rig.sensors),
        'kind': guess.robot.kind,
    }
    sensors = list(rig.sensors.values())
    if picture:
        file = out.with_suffix('.png')
        try:
            rig.world.step()
            draw_mounts(rig.world.model, rig.world.data(0), sensors, guess.robot.base, file)
            written['picture'] = str(file)
        except UnavailableError as error:
            note(f'no picture: {error}')
        rig.world.reset()
    written['watched_s'] = watched_s(rig.world)
    written['saw'] = [each.as_json() for each in watch(rig.world, sensors, guess.robot)]
    return written


def _tried(text: str, out: Path) -> InProcessRig:
    """Return the rig of a text that is not yet the file `out`."""
    from rig_common.errors import RigError
    from sensor_rig.inprocess import InProcessRig
    from sensor_rig.rigfile import load_rig

    trial = out.with_name(f'.{out.stem}.trial.yaml')
    try:
        trial.write_text(text, encoding='utf-8')
        return InProcessRig(load_rig(trial).with_world(skip_unavailable=True), sync=False)
    except OSError as error:
        raise RigError(f'{out} cannot be written: {error.strerror}') from None
    finally:
        trial.unlink(missing_ok=True)


def _print_written(document: JsonObject, survey: Survey) -> None:
    from sensor_rig.mounting.guess import LONGEST_STEP_S

    for key in ('rig_file', 'picture'):
        if document.get(key):
            print(f'written: {document[key]}')
    if survey.timestep_s > LONGEST_STEP_S:
        print(
            f'the model asks for steps of {survey.timestep_s * 1e3:g} ms; the rig takes '
            f'{LONGEST_STEP_S * 1e3:g} ms, which its driver needs'
        )
    print(f'ran {document["watched_s"]:g} s as a robot of the kind {document["kind"]}:')
    for sight in document['saw'] or [{'sentence': 'nothing unusual'}]:
        print(f'  {sight["sentence"]}')


def _print_lists(survey: Survey) -> None:
    for title, rows in survey.as_json().items():
        if isinstance(rows, list) and rows:
            print_table(
                tuple(key.replace('_', ' ') for key in rows[0]),
                [[_shown(value) for value in row.values()] for row in rows],
                title,
            )


def _shown(value: object) -> object:
    if isinstance(value, list):
        return ' '.join(f'{each:g}' for each in value)
    if isinstance(value, float):
        return f'{value:.4g}'
    if value is None or isinstance(value, bool):  # not the numbers 0 and 1
        return 'yes' if value else ''
    return value
