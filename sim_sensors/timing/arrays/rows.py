"""Which rows of a pipeline are meant: those of some environments, of one sensor or of all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Flags, Ids
from rig_common.errors import RigError
from sim_sensors.timing.arrays.layout import Array
from sim_sensors.timing.arrays.namespace import NUMPY, Arrays

Rows = slice | Ids
"""Rows by number; `ALL` is all of them, and makes indexing a view."""
ALL = slice(None)
EnvIndex = int | slice | Sequence[int] | Ids | Flags
"""Environments by number, by a mask [num_envs] or by a slice."""
Envs = Sequence[int] | Ids | Flags | slice | None
"""The same, but for a single one; None is all of them."""


class RowChoice:
    """Finds the rows of environments; a row is a lane (see `Lanes`):

    names = (left, right)       of([1]) = [2, 3]      of([0, 1], member=1) = [1, 3]
    """

    def __init__(self, num_envs: int, members: int = 1, xp: Arrays = NUMPY) -> None:
        """Lay out `members` sensors in each of `num_envs` environments."""
        self._num_envs, self._members, self._xp = num_envs, members, xp
        self.every = xp.arange(num_envs * members)
        """The numbers of all rows."""

    def __len__(self) -> int:
        """Return how many rows there are."""
        return self._num_envs * self._members

    def of(self, envs: Envs, member: int | None = None) -> Rows:
        """Return the rows of `envs`: of all sensors, or of one."""
        if (envs is None or (isinstance(envs, slice) and envs == ALL)) and (
            member is None or self._members == 1
        ):
            return ALL
        ids = self._ids(envs)
        if self._members > 1:
            chosen = self._xp.arange(self._members) if member is None else member
            ids = (ids[:, None] * self._members + chosen).reshape(-1)
        return self.shortest(ids)

    def _ids(self, envs: Envs) -> Ids:
        """Return the environments as numbers."""
        if envs is None or isinstance(envs, slice):
            return self.every[: self._num_envs][slice(None) if envs is None else envs]
        ids = self._xp.asarray(envs)
        return (
            self._xp.indices(ids) if self._xp.kind(ids) == 'b' else self._xp.astype(ids, np.int64)
        )

    def shortest(self, ids: Ids) -> Rows:
        """Return `ids`, or `ALL` where they are all rows in order."""
        every = self.every
        return ALL if len(ids) == len(every) and bool((ids == every).all()) else ids

    def spread(self, times_ns: ArrayLike, rows: Rows, member: int | None, sensor: str) -> Array:
        """Return a time for each environment that is read as one for each of its `rows`."""
        times = self._xp.asarray(times_ns, np.int64).reshape(-1)
        each = 1 if member is not None else self._members
        count = len(self.every[rows])
        if len(times) * each != count:
            raise RigError(
                f'{sensor!r} is read at {len(times)} times in {count // each} '
                'environments; give one time for each, or one for all'
            )
        return (times[:, None] + self._xp.zeros((1, each), np.int64)).reshape(-1)
