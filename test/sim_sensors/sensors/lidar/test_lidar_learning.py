"""LiDARs for learning: codes for no return, observation spaces, surfaces, many environments."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

from rig_common.errors import RigError
from rig_common.validation import validated
from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.raycast.embree_api import has_embree
from sim_sensors.raycast.many import ManyCaster
from sim_sensors.rig import Rig
from sim_sensors.sensors.lidar.config import Lidar2dConfig
from sim_sensors.sensors.lidar.ray_reader import SweepReader
from sim_sensors.sensors.lidar.scan import Lidar2d

needs_embree = pytest.mark.skipif(not has_embree(), reason='Embree is not installed here')
MODEL = """
<mujoco>
  <worldbody>
    <geom name="wall" type="box" pos="2 0 0" size="0.1 4 2"/>
    <geom name="near" type="sphere" pos="0 0.15 0" size="0.1"/>
    <body name="post" pos="0 -1 0"><joint type="slide" axis="1 0 0"/><geom size="0.2"/></body>
    <body name="cart"><freejoint/><geom type="box" size="0.01 0.01 0.01"/></body>
  </worldbody>
</mujoco>
"""


def rig_of(tmp_path: Any, num_envs: int = 1, **keys: Any) -> Rig:
    (tmp_path / 'room.xml').write_text(MODEL)
    config = rig_from_parameters(
        {
            'seed': 2,
            'world': {'model': str(tmp_path / 'room.xml'), 'num_envs': num_envs},
            'sensors': {
                'lidar': {
                    'type': 'lidar2d',
                    'num_rays': 8,
                    'rate_hz': 100.0,
                    'max_range_m': 5.0,
                    'noise': 0.0,
                    'motion_distortion': False,
                    'mount': {'body': 'cart'},
                    'exclude_bodies': ['cart'],
                    **keys,
                }
            },
        }
    )
    rig = Rig(config.simulated_world, config.make_sensors().values(), seed=2)
    rig.world.model.opt.gravity[:] = 0.0
    rig.step()
    return rig


@pytest.mark.parametrize(
    ('code', 'nothing', 'close', 'low', 'high'),
    [
        ('inf', np.inf, -np.inf, -np.inf, np.inf),
        ('max', 5.0, 0.0, 0.0, 5.0),
        ('-1', -1.0, 0.0, -1.0, 5.0),
    ],
)
def test_a_ray_without_a_return_reads_what_the_rig_says(
    tmp_path: Any, code: str, nothing: float, close: float, low: float, high: float
) -> None:
    rig = rig_of(tmp_path, no_hit=code)
    sensor, values = rig.sensors['lidar'], rig.read('lidar').values
    ranges = sensor.return_layout.view(values, 'ranges')[0]
    assert ranges[0] == pytest.approx(1.9, abs=1e-3)  # the wall
    assert ranges[2] == close  # the sphere is nearer than min_range_m
    assert ranges[4] == nothing
    space = sensor.observation_space()
    assert space.shape == (8,) and space.contains(sensor.observation(values)[0])
    assert space.low.min() == low and space.high.max() == high


def test_messages_follow_rep_117_whatever_arrays_say(tmp_path: Any) -> None:
    scans = []
    for code in ('inf', 'max', '-1'):
        rig = rig_of(tmp_path, no_hit=code, noise=0.01)
        pipeline = rig.pipelines['lidar']
        sensor = rig.sensors['lidar']
        sample = _sample(rig, pipeline)
        scans.append(sensor.encode(sample)[0][1])
    assert scans[0] == scans[1] == scans[2]


def _sample(rig: Rig, pipeline: Any) -> Any:
    from sim_sensors.interface.sensor import Sample

    values = rig.read('lidar').values[0]
    return Sample('lidar', 0, 0, 0, 0, 0, values, values)


def test_a_return_at_the_very_end_is_told_from_none() -> None:
    lidar = Lidar2d(
        'l', Lidar2dConfig(type='lidar2d', num_rays=2, max_range_m=5.0, no_hit='max', noise=0.0)
    )
    truth = lidar.truth_layout.zeros(1)
    lidar.truth_layout.view(truth, 'ranges')[0] = 5.0, np.inf
    ranges = lidar.return_layout.view(lidar.post_process(truth, None, None), 'ranges')[0]
    assert ranges[0] < 5.0 and ranges[1] == 5.0


def test_surfaces_are_readable_if_asked_for(tmp_path: Any) -> None:
    rig = rig_of(tmp_path, fields=['geoms', 'normals'], no_hit='max')
    sensor, model = rig.sensors['lidar'], rig.world.model
    row = rig.read('lidar').values
    assert set(sensor.return_layout.shapes) == {'ranges', 'intensities', 'geoms', 'normals'}
    geoms = sensor.return_layout.view(row, 'geoms')[0]
    normals = sensor.return_layout.view(row, 'normals')[0]
    assert geoms[0] == model.geom('wall').id and geoms[4] == -1
    assert geoms[2] == -1, 'too close is no return'
    np.testing.assert_allclose(normals[0], [-1, 0, 0], atol=1e-6)
    np.testing.assert_array_equal(normals[4], 0)
    space = sensor.observation_space()
    assert space.shape == (8 + 8 + 24,) and space.contains(sensor.observation(row)[0])


def test_normals_turn_with_the_sensor(tmp_path: Any) -> None:
    rig = rig_of(
        tmp_path, fields=['normals'], mount={'body': 'cart', 'rpy_rad': [0.0, 0.0, np.pi / 2]}
    )
    layout = rig.sensors['lidar'].return_layout
    normals = layout.view(rig.read('lidar').values, 'normals')[0]
    np.testing.assert_allclose(normals[6], [0, 1, 0], atol=1e-5)  # its ray 6 looks at the wall


def test_intensities_are_observed_if_asked_for(tmp_path: Any) -> None:
    rig = rig_of(tmp_path, fields=['intensities'])
    sensor = rig.sensors['lidar']
    seen = sensor.observation(rig.read('lidar').values)[0]
    assert len(seen) == 16 and seen[8] == pytest.approx(50.0, abs=1e-3)
    assert sensor.observation_space().high[8] == 100.0


def test_the_facts_of_a_scan_are_in_its_metadata() -> None:
    lidar = Lidar2d(
        'l',
        Lidar2dConfig(
            type='lidar2d',
            num_rays=90,
            fov_deg=270.0,
            mount={'body': 'arm', 'pos_m': (0.1, 0.0, 0.0)},
        ),
    )
    facts = lidar.metadata()
    assert facts['num_rays'] == 90 and facts['max_range_m'] == 30.0
    assert facts['fov_deg'] == [270.0, 0.0] and facts['observed'] == ['ranges']
    assert facts['mount'] == {
        'body': 'arm',
        'site': '',
        'pos_m': [0.1, 0.0, 0.0],
        'rpy_rad': [0.0, 0.0, 0.0],
    }


@pytest.mark.parametrize('written', [float('inf'), 'inf', 'max', -1, -1.0, '-1'])
def test_numbers_and_words_name_a_code(written: Any) -> None:
    found = validated(Lidar2dConfig, {'type': 'lidar2d', 'no_hit': written}, 'here').no_hit
    assert found == {'inf': 'inf', 'max': 'max'}.get(str(written), '-1')


def test_another_code_is_refused() -> None:
    with pytest.raises(RigError, match=r"no_hit .*'inf', 'max'"):
        validated(Lidar2dConfig, {'type': 'lidar2d', 'no_hit': 0}, 'here')


# ---- many environments -------------------------------------------------------------------------


def yard(num_envs: int, **keys: Any) -> Rig:
    config = rig_from_parameters(
        {
            'seed': 1,
            'world': {
                'model': 'rover_yard.xml',
                'driver': 'figure_eight',
                'timestep_s': 0.002,
                'num_envs': num_envs,
            },
            'sensors': {
                'lidar': {
                    'type': 'lidar2d',
                    'num_rays': 50,
                    'rate_hz': 20.0,
                    'mount': {'body': 'rover', 'pos_m': [0.3, 0.0, 0.4]},
                    'backend': 'embree',
                    **keys,
                }
            },
        }
    )
    return Rig(config.simulated_world, config.make_sensors().values(), seed=1)


@needs_embree
@pytest.mark.parametrize(
    'keys',
    [
        {},
        {'motion_distortion': False, 'fields': ['geoms', 'normals']},
        {'ray_frame': 'world', 'z_height_m': 0.2, 'beam': {'rays': 3}},
    ],
)
def test_rays_of_many_environments_are_those_of_each(
    monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
) -> None:
    together = yard(5, **keys)
    monkeypatch.setattr(ManyCaster, 'is_complete', False)
    singly = yard(5, **keys)
    for step in range(200):
        if step == 90:
            together.reset([1, 3])
            singly.reset([1, 3])
        together.step()
        singly.step()
    for one, other in zip(together.read('lidar'), singly.read('lidar'), strict=True):
        np.testing.assert_array_equal(one, other)
    spread = together.read('lidar').values.std(0)
    assert spread[np.isfinite(spread)].max() > 0.1, 'all environments saw the same'


@needs_embree
def test_rays_that_start_inside_a_geom_are_found_in_many_environments(tmp_path: Any) -> None:
    text = MODEL.replace(
        'name="near" type="sphere" pos="0 0.15 0" size="0.1"',
        'name="near" type="sphere" pos="0 0 0" size="0.7"',
    )
    (tmp_path / 'inside.xml').write_text(text)
    found = []
    for num_envs in (1, 3):
        config = rig_from_parameters(
            {
                'world': {'model': str(tmp_path / 'inside.xml'), 'num_envs': num_envs},
                'sensors': {
                    'lidar': {
                        'type': 'lidar2d',
                        'num_rays': 8,
                        'noise': 0.0,
                        'backend': 'embree',
                        'motion_distortion': False,
                        'mount': {'body': 'cart'},
                    }
                },
            }
        )
        rig = Rig(config.simulated_world, config.make_sensors().values())
        rig.step()
        found.append(rig.read('lidar').values[-1])
    np.testing.assert_array_equal(*found)
    assert found[0][:8] == pytest.approx(0.7, abs=1e-4)


@needs_embree
def test_soft_bodies_are_cast_environment_by_environment(tmp_path: Any) -> None:
    text = MODEL.replace(
        '<body name="post"',
        '<flexcomp name="f" type="grid" count="3 3 1" '
        'spacing=".5 .5 .5" pos="0 0 1" dim="2" mass="1"/><body name="post"',
    )
    (tmp_path / 'soft.xml').write_text(text)
    config = rig_from_parameters(
        {
            'world': {'model': str(tmp_path / 'soft.xml'), 'num_envs': 2},
            'sensors': {'lidar': {'type': 'lidar2d', 'num_rays': 4, 'mount': {'body': 'cart'}}},
        }
    )
    reader = Rig(config.simulated_world, config.make_sensors().values())._readers['lidar']
    assert isinstance(reader, SweepReader) and reader.eye.many is None
    assert mujoco.MjModel.from_xml_string(text).nflex == 1
