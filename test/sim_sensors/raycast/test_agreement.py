"""All backends give MuJoCo's own answer: the same geom, within 0.1 mm."""

import functools

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import ray_scenes as scenes

from sim_sensors.raycast.arrangement import Arrangement
from sim_sensors.raycast.choice import make_caster
from sim_sensors.raycast.embree import EmbreeCaster
from sim_sensors.raycast.multiray import MujocoCaster
from sim_sensors.raycast.ray_caster import visible_geoms

MAX_RANGE_M = 15.0
pytestmark = scenes.needs_embree


def embree(arrangement, model, visible):
    return EmbreeCaster(model, MAX_RANGE_M, visible, arrangement)


ARRANGED = {
    f'embree, {arrangement}, {arrangement.rows} rows': functools.partial(embree, arrangement)
    for arrangement in (
        Arrangement(bundled=True),
        Arrangement(bundled=False, rows=3),
        Arrangement(bundled=True, rows=4),
    )
}
CASTERS = {
    'mujoco': lambda model, visible: MujocoCaster(model, MAX_RANGE_M, visible),
    'embree': lambda model, visible: EmbreeCaster(model, MAX_RANGE_M, visible),
    **ARRANGED,
}


def check(hits, expected, aside):
    ranges, geoms, _ = expected
    wrong = hits.geom != geoms
    with np.errstate(invalid='ignore'):
        wrong |= np.abs(hits.range_m - ranges) > 1e-4
    wrong &= ~aside
    assert not wrong.any(), (np.flatnonzero(wrong), ranges[wrong], hits.range_m[wrong])
    assert np.isinf(hits.range_m[hits.geom < 0]).all()


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), count=st.sampled_from([1, 7, 16, 33, 64]))
def test_backends_agree_with_mj_ray_while_bodies_move(seed, count):
    model = scenes.random_model(seed)
    data = mujoco.MjData(model)
    casters = {name: make(model, visible_geoms(model)) for name, make in CASTERS.items()}
    for step in range(2):
        scenes.shuffle_bodies(model, data, seed + step)
        origin = np.random.default_rng(seed + step).uniform(-6, 6, 3)
        directions = scenes.random_directions(seed + step, count)
        expected = scenes.oracle(model, data, origin, directions, MAX_RANGE_M)
        aside = scenes.near_silhouette(model, data, origin, directions, MAX_RANGE_M)
        for caster in casters.values():
            check(caster.cast(data, origin, directions), expected, aside)
    for caster in casters.values():
        caster.close()


@pytest.mark.parametrize('name', CASTERS)
@pytest.mark.parametrize('size', ['0 0 1', '500 500 1'])
def test_the_ground_is_seen_far_from_its_centre(name, size):
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="{size}"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    caster = CASTERS[name](model, visible_geoms(model))
    down, up = np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    origin = np.array([8.0 * MAX_RANGE_M, 0.0, 1.5])
    hits = caster.cast(data, origin, np.array([down, up]))
    np.testing.assert_allclose(hits.range_m, [1.5, np.inf], atol=1e-4)
    assert hits.geom.tolist() == [0, -1]
    caster.close()


@pytest.mark.parametrize('name', CASTERS)
def test_normals_and_incidence_are_those_of_mj_ray(name):
    model = scenes.random_model(5)
    data = mujoco.MjData(model)
    scenes.shuffle_bodies(model, data, 5)
    origin = np.array([0.3, -0.2, 0.9])
    directions = scenes.random_directions(1, 500)
    _, geoms, normals = scenes.oracle(model, data, origin, directions, MAX_RANGE_M)
    aside = scenes.near_silhouette(model, data, origin, directions, MAX_RANGE_M)
    hits = CASTERS[name](model, visible_geoms(model)).cast(data, origin, directions, 'normal')
    cosine = np.einsum('ij,ij->i', normals, directions)
    facing = normals * np.where(cosine > 0, -1, 1)[:, None]
    good = (geoms >= 0) & ~aside
    assert good.sum() > 200
    np.testing.assert_allclose(hits.normal[good], facing[good], atol=5e-3)
    np.testing.assert_allclose(hits.cos_incidence[good], np.abs(cosine[good]), atol=5e-3)
    assert (hits.cos_incidence[geoms < 0] == 0).all()


def test_incidence_alone_is_the_same_as_with_normals():
    model = scenes.random_model(6)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    directions = scenes.random_directions(2, 100)
    caster = EmbreeCaster(model, MAX_RANGE_M, visible_geoms(model))
    both = caster.cast(data, np.zeros(3), directions, 'normal').cos_incidence
    alone = caster.cast(data, np.zeros(3), directions, 'incidence')
    assert alone.normal is None
    np.testing.assert_array_equal(alone.cos_incidence, both)


def test_rays_with_their_own_origins():
    model = scenes.random_model(7)
    data = mujoco.MjData(model)
    scenes.shuffle_bodies(model, data, 7)
    directions = scenes.random_directions(3, 400)
    origins = np.linspace([0.0, 0.0, 0.5], [0.08, 0.0, 0.55], 400)
    expected = scenes.oracle(model, data, origins, directions, MAX_RANGE_M)
    aside = scenes.near_silhouette(model, data, origins, directions, MAX_RANGE_M)
    for make in CASTERS.values():
        check(make(model, visible_geoms(model)).cast(data, origins, directions), expected, aside)


def test_far_from_the_origin_of_the_world():
    spec = mujoco.MjSpec()
    for index in range(8):
        pos = [4000.0 + index, 2500.0 + 0.3 * index, 1.0]
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.2, 0.2, 0.5], pos=pos)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    origin = np.array([4003.5, 2490.0, 1.1])
    angles = np.linspace(1.2, 1.95, 200)
    directions = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    expected = scenes.oracle(model, data, origin, directions, MAX_RANGE_M)
    aside = scenes.near_silhouette(model, data, origin, directions, MAX_RANGE_M)
    hits = make_caster('embree', model, MAX_RANGE_M).cast(data, origin, directions)
    check(hits, expected, aside)
    assert (expected[1] >= 0).sum() > 50


def test_height_fields_and_thin_round_geoms():
    rng = np.random.default_rng(3)
    spec = mujoco.MjSpec()
    heights = rng.uniform(0, 1, (9, 7))
    spec.add_hfield(name='hills', size=[4, 3, 1.5, 0.4], nrow=9, ncol=7, userdata=heights.ravel())
    world = spec.worldbody
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_HFIELD, hfieldname='hills')
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[0.02, 2, 0], pos=[1, 0, 2])
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_CYLINDER, size=[1.2, 0.02, 0], pos=[-2, 1, 2.6])
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_CAPSULE, size=[0.02, 2, 0], pos=[0, -2, 2])
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    for seed in range(4):
        origin = np.random.default_rng(seed).uniform([-6, -6, 0.5], [6, 6, 4])
        target = rng.uniform([-4, -3, -0.4], [4, 3, 3], (300, 3))
        directions = target - origin
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        expected = scenes.oracle(model, data, origin, directions, MAX_RANGE_M)
        aside = scenes.near_silhouette(model, data, origin, directions, MAX_RANGE_M)
        hits = make_caster('embree', model, MAX_RANGE_M).cast(data, origin, directions)
        check(hits, expected, aside)
