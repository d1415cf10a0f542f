"""Runs a rig for a few seconds and says what its robot did and what its cameras see."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.jsonable import JsonObject
from sensor_rig.mounting.anatomy import Anatomy
from sensor_rig.mounting.looks import rays, seen
from sim_sensors.interface import AnySensor
from sim_sensors.world.world_base import WorldBase

WATCHED_S, EVERY_S = 5.0, 0.05
MOST_STEPS = 20_000
FALLEN_RAD = 0.9
"""Tilt from which on a base has fallen."""
MOVED_M, MOVED_RAD = 0.002, 0.01
DRIVEN_M = 0.2
"""A driven base that goes less far in the time hardly moves."""
NEAR_M, COVERED = 0.05, 0.8
"""What covers this part of a view so near is in its way."""
DROP_M, DRIFT_M, SANK = 0.05, 0.1, 0.35
"""A base that sinks so far at once drops, that goes so far drifts, that sinks by this part of its
height fell."""


@dataclass(frozen=True)
class Sight:
    """Something that was seen, with the time since the start of the run."""

    what: str
    """fell, dropped, drifted, still, unstable or blind."""
    at_s: float
    sentence: str

    def as_json(self) -> JsonObject:
        """Return it with units in the names."""
        return {'what': self.what, 'at_s': self.at_s, 'sentence': self.sentence}


def watch(world: WorldBase, sensors: Iterable[AnySensor], robot: Anatomy) -> list[Sight]:
    """Run `world` from its start for `WATCHED_S` and return what is worth a sentence."""
    poses, joints = [], []
    world.step()
    sights = list(_blind(world, sensors))
    every = max(round(EVERY_S * 1e9 / world.dt_ns), 1)
    try:
        for tick in range(round(watched_s(world) * 1e9 / world.dt_ns)):
            if tick % every == 0:
                base = [world.bound(name)[0, robot.base] for name in ('xpos', 'xmat')]
                poses.append(np.concatenate(base))
                joints.append(world.bound('qpos')[0].copy())
            world.step()
    except RigError as error:
        sights.append(Sight('unstable', world.time_ns * 1e-9, str(error)))
    if poses and robot.base:
        sights += _moves(world, np.array(poses), np.array(joints), robot)
    return sorted(sights, key=lambda each: each.at_s)


def watched_s(world: WorldBase) -> float:
    """Return for how long `watch` runs `world`, s."""
    return min(WATCHED_S, MOST_STEPS * world.dt_ns * 1e-9)


def _moves(world: WorldBase, poses: Floats, joints: Floats, robot: Anatomy) -> Iterator[Sight]:
    """Yield what the base (poses [k, 12]) and the joints [k, nq] did."""
    place, up = poses[:, :3], poses[:, 9:]  # the last row of a rotation: where up is, in the base
    tilt = np.arccos(np.clip(up @ up[0], -1.0, 1.0))
    sunk_m = place[0, 2] - place[:, 2]
    height_m = float(place[0, 2]) - robot.lowest_m
    way_m = np.linalg.norm(place[:, :2] - place[0, :2], axis=1)
    fallen = (tilt > FALLEN_RAD) | (sunk_m > max(SANK * height_m, DROP_M))
    if fallen.any() and robot.is_free:
        first = int(fallen.argmax())
        later = min(first + round(1.0 / EVERY_S), len(place) - 1)
        yield Sight(
            'fell',
            _time(first),
            f'it fell at {_time(first):.1f} s: a second later its base is turned by '
            f'{np.degrees(tilt[later]):.0f} deg and {sunk_m[later]:.2f} m lower; it needs a '
            f'controller of yours (driver: {{type: python, ...}}) or another pose',
        )
        return
    early_m = float(sunk_m[: round(1.0 / EVERY_S)].max())
    if robot.kind != 'drone' and early_m > DROP_M:
        yield Sight(
            'dropped',
            0.0,
            f'it drops by {early_m:.2f} m in the first second: it starts above the floor, or '
            f'cannot carry itself in this pose',
        )
    if robot.kind == 'legged' and way_m.max() > DRIFT_M:
        yield Sight(
            'drifted',
            _time(int((way_m > DRIFT_M).argmax())),
            f'it drifts: its base is {way_m[-1]:.2f} m from where it started after '
            f'{watched_s(world):g} s',
        )
    moved = max(np.ptp(place, 0).max() / MOVED_M, np.ptp(joints, 0).max(initial=0.0) / MOVED_RAD)
    if world.drive is not None and world.config.driver != 'none' and way_m.max() < DRIVEN_M:
        yield Sight(
            'still',
            watched_s(world),
            f'it hardly moves: {way_m.max():.2f} m in {watched_s(world):g} s; look at the wheels '
            f'in world.drive and at what else touches the floor',
        )
    elif moved < 1.0:
        yield Sight(
            'still',
            watched_s(world),
            'nothing moves; give it a driver, or actuators for its joints',
        )


def _time(index: int) -> float:
    return round(index * EVERY_S, 2)


def _blind(world: WorldBase, sensors: Iterable[AnySensor]) -> Iterator[Sight]:
    """Yield the cameras and LiDARs that see nothing at the start."""
    model, data = world.model, world.data(0)
    for sensor in sensors:
        field_deg = _field_deg(sensor.config)
        if field_deg is None:
            continue
        site = data.site(sensor.name)
        ways = rays(*field_deg) @ site.xmat.reshape(3, 3).T
        far, bodies = seen(model, data, site.xpos, ways)
        own = model.body_rootid[bodies] == model.body_rootid[model.site(sensor.name).bodyid[0]]
        if not np.isfinite(far).any():
            yield Sight(
                'blind',
                0.0,
                f'{sensor.name} sees nothing; turn its mount, or put something into the '
                f'world where it looks',
            )
        elif ((far < NEAR_M) & own).mean() > COVERED:
            yield Sight('blind', 0.0, f'{sensor.name} looks into the robot itself; move its mount')


def _field_deg(config: Any) -> tuple[float, float] | None:
    """Return the field of view (width, height) of what looks, None for what does not."""
    if config.type in ('camera', 'depth_camera', 'segmentation'):
        return config.fovy_deg * config.width / config.height, config.fovy_deg
    if config.type == 'lidar2d':
        return config.fov_deg, 0.0
    return (360.0, 30.0) if config.type == 'lidar3d' else None
