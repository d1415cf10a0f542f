"""Which rays of a pattern go to Embree together."""

import mujoco
import numpy as np
import pytest
from support import ray_scenes as scenes

from sim_sensors.raycast import patterns
from sim_sensors.raycast.arrangement import Arrangement, neighbour_rows, usual_arrangement
from sim_sensors.raycast.choice import make_caster
from sim_sensors.raycast.embree import EmbreeCaster
from sim_sensors.raycast.ray_caster import visible_geoms

SIXTEEN = patterns.multi_beam(patterns.ELEVATION_TABLES_DEG[16], 256).directions[0]


def test_rays_of_one_laser_are_neighbours():
    assert neighbour_rows(SIXTEEN) == 16
    raster = patterns.grid(12, 100, 60.0, 20.0).directions[0]
    assert neighbour_rows(raster) == 1
    by_columns = np.ascontiguousarray(raster.reshape(12, 100, 3).transpose(1, 0, 2))
    assert neighbour_rows(by_columns.reshape(-1, 3)) == 12


@pytest.mark.parametrize('count', [0, 1, 2, 3, 7, 360])
def test_a_plane_of_rays_is_a_plain_list(count):
    angles = np.linspace(0.0, 5.0, count)
    rays = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1)
    assert neighbour_rows(rays) == 1


def test_rays_are_bundled_where_they_go_nearly_the_same_way():
    assert usual_arrangement(None) == Arrangement()
    assert usual_arrangement(patterns.single_plane(64).directions[0]) == Arrangement()
    assert usual_arrangement(patterns.single_plane(1440).directions[0]) == Arrangement(True)
    dense = patterns.multi_beam(patterns.ELEVATION_TABLES_DEG[16], 1024).directions[0]
    assert usual_arrangement(dense) == Arrangement(True, 16)


@scenes.needs_embree
@pytest.mark.parametrize('columns', [256, 250, 3])
@pytest.mark.parametrize('moves', [False, True])
def test_every_ray_gets_its_own_answer(columns, moves):
    model = scenes.random_model(8)
    data = mujoco.MjData(model)
    scenes.shuffle_bodies(model, data, 8)
    directions = np.array(SIXTEEN[: 16 * columns])
    origins = np.array([0.3, -0.2, 0.9])
    if moves:
        origins = origins + np.linspace(0.0, 0.2, len(directions))[:, None] * (1.0, 0.5, 0.0)
    plain = make_caster('embree', model, 15.0).cast(data, origins, directions, 'normal')
    for arrangement in (Arrangement(True, 16), Arrangement(False, 16)):
        caster = EmbreeCaster(model, 15.0, visible_geoms(model), arrangement)
        hits = caster.cast(data, origins, directions, 'normal')
        # A ray that meets an edge may be given to either side.
        same = hits.geom == plain.geom
        assert same.mean() > 0.999
        np.testing.assert_allclose(hits.range_m[same], plain.range_m[same], atol=1e-4)
        away = np.abs(hits.normal - plain.normal).max(axis=1) > 1e-3
        assert away.mean() < 0.01
        caster.close()
