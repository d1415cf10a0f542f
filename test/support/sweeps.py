"""A small rig for sweeps: a cart that swings, an IMU and a pose sensor, synced; and its plans."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from support.places import ROOT

MODEL = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="cart">
      <joint name="slide" type="slide" axis="1 0 0"/><joint name="turn" type="hinge" axis="0 0 1"/>
      <geom size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor name="force" joint="slide"/></actuator>
  <keyframe><key name="rolling" qvel="0.5 0.8"/></keyframe>
</mujoco>
"""
RIG = """
/**:
  ros__parameters:
    world: {model: cart.xml, keyframe: rolling, driver: none, timestep_s: 0.002}
    sensors:
      imu:
        type: imu
        mount: {body: cart}
        rate_hz: 100.0
        delay_range_s: [0.002, 0.002]
        clock: {offset_s: 0.01}
      body:
        type: pose
        mount: {body: cart}
        rate_hz: 20.0
        delay_range_s: [0.01, 0.01]
        loss: {probability: 0.0}
    sync:
      reference_sensor_id: body
      required_sensors: [body]
      imu_sensor_id: imu
"""


def small_rig(folder: Path) -> Path:
    """Write the rig and its model; return the rig file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / 'cart.xml').write_text(MODEL)
    (folder / 'rig.yaml').write_text(RIG)
    return folder / 'rig.yaml'


def write_plan(folder: Path, **keys: Any) -> Path:
    """Write a plan for the small rig; return its file."""
    small_rig(folder)
    file = folder / 'plan.yaml'
    file.write_text(yaml.safe_dump({'rig': 'rig.yaml', 'seconds': 1.0, **keys}))
    return file


def rig_command(
    *arguments: str | Path, timeout: float = 300.0, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command of this tree."""
    return subprocess.run(
        [sys.executable, '-m', 'sensor_rig', *map(str, arguments)],
        text=True,
        capture_output=True,
        timeout=timeout,
        check=False,
        env={**os.environ, 'PYTHONPATH': str(ROOT), **environment},
    )


def lines_of(results: Path) -> list[dict[str, Any]]:
    """Return the attempts that a results folder tells of."""
    return [json.loads(line) for line in (results / 'runs.jsonl').read_text().splitlines()]
