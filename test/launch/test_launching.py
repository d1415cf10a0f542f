"""The launch files refuse what cannot run before anything starts, and end as their nodes end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.installed import ros_package, with_packages

ros_package('launch_ros')

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch import LaunchContext, LaunchDescriptionEntity
from launch.actions import OpaqueFunction
from launch.utilities import perform_substitutions
from support.processes import Process, Processes

from rig_common.errors import RigError
from sensor_rig.running.ros.launching import ARGUMENTS, degrade_node, rig_nodes, tools

HERE = Path(__file__).resolve().parent
RIG = HERE / 'rig.yaml'
ROBOT = """
/**:
  ros__parameters:
    sync:
      reference_sensor_id: lidar
      required_sensors: [lidar]
      inputs:
        lidar: {topic: /points, type: sensor_msgs/msg/PointCloud2}
"""
STREAMS = """
/**:
  ros__parameters:
    streams:
      lidar: {topics: [/points], delay_range_s: [0.01, 0.02]}
"""
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource

file, *arguments = sys.argv[1:]
service = LaunchService()
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(
    AnyLaunchDescriptionSource(file),
    launch_arguments=[each.split(':=') for each in arguments])]))
sys.exit(service.run())
"""


def visited(
    action: OpaqueFunction, rig: Path | str, **arguments: str
) -> list[LaunchDescriptionEntity]:
    context = LaunchContext()
    context.launch_configurations.update(
        {name: default for name, (default, *_) in ARGUMENTS.items()}, rig=str(rig), **arguments
    )
    return list(action.visit(context) or ())


def planned(rig: Path, *, world: bool = True, **arguments: str) -> list[LaunchDescriptionEntity]:
    return visited(rig_nodes(world=world), rig, **arguments)


def degraded(rig: Path | str, **arguments: str) -> list[LaunchDescriptionEntity]:
    return visited(degrade_node(), rig, **arguments)


def launched(processes: Processes, name: str, *arguments: str) -> Process:
    try:
        get_package_prefix('sensor_rig')
    except PackageNotFoundError:
        pytest.skip('the package sensor_rig is not installed; colcon build and source it first')
    return processes.python(
        '-c', LAUNCH, str(HERE.parents[1] / 'launch' / f'{name}.launch.py'), *arguments
    )


@pytest.mark.parametrize(
    ('given', 'sentence'),
    [
        ('-1', 'real_time_factor is -1.0; it should be greater than or equal to 0'),
        ('nan', 'real_time_factor is nan; it should be a finite number'),
        ('fast', "real_time_factor is 'fast'; it should be a number"),
    ],
)
def test_a_wrong_factor_is_refused(given: str, sentence: str) -> None:
    assert planned(RIG, real_time_factor='0.5')
    with pytest.raises(RigError, match=sentence):
        planned(RIG, real_time_factor=given)


def test_a_rig_without_the_section_is_refused(tmp_path: Path) -> None:
    robot, simulated = tmp_path / 'robot.yaml', tmp_path / 'simulated.yaml'
    robot.write_text(ROBOT)
    simulated.write_text(RIG.read_text().partition('    sync:')[0])
    for sync in ('false', 'true'):
        with pytest.raises(RigError, match='has no world: section'):
            planned(robot, sync=sync)
    with pytest.raises(RigError, match='has no sync: section'):
        planned(simulated, world=False)
    assert planned(robot, world=False)
    assert planned(simulated)


def test_what_cannot_be_degraded_is_refused(tmp_path: Path) -> None:
    file = tmp_path / 'faults.yaml'
    file.write_text(STREAMS)
    assert degraded(file)
    for rig, remap, sentence in (
        ('', '', 'needs rig:=FILE, a rig file with a streams: section'),
        ('demo', '', 'has no streams: section'),
        (file, '/points', "remap is '/points'; it should be"),
    ):
        with pytest.raises(RigError, match=sentence):
            degraded(rig, remap=remap)


def test_degrade_takes_no_rig_for_granted(processes: Processes) -> None:
    launch = launched(processes, 'degrade')
    assert launch.wait(60.0) == 1
    assert 'needs rig:=FILE' in launch.output


def test_a_recording_that_cannot_be_made_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'recording'
    with_packages(tmp_path / 'without', monkeypatch)
    with pytest.raises(RigError, match='the package ros2bag is not installed'):
        planned(RIG, record=str(folder))
    with_packages(tmp_path / 'with', monkeypatch, 'ros2bag')
    assert planned(RIG, record=str(folder))
    folder.mkdir()
    with pytest.raises(RigError, match='which exists; it should be a new folder'):
        planned(RIG, record=str(folder))


def test_a_simulation_is_recorded_with_simulated_receive_times() -> None:
    context = LaunchContext()
    context.launch_configurations.update({'rviz': 'false', 'record': 'out'})
    (recorder,) = [entity for tool in tools() for entity in tool.visit(context) or ()]
    words = [perform_substitutions(context, word) for word in recorder.cmd]
    assert words[:3] == ['ros2', 'bag', 'record']
    assert '--use-sim-time' in words


def test_a_world_that_fails_ends_the_launch_with_an_error(
    processes: Processes, tmp_path: Path
) -> None:
    broken = tmp_path / 'broken.yaml'
    broken.write_text(RIG.read_text().replace('rover_yard.xml', 'nowhere.xml'))
    launch = launched(processes, 'rig', f'rig:={broken}', 'sync:=false')
    assert launch.wait(60.0) == 1
    assert 'world has failed with exit code 2' in launch.output
    assert not launch.group_alive()


def test_a_sync_node_alone_that_fails_ends_the_launch_with_an_error(
    processes: Processes, tmp_path: Path
) -> None:
    broken = tmp_path / 'broken.yaml'
    broken.write_text(ROBOT.replace('sensor_msgs', 'nobodys_msgs'))
    launch = launched(processes, 'sync', f'rig:={broken}', 'respawn:=false')
    assert launch.wait(60.0) == 1
    assert 'sync has failed with exit code 2' in launch.output


def test_the_end_of_launch_by_sigterm_is_the_end_of_its_nodes(processes: Processes) -> None:
    launch = launched(processes, 'rig', f'rig:={RIG}', 'emulators:=one')
    launch.wait_for_output('[world-3]: process started')
    os.kill(launch.pid, signal.SIGTERM)  # launch alone, as docker stop and systemd do
    assert launch.wait(60.0) == 0
    assert not launch.group_alive()
