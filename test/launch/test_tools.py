"""The launch files' tools: what is asked for and not there does not leave the rig behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.installed import ros_package, with_packages

ros_package('launch_ros')

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext
from launch.actions import LogInfo, RegisterEventHandler
from launch_ros.actions import Node
from support.processes import Processes

from rig_common.errors import RigError
from sensor_rig.rigfile import load_rig
from sensor_rig.running.ros.launching import require_known, tools, write_view

HERE = Path(__file__).resolve().parent


def started(wanted: str) -> list[type]:
    context = LaunchContext()
    context.launch_configurations.update(
        {'rig': 'soak', 'sync': 'true', 'rviz': wanted, 'namespace': '', 'record': ''}
    )
    return [type(entity) for tool in tools() for entity in tool.visit(context) or ()]


def test_rviz_starts_where_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(tmp_path, monkeypatch, 'rviz2')
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    assert started('true') == [Node, RegisterEventHandler]
    assert started('false') == []


def test_without_rviz_the_rig_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(tmp_path, monkeypatch)
    assert started('true') == [LogInfo]
    assert started('false') == []


@pytest.mark.parametrize('sync', ['false', 'true'])
def test_rviz_shows_synced_streams_where_sync_runs(
    sync: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_packages(tmp_path, monkeypatch, 'rviz2')
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    context = LaunchContext()
    context.launch_configurations.update(
        {'rig': 'demo', 'sync': sync, 'rviz': 'true', 'namespace': ''}
    )
    for tool in tools():
        tool.visit(context)
    (view,) = (file.read_text() for file in tmp_path.glob('demo_*.rviz'))
    assert '/front_lidar/scan' in view
    assert ('/synced/front_lidar/scan' in view) == (sync == 'true')


def test_the_view_is_of_the_rig_that_is_launched() -> None:
    file = write_view(load_rig('soak'), 'robot_1')
    assert '/robot_1/truth/odom' in file.read_text()
    file.unlink()


def test_an_argument_that_does_not_exist_is_named() -> None:
    names = ('rig', 'lockstep')
    require_known(['ros2', 'launch', 'sensor_rig', 'rig.launch.py', 'rig:=demo'], names)
    with pytest.raises(RigError, match="argument 'lockstp'; did you mean 'lockstep'"):
        require_known(['ros2', 'launch', 'sensor_rig', 'rig.launch.py', 'lockstp:=true'], names)
    require_known(['ros2', 'launch', 'mine', 'all.launch.py', 'lockstp:=true'], names)


INTERRUPTED_WHILE_STARTING = """
import asyncio, signal, sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

start = asyncio.SelectorEventLoop.subprocess_exec

async def start_and_interrupt(*args, **options):
    started = await start(*args, **options)
    signal.raise_signal(signal.SIGINT)
    return started

asyncio.SelectorEventLoop.subprocess_exec = start_and_interrupt
service = LaunchService()
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    AnyLaunchDescriptionSource(sys.argv[1]),
    launch_arguments={'rig': sys.argv[2], 'only': 'sync'}.items())]))
sys.exit(service.run())
"""


def test_an_interrupt_while_a_process_starts_ends_everything(processes: Processes) -> None:
    try:
        get_package_prefix('sensor_rig')
    except PackageNotFoundError:
        pytest.skip('the package sensor_rig is not installed; colcon build and source it first')
    launch = processes.python(
        '-c',
        INTERRUPTED_WHILE_STARTING,
        str(HERE.parents[1] / 'launch' / 'rig.launch.py'),
        str(HERE / 'rig.yaml'),
    )
    launch.wait(60.0)
    assert not launch.group_alive()
