"""The caster of many environments, asked for one of them: its sensors may be out of step."""

from __future__ import annotations

import mujoco
import numpy as np
from support.ray_scenes import needs_embree

from sim_sensors.raycast.ray_caster import visible_geoms

MODEL = """
<mujoco>
  <worldbody>
    <geom type="box" size="0.1 3 3" pos="5 0 0"/>
    <body name="box" pos="2 0 0"><freejoint/><geom type="box" size="0.3 0.3 0.3"/></body>
  </worldbody>
</mujoco>
"""
MAX_RANGE_M = 20.0


@needs_embree
def test_one_environment_has_the_surfaces_of_its_own_moving_geoms() -> None:
    from sim_sensors.raycast.embree import EmbreeCaster
    from sim_sensors.raycast.many import ManyCaster

    model = mujoco.MjModel.from_xml_string(MODEL)
    states = [mujoco.MjData(model) for _ in range(2)]
    for data, yaw in zip(states, (0.0, 0.6), strict=True):
        data.qpos[3], data.qpos[6] = np.cos(yaw / 2), np.sin(yaw / 2)
        mujoco.mj_forward(model, data)
    angles = np.linspace(-0.5, 0.5, 20)
    rays = np.stack([np.cos(angles), np.sin(angles), np.zeros(20)], axis=1)
    visible, origin = visible_geoms(model), np.zeros(3)
    many = ManyCaster(model, MAX_RANGE_M, visible, 2)
    alone = EmbreeCaster(model, MAX_RANGE_M, visible)

    def check(data: mujoco.MjData) -> None:
        ours, expected = (each.cast(data, origin, rays, 'normal') for each in (many, alone))
        assert {0, 1} <= set(expected.geom.tolist())
        np.testing.assert_array_equal(ours.geom, expected.geom)
        np.testing.assert_allclose(ours.normal, expected.normal, atol=1e-6)

    check(states[0])  # before any rays of many were cast
    bodies = (np.stack([data.xpos for data in states]), np.stack([data.xmat for data in states]))
    many.cast_many(
        [0, 1], bodies, np.zeros((2, 1, 3)), np.stack([rays, rays]), 'normal', states.__getitem__
    )
    check(states[1])
