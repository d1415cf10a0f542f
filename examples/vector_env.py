"""A Gymnasium vector environment: 64 rovers that drive to goals with late and noisy senses.

Every environment has its own latency, drawn anew at each reset, so a policy trained here has met
them all. The sensors are those of a rig file; the physics runs in threads.

    ./rig python examples/vector_env.py --steps 200
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.rig import Rig

RIG: dict[str, Any] = {
    'seed': 1,
    'world': {'model': 'rover_yard.xml', 'driver': 'commands', 'timestep_s': 0.002},
    'sensors': {
        'imu': {'type': 'imu', 'rate_hz': 100.0, 'mount': {'site': 'imu_mount'},
                'delay_range_s': [0.005, 0.03],
                'gyro': {'noise_density': 1.7e-4, 'turn_on_bias': 0.002}},
        'tracker': {'type': 'pose', 'rate_hz': 25.0, 'mount': {'body': 'rover'},
                    'position_noise_m': 0.02, 'orientation_noise_rad': 0.01,
                    'delay_range_s': [0.04, 0.12], 'jitter_s': 0.01},
    },
}
CONTROL_PERIOD_S = 0.04
EPISODE_S = 12.0
REACHED_M = 0.4


class RoverGoals(VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """Drive each rover to its goal. Action: speed and yaw rate, -1 to 1. Reward: metres gained."""

    def __init__(self, num_envs: int = 64) -> None:
        """Make `num_envs` rovers."""
        world = {**RIG['world'], 'num_envs': num_envs}
        config = rig_from_parameters({**RIG, 'world': world})
        self.rig = Rig(config.simulated_world, config.make_sensors().values(), seed=config.seed)
        self.num_envs = num_envs
        self.metadata = {'autoreset_mode': AutoresetMode.NEXT_STEP}
        self.ticks = round(CONTROL_PERIOD_S * 1e9 / self.rig.world.dt_ns)
        width = 2 + sum(sensor.return_layout.width for sensor in self.rig.sensors.values())
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (width,))
        self.single_action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
        batch = gymnasium.vector.utils.batch_space
        self.observation_space = batch(self.single_observation_space, num_envs)
        self.action_space = batch(self.single_action_space, num_envs)
        self.goals = np.zeros((num_envs, 2))
        self.started_ns = np.zeros(num_envs, np.int64)
        self.done = np.zeros(num_envs, np.bool_)
        self.chance = np.random.default_rng(config.seed)

    def reset(self, *, seed: int | None = None,
              options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Put every rover back to the middle, with a new goal."""
        self.chance = np.random.default_rng(self.rig.seed if seed is None else seed)
        self.rig.reset(seed=seed)
        self.rig.step()
        self._new_goals(np.arange(self.num_envs))
        self.done[:] = False
        return self._observe(), {}

    def step(self, actions: NDArray[np.float32]) -> tuple[
            NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_],
            dict[str, Any]]:
        """Drive for one control period; rovers that were done start again instead."""
        again = np.flatnonzero(self.done)
        if len(again):
            self.rig.reset(again)
            self._new_goals(again)
        before = self._distance()
        twists = 1.5 * np.clip(actions, -1.0, 1.0)
        twists[again] = 0.0
        self.rig.command_twist(twists[:, 0], twists[:, 1])
        for _ in range(self.ticks):
            self.rig.step()
        after = self._distance()
        reached = after < REACHED_M
        late = self.rig.time_ns - self.started_ns > EPISODE_S * 1e9
        reward = np.where(np.isin(np.arange(self.num_envs), again), 0.0, before - after)
        self.done = reached | late
        return self._observe(), reward, reached, late & ~reached, {}

    def _new_goals(self, envs: NDArray[np.intp]) -> None:
        angle = self.chance.uniform(-np.pi, np.pi, len(envs))
        self.goals[envs] = 1.5 * np.stack([np.cos(angle), np.sin(angle)], 1)
        self.started_ns[envs] = self.rig.time_ns

    def _distance(self) -> NDArray[np.float64]:
        """Return the true distance to the goal, m: rewards know the truth, policies do not."""
        offset = self.goals - self.rig.world.base_poses()[:, :2]
        return np.hypot(offset[:, 0], offset[:, 1])

    def _observe(self) -> NDArray[np.float32]:
        """Return what has arrived by now: zeros while nothing has."""
        readings = [reading.values for reading in self.rig.read_sensors().values()]
        return np.concatenate([self.goals, *readings], 1).astype(np.float32)


def steer(env: RoverGoals, observed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return actions of a simple policy that trusts the late tracker."""
    layout = env.rig.sensors['tracker'].return_layout
    pose = observed[:, -layout.width:]
    position = layout.view(pose, 'position')[:, :2]
    x, y, z, w = layout.view(pose, 'orientation').T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    offset = observed[:, :2] - position
    bearing = np.arctan2(offset[:, 1], offset[:, 0]) - yaw
    bearing = (bearing + np.pi) % (2 * np.pi) - np.pi
    return np.stack([0.6 * np.cos(bearing).clip(0, 1), (1.5 * bearing).clip(-1, 1)],
                    1).astype(np.float32)


def main() -> None:
    """Run the simple policy and print how it did."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--envs', type=int, default=64)
    parser.add_argument('--steps', type=int, default=200)
    given = parser.parse_args()
    env = RoverGoals(given.envs)
    observed, _ = env.reset(seed=2)
    arrived = total = 0.0
    began = time.perf_counter()
    for _ in range(given.steps):
        observed, reward, reached, _, _ = env.step(steer(env, observed))
        arrived += reached.sum()
        total += reward.sum()
    wall = time.perf_counter() - began
    simulated = given.steps * CONTROL_PERIOD_S * given.envs
    print(f'{given.envs} rovers, {given.steps} steps: {arrived:.0f} goals reached, '
          f'{total / given.envs:.2f} m gained each, {simulated / wall:.0f} x real time in all')


if __name__ == '__main__':
    main()
