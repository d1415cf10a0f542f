"""Moves a robot so that every sensor's clock can be told: smooth, band-limited, seeded."""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import NoiseStream
from sim_sensors.world.config.drivers import ExciteConfig
from sim_sensors.world.drivers.hold import Hold
from sim_sensors.world.drivers.smooth import smooth
from sim_sensors.world.model.stance import sway_map
from sim_sensors.world.world_base import WorldBase

TONES = 6
"""Sines in the motion of one joint; enough that it does not repeat."""
REST_S = 1.5
"""Rest at the pose before it moves: what adapts to motion sees rest first."""
RISE_S = 2.0
"""Time in which the motion grows to its size."""
STEADY = 0.3
"""Steadiness of a stance, as a quadruped's, that stands the whole motion; others get less."""
MARGIN = 0.9
"""Part of the way to a joint's limit that may be used."""


class Excite(Hold):
    """Adds a band-limited motion to a held pose.

    Each signal is a mean of `TONES` sines whose frequencies and phases are drawn by (seed,
    environment), so it stays within +-1; it moves one joint, or one axis of the base.
    """

    def __init__(self, world: WorldBase, config: ExciteConfig) -> None:
        super().__init__(world, config)
        self._config = config
        self._moves = self._directions(world)
        self._draw(world)
        self._seed = world.seed

    def _directions(self, world: WorldBase) -> Floats:
        """Return by how much each signal moves each length, [n, signals]."""
        config, servo = self._config, self.servo
        chosen = world.actuation.actuators.matching(config.joints, 'world.driver.joints')
        rows = [servo.row[index] for index in chosen if index in servo.row]
        if not rows:
            raise RigError(
                f'world.driver.joints is {list(config.joints)}, of which a PD layer can move none'
            )
        if config.sway == 'base' and servo.stance is None:
            raise RigError(
                'world.driver.sway is base, but the robot does not stand on feet with '
                'a free base; use joints'
            )
        if config.sway == 'joints' or servo.stance is None:
            moves = np.zeros((len(servo.chosen), len(rows)))
            moves[rows, range(len(rows))] = config.amplitude_rad * np.abs(servo.gear[rows])
        else:
            data = mujoco.MjData(world.model)
            data.qpos[:] = self.qpos
            mujoco.mj_forward(world.model, data)
            dofs = np.flatnonzero(np.abs(servo.moment[rows]).max(0) > 1e-9).tolist()
            sway = sway_map(world.model, data, servo.stance, dofs)
            moves = servo.moment[:, dofs] @ sway
            calm = min(1.0, servo.stance.steadiness / STEADY)
            moves *= calm * np.repeat([config.base_m, config.base_rad], 3)
        return moves * self._room(world, np.abs(moves).sum(1))[:, None]

    def _room(self, world: WorldBase, reach: Floats) -> Floats:
        """Return by how much each length must be scaled to stay inside the limits, [n]."""
        model, room = world.model, np.ones(len(reach))
        joints = world.actuation.actuators.joint
        for row, index in enumerate(self.servo.chosen):
            joint = joints[index]
            if joint >= 0 and model.jnt_limited[joint] and reach[row] > 0.0:
                low, high = model.jnt_range[joint]
                at = self.qpos[model.jnt_qposadr[joint]]
                free = MARGIN * max(min(high - at, at - low), 0.0) * abs(self.servo.gear[row])
                room[row] = min(1.0, free / reach[row])
        return room

    def _draw(self, world: WorldBase) -> None:
        """Draw frequencies and phases, [E, signals, TONES]."""
        shape = (world.num_envs, self._moves.shape[1], TONES)
        stream = NoiseStream(
            Lanes(world.seed, ('driver',), world.num_envs),
            'excite',
            2 * shape[1] * TONES,
            'uniform',
        )
        drawn = stream.first(np.arange(world.num_envs)).reshape(shape[0], 2, *shape[1:])
        low, high = self._config.band_hz
        # One tone in each part of the band: no two beat slowly, none is missing.
        place = (np.arange(TONES) + drawn[:, 0]) / TONES
        self._rad_s = 2 * np.pi * (low + (high - low) * place)
        self._phase = 2 * np.pi * drawn[:, 1]
        self._seed = world.seed

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write the pose and the motion around it."""
        if self._seed != world.seed:
            self._draw(world)
        elapsed_s = self.elapsed_s(time_ns)
        rising_s = elapsed_s - self._ramp_s - REST_S
        size = smooth(rising_s / RISE_S)[:, None]
        angle = self._rad_s * rising_s[:, None, None] + self._phase
        signals = size * np.sin(angle).mean(2)
        speeds = size * (self._rad_s * np.cos(angle)).mean(2)
        world.actuation.lengths[:] = self.approach(elapsed_s) + signals @ self._moves.T
        world.actuation.rates[:] = speeds @ self._moves.T
