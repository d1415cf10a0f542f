"""The contract of a driver, and what scripted ones share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rig_common.times import NS_PER_S

if TYPE_CHECKING:
    from sim_sensors.world.base import WorldBase
    from sim_sensors.world.envs import EnvIndex

Floats = NDArray[np.float64]


class Driver(ABC):
    """Decides what the robots of all environments do."""

    period_s: float = 0.0
    """Time between two decisions, s; 0 decides at every physics step."""

    def __init__(self, world: WorldBase) -> None:
        self._begun_ns = np.zeros(world.num_envs, np.int64)

    def reset(self, envs: NDArray[np.intp], time_ns: int) -> None:
        """Begin a new episode in `envs` at `time_ns`."""
        self._begun_ns[envs] = time_ns

    def elapsed_s(self, time_ns: int) -> Floats:
        """Return the time since the start of each environment's episode, s [E]."""
        return (time_ns - self._begun_ns) / NS_PER_S

    def restart(self) -> None:  # noqa: B027 - most drivers know no more than their episodes
        """Prepare for time to start again."""

    def observe(self, world: WorldBase) -> None:  # noqa: B027 - most drivers see the state
        """Look at the world after each step."""

    def take_pose(
        self, body: str, pos_m: Sequence[float], quat_wxyz: Sequence[float], envs: EnvIndex
    ) -> bool:
        """Take a pose command for `body`; False leaves it to the world."""
        return False

    @abstractmethod
    def act(self, world: WorldBase, time_ns: int) -> None:
        """Write what is wanted from `time_ns` on; called once a period."""


def smooth(part: Floats) -> Floats:
    """Return 0 to 1 for `part` 0 to 1, without jumps of speed and acceleration."""
    x = np.clip(part, 0.0, 1.0)
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))
