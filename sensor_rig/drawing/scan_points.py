"""A scan or cloud as points in the world: every ray from where the sensor was when it fired."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.cdr import Buffer
from rig_common.msgs.decode import MotionMessage, read_cloud, read_scan
from rig_common.quaternions import matrix_from_wxyz
from rig_common.times import NS_PER_S

SCAN, CLOUD = 'sensor_msgs/msg/LaserScan', 'sensor_msgs/msg/PointCloud2'
SCAN_TYPES = (SCAN, CLOUD)
KEPT_POSES = 200
MOST_POINTS = 6000


class SensorPoints(NamedTuple):
    """What a scan or cloud measured."""

    local_m: Floats
    """[n, 3] in the sensor's frame."""
    times_s: Floats
    """Since the first ray, [n]."""
    intensity: Floats | None


class PlacedPoints(NamedTuple):
    """Points in the world and what they can be coloured by."""

    points_m: Floats
    """[n, 3]."""
    time: Floats
    """When each was measured within the sweep, [n] from 0 to 1."""
    intensity: Floats
    """[n] from 0 to 1; 0.5 where the sensor measures none."""


class Mount(NamedTuple):
    """Where a sensor sits on what carries it."""

    rotation: Floats
    """Vectors of the sensor's frame into the carrier's, [3, 3]."""
    offset_m: Floats
    is_fixed: bool
    """The carrier is the world: the sensor never moves."""

    def carried(self, points_m: Floats) -> Floats:
        """Return points [n, 3] of the sensor's frame in the carrier's."""
        return points_m @ self.rotation.T + self.offset_m

    def seen(self, points_m: Floats) -> Floats:
        """Return points [n, 3] of the carrier's frame in the sensor's."""
        return (points_m - self.offset_m) @ self.rotation


def mount_of(model: mujoco.MjModel, data: mujoco.MjData, site: str, base: int) -> Mount | None:
    """Return the mount of `site` on body `base` or on the world; None on any other moving body.

    `data` holds the forward kinematics of any state.
    """
    index = model.site(site).id
    root = model.body_weldid[model.site_bodyid[index]]
    if root not in (0, model.body_weldid[base]):
        return None
    carrier = 0 if root == 0 else base
    turn, place = data.xmat[carrier].reshape(3, 3), data.xpos[carrier]
    return Mount(
        turn.T @ data.site_xmat[index].reshape(3, 3),
        turn.T @ (data.site_xpos[index] - place),
        root == 0,
    )


class Placer:
    """Keeps the true poses of a body and places what a sensor on it saw."""

    def __init__(self, mount: Mount, kept_poses: int | None = KEPT_POSES) -> None:
        """Place what a sensor sees that sits at `mount`; None keeps every pose."""
        self._mount = mount
        self._poses: deque[tuple[int, Floats, Floats]] = deque(maxlen=kept_poses)

    def add_pose(self, motion: MotionMessage) -> None:
        """Take the carrying body's true pose."""
        if self._poses and motion.stamp_ns < self._poses[-1][0]:
            self._poses.clear()
        self._poses.append(
            (motion.stamp_ns, np.array(motion.position_m), np.array(motion.orientation_xyzw))
        )

    def place(self, type_name: str, message: Buffer, capture_ns: int) -> PlacedPoints | None:
        """Place a message of one of `SCAN_TYPES` whose first ray was fired at `capture_ns`.

        None where nothing returned, or where the poses do not cover its sweep.
        """
        return self._placed(points_of(type_name, message), capture_ns)

    def _placed(self, points: SensorPoints, capture_ns: int) -> PlacedPoints | None:
        local, times_s, intensity = points
        if not len(local):
            return None
        carried = self._mount.carried(local)
        placed = carried if self._mount.is_fixed else self._moved(carried, capture_ns, times_s)
        if placed is None:
            return None
        shade = np.full(len(local), 0.5) if intensity is None else _share(intensity)
        return PlacedPoints(placed, _share(times_s), shade)

    def _moved(self, carried: Floats, capture_ns: int, times_s: Floats) -> Floats | None:
        """Return the points in the world; None where the body's poses do not cover the sweep."""
        if len(self._poses) < 2:
            return None
        known_s = np.array([(pose[0] - capture_ns) / NS_PER_S for pose in self._poses])
        if known_s[0] > 0.0 or known_s[-1] < times_s.max():
            return None
        positions = np.array([pose[1] for pose in self._poses])
        quats = _continuous(np.array([pose[2] for pose in self._poses]))
        place = np.stack([np.interp(times_s, known_s, column) for column in positions.T], 1)
        between = np.stack([np.interp(times_s, known_s, column) for column in quats.T], 1)
        between /= np.linalg.norm(between, axis=1, keepdims=True)
        turn = matrix_from_wxyz(np.roll(between, 1, axis=1))
        moved: Floats = place + np.einsum('nij,nj->ni', turn, carried)
        return moved


def points_of(type_name: str, message: Buffer) -> SensorPoints:
    """Return the returns of a message of one of `SCAN_TYPES`."""
    if type_name == SCAN:
        scan = read_scan(message)
        rays = np.flatnonzero(np.isfinite(scan.ranges))
        angle = scan.angle_min_rad + rays * scan.angle_increment_rad
        reach = scan.ranges[rays].astype(float)
        local = np.stack([np.cos(angle) * reach, np.sin(angle) * reach, np.zeros(len(rays))], 1)
        shades = scan.intensities[rays].astype(float) if len(scan.intensities) else None
        return SensorPoints(local, (rays * scan.time_increment_s).astype(float), shades)
    points = read_cloud(message).points
    points = points[:: max(1, len(points) // MOST_POINTS)]
    points = points[np.isfinite(np.stack([points[axis] for axis in 'xyz'])).all(0)]
    columns = {name: points[name].astype(float) for name in points.dtype.names or ()}
    local = np.stack([columns[axis] for axis in 'xyz'], 1)
    return SensorPoints(
        local, columns.get('time', np.zeros(len(points))), columns.get('intensity')
    )


def _share(values: Floats) -> Floats:
    """Return values [n] >= 0 as shares of the largest."""
    shares: Floats = values / max(values.max(), 1e-9)
    return shares


def _continuous(quats: Floats) -> Floats:
    """Flip quaternions so that neighbours lie on the same side: then they interpolate."""
    flips = np.sign(np.einsum('ni,ni->n', quats[1:], quats[:-1]))
    quats[1:] *= np.cumprod(np.where(flips < 0, -1.0, 1.0))[:, None]
    return quats
