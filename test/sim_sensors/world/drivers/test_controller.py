"""The user's controller in the loop: truth or readings, every way of running, mistakes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from support.robots import arm, positions, run, world_of

from rig_common.errors import RigError
from sim_sensors.registry import sensor_class
from sim_sensors.rig import Rig
from sim_sensors.world.config.world import WorldConfig

CONTROLLERS = '''
import numpy as np

class Balance:
    """A PD on the truth."""
    rate_hz = 250.0

    def __init__(self, model, num_envs, goal=0.0):
        self.goal = goal

    def act(self, seen):
        q, v = seen.truth.qpos, seen.truth.qvel
        torque = [150.0, 20.0] * (self.goal - q) - [8.0, 0.6] * v
        torque[:, 1] /= 5.0
        return torque

class Blind(Balance):
    """The same on what the encoders say."""
    reads = ('joint_states',)

    def __init__(self, model, num_envs, goal=0.0):
        self.goal, self.seen = goal, []

    def act(self, seen):
        assert seen.truth is None
        values = seen.readings['joint_states'].values
        self.seen.append(values.copy())
        q, v = values[:, :2], values[:, 2:4]
        torque = 20.0 * (self.goal - q) - 1.0 * v
        return {'m0': torque[:, 0], 'elbow': torque[:, 1] / 5.0}

class Broken:
    rate_hz = 100.0
    def __init__(self, model, num_envs): pass
    def act(self, seen): return 1 / 0

class Wide(Broken):
    def act(self, seen): return np.zeros(7)
'''
ENCODERS = {
    'type': 'joint_state',
    'joints': ('shoulder', 'elbow'),
    'rate_hz': 250.0,
    'noise': 0.001,
    'delay_range_s': (0.004, 0.008),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / 'mine.py').write_text(CONTROLLERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, 'mine', raising=False)
    yield tmp_path
    sys.modules.pop('mine', None)


def driver(name: str, **options) -> dict:
    return {'type': 'python', 'class': f'mine:{name}', **({'options': options} if options else {})}


def encoders():
    cls = sensor_class('joint_state')
    return [cls('joint_states', cls.config_class(**ENCODERS))]


def test_it_sees_the_truth_and_moves_the_arm(folder):
    world = world_of(folder, arm(), driver=driver('Balance', goal=0.4))
    run(world, 3.0)
    assert positions(world)['shoulder'] == pytest.approx(0.4, abs=0.1)


def test_readings_are_those_of_the_rigs_sensors_and_the_same_in_a_batch(folder):
    def rig(**keys):
        (folder / 'model.xml').write_text(arm())
        return Rig(
            WorldConfig(model='model.xml', timestep_s=0.002, driver=driver('Blind'), **keys),
            encoders(),
            seed=3,
            base_dir=folder,
        )

    one, many = rig(), rig(num_envs=2)
    for _ in range(400):
        read = one.read('joint_states').values.copy() if one.world.tick >= 0 else None
        one.step()
        many.step()
        if read is not None and one.world.tick % 2 == 0:
            np.testing.assert_array_equal(one.world.driver._user.seen[-1], read)
    np.testing.assert_array_equal(many.world.bound('qpos')[0], one.world.bound('qpos')[0])
    assert np.abs(many.world.bound('qpos')[1] - many.world.bound('qpos')[0]).max() > 0.0


def test_a_reset_with_the_seed_gives_the_same_run(folder):
    (folder / 'model.xml').write_text(arm())
    rig = Rig(
        WorldConfig(model='model.xml', timestep_s=0.002, driver=driver('Blind')),
        encoders(),
        seed=3,
        base_dir=folder,
    )
    ends = []
    for seed in (3, None, 3):
        rig.reset(seed=seed)
        for _ in range(200):
            rig.step()
        ends.append(rig.world.bound('qpos').copy())
    np.testing.assert_array_equal(ends[0], ends[2])
    assert np.abs(ends[0] - ends[1]).max() > 0.0


@pytest.mark.parametrize(
    ('config', 'sentence'),
    [
        (driver('Nobody'), "has no class 'Nobody' with a method act"),
        (
            {'type': 'python', 'class': 'nowhere_at_all:X'},
            'it cannot be imported: No module named',
        ),
        (driver('Balance', gaol=1.0), r"Balance: making it failed.*keyword argument 'gaol'"),
        (driver('Blind'), r"Blind.reads is 'joint_states', which the model does not have"),
    ],
)
def test_mistakes_at_the_start_are_one_sentence(folder, config, sentence):
    with pytest.raises(RigError, match=sentence):
        world_of(folder, arm(), driver=config)


@pytest.mark.parametrize(
    ('name', 'sentence'),
    [
        ('Broken', r'Broken: its act failed in mine.py, line \d+: ZeroDivisionError'),
        ('Wide', r'Wide.act returned an array of shape \[7\]; it should be \[1, 2\]'),
    ],
)
def test_mistakes_while_running_are_one_sentence(folder, name, sentence):
    world = world_of(folder, arm(), driver=driver(name))
    with pytest.raises(RigError, match=sentence):
        run(world, 0.1)
