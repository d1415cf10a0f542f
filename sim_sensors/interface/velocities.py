"""Velocities of the very instant of a pose.

MuJoCo moves positions with the velocity at the end of a step (semi-implicit Euler), so what its
sensors say at a tick is the mean velocity of the step before it: half a step older than the pose
that cameras and LiDARs see. At steps of 1 ms a sync engine that is right would find 0.5 ms between
clocks that agree. The mean of the velocities before and after the instant belongs to the pose: it
is the central difference of the poses around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Floats

Bound = Callable[[str], Floats]
"""From the name of an array of MjData to that array of all environments, [num_envs, ...]."""
S = mujoco.mjtSensor
IN_TWIST = {
    S.mjSENS_FRAMEANGVEL: 0,
    S.mjSENS_FRAMELINVEL: 3,
    S.mjSENS_GYRO: 6,
    S.mjSENS_VELOCIMETER: 9,
}
"""Where a kind begins in a twist: angular and linear in the world's axes, then in the site's."""


class VelocityColumns:
    """Those of some sensordata columns that are velocities of sites and joints."""

    def __init__(self, model: mujoco.MjModel, columns: AnyArray) -> None:
        """Find them; what MuJoCo itself delays is left as it is."""
        places: dict[int, list[int]] = {}
        for place, address in enumerate(columns.tolist()):
            places.setdefault(address, []).append(place)
        joints: list[tuple[int, int]] = []
        sites: dict[int, list[tuple[int, int]]] = {}
        for sensor in np.flatnonzero(model.sensor_delay == 0.0).tolist():
            kind, start = int(model.sensor_type[sensor]), int(model.sensor_adr[sensor])
            element = int(model.sensor_objid[sensor])
            if kind == S.mjSENS_JOINTVEL:
                dof = int(model.jnt_dofadr[element])
                joints += [(place, dof) for place in places.get(start, ())]
            elif kind in IN_TWIST and model.sensor_objtype[sensor] == mujoco.mjtObj.mjOBJ_SITE:
                sites.setdefault(element, []).extend(
                    (place, IN_TWIST[S(kind)] + axis)
                    for axis in range(3)
                    for place in places.get(start + axis, ())
                )
        self._joints = [_run(each) for each in zip(*joints, strict=True)]
        self._sites = [
            _SiteTwist(model, site, found)
            for site, found in sites.items()
            if found and _moving_dofs(model, site)
        ]
        self.is_empty = not (joints or self._sites)

    def bring_to_pose(
        self, bound: Bound, envs: AnyArray | slice, after: Floats, values: AnyArray
    ) -> None:
        """Turn velocities of `envs` among `values` [n, columns] into those of the present pose.

        `bound` gives the derived arrays, `after` [num_envs, nv] is the velocity at the end of the
        step that begins now.
        """
        after = after[envs]
        if self._joints:
            places, dofs = self._joints
            values[:, places] = 0.5 * (values[:, places] + after[:, dofs])
        for site in self._sites:
            twist = site.twist(bound, envs, after)
            values[:, site.places] = 0.5 * (values[:, site.places] + twist[:, site.parts])


class _SiteTwist:
    """The velocity of one site under any velocity of the joints."""

    def __init__(self, model: mujoco.MjModel, site: int, found: list[tuple[int, int]]) -> None:
        self._site, self._dofs = site, _run(_moving_dofs(model, site))
        self._root = int(model.body_rootid[model.site_bodyid[site]])
        places, parts = zip(*found, strict=True)
        self.places, self.parts = _run(places), _run(parts)
        self._moves = any(part % 6 >= 3 for part in parts)

    def twist(self, bound: Bound, envs: AnyArray | slice, velocity: Floats) -> Floats:
        """Return angular and linear velocity, in the world's and in the site's axes, [n, 12].

        The linear one is of no use where no column is of it.
        """
        # The same operations for one environment as for thousands, so that the bits are the same.
        axes = bound('cdof')[envs][:, self._dofs]
        spatial = np.matmul(velocity[:, None, self._dofs], axes)[:, 0]
        twist = np.empty((len(spatial), 12))
        twist[:, :6] = spatial
        if self._moves:
            away = bound('site_xpos')[envs][:, self._site]
            away = away - bound('subtree_com')[envs][:, self._root]
            (wx, wy, wz), (x, y, z) = spatial[:, :3].T, away.T
            across = wy * z - wz * y, wz * x - wx * z, wx * y - wy * x  # np.cross is slower
            for axis, part in enumerate(across, 3):
                twist[:, axis] += part
        frame = bound('site_xmat')[envs][:, self._site].reshape(-1, 3, 3)
        twist[:, 6:] = np.matmul(twist[:, :6].reshape(-1, 2, 3), frame).reshape(-1, 6)
        return twist


def _run(numbers: Sequence[int]) -> AnyArray | slice:
    """Return a subscript of `numbers`: a slice, which is much faster, where each is the next."""
    first, count = numbers[0], len(numbers)
    is_run = list(numbers) == list(range(first, first + count))
    return slice(first, first + count) if is_run else np.array(numbers, np.intp)


def _moving_dofs(model: mujoco.MjModel, site: int) -> list[int]:
    """Return the degrees of freedom that move a site."""
    body, found = int(model.site_bodyid[site]), list[int]()
    while body:
        start = int(model.body_dofadr[body])
        found += range(start, start + int(model.body_dofnum[body]))
        body = int(model.body_parentid[body])
    return sorted(found)
