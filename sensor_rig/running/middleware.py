"""Settings of the middleware before ROS starts: who may reach this rig, and a limit raised.

ROS limits discovery to this machine, but Fast DDS still binds its ports to every interface: a
host that names ours as a peer gets in. `config/fastdds/local.xml` closes the ports. It and
`network.xml` also lift the limit of a reader that kept a restarted node from hearing anything.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from importlib import metadata
from pathlib import Path

from rig_common.paths import share_dir

RANGE_VARIABLE = 'ROS_AUTOMATIC_DISCOVERY_RANGE'
LOCAL_RANGES = ('LOCALHOST', 'OFF')
FILE_VARIABLES = ('FASTDDS_DEFAULT_PROFILES_FILE', 'FASTRTPS_DEFAULT_PROFILES_FILE')
"""Since Fast DDS 3, and before it."""
FILES_HERE = ('DEFAULT_FASTDDS_PROFILES.xml', 'DEFAULT_FASTRTPS_PROFILES.xml')
"""Fast DDS reads these from the working directory."""
FASTDDS3_RCLPY = 8
"""Major version of rclpy from which on ROS comes with Fast DDS 3."""
OPENING = ('ROS_STATIC_PEERS', 'ROS_DISCOVERY_SERVER')
"""Variables that name other machines to talk to."""


def prepare_middleware(
    tell: Callable[[str], None], environ: MutableMapping[str, str] = os.environ
) -> None:
    """Limit what is started from now on to this machine, unless the user wants otherwise.

    Sets variables in `environ`; call it before rclpy is initialised. `tell` gets a sentence for
    everything that leaves the rig open, or leaves our profile out.
    """
    environ.setdefault(RANGE_VARIABLE, 'LOCALHOST')
    chosen = environ.get('RMW_IMPLEMENTATION', '')
    if chosen and 'fastrtps' not in chosen:
        tell(
            f'RMW_IMPLEMENTATION is {chosen}: whether other machines can reach this rig is up to '
            f'its settings; sensor_rig closes the ports of Fast DDS only'
        )
        return
    opened = opened_by(environ)
    if opened:
        tell(f'{opened}: other machines of the network can see and control this rig')
    own = users_profile(environ)
    if own:
        tell(
            f'the Fast DDS profile {own} is used as it is; what sensor_rig would set is in '
            f'{profile("network" if opened else "local")}'
        )
        return
    for name in FILE_VARIABLES:
        environ.pop(name, None)  # ours, from a run around this one that had another Fast DDS
    environ[_file_variable()] = str(profile('network' if opened else 'local'))


def profile(name: str) -> Path:
    """Return the shipped profile `local` or `network`."""
    return share_dir() / 'config' / 'fastdds' / f'{name}.xml'


def opened_by(environ: Mapping[str, str]) -> str:
    """Return which setting lets other machines in; empty when none does."""
    if environ.get('ROS_LOCALHOST_ONLY', '0') == '1':
        return ''
    for name in OPENING:
        if environ.get(name):
            return f'{name} is {environ[name]}'
    reach = environ.get(RANGE_VARIABLE, '')
    return '' if reach in LOCAL_RANGES else f'{RANGE_VARIABLE} is {reach or "not set"}'


def users_profile(environ: Mapping[str, str]) -> str:
    """Return the profile file that the user has chosen; empty when there is none."""
    for name in FILE_VARIABLES:
        if environ.get(name) and Path(environ[name]).parent != profile('local').parent:
            return environ[name]
    if environ.get('SKIP_DEFAULT_XML_FILE', '0') == '1':
        return ''
    return next((name for name in FILES_HERE if Path(name).is_file()), '')


def _file_variable() -> str:
    try:
        major = int(metadata.version('rclpy').split('.')[0])
    except (metadata.PackageNotFoundError, ValueError):
        major = FASTDDS3_RCLPY
    return FILE_VARIABLES[0] if major >= FASTDDS3_RCLPY else FILE_VARIABLES[1]
