"""What every ray-casting backend takes and gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Flags, Floats, Floats32, Ids, Ints32

Surface = Literal['none', 'incidence', 'normal']
"""How much a cast says about the surface: nothing, the cosine of incidence, or the normal too."""


@dataclass(slots=True)
class Hits:
    """The answer of one cast of n rays; the arrays are the caster's until its next cast."""

    range_m: Floats32
    """[n] distance along the ray; +inf where nothing is hit within the maximum range."""
    geom: Ints32
    """[n] id of the geom that is hit, -1 for none, -2 - f for flex f."""
    cos_incidence: Floats32 | None = None
    """[n] cosine of the angle between the ray and the surface normal, 0..1; 0 on a miss."""
    normal: Floats32 | None = None
    """[n, 3] unit surface normal in the world, on the side of the ray; 0 on a miss."""

    def each(self, change: Callable[[AnyArray], AnyArray]) -> Hits:
        """Return these hits with all arrays changed."""
        return Hits(*(None if each is None else change(each) for each in _ARRAYS(self)))  # type: ignore[arg-type]

    @staticmethod
    def joined(hits: Sequence[Hits]) -> Hits:
        """Return the answers of several casts as one."""
        arrays = zip(*map(_ARRAYS, hits), strict=True)
        return Hits(*(None if each[0] is None else np.concatenate(each) for each in arrays))  # type: ignore[arg-type]


_ARRAYS = attrgetter('range_m', 'geom', 'cos_incidence', 'normal')


class RayCaster(ABC):
    """Casts rays against the geoms of one model; made once, then asked every scan."""

    name: str
    """Which backend this is, as configuration files spell it."""
    reason: str
    """Why this backend is at work, in one sentence for a log."""

    @abstractmethod
    def cast(
        self, data: mujoco.MjData, origins: Floats, directions: Floats, surface: Surface = 'none'
    ) -> Hits:
        """Cast rays at the geom poses that `data` holds now.

        `origins` is [3] for one common origin or [n, 3]; `directions` is [n, 3], of unit length;
        both in the world frame, C-contiguous.
        """

    def close(self) -> None:  # noqa: B027 - most casters hold nothing that must be let go
        """Let go of native memory."""


def visible_geoms(
    model: mujoco.MjModel,
    *,
    exclude_bodies: Sequence[int] | Ids = (),
    groups: tuple[int, ...] | None = None,
    transparent_below: float = 0.0,
) -> Flags:
    """Return [ngeom] True for the geoms that rays can hit.

    Out are the geoms of `exclude_bodies`, those of a group not in `groups` (None: all groups are
    in), and those whose alpha is 0 or less than `transparent_below`. As in MuJoCo's own rays the
    material's alpha counts where there is a material.
    """
    alpha = model.geom_rgba[:, 3].copy()
    textured = model.geom_matid >= 0
    alpha[textured] = model.mat_rgba[model.geom_matid[textured], 3]
    visible: Flags = (alpha > 0.0) & (alpha >= transparent_below)
    visible &= ~np.isin(model.geom_bodyid, exclude_bodies)
    if groups is not None:
        visible &= np.isin(model.geom_group, groups)
    return visible


def visible_from(
    model: mujoco.MjModel,
    site: int,
    *,
    exclude_own_body: bool,
    exclude_bodies: Iterable[str] = (),
    **keys: Any,
) -> Flags:
    """Return `visible_geoms` for a sensor at `site`: without bodies and what is attached to them.

    `exclude_own_body` is that of the site, if it is not the world.
    """
    out = np.zeros(model.nbody, np.bool_)
    out[[model.body(body).id for body in exclude_bodies]] = True
    own = int(model.site_bodyid[site])
    out[own] |= exclude_own_body and own != 0
    for child in range(1, model.nbody):
        out[child] |= out[model.body_parentid[child]]
    return visible_geoms(model, exclude_bodies=np.flatnonzero(out), **keys)
