"""EuRoC's folders (ASL): `mav0/<sensor>/data.csv` with `sensor.yaml` beside it.

IMUs, cameras with their calibration, positions and poses. They hold no receive times: a message is
received at its stamp.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import yaml

from rig_common import msgs
from rig_common.cdr import Template
from sensor_rig.bags.formats.made import MadeFile, MadeStream, filled
from sensor_rig.bags.formats.trajectory import PoseRows, pose_stream
from sensor_rig.bags.storage.base import BrokenError, Miss

DATA = 'data.csv'
MODELS = {'radial-tangential': 'plumb_bob', 'radtan': 'plumb_bob', 'equidistant': 'equidistant'}
"""EuRoC -> ROS."""


def asl_folder(path: Path) -> Path | None:
    """Return the folder of the sensors, where `path` is one or holds one as `mav0`."""
    for folder in (path / 'mav0', path):
        if folder.is_dir() and any(folder.glob(f'*/{DATA}')):
            return folder
    return None


def asl_file(folder: Path, miss: Miss) -> MadeFile:
    """Return the sensors of a folder; `miss` gets a sentence for what is left out."""
    streams: list[MadeStream] = []
    for table in sorted(folder.glob(f'*/{DATA}')):
        streams += _sensor(table.parent, miss)
    return MadeFile(folder, streams)


def _sensor(folder: Path, miss: Miss) -> list[MadeStream]:
    header, rows = _table(folder / DATA, miss)
    about = _about(folder / 'sensor.yaml')
    kind = str(about.get('sensor_type', '')).lower()
    if 'camera' in kind or any('filename' in name for name in header):
        return _camera(folder, rows, about, miss)
    if not rows:
        return []
    times_ns = np.array([int(row[0]) for row in rows], np.int64)
    try:
        values = np.array([[float(word) for word in row[1:]] for row in rows])
    except ValueError:
        raise BrokenError(f'{folder.name}/{DATA} holds something else than numbers') from None
    if kind == 'imu' or header[1].startswith('w_'):
        rates = {'angular_velocity': values[:, :3], 'linear_acceleration': values[:, 3:6]}
        topic = f'/{folder.name}/data_raw'
        return [filled(topic, msgs.imu(folder.name), times_ns, times_ns, **rates)]
    if values.shape[1] >= 7:  # p x y z, q w x y z, and what follows
        poses = PoseRows(times_ns, values[:, :3], values[:, [4, 5, 6, 3]])
        return [pose_stream(f'/{folder.name}/pose', poses, folder.name)]
    if values.shape[1] == 3:
        template, topic = msgs.point_stamped(folder.name), f'/{folder.name}/position'
        return [filled(topic, template, times_ns, times_ns, point=values)]
    miss(f'{folder} has {len(header)} columns, which are of no sensor that is read')
    return []


def _table(file: Path, miss: Miss) -> tuple[list[str], list[list[str]]]:
    with file.open(newline='', encoding='utf-8') as text:
        lines = [[word.strip() for word in row] for row in csv.reader(text) if row]
    header = [word.lstrip('#').strip() for word in lines[0]] if lines else []
    if len(header) < 2:
        raise BrokenError(f'{file.parent.name}/{DATA} has no columns')
    rows = [row for row in lines[1:] if row[0].isdecimal() and len(row) == len(header)]
    if left_out := len(lines) - 1 - len(rows):
        miss(f'{left_out} lines of {file} make no sense and are left out')
    return header, rows


def _about(file: Path) -> dict[str, object]:
    if not file.exists():
        return {}
    try:
        text = '\n'.join(line for line in file.read_text(encoding='utf-8').splitlines()
                         if not line.startswith('%'))  # fmt: skip
        found = yaml.safe_load(text)
    except (OSError, yaml.YAMLError, UnicodeDecodeError):
        return {}
    return found if isinstance(found, dict) else {}


def _camera(
    folder: Path, listed: list[list[str]], about: dict[str, object], miss: Miss
) -> list[MadeStream]:
    rows = [row for row in listed if (folder / 'data' / row[1]).is_file()]
    if missing := len(listed) - len(rows):
        miss(f'{missing} of {len(listed)} pictures of {folder} are not there')
    times_ns = np.array([int(row[0]) for row in rows], np.int64)
    name = folder.name

    def make(index: int) -> bytes:
        from PIL import Image  # heavy, and of no use where nobody reads images

        try:
            with Image.open(folder / 'data' / rows[index][1]) as picture:
                pixels = np.asarray(picture if picture.mode in ('L', 'RGB') else
                                    picture.convert('L'))  # fmt: skip
        except OSError as error:
            raise BrokenError(f'{rows[index][1]} is no picture: {error}') from None
        encoding = 'mono8' if pixels.ndim == 2 else 'rgb8'
        template = msgs.image(name, pixels.shape[0], pixels.shape[1], encoding)
        return template.fill(int(times_ns[index]), data=pixels)

    streams = [MadeStream(f'/{name}/image_raw', 'sensor_msgs/msg/Image', times_ns, make)]
    info = _camera_info(name, about)
    if info is not None:
        streams.append(filled(f'/{name}/camera_info', info, times_ns, times_ns))
    return streams


def _camera_info(name: str, about: dict[str, object]) -> Template | None:
    values, size = about.get('intrinsics'), about.get('resolution')
    if not (isinstance(values, list) and len(values) == 4 and isinstance(size, list)):
        return None
    fu, fv, cu, cv = (float(value) for value in values)
    distortion = about.get('distortion_coefficients')
    return msgs.camera_info(
        name,
        int(size[1]),
        int(size[0]),
        [[fu, 0.0, cu], [0.0, fv, cv], [0.0, 0.0, 1.0]],
        d=distortion if isinstance(distortion, list) else (),
        distortion_model=MODELS.get(str(about.get('distortion_model')), 'plumb_bob'),
    )
