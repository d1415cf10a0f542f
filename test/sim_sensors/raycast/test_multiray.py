"""`mj_multiRay` as a backend: every ray ends where MuJoCo's single ray does."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from sim_sensors.raycast.multiray import MujocoCaster
from sim_sensors.raycast.ray_caster import visible_geoms

MAX_RANGE_M = 20.0
SHELLS = """
<mujoco>
  <asset><mesh name="wedge" vertex="0 0 0  1 0 0  0 1 0  0 0 1  1 1 .2"/></asset>
  <worldbody>
    <body pos="0 0 1" quat=".6 .3 -.5 .4"><freejoint/>
      <geom type="sphere" size=".03"/>
      <geom type="{shell}" mesh="wedge" {size} pos=".4 -.2 .3" euler="30 50 10" mass="1"
            contype="0" conaffinity="0"/>
      <body pos=".3 .6 .2"><joint/>
        <geom type="box" size=".02 .02 .02"/>
        <geom type="box" size=".3 .05 .5" pos="-.3 .4 0" contype="0" conaffinity="0"/>
      </body>
    </body>
    <geom type="box" size="3 3 .1" pos="0 0 -2"/>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize('shell', ['mesh', 'box', 'ellipsoid'])
def test_shells_that_do_not_collide_are_hit(shell: str) -> None:
    size = '' if shell == 'mesh' else 'size=".5 .3 .2"'
    xml = SHELLS.format(shell=shell, size=size)
    if shell != 'mesh':
        xml = xml.replace(' mesh="wedge"', '')
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    rng = np.random.default_rng(5)
    caster = MujocoCaster(model, MAX_RANGE_M, visible_geoms(model))
    hidden = visible_geoms(model, exclude_bodies=(2,))
    without = MujocoCaster(model, MAX_RANGE_M, hidden)
    shown = 0
    for _ in range(40):
        origin = data.geom_xpos[rng.integers(1, 5)] + rng.normal(size=3) * 0.5
        rays = rng.normal(size=(50, 3))
        rays /= np.linalg.norm(rays, axis=1)[:, None]
        geom = np.zeros((len(rays), 1), np.int32)
        truth = [
            mujoco.mj_ray(model, data, origin, ray, None, 1, -1, found, None)
            for ray, found in zip(rays, geom, strict=True)
        ]
        expected = np.where(np.array(truth) < 0.0, np.inf, truth)
        hits = caster.cast(data, origin, rays)
        np.testing.assert_allclose(hits.range_m, expected, atol=1e-5)
        np.testing.assert_array_equal(hits.geom, geom[:, 0])
        shown += int(np.isin(geom, [2, 4]).sum())
        assert not np.isin(without.cast(data, origin, rays).geom, [3, 4]).any()
    assert shown > 100
