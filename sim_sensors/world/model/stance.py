"""How a robot stands: its free base, the feet it stands on, the joints that carry it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import mujoco
import numpy as np

from rig_common.arrays import Floats

FREE = int(mujoco.mjtJoint.mjJNT_FREE)
NEAR_M = 0.03
"""Bodies whose lowest point is this near to that of the lowest one are feet."""
FLAT = 3
"""Points of contact from which on a foot is flat."""
ROUND = (int(mujoco.mjtGeom.mjGEOM_SPHERE), int(mujoco.mjtGeom.mjGEOM_CAPSULE))


@dataclass(frozen=True)
class Foot:
    """A body that a robot stands on."""

    body: int
    points_m: Floats
    """Where it stands, in the world, [k, 3]."""
    is_flat: bool
    """Whether it stands on a face, which holds its orientation too."""

    @property
    def middle_m(self) -> Floats:
        """The middle of where it stands, in the world, [3]."""
        middle: Floats = self.points_m.mean(0)
        return middle


@dataclass(frozen=True)
class Stance:
    """A robot with a free base at one pose."""

    base: int
    """Body with the free joint."""
    feet: tuple[Foot, ...]
    mass_kg: float
    com_m: Floats
    """Its centre of mass in the world, [3]."""

    @property
    def steadiness(self) -> float:
        """The way from the centre of mass to the edge of the feet over its height above them."""
        points = np.vstack([foot.points_m for foot in self.feet])
        high, low = points.max(0) - self.com_m, self.com_m - points.min(0)
        return float(max(min(*high[:2], *low[:2]), 0.0) / max(low[2], 1e-3))


def stand(
    model: mujoco.MjModel, data: mujoco.MjData, dofs: Sequence[int], *, needs_ground: bool = True
) -> Stance | None:
    """Return how the robot that moves `dofs` stands; None for one without a free base or feet.

    `data` must have been through `mj_forward`.
    """
    roots = {int(model.body_rootid[model.dof_bodyid[dof]]) for dof in dofs}
    bases = [root for root in sorted(roots) if is_free(model, root)]
    ground = (model.body_weldid[model.geom_bodyid] == 0) & (model.geom_contype > 0)
    if not bases or (needs_ground and not ground.any()):
        return None
    base = bases[0]
    found = _touching(model, data, base) or _lowest(model, data, base)
    feet = [
        foot
        for foot in found
        if not any(
            other.body > foot.body and is_above(model, foot.body, other.body) for other in found
        )
    ]
    return (
        Stance(
            base, tuple(feet), float(model.body_subtreemass[base]), data.subtree_com[base].copy()
        )
        if feet
        else None
    )


def is_free(model: mujoco.MjModel, body: int) -> bool:
    """Whether `body` is below a free joint."""
    joint = int(model.body_jntadr[body])
    return joint >= 0 and int(model.jnt_type[joint]) == FREE


def free_bodies(model: mujoco.MjModel) -> list[int]:
    """Return the bodies below free joints."""
    return [body for body in range(model.nbody) if is_free(model, body)]


def is_above(model: mujoco.MjModel, body: int, leaf: int) -> bool:
    """Whether `body` is `leaf` or one that carries it."""
    while leaf > body:
        leaf = int(model.body_parentid[leaf])
    return leaf == body


def _touching(model: mujoco.MjModel, data: mujoco.MjData, base: int) -> list[Foot]:
    """Return the bodies of the robot that touch something static, where they do."""
    points: dict[int, list[Floats]] = {}
    for place, geoms in zip(data.contact.pos, data.contact.geom, strict=True):
        if (geoms < 0).any():
            continue  # a flex
        first, second = (int(model.geom_bodyid[geom]) for geom in geoms)
        for body, other in ((first, second), (second, first)):
            if body and model.body_rootid[body] == base and model.body_weldid[other] == 0:
                points.setdefault(body, []).append(place.copy())
    return [
        Foot(body, np.array(found), len(found) >= FLAT) for body, found in sorted(points.items())
    ]


def _lowest(model: mujoco.MjModel, data: mujoco.MjData, base: int) -> list[Foot]:
    """Return the bodies of the robot whose colliding geoms reach lowest."""
    solid = np.flatnonzero(
        (model.body_rootid[model.geom_bodyid] == base)
        & ((model.geom_contype | model.geom_conaffinity) != 0)
    )
    bottoms = {int(geom): float(_under(model, data, int(geom))[0, 2]) for geom in solid}
    low = {
        geom: height for geom, height in bottoms.items() if height < min(bottoms.values()) + NEAR_M
    }
    feet = []
    for body in sorted({int(model.geom_bodyid[geom]) for geom in low}):
        own = [geom for geom in low if model.geom_bodyid[geom] == body]
        points = np.vstack([_under(model, data, geom) for geom in own])
        faces = any(int(model.geom_type[geom]) not in ROUND for geom in own)
        feet.append(Foot(body, points, faces or len(own) >= FLAT))
    return feet


def _under(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> Floats:
    """Return the two ends of the bottom of a geom, in the world, [2, 3]."""
    centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
    turn = data.geom_xmat[geom].reshape(3, 3)
    middle, reach = data.geom_xpos[geom] + turn @ centre, np.abs(turn) @ half
    return np.stack([middle - reach, middle + reach * [1.0, 1.0, -1.0]])


def sway_map(
    model: mujoco.MjModel, data: mujoco.MjData, stance: Stance, dofs: Sequence[int]
) -> Floats:
    """Return by how much `dofs` must move for the base to move while the feet stay, [n, 6].

    The columns are shifts along x, y, z (m) and turns about x, y, z (rad) of the base, about the
    centre of mass, in the world's axes.
    """
    lhs, rhs = [], []
    for foot in stance.feet:
        jacobian = np.zeros((6, model.nv))
        mujoco.mj_jac(model, data, jacobian[:3], jacobian[3:], foot.middle_m, foot.body)
        x, y, z = foot.middle_m - stance.com_m
        lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        # A shift s and a turn r of the base carry a foot by s + r x lever and turn it by r.
        carried = np.block([[np.eye(3), -lever], [np.zeros((3, 3)), np.eye(3)]])
        count = 6 if foot.is_flat else 3
        lhs.append(jacobian[:count, list(dofs)])
        rhs.append(-carried[:count])
    joints, feet = np.vstack(lhs), np.vstack(rhs)
    damped = joints.T @ joints + 1e-6 * np.eye(joints.shape[1])
    moves: Floats = np.linalg.solve(damped, joints.T @ feet)
    return moves
