"""Your own controller in the loop: a PD that holds the shipped arm by what its encoders say.

    ./rig demo --rig examples/own_controller.yaml       # over ROS 2, with the live page
    ./rig python examples/own_controller.py                   # the same class in plain Python

The encoders are late and noisy, as the rig file says. With more latency the arm begins to shake.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np


class Hold:
    """Holds the six joints where the rig file says; the gripper keeps its command."""

    rate_hz = 500.0
    reads = ('joints',)

    def __init__(self, model: Any, num_envs: int, goal_rad: list[float]) -> None:
        """Take the wanted positions from `options:` of the rig file."""
        self.goal_rad = np.array(goal_rad)
        self.kp = np.array([300.0, 300.0, 200.0, 30.0, 30.0, 20.0])
        self.kd = np.array([30.0, 30.0, 20.0, 2.0, 2.0, 1.5])
        self.motors = [model.actuator(index).name for index in range(6)]

    def act(self, seen: Any) -> dict[str, Any]:
        """Return torques by name, [num_envs] each, from what the encoders have delivered."""
        values = seen.readings['joints'].values
        position, velocity = values[:, :6], values[:, 6:12]
        torque = self.kp * (self.goal_rad - position) - self.kd * velocity
        return dict(zip(self.motors, torque.T, strict=True))


def main() -> None:
    """Run the rig for some seconds with several latencies and say how well the arm holds."""
    from sensor_rig.inprocess import InProcessRig
    from sensor_rig.rigfile import load_rig

    config = load_rig(Path(__file__).with_suffix('.yaml'))
    for delay_s in (0.001, 0.02, 0.04):
        late = config.sensors['joints'].model_copy(update={'delay_range_s': (delay_s, delay_s)})
        rig = InProcessRig(replace(config, sensors={'joints': late}), messages=False)
        for _ in range(3000):
            rig.step()
        speed = np.abs(rig.world.bound('qvel')[0, :6]).max()
        error = np.abs(rig.world.bound('qpos')[0, :6] - [0.0, 0.25, 1.55, 0.0, 1.15, 0.0]).max()
        print(
            f'encoders {delay_s * 1e3:g} ms late: {np.degrees(error):.2f} deg off, '
            f'{speed:.3f} rad/s'
        )


if __name__ == '__main__':
    main()
