"""What is hit and what is not, against answers worked out by hand."""

import mujoco
import numpy as np
import pytest
from support.ray_scenes import needs_embree

from rig_common.errors import RigError
from sim_sensors.raycast.choice import make_caster
from sim_sensors.raycast.ray_caster import visible_from, visible_geoms

BACKENDS = ('mujoco', pytest.param('embree', marks=needs_embree))
XML = """
<mujoco>
  <asset><material name="glass" rgba="1 1 1 0.2"/></asset>
  <worldbody>
    <geom name="wall" type="box" size=".1 5 5" pos="6 0 0"/>
    <geom name="pane" type="box" size=".05 5 5" pos="5 0 0" material="glass"/>
    <geom name="ghost" type="box" size=".05 5 5" pos="4.5 0 0" rgba="1 1 1 0"/>
    <geom name="marker" type="sphere" size=".2" pos="3.5 0 0" group="3"/>
    <body name="robot">
      <freejoint/><site name="eye"/>
      <geom name="hull" type="sphere" size=".3"/>
      <body name="mast" pos="1 0 0"><geom name="pole" type="cylinder" size=".1 1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope='module')
def world():
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return model, data


def forward_hit(world, backend, max_range=20.0, own=False, **chosen):
    model, data = world
    seen = visible_geoms(model, **chosen)
    if own:
        seen = visible_from(model, model.site('eye').id, exclude_own_body=True, **chosen)
    caster = make_caster(backend, model, max_range, seen)
    hits = caster.cast(data, np.zeros(3), np.array([[1.0, 0.0, 0.0]]))
    geom = int(hits.geom[0])
    return (model.geom(geom).name if geom >= 0 else None), float(hits.range_m[0])


@pytest.mark.parametrize('backend', BACKENDS)
def test_what_is_left_out_is_not_hit(world, backend):
    model = world[0]
    robot = model.body('robot').id
    assert forward_hit(world, backend) == ('hull', pytest.approx(0.3, abs=1e-5))
    assert forward_hit(world, backend, exclude_bodies=(robot,))[0] == 'pole'
    assert forward_hit(world, backend, own=True) == ('marker', pytest.approx(3.3))
    rest = {'own': True, 'groups': (0, 1, 2)}
    assert forward_hit(world, backend, **rest) == ('pane', pytest.approx(4.95))
    assert forward_hit(world, backend, transparent_below=0.5, **rest) == (
        'wall',
        pytest.approx(5.9),
    )


@pytest.mark.parametrize('backend', BACKENDS)
def test_beyond_the_maximum_range_nothing_is_hit(world, backend):
    name, distance = forward_hit(world, backend, max_range=3.2, own=True)
    assert name is None
    assert distance == np.inf


@pytest.mark.parametrize('backend', BACKENDS)
def test_an_analytic_box(backend):
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="box" size="1 2 3" pos="5 0 0"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    angles = np.deg2rad(np.linspace(-60, 60, 241))
    directions = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    hits = make_caster(backend, model, 50.0).cast(data, np.zeros(3), directions, 'incidence')
    # The near face x = 4 ends at y = 2; beyond it a ray from the origin misses the sides too.
    meets = np.abs(4.0 * np.tan(angles)) <= 2.0
    np.testing.assert_allclose(hits.range_m[meets], 4.0 / np.cos(angles[meets]), atol=1e-5)
    np.testing.assert_allclose(hits.cos_incidence[meets], np.cos(angles[meets]), atol=1e-5)
    assert np.isinf(hits.range_m[~meets]).all()


@pytest.mark.parametrize('backend', BACKENDS)
@pytest.mark.parametrize('size', ['0 0 1', '9 9 1', '500 0 1'])
@pytest.mark.parametrize('quat', ['1 0 0 0', '0.99 0.1 0.02 0.01'])
def test_planes_show_their_front_only(backend, size, quat):
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="{size}" quat="{quat}"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    up = data.geom_xmat[0].reshape(3, 3)[:, 2]
    caster = make_caster(backend, model, 50.0)
    for origin, toward, expected in (
        (2 * up, -up, 2.0),
        (-2 * up, up, np.inf),
        (2 * up, up, np.inf),
    ):
        assert caster.cast(data, origin, toward[None].copy()).range_m[0] == pytest.approx(expected)
    both = np.stack([2 * up, -2 * up])
    hits = caster.cast(data, both, np.stack([-up, up]), 'normal')
    assert hits.range_m[0] == pytest.approx(2.0)
    assert hits.range_m[1] == np.inf
    np.testing.assert_allclose(hits.normal[0], up, atol=1e-6)


@needs_embree
def test_far_and_flat_rays_keep_their_digits_on_endless_ground():
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="0 0 1" pos="0 0 0.137"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    origin = np.array([57.3, -41.7, 1.637])
    depression = np.linspace(0.016, 1.5, 300)
    directions = np.stack([np.cos(depression), 0 * depression, -np.sin(depression)], axis=1)
    hits = make_caster('embree', model, 120.0).cast(data, origin, directions)
    np.testing.assert_allclose(hits.range_m, 1.5 / np.sin(depression), atol=1e-4)


@needs_embree
def test_auto_is_embree_and_measures_nothing(world):
    model, data = world
    angles = np.linspace(0, 2 * np.pi, 90)
    directions = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    auto, embree = (
        make_caster(each, model, 20.0, directions=directions) for each in ('auto', 'embree')
    )
    assert auto.reason == embree.reason
    assert (
        auto.cast(data, np.zeros(3), directions).range_m.tobytes()
        == embree.cast(data, np.zeros(3), directions).range_m.tobytes()
    )


def test_without_embree_auto_is_mujoco(world, monkeypatch):
    from sim_sensors.raycast import embree_api

    def absent():
        raise RigError('no Embree here')

    monkeypatch.setattr(embree_api, 'load_embree', absent)
    caster = make_caster('auto', world[0], 20.0, directions=np.eye(3))
    assert caster.name == 'mujoco'
    assert 'mj_multiRay' in caster.reason
    with pytest.raises(RigError, match='no Embree here'):
        make_caster('embree', world[0], 20.0)


def test_an_unknown_backend_is_named(world):
    with pytest.raises(RigError, match="'optix' is unknown; allowed: auto, mujoco, embree"):
        make_caster('optix', world[0], 20.0)


@pytest.mark.parametrize('backend', BACKENDS)
def test_no_rays_have_no_hits(world, backend):
    hits = make_caster(backend, world[0], 5.0).cast(
        world[1], np.zeros(3), np.empty((0, 3)), 'incidence'
    )
    assert hits.range_m.shape == hits.geom.shape == (0,)


@pytest.mark.parametrize('backend', BACKENDS)
def test_a_scene_of_nothing_but_a_sensor(backend):
    model = mujoco.MjModel.from_xml_string('<mujoco><worldbody/></mujoco>')
    data = mujoco.MjData(model)
    hits = make_caster(backend, model, 5.0).cast(data, np.zeros(3), np.eye(3), 'normal')
    assert (hits.geom == -1).all()
    assert np.isinf(hits.range_m).all()


@pytest.mark.parametrize('backend', BACKENDS)
def test_each_of_hundreds_of_moving_geoms_is_hit_where_it_is(backend):
    count = 257  # where glibc writes into the memory of numbers that were freed too early
    bodies = ''.join(
        f'<body pos="{number} 0 {0.01 * number}"><joint type="slide"/><geom size=".1"/></body>'
        for number in range(count)
    )
    model = mujoco.MjModel.from_xml_string(f'<mujoco><worldbody>{bodies}</worldbody></mujoco>')
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    caster = make_caster(backend, model, 20.0, visible_geoms(model))
    origins = np.stack([np.arange(count), np.zeros(count), np.full(count, 10.0)], axis=1)
    hits = caster.cast(data, origins, np.tile([0.0, 0.0, -1.0], (count, 1)))
    assert hits.geom.tolist() == list(range(count))
    np.testing.assert_allclose(hits.range_m, 9.9 - 0.01 * np.arange(count), atol=1e-4)
