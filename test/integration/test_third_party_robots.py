"""Models of other packages: they stand, sway and get a starting rig, where they are installed."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest

from sensor_rig.cli import mount
from sensor_rig.cli.support.registry import parse
from sensor_rig.inprocess import open_rig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import World

pytestmark = pytest.mark.long

SECONDS = 60.0
GO1 = {
    'keyframe': 'stand',
    'poses': {
        'stand': {
            'floating_base_joint': 0.278,
            '*R_hip_joint': 0.1,
            '*L_hip_joint': -0.1,
            '*_thigh_joint': 0.9,
            '*_calf_joint': -1.8,
        }
    },
    'actuators': {'legs': {'joint': '*_joint', 'force_range': [-23.7, 23.7], 'armature': 0.005}},
}
G1 = {
    'keyframe': 'stand',
    'poses': {
        'stand': {
            'floating_base_joint': 0.76,
            '*_hip_pitch_joint': -0.312,
            '*_knee_joint': 0.669,
            '*_ankle_pitch_joint': -0.363,
            '*_elbow_joint': 0.6,
            'left_shoulder_roll_joint': 0.2,
            'right_shoulder_roll_joint': -0.2,
        }
    },
    'actuators': {'all': {'joint': '*_joint', 'armature': 0.01}},
}
STANDING = {
    'unitree_go1/xmls/go1.xml': ('trunk', GO1, 0.2),
    'unitree_g1/xmls/g1.xml': ('pelvis', G1, 0.7),
}
MODELS = [
    ('gymnasium', 'envs/mujoco/assets/ant.xml'),
    ('gymnasium', 'envs/mujoco/assets/humanoid.xml'),
    ('gymnasium', 'envs/mujoco/assets/pusher_v5.xml'),
    ('dm_control', 'suite/quadruped.xml'),
    ('dm_control', 'suite/manipulator.xml'),
    ('metaworld', 'assets/sawyer_xyz/sawyer_reach_push_pick_and_place.xml'),
    ('mjlab', 'asset_zoo/robots/i2rt_yam/xmls/yam.xml'),
]


def file_of(package: str, inside: str) -> Path:
    """Return a file of a package, without importing it; skip where it is not installed.

    SENSOR_RIG_MODELS may name another environment's site-packages, whose models only are used.
    """
    extra = os.environ.get('SENSOR_RIG_MODELS')
    places = [Path(extra) / package] if extra else []
    spec = importlib.util.find_spec(package)
    places += [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    for place in places:
        if (place / inside).is_file():
            return place / inside
    pytest.skip(f'{package} is not installed, or has no {inside}')


@pytest.mark.parametrize('driver', ['hold', 'excite'])
@pytest.mark.parametrize('model', list(STANDING))
def test_a_legged_robot_stands_for_a_minute(model, driver):
    body, keys, least_m = STANDING[model]
    world = World(
        WorldConfig(
            model=str(file_of('mjlab', f'asset_zoo/robots/{model}')),
            ground=True,
            allow_outside_files=True,
            timestep_s=0.002,
            driver={'type': driver},
            **keys,
        )
    )
    index, spins = world.model.body(body).id, []
    for tick in range(int(SECONDS / 0.002)):
        world.step()
        if tick % 100 == 0:
            assert world.bound('xpos')[0, index, 2] > least_m, world.time_ns
            assert world.bound('xmat')[0, index][8] > 0.95, world.time_ns
            spins.append(np.linalg.norm(world.bound('cvel')[0, index, :3]))
    moving = np.sqrt(np.mean(np.square(spins[len(spins) // 4 :])))
    assert moving > 0.05 if driver == 'excite' else moving < 0.05


@pytest.mark.parametrize(('package', 'inside'), MODELS, ids=[inside for _, inside in MODELS])
def test_a_model_gets_a_rig_that_runs(package, inside, tmp_path):
    out = tmp_path / 'rig.yaml'
    mount.run(parse(mount, [str(file_of(package, inside)), '-o', str(out), '--no-picture']))
    rig = open_rig(out, skip_unavailable=True)
    start = rig.world.bound('qpos').copy()
    for _ in range(3000):
        rig.step()
    assert np.isfinite(rig.world.bound('qpos')).all()
    assert np.abs(rig.world.bound('qpos') - start).max() > 0.01


def test_meta_worlds_arm_follows_its_mocap_body():
    file = file_of('metaworld', 'assets/sawyer_xyz/sawyer_reach_push_pick_and_place.xml')
    config = {'model': str(file), 'allow_outside_files': True, 'timestep_s': 0.0025}
    goal = World(WorldConfig(**config)).bound('mocap_pos')[0, 0] + np.array([0.0, 0.1, 0.1])
    world = World(
        WorldConfig(
            **config,
            driver={'type': 'mocap', 'waypoints_m': tuple(goal), 'speed_m_s': 0.3, 'rest_s': 1.0},
        )
    )
    hand = world.model.body('hand').id
    places = []
    for _ in range(2400):
        world.step()
        places.append(world.bound('xpos')[0, hand].copy())
    assert np.ptp(np.array(places), axis=0).max() > 0.05
