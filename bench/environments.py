"""What sensors cost many environments, as ratios within one run.

    ./rig python -m bench.environments [--quick] [--json FILE]

- *rays*: one scan of 64 rays in 256 rovers' yards: all environments together against a loop that
  copies each environment's state and casts for it alone, as every environment did before.
- *rovers*: 64 rovers stepped on all cores; physics alone (`mujoco.batch`), with IMU, wheels and
  GNSS, and with a LiDAR of 360 rays as well, read every 40 ms. Taken in turns; the best counts.
- *senses*: a step of Gymnasium's Ant with an IMU, at the rate of the environment and at five times
  it, and with a scan of 16 rays as well, against the bare Ant.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest.mock import patch

import numpy as np

from bench.command import run_as_program
from bench.figures import Figure, absent
from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.raycast.embree_api import has_embree
from sim_sensors.raycast.many import ManyCaster
from sim_sensors.rig import Rig

SMALL: dict[str, Any] = {
    'imu': {
        'type': 'imu',
        'rate_hz': 100.0,
        'mount': {'site': 'imu_mount'},
        'delay_range_s': [0.005, 0.015],
        'accel': {'noise_density': 1e-3},
        'gyro': {'noise_density': 1e-4},
    },
    'wheels': {'type': 'wheel_odometry', 'rate_hz': 50.0},
    'gnss': {'type': 'gnss', 'rate_hz': 10.0, 'mount': {'body': 'rover'}},
}
SCANNER: dict[str, Any] = {
    'type': 'lidar2d',
    'rate_hz': 10.0,
    'num_rays': 360,
    'no_hit': 'max',
    'mount': {'body': 'rover', 'pos_m': [0.3, 0.0, 0.4]},
}
READ_EVERY = 20


def rig_of(num_envs: int, sensors: dict[str, Any]) -> Rig:
    """Return rovers in their yards that are driven by commands."""
    config = rig_from_parameters(
        {
            'seed': 1,
            'sensors': sensors,
            'world': {
                'model': 'rover_yard.xml',
                'driver': 'commands',
                'timestep_s': 0.002,
                'num_envs': num_envs,
            },
        }
    )
    rig = Rig(config.simulated_world, config.make_sensors().values(), seed=1)
    turns = np.linspace(-1.0, 1.0, num_envs)
    for _ in range(100):
        rig.command_twist(0.5, turns)
        rig.step()
    return rig


def run(quick: bool) -> dict[str, Any]:
    """Measure everything; times in microseconds."""
    return {
        'rays': rays(6 if quick else 30) if has_embree() else 'absent',
        'rovers': rovers(2 if quick else 8),
        'senses': senses(3 if quick else 12) if find_spec('gymnasium') else 'absent',
    }


def rays(rounds: int, num_envs: int = 256) -> dict[str, float]:
    """Time one scan of 64 rays in all environments, together and one by one."""
    lidar = {**SCANNER, 'num_rays': 64, 'motion_distortion': False, 'backend': 'embree'}
    together = rig_of(num_envs, {'lidar': lidar})
    with patch.object(ManyCaster, 'is_complete', False):
        singly = rig_of(num_envs, {'lidar': lidar})

    def scan(rig: Rig) -> Callable[[], None]:
        reader, everyone = rig._readers['lidar'], range(num_envs)
        out = rig.sensors['lidar'].truth_layout.empty(num_envs)

        def one() -> None:
            reader.read(rig.world, everyone, 0, out)

        return one

    turns = {'together': (together, scan(together)), 'singly': (singly, scan(singly))}
    best = dict.fromkeys(turns, float('inf'))
    for _ in range(rounds):
        for name, (rig, one) in turns.items():
            rig.world.step()  # so that states are new, as they are in a run
            began = time.thread_time()
            one()
            best[name] = min(best[name], (time.thread_time() - began) * 1e6)
    return {
        **best,
        'ratio': best['singly'] / best['together'],
        'together_us_per_env': best['together'] / num_envs,
        'singly_us_per_env': best['singly'] / num_envs,
    }


def rovers(rounds: int, num_envs: int = 64, steps: int = 200) -> dict[str, Any]:
    """Time a step of all rovers, without sensors and with more and more of them."""
    kinds = {'small sensors': SMALL, 'with LiDAR': {**SMALL, 'lidar': SCANNER}}
    rigs = {name: rig_of(num_envs, sensors) for name, sensors in kinds.items()}
    bare = rig_of(num_envs, {})
    turns: dict[str, Callable[[], None]] = {
        'physics': lambda: _physics(bare, steps),
        **{name: (lambda rig=rig: _steps(rig, steps)) for name, rig in rigs.items()},
    }
    best = dict.fromkeys(turns, float('inf'))
    for _ in range(rounds):
        for name, turn in turns.items():
            began = time.perf_counter()
            turn()
            best[name] = min(best[name], (time.perf_counter() - began) / steps * 1e6)
    return {
        'us a step': best,
        'speed of physics': {name: best['physics'] / best[name] for name in kinds},
    }


def _physics(rig: Rig, steps: int) -> None:
    batch = rig.world._batch  # type: ignore[attr-defined]
    for _ in range(steps):
        batch.step()


def _steps(rig: Rig, steps: int) -> None:
    for step in range(steps):
        rig.step()
        if step % READ_EVERY == 0:
            for name in rig.sensors:
                rig.read(name)


def senses(rounds: int, steps: int = 100) -> dict[str, Any]:
    """Time a step of the Ant without and with sensors, us of this thread."""
    import gymnasium

    from sensor_rig.gym import SenseWrapper

    imu = {**SMALL['imu'], 'mount': {'body': 'torso'}, 'delay_range_s': [0.0, 0.0]}
    rays = {**SCANNER, 'mount': {'body': 'torso', 'pos_m': [0.0, 0.0, 0.3]}, 'num_rays': 16}
    rays |= {'rate_hz': 20.0, 'motion_distortion': False}
    kinds = {
        'same rate': {'imu': {**imu, 'rate_hz': 20.0}},
        'five times the rate': {'imu': imu},
        'with 16 rays': {'imu': {**imu, 'rate_hz': 20.0}, 'lidar': rays},
    }
    ants = {
        'bare': gymnasium.make('Ant-v5'),
        **{
            name: SenseWrapper(gymnasium.make('Ant-v5'), {'seed': 1, 'sensors': sensors})
            for name, sensors in kinds.items()
        },
    }
    actions = np.random.default_rng(0).uniform(-1.0, 1.0, (steps, 8)).astype(np.float32)
    best = dict.fromkeys(ants, float('inf'))
    for _ in range(rounds):
        for name, ant in ants.items():
            ant.reset(seed=3)
            began = time.thread_time()
            for action in actions:
                ant.step(action)
            best[name] = min(best[name], (time.thread_time() - began) / steps * 1e6)
    return {'us a step': best, 'ratio': {name: best[name] / best['bare'] for name in kinds}}


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    speed = result['rovers']['speed of physics']
    name = '256 environments x 64 rays together, times faster than one by one'
    rays_figure = (
        absent(name, 'Embree is not installed', unit='x', target=5.0)
        if result['rays'] == 'absent'
        else Figure(name, result['rays']['ratio'], 'x', target=5.0)
    )
    return [
        rays_figure,
        Figure(
            '64 rovers with IMU, wheels and GNSS, speed of physics alone',
            speed['small sensors'],
            'x',
            target=0.9,
        ),
        Figure(
            '64 rovers with LiDAR as well, speed of physics alone',
            speed['with LiDAR'],
            'x',
            target=0.7,
        ),
        *_of_senses(result['senses']),
    ]


def _of_senses(result: Any) -> list[Figure]:
    targets = {'same rate': 1.15, 'five times the rate': 1.6, 'with 16 rays': 1.6}
    return [
        absent(f'Ant with an IMU, {name}, over the bare Ant', 'Gymnasium is not installed')
        if result == 'absent'
        else Figure(
            f'Ant with an IMU, {name}, over the bare Ant',
            result['ratio'][name],
            'x',
            target=target,
            better='lower',
        )
        for name, target in targets.items()
    ]


if __name__ == '__main__':
    run_as_program(run)
