"""Where circular arrays over environments are written next.

Slots lie outermost (`[slots, num_envs, width]`), so that a batch stepping together writes one
contiguous row. Environments that fell out of step (partial resets at odd times) keep their own
slot; as long as none did, one integer serves all.
"""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Ids, Ints
from sim_sensors.timing.arrays import Arrays, Rows


class Cursor:
    """Where each environment writes next in a ring of a power of two slots."""

    def __init__(self, least_slots: int, num_envs: int, xp: Arrays) -> None:
        """Make a ring of at least `least_slots` slots; the first is written next."""
        self.slots = 1 << (least_slots - 1).bit_length()
        self.mask = self.slots - 1
        self.head: Ints = xp.full(num_envs, -1, np.int64)
        """The newest slot of each environment, -1 before the first."""
        self.common: int | None = -1
        """The same as one number, while it is equal for all environments; else None."""
        self.envs = xp.arange(num_envs)

    def advance(self, envs: Rows) -> int | tuple[Ints, Ids]:
        """Move to the next slot and return the subscript that writes `envs`' rows."""
        if isinstance(envs, slice):
            if self.common is not None:
                self.common = (self.common + 1) & self.mask
                self.head[:] = self.common
                return self.common
            envs = self.envs
        elif self.common is not None:
            self.common = None
        self.head[envs] = (self.head[envs] + 1) & self.mask
        return self.head[envs], envs

    def restart(self) -> None:
        """Let all environments write the same slot again; what was written is forgotten."""
        self.head[:] = self.common = -1

    def back(self, envs: Rows, steps: int | Ints) -> Ints:
        """Return the slots [n] that lie `steps` before the newest of `envs`."""
        return (self.head[envs] - steps) & self.mask
