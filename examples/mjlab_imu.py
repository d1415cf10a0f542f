"""An IMU as an observation of mjlab's cartpole: late and noisy, in every environment otherwise.

mjlab steps its own environment with its own managers. The truth is MuJoCo's accelerometer and gyro
on the pole; `SensedTerm` turns it into what an IMU with latency, jitter, loss and noise gives.

    pip install mjlab array-api-compat pydantic pyyaml scipy     # a CPU suffices
    PYTHONPATH=. python examples/mjlab_imu.py --envs 8 --steps 300

mjlab 1.6.0 asks for MuJoCo 3.11 and sensor_rig for 3.17 or newer: pip does not install both. The
term works with either: use an environment for mjlab alone, with this checkout on its path.
"""

from __future__ import annotations

import argparse

import mujoco
import torch
from mjlab.envs import ManagerBasedRlEnv, ManagerBasedRlEnvCfg
from mjlab.managers.observation_manager import ObservationTermCfg
from mjlab.sensor.builtin_sensor import BuiltinSensorCfg, ObjRef
from mjlab.tasks.cartpole.cartpole_env_cfg import cartpole_balance_env_cfg

from sim_sensors.observation import SensedTerm
from sim_sensors.sensors.imu import Imu, ImuConfig

IMU = ImuConfig(
    type='imu',
    rate_hz=0.0,  # a capture at every step
    delay_range_s=(0.02, 0.10),  # drawn for each environment and episode
    jitter_s=0.01,
    loss={'probability': 0.02},
    accel={'noise_density': 2e-3},
    gyro={'noise_density': 2e-4, 'turn_on_bias': 0.01},
)
SITE = ObjRef('site', 'pole_imu', entity='cartpole')


def truth(env: ManagerBasedRlEnv) -> torch.Tensor:
    """Return specific force, m/s^2, and angular rate, rad/s, of the pole's tip, [num_envs, 6]."""
    return torch.cat([env.scene['cartpole/felt'].data, env.scene['cartpole/turned'].data], -1)


def config(num_envs: int, seed: int) -> ManagerBasedRlEnvCfg:
    """Return mjlab's cartpole with an IMU for the actor and the truth for the critic."""
    cfg = cartpole_balance_env_cfg()
    cartpole = cfg.scene.entities['cartpole']
    model = cartpole.spec_fn

    def with_site() -> mujoco.MjSpec:
        spec = model()
        spec.body('pole_1').add_site(name=SITE.name, pos=(0.0, 0.0, 1.0))
        return spec

    cartpole.spec_fn = with_site
    cfg.scene.sensors = (
        *cfg.scene.sensors,
        BuiltinSensorCfg(name='felt', sensor_type='accelerometer', obj=SITE),
        BuiltinSensorCfg(name='turned', sensor_type='gyro', obj=SITE),
    )
    cfg.scene.num_envs, cfg.seed = num_envs, seed
    cfg.decimation, cfg.episode_length_s = 1, 1.5  # 100 steps a second
    cfg.observations['actor'].terms['imu'] = ObservationTermCfg(
        func=SensedTerm(Imu('imu', IMU), truth, seed=seed)
    )
    cfg.observations['critic'].terms['imu'] = ObservationTermCfg(func=truth)
    return cfg


def swing(num_envs: int, steps: int, seed: int = 1) -> dict[str, torch.Tensor]:
    """Push the carts about; return what each environment's IMU said and what was true.

    `sensed` and `true` are [steps, num_envs, 6]; `latency_s` was drawn for the episode, `age_s` is
    the age of what was sensed and `valid` whether there was anything, all [steps, num_envs].
    """
    env = ManagerBasedRlEnv(config(num_envs, seed), device='cpu')
    imu = env.observation_manager.get_term_cfg('actor', 'imu').func  # mjlab copies its terms
    env.reset()
    generator = torch.Generator().manual_seed(seed)
    rows = []
    for _ in range(steps):
        push = 2.0 * torch.rand(num_envs, 1, generator=generator) - 1.0
        observed, *_ = env.step(push)
        now_ns = round(env.common_step_counter * env.step_dt * 1e9)
        rows.append(
            (
                observed['actor'][:, -6:],
                observed['critic'][:, -6:],
                imu.latency_s,
                (now_ns - imu.reading.capture_ns) / 1e9,
                imu.reading.valid,
            )
        )
    env.close()
    names = ('sensed', 'true', 'latency_s', 'age_s', 'valid')
    columns = zip(*rows, strict=True)
    return {name: torch.stack(column) for name, column in zip(names, columns, strict=True)}


def main() -> None:
    """Print how late and how wrong each environment's gyro was."""
    parser = argparse.ArgumentParser(description=(__doc__ or '').splitlines()[0])
    parser.add_argument('--envs', type=int, default=8)
    parser.add_argument('--steps', type=int, default=300)
    options = parser.parse_args()
    found = swing(options.envs, options.steps)
    print('environment   latency of an episode   mean age of readings   rms error of pitch rate')
    for env in range(options.envs):
        for latency_s in found['latency_s'][:, env].unique_consecutive():
            rows = (found['latency_s'][:, env] == latency_s) & found['valid'][:, env]
            if rows.any():
                error = (found['sensed'] - found['true'])[rows, env, 4]
                print(
                    f'{env:11d} {latency_s * 1e3:20.1f} ms '
                    f'{found["age_s"][rows, env].mean() * 1e3:18.1f} ms '
                    f'{error.square().mean().sqrt():19.3f} rad/s'
                )


if __name__ == '__main__':
    main()
