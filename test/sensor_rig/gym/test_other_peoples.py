"""Senses in environments of packages that are installed by whoever wants to see it."""

from __future__ import annotations

import warnings
from typing import Any

import mujoco
import numpy as np
import pytest

from sensor_rig.gym import SenseWrapper

pytest.importorskip('gymnasium', reason='gymnasium is not installed')

import gymnasium
from gymnasium.utils.env_checker import check_env

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


def rig(body: str) -> dict[str, Any]:
    return {
        'sensors': {
            'inertia': {
                'type': 'imu',
                'rate_hz': 100.0,
                'mount': {'body': body},
                'noise': 0.1,
                'delay_range_s': [0.01, 0.03],
            },
            'tracker': {'type': 'pose', 'rate_hz': 0.0, 'mount': {'body': body}},
        }
    }


def rolled(env: Any, body: str, steps: int = 20) -> None:
    """Let `env` act and compare its tracker with where its body is."""
    env.reset(seed=1)
    for _ in range(steps):
        observed, *_ = env.step(env.action_space.sample())
    model, data = env._model, env._data
    here = mujoco.MjData(model)
    here.qpos[:], here.mocap_pos[:], here.mocap_quat[:] = (
        data.qpos,
        data.mocap_pos,
        data.mocap_quat,
    )
    mujoco.mj_kinematics(model, here)
    np.testing.assert_allclose(observed['tracker'][:3], here.body(body).xpos, atol=1e-9)
    assert env.rig.world.mismatch < 1e-9


@pytest.mark.parametrize(
    ('name', 'body'),
    [
        ('walker-walk', 'torso'),
        ('humanoid-stand', 'torso'),
        ('manipulator-bring_ball', 'hand'),
        ('swimmer-swimmer6', 'head'),
        ('dog-walk', 'torso'),
        ('ball_in_cup-catch', 'ball'),
    ],
)
def test_dm_control_through_shimmy(name: str, body: str) -> None:
    pytest.importorskip('shimmy')
    pytest.importorskip('dm_control')
    try:
        bare = gymnasium.make(f'dm_control/{name}-v0')
    except AttributeError as error:
        pytest.skip(f'this dm_control does not start with MuJoCo {mujoco.__version__}: {error}')
    env = SenseWrapper(bare, rig(body))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        check_env(env, skip_render_check=True)
    rolled(env, body)


def _mended_welds(self: Any) -> None:
    """Write a weld's numbers into MuJoCo's array, which has one more than Meta-World 3.0 knows."""
    for index in np.flatnonzero(self.model.eq_type == mujoco.mjtEq.mjEQ_WELD):
        self.model.eq_data[index, :11] = [0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5.0]


@pytest.mark.parametrize('task', ['reach-v3', 'door-open-v3', 'drawer-open-v3'])
def test_meta_world(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip('metaworld')
    from metaworld.sawyer_xyz_env import SawyerMocapBase

    monkeypatch.setattr(SawyerMocapBase, 'reset_mocap_welds', _mended_welds)
    env = SenseWrapper(gymnasium.make('Meta-World/MT1', env_name=task, seed=3), rig('hand'))
    rolled(env, 'hand')
