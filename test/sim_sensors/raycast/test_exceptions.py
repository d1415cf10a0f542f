"""Rays from inside a geom and rays at flexes: the same answer from every backend."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from support.ray_scenes import needs_embree

from sim_sensors.raycast.choice import make_caster

SHAPES = ['sphere', 'capsule', 'ellipsoid', 'cylinder', 'box']
FAR_END_M = {
    'sphere': (0.0, 0.0, 0.45),
    'capsule': (0.0, 0.0, 3.4),
    'ellipsoid': (0.0, 2.9, 0.0),
    'cylinder': (0.3, 0.3, 2.9),
    'box': (0.48, 2.9, 0.19),
}
"""Points inside geoms of the size 0.5 3 0.2, in their frames."""
BACKENDS = ['mujoco', pytest.param('embree', marks=needs_embree), 'auto']
RAYS = np.vstack([np.eye(3), -np.eye(3), np.random.default_rng(3).normal(size=(40, 3))])
RAYS /= np.linalg.norm(RAYS, axis=1)[:, None]
CLOTH = """
<mujoco><worldbody>
  <geom type="box" size="0.1 5 5" pos="6 0 0"/>
  <flexcomp name="cloth" type="grid" count="9 9 1" spacing="0.1 0.1 0.1" pos="2 0 0"
            euler="0 90 0" dim="2" radius="0.01" mass="0.1" rgba="1 0 0 {alpha}">
    <edge equality="true"/></flexcomp>
</worldbody></mujoco>
"""


def scene(xml: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('joint', ['', '<freejoint/>'], ids=['fixed', 'moving'])
@pytest.mark.parametrize('shape', SHAPES)
def test_a_ray_from_inside_ends_at_the_inner_side(shape, joint, backend):
    model, data = scene(
        f'<mujoco><worldbody><geom type="box" size="0.1 5 5" pos="12 0 0"/>'
        f'<body>{joint}<geom type="{shape}" size="0.05 0.04 0.03" '
        f'euler="20 0 0"/></body></worldbody></mujoco>'
    )
    origin = np.array([0.002, 0.001, 0.0])
    truth = [
        mujoco.mj_ray(model, data, origin, ray, None, 1, -1, np.zeros(1, np.int32), None)
        for ray in RAYS
    ]
    caster = make_caster(backend, model, 25.0, directions=RAYS)
    hits = caster.cast(data, origin, RAYS, 'incidence')
    np.testing.assert_allclose(hits.range_m, truth, atol=1e-4)
    assert (hits.geom == 1).all() and (hits.cos_incidence > 0.1).all()
    spread = np.tile(origin, (len(RAYS), 1))
    np.testing.assert_allclose(caster.cast(data, spread, RAYS).range_m, truth, atol=1e-4)
    caster.close()


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('joint', ['', '<freejoint/>'], ids=['fixed', 'moving'])
@pytest.mark.parametrize('shape', SHAPES)
def test_a_ray_from_the_far_end_of_a_turned_geom_is_inside_it_too(shape, joint, backend):
    model, data = scene(
        f'<mujoco><worldbody><body pos="1 2 0" euler="20 30 40">{joint}<geom '
        f'type="{shape}" size="0.5 3 0.2"/></body></worldbody></mujoco>'
    )
    caster = make_caster(backend, model, 25.0, directions=RAYS)
    if joint:
        data.qpos[:] = -4.0, 1.0, 2.0, 0.5, -0.5, 0.5, 0.5
        mujoco.mj_forward(model, data)
    origin = data.geom_xpos[0] + data.geom_xmat[0].reshape(3, 3) @ FAR_END_M[shape]
    truth = [
        mujoco.mj_ray(model, data, origin, ray, None, 1, -1, np.zeros(1, np.int32), None)
        for ray in RAYS
    ]
    hits = caster.cast(data, origin, RAYS)
    np.testing.assert_allclose(hits.range_m, truth, atol=1e-4)
    assert (hits.geom == 0).all()
    caster.close()


@pytest.mark.parametrize('backend', BACKENDS)
def test_cloth_is_seen_as_a_camera_sees_it(backend):
    rays = np.array([[1.0, 0.0, 0.0], [1.0, 0.1, 0.05], [0.0, 1.0, 0.0], [1.0, 0.4, 0.0]])
    rays /= np.linalg.norm(rays, axis=1)[:, None]
    for alpha, near in ((1, 2.0), (0, 5.9)):
        model, data = scene(CLOTH.format(alpha=alpha))
        caster = make_caster(backend, model, 25.0, directions=rays)
        ranges = caster.cast(data, np.array([0.0, 0.0, 0.003]), rays, 'normal').range_m
        assert ranges[0] == pytest.approx(near, abs=0.02)
        assert ranges[1] == pytest.approx(near / rays[1, 0], abs=0.03)
        assert np.isinf(ranges[2]) and ranges[3] == pytest.approx(5.9 / rays[3, 0], abs=1e-3)
        caster.close()
