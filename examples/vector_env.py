"""A Gymnasium vector environment: 64 rovers that drive to goals with late and noisy senses.

Every environment has its own latency, drawn again at each reset, so a policy trained here has met
them all. The sensors are those of a rig file; the physics runs in threads.

    ./rig python examples/vector_env.py --steps 200
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from sensor_rig.gym import RigVectorEnv

RIG: dict[str, Any] = {
    'seed': 1,
    'world': {'model': 'rover_yard.xml', 'driver': 'commands', 'timestep_s': 0.002},
    'sensors': {
        'imu': {
            'type': 'imu',
            'rate_hz': 100.0,
            'mount': {'site': 'imu_mount'},
            'delay_range_s': [0.005, 0.03],
            'gyro': {'noise_density': 1.7e-4, 'turn_on_bias': 0.002},
        },
        'tracker': {
            'type': 'pose',
            'rate_hz': 25.0,
            'mount': {'body': 'rover'},
            'position_noise_m': 0.02,
            'orientation_noise_rad': 0.01,
            'delay_range_s': [0.04, 0.12],
            'jitter_s': 0.01,
        },
    },
}
CONTROL_PERIOD_S = 0.04
EPISODE_S = 12.0
REACHED_M = 0.4


class RoverGoals(RigVectorEnv):
    """Drive each rover to its goal. Action: speed and yaw rate, -1 to 1. Reward: metres gained."""

    task_space = gymnasium.spaces.Box(-2.0, 2.0, (2,))

    def __init__(self, num_envs: int = 64) -> None:
        """Make `num_envs` rovers."""
        self.goals = np.zeros((num_envs, 2))
        self.before = np.zeros(num_envs)
        super().__init__(RIG, num_envs, control_period_s=CONTROL_PERIOD_S, episode_s=EPISODE_S)

    def begin(self, envs: NDArray[np.intp]) -> None:
        """Give `envs` new goals."""
        angle = self.np_random.uniform(-np.pi, np.pi, len(envs))
        self.goals[envs] = 1.5 * np.stack([np.cos(angle), np.sin(angle)], 1)
        self.before[envs] = self._distance()[envs]

    def task(self) -> NDArray[np.float64]:
        """Return the goals, m, in the world."""
        return self.goals

    def reward(self, actions: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the metres gained."""
        before, self.before = self.before, self._distance()
        return before - self.before

    def terminated(self) -> NDArray[np.bool_]:
        """Return which rovers have arrived."""
        return self.before < REACHED_M

    def _distance(self) -> NDArray[np.float64]:
        """Return the true distance to the goal, m: rewards know the truth, policies do not."""
        offset = self.goals - self.rig.world.base_poses()[:, :2]
        return np.hypot(offset[:, 0], offset[:, 1])


def steer(env: RoverGoals, observed: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return actions of a simple policy that trusts the late tracker."""
    layout = env.rig.sensors['tracker'].return_layout
    pose = observed[:, -layout.width :]
    position = layout.view(pose, 'position')[:, :2]
    x, y, z, w = layout.view(pose, 'orientation').T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    offset = observed[:, :2] - position
    bearing = np.arctan2(offset[:, 1], offset[:, 0]) - yaw
    bearing = (bearing + np.pi) % (2 * np.pi) - np.pi
    return np.stack([0.6 * np.cos(bearing).clip(0, 1), (1.5 * bearing).clip(-1, 1)], 1).astype(
        np.float32
    )


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
    print(
        f'{given.envs} rovers, {given.steps} steps: {arrived:.0f} goals reached, '
        f'{total / given.envs:.2f} m gained each, {simulated / wall:.0f} x real time in all'
    )


if __name__ == '__main__':
    main()
