"""The tree of frames that messages name: bodies in the world, sensors on bodies, origins of poses.

A frame has one parent, and the base of a robot that moves hangs on `odom` (REP 105):

    world -> map -> odom -> base -> sensors and limbs
    world -> other bodies
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import atan2, cos, sin
from typing import Any, NamedTuple

import mujoco
import numpy as np

from rig_common.errors import RigError
from rig_common.quaternions import Quaternion, conjugate, product
from sim_sensors.interface import AnySensor, FramePose, frame_pose
from sim_sensors.world.config.world import WorldConfig

WORLD_FRAME, MAP_FRAME, ODOM_FRAME = 'world', 'map', 'odom'
UNTURNED: Quaternion = (1.0, 0.0, 0.0, 0.0)


class Base(NamedTuple):
    """The body by which a robot's place is told."""

    body: int
    """Body id."""
    is_mobile: bool
    """Whether it is a named body that is driven or free, so that odometry can tell where it is."""


class PlacedFrame(NamedTuple):
    """A frame and its pose in its parent."""

    parent: str
    child: str
    pos_m: list[float]
    quat_wxyz: Quaternion


class FrameLink(NamedTuple):
    """A frame that has its place on a body, and the named body that is its parent in the tree."""

    child: str
    parent: str
    base: int
    """Body id of the parent."""
    place: FramePose
    level: bool = False
    """Whether it keeps the axes of its parent, however its body turns."""

    def at(self, model: mujoco.MjModel, data: mujoco.MjData) -> PlacedFrame:
        """Return where it is, from the poses of the bodies in `data`."""
        body, pos_m, turn = self.place
        if body == self.base and not self.level:
            return PlacedFrame(self.parent, self.child, pos_m, turn)
        axes = data.xmat[self.base].reshape(3, 3)
        away = data.xpos[body] + data.xmat[body].reshape(3, 3) @ pos_m - data.xpos[self.base]
        quat = (
            UNTURNED
            if self.level
            else product(conjugate(_quat(data, self.base)), product(_quat(data, body), turn))
        )
        return PlacedFrame(self.parent, self.child, (away @ axes).tolist(), quat)


