"""A heading controller that feels what a real gyro would give it: noise, bias and latency.

The rover is to turn on the spot by 90 degrees. The controller integrates the gyro it reads; each
loop runs with another latency of that gyro, everything else being equal.

    ./rig python examples/plain_loop.py
"""

from __future__ import annotations

import math

import numpy as np

from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.rig import Rig

STEP_S = 0.001
GAIN_1_S = 8.0
GOAL_RAD = math.pi / 2


def make_rig(latency_s: float) -> Rig:
    """Return the yard with an IMU of the given latency on the rover."""
    config = rig_from_parameters(
        {
            'seed': 3,
            'world': {'model': 'rover_yard.xml', 'driver': 'commands', 'timestep_s': STEP_S},
            'sensors': {
                'imu': {
                    'type': 'imu',
                    'rate_hz': 200.0,
                    'mount': {'site': 'imu_mount'},
                    'delay_range_s': [latency_s, latency_s],
                    'gyro': {'noise_density': 1.7e-4, 'turn_on_bias': 0.002},
                }
            },
        }
    )
    return Rig(config.simulated_world, config.make_sensors().values(), seed=config.seed)


def overshoot_deg(latency_s: float) -> float:
    """Return how far the rover turns past its goal, degrees."""
    rig = make_rig(latency_s)
    layout = rig.sensors['imu'].return_layout
    start_rad = rig.world.base_poses()[0, 2]
    heading_rad = turned_rad = 0.0
    capture_ns = rig.time_ns
    for _ in range(3000):
        rig.step()
        reading = rig.read('imu')
        if reading.valid[0] and reading.capture_ns[0] > capture_ns:
            rate = layout.view(reading.values, 'angular_velocity')[0, 2]
            heading_rad += rate * (reading.capture_ns[0] - capture_ns) / 1e9
            capture_ns = reading.capture_ns[0]
        rig.command_twist(0.0, float(np.clip(GAIN_1_S * (GOAL_RAD - heading_rad), -1.5, 1.5)))
        turned_rad = max(turned_rad, rig.world.base_poses()[0, 2] - start_rad)
    return math.degrees(turned_rad - GOAL_RAD)


if __name__ == '__main__':
    for latency in (0.0, 0.05, 0.1, 0.15):
        print(f'gyro latency {latency * 1e3:4.0f} ms: overshoot {overshoot_deg(latency):5.1f} deg')
