"""What kind of robot a model is: its base, wheels, feet, head, wrist, palm and fingertips."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import mujoco
import numpy as np

from rig_common.arrays import Floats
from sensor_rig.mounting.looks import reach
from sim_sensors.world.actuation.transmissions import ONE_DOF, Actuators
from sim_sensors.world.model.poses import start_qpos
from sim_sensors.world.model.stance import is_above, is_free, stand

Kind = Literal['drone', 'wheeled', 'legged', 'arm', 'hand', 'other']

HEAD = re.compile(r'head|(^|_)neck', re.I)
WRIST = re.compile(r'wrist|flange|gripper|end_?eff|(^|_)ee($|_)|tool|hand$|attachment', re.I)
TIP = re.compile(r'tip|pad|distal|fingertip', re.I)
MOST_FEET = 6
MOST_IN_WRIST = 3
"""Joints that carry a palm; an arm has more."""
NEAR_M = 0.03
"""Wheels end this near to the lowest point of the robot."""
UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Wheels:
    """A differential drive that was found: joints of both sides, radius and track, m."""

    left: list[int]
    right: list[int]
    radius_m: float
    track_m: float


class Anatomy:
    """A model at its start, looked at as a robot."""

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self.keyframe = 0 if model.nkey else -1
        self.data = mujoco.MjData(model)
        self.data.qpos[:] = start_qpos(model, self.keyframe)
        mujoco.mj_forward(model, self.data)
        self.actuators = Actuators(model)
        self.base = self._base()
        self.bodies = [b for b in range(1, model.nbody) if model.body_rootid[b] == self.base]
        """Bodies of the robot, parents first."""
        self.is_free = bool(self.base and is_free(model, self.base))
        self.joints = [
            joint
            for joint in range(model.njnt)
            if int(model.jnt_type[joint]) in ONE_DOF
            and model.body_rootid[model.jnt_bodyid[joint]] == self.base
        ]
        """Hinges and slides of the robot."""

    def name(self, body: int) -> str:
        """Return the name of a body."""
        return str(self.model.body(body).name)

    def named(self, pattern: re.Pattern[str]) -> list[int]:
        """Return the bodies of the robot that are called so, or whose joint is."""
        model = self.model
        turning = {
            int(model.jnt_bodyid[joint])
            for joint in self.joints
            if pattern.search(model.joint(joint).name)
        }
        return [
            body
            for body in self.bodies
            if self.name(body) and (pattern.search(self.name(body)) or body in turning)
        ]

    @cached_property
    def kind(self) -> Kind:
        """The kind of robot; `other` for what fits none."""
        model = self.model
        if not self.base:
            return 'other'
        if self.is_free:
            if (model.actuator_trntype == mujoco.mjtTrn.mjTRN_SITE).sum() >= 4:
                return 'drone'
            if self.wheels or self._rolls:
                return 'wheeled'
            return 'legged' if self.feet else 'other'
        if self._slides_in_plane:
            return 'wheeled'
        is_near = self._joints_above(self.palm) <= MOST_IN_WRIST
        return 'hand' if len(self._ends) > 1 and is_near else 'arm'

    # ---- what it stands on -------------------------------------------------------------------

    @property
    def lowest_m(self) -> float:
        """Height of the lowest point of what can touch the ground."""
        geoms = self._solid or self._geoms(self.bodies)
        if not geoms:
            return float(self.data.xpos[self.base, 2])
        return -reach(self.model, self.data, geoms, -UP)

    @cached_property
    def wheels(self) -> Wheels | None:
        """The driven wheels of a free base, None where they do not look like a drive."""
        model, data = self.model, self.data
        if not self.is_free:
            return None
        aside = data.xmat[self.base].reshape(3, 3)[:, 1]
        lowest_m = self.lowest_m
        sides: tuple[list[int], list[int]] = ([], [])
        radii, places = [], []
        for joint in self.joints:
            radius = self._radius_m(joint)
            along = abs(data.xaxis[joint] @ aside)
            if not radius or along < 0.95 or self._turns_above(int(model.jnt_bodyid[joint])):
                continue
            anchor = data.xanchor[joint]
            if anchor[2] - radius > lowest_m + NEAR_M:
                continue
            offset = float((anchor - data.xpos[self.base]) @ aside)
            sides[int(offset < 0.0)].append(joint)
            radii.append(radius)
            places.append(abs(offset))
        if not all(sides) or max(radii) > 1.2 * min(radii):
            return None
        return Wheels(*sides, float(np.mean(radii)), 2.0 * float(np.mean(places)))

    @property
    def feet(self) -> list[int]:
        """Bodies that a free base without wheels stands on."""
        feet = [] if self.wheels or self._rolls else self._below
        return feet if len(feet) <= MOST_FEET and self.base not in feet else []

    @cached_property
    def _below(self) -> list[int]:
        """Bodies that a free base stands on."""
        dofs = [int(self.model.jnt_dofadr[joint]) for joint in self.joints]
        if not self.is_free or not dofs:
            return []
        stance = stand(self.model, self.data, dofs, needs_ground=False)
        return [foot.body for foot in stance.feet] if stance else []

    @property
    def _rolls(self) -> bool:
        """Whether it stands on what turns endlessly, as casters and rollers do."""
        return any(
            self.model.jnt_bodyid[joint] in self._below and self._radius_m(joint)
            for joint in self.joints
        )

    @property
    def _slides_in_plane(self) -> bool:
        axes = [
            abs(float(self.data.xaxis[joint][2]))
            for joint in self.joints
            if self.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_SLIDE
            and self.model.jnt_bodyid[joint] == self.base
        ]
        return len(axes) >= 2 and max(axes) < 0.1

    def _radius_m(self, joint: int) -> float:
        """Return the radius of what turns endlessly and is round about its joint, else 0."""
        model, body = self.model, int(self.model.jnt_bodyid[joint])
        geoms = self._geoms(b for b in self.bodies if is_above(model, body, b))
        is_hinge = model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
        if not is_hinge or model.jnt_limited[joint] or not geoms:
            return 0.0
        height = float(self.data.xanchor[joint][2])
        down, up = (reach(model, self.data, geoms, way) - way[2] * height for way in (-UP, UP))
        return down if down > 1e-3 and 0.8 < up / down < 1.25 else 0.0

    def _turns_above(self, body: int) -> bool:
        """Whether a hinge is between `body` and the base, as in a caster."""
        parent = int(self.model.body_parentid[body])
        return any(
            is_above(self.model, int(self.model.jnt_bodyid[joint]), parent)
            and self.model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_HINGE
            for joint in self.joints
        )

    # ---- arms and hands ----------------------------------------------------------------------

    @cached_property
    def _ends(self) -> list[int]:
        """Bodies that turn or slide and carry none that does."""
        moved = sorted({int(self.model.jnt_bodyid[joint]) for joint in self.joints})
        return [
            body
            for body in moved
            if not any(o != body and is_above(self.model, body, o) for o in moved)
        ]

    @cached_property
    def palm(self) -> int:
        """The last body that carries all the ends; the end itself where there is one."""
        carriers = [
            body
            for body in self.bodies
            if self._ends and all(is_above(self.model, body, end) for end in self._ends)
        ]
        return next((b for b in reversed(carriers) if self.name(b)), self.base)

    @cached_property
    def tips(self) -> list[int]:
        """The last link of every finger of a hand, pads and fingertips first."""
        found = []
        for finger in (b for b in self.bodies if self.model.body_parentid[b] == self.palm):
            links = [
                body
                for body in self.bodies
                if is_above(self.model, finger, body)
                and self.name(body)
                and self._geoms([body])
                and any(is_above(self.model, end, body) for end in self._ends)
            ]
            found.append([b for b in links if TIP.search(self.name(b))] or links)
        named = [links for links in found if links and TIP.search(self.name(links[-1]))]
        return [links[-1] for links in named or found if links]

    @cached_property
    def wrist(self) -> int:
        """The body at the end of the one arm of this robot, 0 for none."""
        if self.kind in ('drone', 'hand', 'other'):
            return 0
        named = [body for body in self.bodies if WRIST.search(self.name(body))]
        if self.kind == 'arm':
            return named[-1] if named else self.palm
        if not named or re.search(r'left|right|(^|_)[lr]_', ' '.join(map(self.name, named)), re.I):
            return 0
        return named[-1] if self._joints_above(named[-1]) >= 3 else 0

    def _joints_above(self, body: int) -> int:
        return sum(is_above(self.model, int(self.model.jnt_bodyid[j]), body) for j in self.joints)

    # ---- geometry ---------------------------------------------------------------------------

    def forward(self, body: int) -> Floats:
        """Return where `body` looks, in the world: along its tool or fingers, or ahead, [3]."""
        model, data = self.model, self.data
        if self.kind not in ('arm', 'hand') and body != self.wrist:
            ahead = data.xmat[self.base].reshape(3, 3)[:, 0] * [1.0, 1.0, 0.0]
            return np.asarray(ahead / max(float(np.linalg.norm(ahead)), 1e-9))
        ends = self._fingers(body)
        if ends:
            way = np.mean([data.xipos[end] for end in ends], 0) - data.xpos[body]
        else:
            last = max(
                (j for j in self.joints if is_above(model, int(model.jnt_bodyid[j]), body)),
                default=-1,
            )
            way = data.xaxis[last] if last >= 0 else UP
            before = data.xpos[int(model.body_parentid[model.jnt_bodyid[last]])]
            way = way * np.sign(way @ (data.xipos[body] - before) or 1.0)
        # A body's own axis where one is near, so that the file says round numbers.
        axes = np.vstack([data.xmat[body].reshape(3, 3).T, -data.xmat[body].reshape(3, 3).T])
        cosines = axes @ way / max(float(np.linalg.norm(way)), 1e-9)
        best = int(cosines.argmax())
        chosen: Floats = axes[best] if cosines[best] > 0.9 else way / np.linalg.norm(way)
        return chosen

    def length_m(self, body: int) -> float:
        """Return how far the fingers of a wrist or palm reach, m; 0 without any."""
        middle, along = self.data.xipos[body], self.forward(body)
        ends = [self.data.xipos[end] - middle for end in self._fingers(body)]
        return max((float(way @ along) for way in ends), default=0.0)

    def _fingers(self, body: int) -> list[int]:
        return [end for end in self._ends if end != body and is_above(self.model, body, end)]

    def ahead_m(self, body: int, along: Floats) -> float:
        """Return how far a body reaches beyond its middle in a direction of the world, m."""
        far = reach(self.model, self.data, self._geoms([body]), along)
        return max(far - float(self.data.xipos[body] @ along), 0.0)

    def _geoms(self, bodies: Iterable[int]) -> list[int]:
        model = self.model
        return [
            geom
            for body in bodies
            for geom in range(
                int(model.body_geomadr[body]),
                int(model.body_geomadr[body]) + int(model.body_geomnum[body]),
            )
        ]

    @property
    def _solid(self) -> list[int]:
        model = self.model
        return [
            geom
            for geom in self._geoms(self.bodies)
            if model.geom_contype[geom] or model.geom_conaffinity[geom]
        ]

    def _base(self) -> int:
        """Return the root of the largest thing that moves; 0 for none."""
        model = self.model
        roots = {int(model.body_rootid[model.jnt_bodyid[joint]]) for joint in range(model.njnt)}
        return max(
            (root for root in roots if self.name(root)),
            key=lambda root: (
                int((model.body_rootid == root).sum()),
                float(model.body_subtreemass[root]),
            ),
            default=0,
        )
