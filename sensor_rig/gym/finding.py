"""Where an environment keeps its MjModel and MjData."""

from __future__ import annotations

from typing import Any

import gymnasium
import mujoco

from rig_common.errors import RigError

Simulation = tuple[mujoco.MjModel, mujoco.MjData]

PLACES = (
    ('model', 'data'),  # Gymnasium, Gymnasium-Robotics, Meta-World
    ('mj_model', 'mj_data'),
    ('_mj_model', '_mj_data'),
    ('_model', '_data'),
    ('physics.model.ptr', 'physics.data.ptr'),  # dm_control
    ('_env.physics.model.ptr', '_env.physics.data.ptr'),  # dm_control through shimmy
    ('sim.model._model', 'sim.data._data'),  # robosuite
    ('env.sim.model._model', 'env.sim.data._data'),
)
"""Attributes of an unwrapped environment, in the order in which they are tried."""


def find_simulation(env: gymnasium.Env[Any, Any]) -> Simulation:
    """Return the simulation of `env`, or say how to name it."""
    bare = env.unwrapped
    for places in PLACES:
        model, data = (_follow(bare, place) for place in places)
        if isinstance(model, mujoco.MjModel) and isinstance(data, mujoco.MjData):
            return model, data
    raise RigError(
        f'{type(bare).__name__} keeps no MjModel and MjData where they are looked '
        f'for; give simulation=lambda env: (model, data)'
    )


def _follow(thing: object, place: str) -> object:
    for name in place.split('.'):
        thing = getattr(thing, name, None)
    return thing
