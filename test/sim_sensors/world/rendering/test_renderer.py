"""Rendering, against rays cast through the same pixels."""

from __future__ import annotations

import threading

import mujoco
import numpy as np
import pytest
from support.rendering import needs_renderer

from rig_common.errors import UnavailableError
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.rendering import renderer as render
from sim_sensors.world.world import World

WIDTH, HEIGHT = 64, 48


@pytest.fixture(scope='module')
def yard():
    world = World(WorldConfig(model='rover_yard.xml'))
    world.step()
    return world, world.model.camera('overview').id


@pytest.fixture(scope='module')
def renderer(yard):
    made = render.Renderer(yard[0].model, WIDTH, HEIGHT)
    yield made
    made.close()


def rays(world, camera):
    """Return (depth along the axis m, geom id) of a ray through the middle of each pixel."""
    model, data = world.model, world.data()
    half = np.tan(np.radians(model.cam_fovy[camera]) / 2)
    x = (np.arange(WIDTH) + 0.5 - WIDTH / 2) * 2 * half / HEIGHT
    y = -(np.arange(HEIGHT) + 0.5 - HEIGHT / 2) * 2 * half / HEIGHT
    local = np.stack([*np.meshgrid(x, y), np.full((HEIGHT, WIDTH), -1.0)], -1).reshape(-1, 3)
    vectors = local @ data.cam_xmat[camera].reshape(3, 3).T
    count = len(vectors)
    distance, geom = np.empty(count), np.empty(count, np.int32)
    mujoco.mj_multiRay(
        model,
        data,
        data.cam_xpos[camera],
        np.ascontiguousarray(vectors).ravel(),
        None,
        1,
        -1,
        geom,
        distance,
        None,
        count,
        1e6,
    )
    distance[geom < 0] = np.inf
    return distance.reshape(HEIGHT, WIDTH), geom.reshape(HEIGHT, WIDTH)


@needs_renderer
def test_depth_and_segmentation_are_what_rays_say(yard, renderer):
    world, camera = yard
    distance, geom = rays(world, camera)
    seen = renderer.segmentation(world.data(), camera)
    same = seen == geom
    assert same.mean() > 0.93  # the rest is silhouettes and facets of round things
    assert len(np.unique(seen)) > 20
    depth = renderer.depth(world.data(), camera)
    flat = same & np.isfinite(distance)
    error = np.abs(depth[flat] - distance[flat]) / distance[flat]
    assert np.median(error) < 1e-4
    assert np.isinf(depth[~np.isfinite(distance) & (seen < 0)]).all()


@needs_renderer
def test_colours_are_those_of_the_scene(yard, renderer):
    world, camera = yard
    image = renderer.rgb(world.data(), camera)
    seen = renderer.segmentation(world.data(), camera)
    assert image.shape == (HEIGHT, WIDTH, 3)
    roof = image[seen == world.model.geom('shed_roof_b').id].mean(0)
    assert roof[0] > 2 * roof[1]
    sky = image[seen < 0].mean(0)
    assert sky[2] > sky[0]


@needs_renderer
def test_threads_have_their_own_context_and_the_same_picture(yard, renderer):
    world, camera = yard
    here = renderer.rgb(world.data(), camera)
    there = []

    def work():
        there.append(renderer.rgb(world.data(), camera))
        renderer.close()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_array_equal(here, there[0])
    np.testing.assert_array_equal(here, renderer.rgb(world.data(), camera))


@needs_renderer
def test_shadows_are_a_choice(yard, renderer):
    world, camera = yard
    shaded = render.Renderer(world.model, WIDTH, HEIGHT, shadows=True)
    picture = shaded.rgb(world.data(), camera)
    shaded.close()
    assert picture.mean() < renderer.rgb(world.data(), camera).mean()


def test_where_nothing_renders_one_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setenv('MUJOCO_GL', 'glfw')
    monkeypatch.delenv('DISPLAY', raising=False)
    monkeypatch.delenv('WAYLAND_DISPLAY', raising=False)
    render.backend.cache_clear()
    try:
        with pytest.raises(UnavailableError, match=r'no renderer does \(glfw: .*apt install lib'):
            render.backend()
    finally:
        render.backend.cache_clear()
