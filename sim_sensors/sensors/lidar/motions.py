"""How a scanner moves, in many environments at once: `SweepReader._aim` for a whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np

from rig_common.arrays import Floats
from sim_sensors.interface.truth import WorldView

AXES = np.eye(3)


class Motion(NamedTuple):
    """Poses and speeds of n sites in the world."""

    bodies: tuple[Floats, Floats]
    """Positions [n, nbody, 3] and axes [n, nbody, 9] of all bodies."""
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


class Motions:
    """Reads the motion of one site out of the bodies of a batch of worlds."""

    def __init__(self, model: mujoco.MjModel, site: int, in_world: bool, lasts: bool) -> None:
        self._body = int(model.site_bodyid[site])
        self._root = int(model.body_rootid[self._body])
        self._local = model.site_pos[site].copy()
        axes = np.zeros(9)
        mujoco.mju_quat2Mat(axes, model.site_quat[site])
        self._axes = axes.reshape(3, 3)
        self._in_world, self._lasts = in_world, lasts

    def bind(self, view: WorldView) -> None:
        """Let the world keep what is read: before its first step, as it is empty until then."""
        for name in ('xpos', 'xmat', *(('cvel', 'subtree_com') if self._lasts else ())):
            view.bound(name)

    def of(self, view: WorldView, envs: Sequence[int]) -> Motion:
        """Return the motion of the site in `envs` now."""
        rows = slice(None) if len(envs) == view.num_envs else np.asarray(envs)
        xpos, xmat = view.bound('xpos')[rows], view.bound('xmat')[rows]
        turn = xmat[:, self._body].reshape(-1, 3, 3)
        origin = xpos[:, self._body] + turn @ self._local
        axes = np.broadcast_to(AXES, turn.shape) if self._in_world else turn @ self._axes
        if not self._lasts:
            return Motion((xpos, xmat), origin, axes, None)
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
        return Motion((xpos, xmat), origin, axes, twist)
