"""One small entry for every sensor type, and a scene in which all of them have something to do."""

from __future__ import annotations

from math import pi
from typing import Any

import pytest

from support.body_sensors import EACH, ON_PLATE
from support.rendering import needs_renderer

SCENE = """
<mujoco>
  <visual><headlight ambient="0.6 0.6 0.6"/></visual>
  <statistic extent="3" center="0 0 0"/>
  <worldbody>
    <geom name="wall" type="box" size="0.1 2 2" pos="1.5 0 0" rgba="0.8 0.3 0.2 1"/>
    <geom name="post" type="cylinder" size="0.1 2" pos="0.9 0.4 0" rgba="0.2 0.5 0.8 1"/>
    <body name="plate">
      <joint name="hinge" axis="0 0 1"/>
      <geom type="box" size="0.1 0.1 0.1" condim="1"/>
    </body>
    <body name="press" pos="0.01 0.02 0.148">
      <joint type="slide" axis="0 0 1"/>
      <geom type="sphere" size="0.05" mass="0.5" condim="1"/>
    </body>
  </worldbody>
  <keyframe><key name="turning" qvel="2 0"/></keyframe>
</mujoco>
"""
"""A plate that turns among walls; a ball rests on it without friction, so the turn goes on."""
PICTURE = {'width': 24, 'height': 18}
ON_TOP = {'body': 'plate', 'pos_m': [0.0, 0.0, 0.1], 'rpy_rad': [0.0, -pi / 2, 0.0]}

EVERY: dict[str, dict[str, Any]] = {
    **EACH,
    'lidar2d': {'num_rays': 36},
    'lidar3d': {'rows': 16, 'columns': 12},
    'camera': {**PICTURE, 'compressed': True},
    'depth_camera': {**PICTURE, 'points': True},
    'segmentation': PICTURE,
    'range': {'num_rays': 8},
    'height_scan': {
        'mount': {'pos_m': [0.9, 0.4, 0.0]},  # over the post
        'size_m': [0.1, 0.1],
        'spacing_m': 0.05,
        'above_m': 3.0,
    },
    'contact': {},
    'contact_force': {},
    'force_torque': {},
    'contact_probe': {'radius_m': 0.02, 'target': 'press'},
    'tactile': {'rows': 3, 'columns': 4, 'mount': ON_TOP, 'truth_rate_hz': 0.0},
    'temperature_grid': {
        'rows': 3,
        'columns': 4,
        'truth_rate_hz': 0.0,
        'sources': {'p': {'body': 'press'}},
    },
}
EXACT: dict[str, dict[str, Any]] = {
    'joint_state': {'velocity_from': 'tachometer'},
    'depth_camera': {'disparity_noise_px': 0.0, 'edge_holes': False},
    'lidar2d': {'noise': 0.0},
    'lidar3d': {'noise': 0.0},
    'range': {'noise': 0.0},
    'contact_force': {'noise': 0.0, 'torque_noise_nm': 0.0},
    'force_torque': {'noise': 0.0, 'torque_noise_nm': 0.0},
    'tactile': {'noise': 0.0},
    'temperature_grid': {'noise': 0.0, 'lag_s': 0.0},
}
"""What makes a type exact whose defaults are not."""
DRAWN = ('camera', 'depth_camera', 'segmentation')
"""Types that need a renderer."""
KINDS = [pytest.param(kind, marks=needs_renderer if kind in DRAWN else ()) for kind in EVERY]
"""Every type, for parametrised tests; those that draw are skipped where nothing renders."""


def entry(kind: str, **keys: Any) -> dict[str, Any]:
    """Return the keys of a sensor of type `kind` at 50 Hz, `keys` on top."""
    return {'type': kind, 'mount': ON_PLATE, 'rate_hz': 50.0, **EVERY[kind], **keys}
