"""A site that casts rays: where it is, how it moves, and what its rays meet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Flags, Floats
from sim_sensors.interface.truth import WorldView
from sim_sensors.raycast.choice import make_casters
from sim_sensors.raycast.ray_caster import Hits, Surface

AXES = np.eye(3)
STILL = 1e-9
"""Speeds below this, m/s and rad/s, do not move a ray."""


class Motion(NamedTuple):
    """Poses and speeds of n sites in the world."""

    origin: Floats
    """[n, 3]"""
    axes: Floats
    """[n, 3, 3] of the ray frames."""
    twist: Floats | None
    """[n, 6] angular and linear velocity; None where rays are all fired at once."""

    def aim(
        self, features: Floats, ones_and_lags: Floats, height_m: float
    ) -> tuple[Floats, Floats]:
        """Return origins [n, 1 or rays, 3] and directions [n, rays, 3] in the world.

        The sensor turns with W = [w]x, so after t its frame is (1 + t W + t^2 W^2 / 2) R; see
        `SweepReader` for the features of a ray.
        """
        still = self.axes.transpose(0, 2, 1)
        origin = self.origin + height_m * still[:, 2] if height_m else self.origin
        if self.twist is None:
            return origin[:, None], np.matmul(features[:, :3], still)
        velocity = self.twist[:, 3:]
        wx, wy, wz = self.twist[:, :3].T
        spin = np.zeros((len(origin), 3, 3))
        spin[:, 0, 1], spin[:, 0, 2], spin[:, 1, 2] = wz, -wy, wx
        spin -= spin.transpose(0, 2, 1)
        turned = still @ spin
        directions = np.matmul(features, np.concatenate([still, turned, turned @ spin], axis=1))
        if height_m:
            velocity = velocity + height_m * turned[:, 2]
        return np.matmul(ones_and_lags, np.stack([origin, velocity], axis=1)), directions


class Eye:
    """The rays of one site, of many environments together where Embree can."""

    def __init__(
        self,
        view: WorldView,
        site: int,
        directions: Floats,
        visible: Flags,
        max_range_m: float,
        *,
        backend: str = 'auto',
        in_world: bool = False,
        lasts: bool = False,
    ) -> None:
        """Cast rays like `directions` [n, 3] from `site` at `visible` ([ngeom]) geoms.

        With `in_world` the rays do not turn with the site; with `lasts` its speed matters.
        """
        model = view.model
        self._site, self._in_world, self._lasts = site, in_world, lasts
        self._body = int(model.site_bodyid[site])
        self._root = int(model.body_rootid[self._body])
        self.many, self._caster = make_casters(
            backend, model, max_range_m, visible, directions, view.num_envs
        )
        self.reason = self._caster.reason
        """Which backend casts and why."""
        # Bound before the first step, as what a world of many keeps is empty until then.
        for name in ('xpos', 'xmat', 'site_xpos', 'site_xmat', 'cvel', 'subtree_com'):
            if lasts or name not in ('cvel', 'subtree_com'):
                view.bound(name)

    def motion(self, view: WorldView, envs: Sequence[int]) -> Motion:
        """Return the motion of the site in `envs` now."""
        rows = slice(None) if len(envs) == view.num_envs else np.asarray(envs)
        origin = view.bound('site_xpos')[rows, self._site]
        axes = view.bound('site_xmat')[rows, self._site].reshape(-1, 3, 3)
        if self._in_world:
            axes = np.broadcast_to(AXES, axes.shape)
        if not self._lasts:
            return Motion(origin, axes, None)
        twist = view.bound('cvel')[rows, self._body].copy()
        x, y, z = (origin - view.bound('subtree_com')[rows, self._root]).T
        wx, wy, wz, *velocity = twist.T
        # np.cross takes three times as long for 64 rows
        for along, across in zip(
            velocity, (wy * z - wz * y, wz * x - wx * z, wx * y - wy * x), strict=True
        ):
            along += across
        if self._in_world:
            twist[:, :3] = 0.0
        parts = twist.reshape(-1, 2, 3)
        parts[np.abs(parts).sum(axis=2) < STILL] = 0.0
        return Motion(origin, axes, twist)

    def cast(
        self,
        view: WorldView,
        envs: Sequence[int],
        origins: Floats,
        directions: Floats,
        surface: Surface = 'none',
    ) -> Hits:
        """Cast rays [n, rays, 3] of `envs`, from [n, 1 or rays, 3]; the hits are [n * rays]."""
        if self.many is not None and len(envs) > 1:
            rows = slice(None) if len(envs) == view.num_envs else np.asarray(envs)
            bodies = view.bound('xpos')[rows], view.bound('xmat')[rows]
            return self.many.cast_many(envs, bodies, origins, directions, surface, view.data)
        found = []
        for env, starts, rays in zip(envs, origins, directions, strict=True):
            origin = starts[0] if (starts == starts[0]).all() else starts
            hits = self._caster.cast(view.data(env), origin, rays, surface)
            found.append(hits if len(envs) == 1 else hits.each(np.copy))
        return found[0] if len(found) == 1 else Hits.joined(found)
