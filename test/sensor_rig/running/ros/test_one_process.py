"""A rig in one process: what loading at its first messages means for its pace."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rig_common.ros.executor import Spinner, ros_context
from sensor_rig.rigfile import load_rig
from sensor_rig.running.ros.one_process import FILTERS, OneProcess

RIG = """/**:
  ros__parameters:
    world: {model: rover_yard.xml}
    sensors:
      imu: {type: imu, mount: {body: rover}, rate_hz: 100.0}
"""


def test_the_world_is_told_once_that_filters_were_loaded(tmp_path, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, FILTERS, raising=False)
    file = tmp_path / 'rig.yaml'
    file.write_text(RIG)
    with ros_context([]) as context:
        nodes = OneProcess(load_rig(file), Spinner(context))
        try:
            held = nodes.world.loop.held
            assert not held()
            monkeypatch.setitem(sys.modules, FILTERS, ModuleType(FILTERS))
            assert held()
            assert not held()
        finally:
            nodes.close()