class FrameTree:
    """The frames of a model and the sensors on it, of environment 0.

    In it are the bodies that stand on the world and move, the bodies that carry a sensor, and all
    named bodies between those and the world; or `all_bodies`, as a robot's description needs them.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        sensors: Sequence[AnySensor],
        config: WorldConfig,
        base: Base,
        *,
        all_bodies: bool = False,
    ) -> None:
        """Hang the base on `odom`, where it is mobile and `config` wants that from the world.

        Raises RigError where a sensor places another frame than the base's. The frames of
        `sensors` have their prefix already.
        """
        self._model, self._base = model, base.body
        prefix = config.frame_prefix.lstrip('/')
        names = [model.body(body).name for body in range(model.nbody)]
        self._names = [name and prefix + name for name in names]
        self._names[base.body] = base_frame(model, config, base)
        self.conflicts: list[str] = []
        """A sentence about every frame that two want in two places; the first has it."""
        self._links: dict[str, FrameLink] = {}
        for body in range(1, model.nbody):
            if all_bodies or (model.body_parentid[body] == 0 and model.body_weldid[body] != 0):
                self._add_body(body)
        for sensor in sensors:
            self._add_sensor(sensor)
        self._origins: dict[str, PlacedFrame] = {}
        self._starts: dict[str, FramePose] = {}
        for sensor in sensors:
            self._add_origin(sensor)
        self._places_base = False
        if base.is_mobile:
            place = FramePose(base.body, [0.0] * 3, UNTURNED)
            self._links.pop(self._names[base.body], None)
            self._places_base = config.publish_tf and not self._placed_by(sensors)
            if self._places_base and not self._starts:
                self._starts[prefix + ODOM_FRAME] = place
            if config.true_base_frame:
                self._hang(prefix + config.true_base_frame, 0, place)
        if not config.publish_tf:
            self._starts.clear()
        self._map = prefix + MAP_FRAME
        if self._starts:
            at_world = PlacedFrame(self._names[0], self._map, [0.0] * 3, UNTURNED)
            self._origins.setdefault(self._map, at_world)
        if config.hide_truth:
            self._origins.clear()
            self._starts.clear()
        self.fixed_links = [each for each in self._links.values() if self._is_fixed(each)]
        self.moving_links = [each for each in self._links.values() if not self._is_fixed(each)]
        self._started: list[PlacedFrame] = []

    # ---- poses ----------------------------------------------------------------------------------

    def fixed(self) -> list[PlacedFrame]:
        """Return the frames that stay on their parents, and those that `begin` has found."""
        data = mujoco.MjData(self._model)
        mujoco.mj_kinematics(self._model, data)
        found = [link.at(self._model, data) for link in self.fixed_links]
        return [*found, *self._origins.values(), *self._started]

    def begin(self, data: mujoco.MjData) -> None:
        """Note where an episode starts: there are the origins of what counts from its start."""
        self._started = []
        for frame_id, place in self._starts.items():
            at = FrameLink(frame_id, self._names[0], 0, place).at(self._model, data)
            w, x, y, z = at.quat_wxyz
            yaw = atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
            level = at._replace(quat_wxyz=_about_z(yaw))
            self._started.append(_seen_from(self._origins[self._map], level))

    def moving(self, data: mujoco.MjData) -> list[PlacedFrame]:
        """Return the frames that move on their parents; call `begin` before."""
        found = [link.at(self._model, data) for link in self.moving_links]
        if self._places_base and self._started:
            place, turn = data.xpos[self._base].tolist(), _quat(data, self._base)
            base = PlacedFrame(self._names[0], self._names[self._base], place, turn)
            for above in (self._origins[self._map], self._started[0]):
                base = _seen_from(above, base)
            found.append(base)
        return found

    @property
    def can_move(self) -> bool:
        """Whether there is anything that `moving` returns."""
        return bool(self.moving_links or self._places_base)

    # ---- growing --------------------------------------------------------------------------------

    def _add_body(self, body: int) -> None:
        """Take in the named body at or above `body`, and what lies between it and the world."""
        body = self._named(body)
        if body and self._names[body] not in self._links:
            base = self._named(int(self._model.body_parentid[body]))
            self._hang(self._names[body], base, FramePose(body, [0.0] * 3, UNTURNED))
            self._add_body(base)

    def _hang(self, child: str, base: int, place: FramePose) -> None:
        self._links[child] = FrameLink(child, self._names[base], base, place)

    def _add_sensor(self, sensor: AnySensor) -> None:
        place, child = frame_pose(self._model, sensor), sensor.frame_id
        if place is None:
            return
        self._add_body(place.body)
        if child in self._names:
            self._add_body(self._names.index(child))
        base = 0 if sensor.level_frame else self._named(place.body)
        link = FrameLink(child, self._names[base], base, place, sensor.level_frame)
        there = self._links.get(child)
        if child == self._names[0]:
            there = FrameLink(child, child, 0, FramePose(0, [0.0] * 3, UNTURNED))
        if there is None:
            self._links[child] = link
        elif not _same(there, link):
            self._complain(sensor, child)

    def _add_origin(self, sensor: AnySensor) -> None:
        origin, place = sensor.origin(), frame_pose(self._model, sensor)
        if origin is None or place is None or origin.frame_id == self._names[0]:
            return
        known = {**self._links, **self._origins, **self._starts}.get(origin.frame_id)
        new: Any = (
            place
            if origin.at_start
            else PlacedFrame(self._names[0], origin.frame_id, [0.0] * 3, _about_z(origin.yaw_rad))
        )
        if known is None:
            (self._starts if origin.at_start else self._origins)[origin.frame_id] = new
        elif known != new:
            self._complain(sensor, origin.frame_id)

    def _placed_by(self, sensors: Iterable[AnySensor]) -> bool:
        """Whether one of the sensors publishes where the base is."""
        base, found = self._names[self._base], False
        for sensor in sensors:
            if (origin := sensor.origin()) is not None and origin.places_base:
                found = True
                if sensor.frame_id != base:
                    raise RigError(
                        f'sensors.{sensor.name}.publish_tf places the frame {sensor.frame_id!r} '
                        f"in {origin.frame_id!r}; its frame_id should be the base's, {base!r}"
                    )
        return found

    def _complain(self, sensor: AnySensor, frame_id: str) -> None:
        self.conflicts.append(
            f'sensor {sensor.name!r}: its frame {frame_id!r} is already '
            f'somewhere else and stays there; give one of the two another name'
        )

    def _named(self, body: int) -> int:
        """Return the nearest body with a name at or above `body`; 0 is the world."""
        while body and not self._names[body]:
            body = int(self._model.body_parentid[body])
        return body

    def _is_fixed(self, link: FrameLink) -> bool:
        weld: Sequence[int] = self._model.body_weldid
        return bool(weld[link.place.body] == weld[link.base])


def base_frame(model: mujoco.MjModel, config: WorldConfig, base: Base) -> str:
    """Return the frame of the base; empty for one without a name."""
    name = config.base_frame or model.body(base.body).name
    return name and config.frame_prefix.lstrip('/') + name


def _seen_from(above: PlacedFrame, frame: PlacedFrame) -> PlacedFrame:
    """Return `frame`, which has the same parent as `above`, as a child of `above`."""
    back = conjugate(above.quat_wxyz)
    x, y, z = np.subtract(frame.pos_m, above.pos_m).tolist()
    _, *place = product(product(back, (0.0, x, y, z)), above.quat_wxyz)
    return PlacedFrame(above.child, frame.child, place, product(back, frame.quat_wxyz))


def _same(one: FrameLink, other: FrameLink) -> bool:
    """Whether two links put a frame at one place."""
    return (
        one.place.body == other.place.body
        and one.level == other.level
        and np.allclose(one.place.pos_m, other.place.pos_m)
        and bool(np.isclose(abs(np.dot(one.place.quat_wxyz, other.place.quat_wxyz)), 1.0))
    )


def _quat(data: mujoco.MjData, body: int) -> Quaternion:
    w, x, y, z = data.xquat[body].tolist()
    return (w, x, y, z)


def _about_z(yaw_rad: float) -> Quaternion:
    return (cos(yaw_rad / 2.0), 0.0, 0.0, sin(yaw_rad / 2.0))
