"""Whose random numbers: one lane for every environment of every sensor that is drawn together."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Ints
from sim_sensors.timing.arrays import NUMPY, Arrays


@dataclass(frozen=True)
class Lanes:
    """The lanes of the sensors `names` in `num_envs` environments, env by env:

        lane    0       1       2       3          names = (left, right), num_envs = 2
                left/0  right/0 left/1  right/1

    A lane's numbers depend on its sensor's name and its environment's number, never on which
    others lie beside it.
    """

    seed: int
    names: tuple[str, ...]
    num_envs: int = 1
    first_episode: int = 0
    xp: Arrays = NUMPY
    by_hash: bool = False
    """Draw white noise by a hash of the index rather than by Philox; see `hashing`."""
    episode: Ints = field(init=False)
    """Episode of each lane; whoever resets them changes it in place."""
    envs: Ints = field(init=False)
    """Environment of each lane."""

    def __post_init__(self) -> None:
        """Lay out the lanes."""
        count = self.num_envs * len(self.names)
        object.__setattr__(self, 'episode', self.xp.full(count, self.first_episode, np.int64))
        object.__setattr__(self, 'envs', self.xp.arange(count) // len(self.names))

    @property
    def is_hashed(self) -> bool:
        """Whether white noise is a hash: by choice, or where the host draws nothing."""
        return self.by_hash or not self.xp.draws_on_host

    def __len__(self) -> int:
        """Return how many lanes there are."""
        return self.num_envs * len(self.names)

    def keys(self, stream: str) -> NDArray[np.uint64]:
        """Return the key of each sensor's stream of that name, [names, 2]."""
        return np.stack([_key(self.seed, name, stream) for name in self.names])


def _key(seed: int, sensor: str, stream: str) -> NDArray[np.uint64]:
    """Return Philox's key; a sensor's numbers depend on its name, never on its place in a list."""
    digest = sha256(f'{seed}\0{sensor}\0{stream}'.encode()).digest()
    return np.frombuffer(digest[:16], '<u8').astype(np.uint64)
