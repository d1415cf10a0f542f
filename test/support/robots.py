"""Small robots for tests of drivers and commands: one of every kind, in a few lines of MJCF."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import make_world
from sim_sensors.world.world_base import WorldBase

ARM = """
<mujoco>
  <compiler angle="radian"/>
  <option integrator="{integrator}"/>
  <worldbody>
    <body name="upper" pos="0 0 1">
      <joint name="shoulder" axis="0 1 0" range="-2 2" limited="true" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
      <body name="lower" pos="0.3 0 0">
        <joint name="elbow" axis="0 1 0" range="-2 2" limited="true" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.5"/>
        <site name="tip" pos="0.3 0 0"/>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="string"><joint joint="elbow" coef="0.5"/></fixed></tendon>
  <actuator>{actuators}</actuator>
  <keyframe>
    <key name="bent" qpos="0.3 -0.8"/>
    <key qpos="-0.4 0.5"/>
  </keyframe>
</mujoco>
"""
MOTORS = '<motor name="m0" joint="shoulder"/><motor joint="elbow" gear="5"/>'
SERVOS = (
    '<position joint="shoulder" kp="80" kv="8"/><position name="p1" joint="elbow" kp="40" kv="4"/>'
)
SPEEDS = '<velocity joint="shoulder" kv="20"/><intvelocity joint="elbow" kp="60" kv="5"/>'
STRINGS = '<motor joint="shoulder"/><motor tendon="string"/>'
LEGS = """
<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="trunk" pos="0 0 0.32">
      <freejoint name="root"/>
      <geom type="box" size="0.2 0.1 0.04" mass="8"/>
      {legs}
    </body>
  </worldbody>
  <actuator>{motors}</actuator>
</mujoco>
"""
LEG = """
<body name="{name}_thigh" pos="{x} {y} 0">
  <joint name="{name}_roll" axis="1 0 0" range="-0.8 0.8" limited="true" armature="0.01"/>
  <joint name="{name}_hip" axis="0 1 0" range="-1.5 1.5" limited="true" armature="0.01"/>
  <geom type="capsule" fromto="0 0 0 -0.1 0 -0.14" size="0.02" mass="0.5" contype="0"/>
  <body name="{name}_shin" pos="-0.1 0 -0.14">
    <joint name="{name}_knee" axis="0 1 0" range="-1.5 1.5" limited="true" armature="0.01"/>
    <geom type="capsule" fromto="0 0 0 0.1 0 -0.14" size="0.015" mass="0.2" contype="0"/>
    <geom name="{name}_foot" type="sphere" size="0.025" pos="0.1 0 -0.145" mass="0.05"/>
  </body>
</body>
"""
CORNERS = {'fl': (0.2, 0.12), 'fr': (0.2, -0.12), 'rl': (-0.2, 0.12), 'rr': (-0.2, -0.12)}


def quadruped() -> str:
    """Return a torque-driven quadruped that stands at its reference pose."""
    legs = ''.join(LEG.format(name=name, x=x, y=y) for name, (x, y) in CORNERS.items())
    motors = ''.join(
        f'<motor joint="{name}_{joint}" ctrlrange="-30 30" ctrllimited="true"/>'
        for name in CORNERS
        for joint in ('roll', 'hip', 'knee')
    )
    return LEGS.format(legs=legs, motors=motors)


def arm(actuators: str = MOTORS, integrator: str = 'Euler') -> str:
    """Return an arm of two joints that gravity pulls down."""
    return ARM.format(actuators=actuators, integrator=integrator)


def world_of(folder: Path, xml: str, sensors: Any = (), seed: int = 0, **keys: Any) -> WorldBase:
    """Return the world of a model, 2 ms a step unless `keys` say otherwise."""
    (folder / 'model.xml').write_text(xml)
    config = WorldConfig(model='model.xml', **{'timestep_s': 0.002, **keys})
    return make_world(config, sensors, folder, seed)


def run(world: WorldBase, seconds: float) -> None:
    """Step for some simulated seconds."""
    for _ in range(round(seconds * 1e9 / world.dt_ns)):
        world.step()


def positions(world: WorldBase, env: int = 0) -> dict[str, float]:
    """Return the position of every hinge and slide by name."""
    model, qpos = world.model, world.bound('qpos')[env]
    return {
        model.joint(j).name: float(qpos[model.jnt_qposadr[j]])
        for j in range(model.njnt)
        if model.jnt_type[j] >= 2
    }


def upright(world: WorldBase, body: str, env: int = 0) -> float:
    """Return the cosine between a body's z axis and the world's."""
    return float(np.reshape(world.bound('xmat')[env, world.model.body(body).id], -1)[8])
