"""Which backend casts the rays."""

from __future__ import annotations

import mujoco

from rig_common.arrays import Flags, Floats
from rig_common.errors import RigError
from sim_sensors.raycast.arrangement import usual_arrangement
from sim_sensors.raycast.embree import EmbreeCaster
from sim_sensors.raycast.embree_api import has_embree
from sim_sensors.raycast.many import ManyCaster
from sim_sensors.raycast.multiray import MujocoCaster
from sim_sensors.raycast.ray_caster import RayCaster, visible_geoms


def make_casters(
    backend: str,
    model: mujoco.MjModel,
    max_range_m: float,
    visible: Flags,
    directions: Floats,
    num_envs: int,
) -> tuple[ManyCaster | None, RayCaster]:
    """Return what casts for all environments at once, where Embree can, and what does for one."""
    if num_envs > 1 and backend != 'mujoco' and has_embree():
        many = ManyCaster(model, max_range_m, visible, num_envs, usual_arrangement(directions))
        if many.is_complete:
            return many, many
        many.close()
    return None, make_caster(backend, model, max_range_m, visible, directions=directions)


def make_caster(
    backend: str,
    model: mujoco.MjModel,
    max_range_m: float,
    visible: Flags | None = None,
    *,
    directions: Floats | None = None,
) -> RayCaster:
    """Return the caster called `backend`: `mujoco`, `embree` or `auto`.

    `embree` groups rays by the angles between `directions` ([n, 3], sensor frame), if they are
    given. `auto` is Embree where it is installed. It measures nothing: two backends differ in
    their last digits, and the same seed must give the same bits on every run and every host.
    """
    if visible is None:
        visible = visible_geoms(model)
    if backend == 'auto':
        backend = 'embree' if has_embree() else 'mujoco'
    if backend == 'mujoco':
        return MujocoCaster(model, max_range_m, visible)
    if backend == 'embree':
        return EmbreeCaster(model, max_range_m, visible, usual_arrangement(directions))
    raise RigError(f"ray-casting backend '{backend}' is unknown; allowed: auto, mujoco, embree")
