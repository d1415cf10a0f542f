"""Sensors on a model that knows nothing of them: the ant that comes with Gymnasium.

Its XML is not touched: an IMU, a LiDAR, a foot contact and, where something renders, a camera are
mounted by body name when it is loaded.

    ./rig python examples/third_party_model.py
"""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import gymnasium
import numpy as np

from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import rig_from_parameters

ANT = Path(gymnasium.__file__).parent / 'envs/mujoco/assets/ant.xml'
RIG = {
    'seed': 4,
    'world': {'model': str(ANT), 'timestep_s': 0.002, 'skip_unavailable': True},
    'sensors': {
        'imu': {
            'type': 'imu',
            'rate_hz': 100.0,
            'mount': {'body': 'torso'},
            'delay_range_s': [0.004, 0.004],
            'noise': 0.01,
        },
        'lidar': {
            'type': 'lidar2d',
            'rate_hz': 10.0,
            'num_rays': 180,
            'mount': {'body': 'torso', 'pos_m': [0.0, 0.0, 0.4]},
        },
        'foot': {'type': 'contact', 'rate_hz': 100.0, 'mount': {'body': 'front_left_leg'}},
        'camera': {
            'type': 'camera',
            'rate_hz': 10.0,
            'width': 80,
            'height': 60,
            'mount': {'body': 'torso', 'pos_m': [0.0, 0.0, 0.5]},
        },
    },
}


def main() -> None:
    """Let the ant stagger for two seconds and count what its sensors send."""
    logging.basicConfig(format='%(message)s')
    rig = InProcessRig(rig_from_parameters(RIG))
    received: Counter[str] = Counter()
    joints = sorted(rig.world.actuators)
    for tick in range(1000):
        swing = 0.4 * np.sin(0.02 * tick + np.arange(len(joints)))
        rig.command(dict(zip(joints, swing, strict=True)))
        received.update(message.topic for message in rig.step())
    for topic, count in sorted(received.items()):
        print(f'{topic}: {count} messages')
    acceleration = rig.sensors['imu'].return_layout.view(
        rig.read('imu').values, 'linear_acceleration'
    )[0]
    print(f'the torso feels {np.round(acceleration, 2)} m/s^2')


if __name__ == '__main__':
    main()
