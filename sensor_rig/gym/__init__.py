"""Rigs in Gymnasium: sensors for environments that others wrote, and environments of a rig alone.

env = SenseWrapper(gymnasium.make('Ant-v5'), 'ant_senses.yaml')
envs = RigVectorEnv('quadruped', num_envs=64, control_period_s=0.02)
"""

from sensor_rig.gym.senses import SenseWrapper
from sensor_rig.gym.vector import RigVectorEnv

__all__ = ['RigVectorEnv', 'SenseWrapper']
