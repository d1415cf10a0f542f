"""The launch files' tools: what is asked for and not there does not leave the rig behind."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip('launch_ros', reason='launch_ros comes with a ROS installation')

from launch import LaunchContext
from launch.actions import LogInfo
from launch_ros.actions import Node

from sensor_rig.ros.launching import tools


def started(wanted: str) -> list[type]:
    context = LaunchContext()
    context.launch_configurations.update({'rviz': wanted, 'namespace': '', 'record': ''})
    return [type(entity) for tool in tools() for entity in tool.visit(context) or ()]


def with_packages(folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    for name in ('', *names):
        file = folder / 'share' / 'ament_index' / 'resource_index' / 'packages' / name
        file.touch() if name else file.mkdir(parents=True)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(folder))


def test_rviz_starts_where_it_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(tmp_path, monkeypatch, 'rviz2')
    assert started('true') == [Node]
    assert started('false') == []


def test_without_rviz_the_rig_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_packages(tmp_path, monkeypatch)
    assert started('true') == [LogInfo]
    assert started('false') == []
