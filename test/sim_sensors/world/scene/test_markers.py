"""The scene as shapes: sizes, colours, what moves, triangles."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.scene.markers import Scene
from sim_sensors.world.world import World


@pytest.fixture(scope='module')
def yard():
    world = World(WorldConfig(model='rover_yard.xml'))
    world.step()
    return world, Scene(world.model)


def test_static_and_moving_shapes_are_told_apart(yard):
    _, scene = yard
    assert {'wall_east', 'deck', 'barrel_2'} <= {shape.name for shape in scene.static}
    assert {'swing_tyre', 'ball', 'hull', 'lidar_case'} <= {shape.name for shape in scene.moving}
    assert {shape.body for shape in scene.static} == {'world'}


def test_sizes_are_full_extents(yard):
    _, scene = yard
    sizes = {shape.name: shape.size_m for shape in (*scene.static, *scene.moving)}
    assert sizes['ground'] == (20, 20, 0)
    assert sizes['barrel_1'] == pytest.approx((0.58, 0.58, 0.88))
    assert sizes['ball'] == pytest.approx((0.6, 0.6, 0.6))
    assert sizes['antenna'][2] == pytest.approx(np.hypot(0.03, 0.35) + 0.012)


def test_colours_come_from_geom_material_and_texture(yard):
    _, scene = yard
    colours = {shape.name: shape.rgba for shape in (*scene.static, *scene.moving)}
    assert colours['shed_roof'] == pytest.approx((0.76, 0.16, 0.13, 1), abs=1e-6)
    assert colours['lamp_left'] == pytest.approx((1, 1, 0.85, 1), abs=1e-6)
    red, green, blue, _ = colours['container']
    assert blue > 2 * red
    assert blue > green
    assert all(colour[3] > 0 for colour in colours.values())


def test_poses_follow_the_world(yard):
    world, scene = yard
    index = [shape.name for shape in scene.moving].index('swing_tyre')
    before = scene.moving_poses(world.data())[0][index].copy()
    for _ in range(400):
        world.step()
    positions, quats = scene.moving_poses(world.data())
    assert np.linalg.norm(positions[index] - before) > 0.1
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, quats[index])
    geom = scene.moving[index].geom
    np.testing.assert_allclose(matrix, world.data().geom_xmat[geom], atol=1e-9)


def test_meshes_and_height_fields_are_triangles():
    heights = np.array([[0, 0.5, 1], [0, 0.25, 0.5]])
    text = ' '.join(str(value) for value in heights.ravel())
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><asset><hfield name="h" nrow="2" ncol="3" size="2 1 4 0.1" elevation="{text}"/>'
        '<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>'
        '<geom type="hfield" hfield="h"/><geom type="mesh" mesh="m"/></worldbody></mujoco>'
    )
    field, mesh = Scene(model).static
    assert field.vertices.shape == (6, 3)
    assert field.faces.shape == (4, 3)
    # MuJoCo stores rows from the bottom (negative y) up, as the attribute gives them from the top.
    top = field.vertices[field.vertices[:, 1] > 0]
    np.testing.assert_allclose(np.sort(top[:, 2]), [0, 2, 4])
    area = np.cross(
        field.vertices[field.faces[:, 1]] - field.vertices[field.faces[:, 0]],
        field.vertices[field.faces[:, 2]] - field.vertices[field.faces[:, 0]],
    )
    assert (area[:, 2] > 0).all()
    assert area[:, 2].sum() / 2 == pytest.approx(8)
    assert mesh.faces.shape == (4, 3)
