"""Reads a motion from a file: CSV, NPZ, or the JointState messages of a recording.

CSV has a header row; the column `time_s` (or `time`, `t`) is seconds, every other column is a
joint in rad or m, or one of x, y, z, qw, qx, qy, qz, yaw. NPZ has the array `time_s` [k] and one
array [k] per column.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rig_common.arrays import Floats
from rig_common.cdr import CdrError, Reader
from rig_common.errors import RigError, why
from sim_sensors.interface.tables import read_table
from sim_sensors.world.actuation.path_following import JointPath
from sim_sensors.world.config.drivers import TrajectoryConfig

TIMES = ('time_s', 'time', 't')
JOINT_STATE = 'sensor_msgs/msg/JointState'


def read_motion(config: TrajectoryConfig, base_dir: Path | None) -> JointPath:
    """Return the motion in the file of `config`, looked up in `base_dir`."""
    file = (base_dir or Path.cwd()) / Path(config.file).expanduser()
    where = f'world.driver.file {config.file}'
    if not file.exists():
        raise RigError(f'{where}: there is no such file')
    if file.suffix.lower() in ('.csv', '.npz'):
        columns = read_table(file, where)
    elif file.is_dir() or file.suffix.lower() in ('.mcap', '.db3'):
        columns = _recording(file, config.topic, where)
    else:
        raise RigError(f'{where}: it should be a .csv, an .npz or a rosbag2 recording')
    try:
        return _path(columns, where)
    except RigError as error:
        raise RigError(f'{where}: {str(error).removeprefix(where + ": ")}') from None


def _path(columns: dict[str, Floats], where: str) -> JointPath:
    time = next((name for name in TIMES if name in columns), None)
    if time is None:
        raise RigError(f'{where}: it has no column time_s')
    names = tuple(name for name in columns if name != time)
    if not names:
        raise RigError(f'{where}: it has times but nothing that moves')
    return JointPath(names, columns[time], np.stack([columns[name] for name in names], 1))


def _recording(file: Path, topic: str, where: str) -> dict[str, Floats]:
    """Return the positions of the JointState messages on `topic`, by their stamps."""
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    times: list[float] = []
    rows: list[dict[str, float]] = []
    try:
        with AnyReader([file], default_typestore=get_typestore(Stores.ROS2_KILTED)) as reader:
            wanted = [
                each for each in reader.connections if each.topic.strip('/') == topic.strip('/')
            ]
            if not wanted or wanted[0].msgtype != JOINT_STATE:
                raise RigError(f'{where}: it has no topic {topic!r} of {JOINT_STATE}')
            for _, _, raw in reader.messages(wanted):
                stamp_s, row = _joint_state(bytes(raw))
                if row and (not times or stamp_s > times[-1]):
                    times.append(stamp_s)
                    rows.append(row)
    except (RigError, CdrError) as error:
        raise RigError(str(error)) from None
    except Exception as error:  # whatever the storage raises about broken bytes
        raise RigError(f'{where}: it cannot be read: {why(error)}') from None
    if not rows:
        raise RigError(f'{where}: {topic!r} has no positions')
    names = list(rows[0])
    if any(list(row) != names for row in rows):
        raise RigError(f'{where}: {topic!r} names other joints from message to message')
    start_s = times[0]
    columns = {name: np.array([row[name] for row in rows]) for name in names}
    return {'time_s': np.array(times) - start_s, **columns}


def _joint_state(raw: bytes) -> tuple[float, dict[str, float]]:
    """Return the stamp, s, and the positions by name of a serialised JointState."""
    reader = Reader(raw)
    stamp_ns, _ = reader.header()
    names = reader.strings()
    positions = reader.sequence('f8').tolist()
    if len(positions) != len(names):
        return 0.0, {}
    return stamp_ns / 1e9, dict(zip(names, positions, strict=True))
