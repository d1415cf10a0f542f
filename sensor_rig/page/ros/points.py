"""A scan or cloud as points in the world: every ray from where the sensor was when it fired."""

from __future__ import annotations

from collections import deque

import mujoco
import numpy as np
from numpy.typing import NDArray

from sensor_rig.cdr import Buffer
from sensor_rig.msgs.decode import read_cloud, read_odometry, read_scan
from sensor_rig.times import NS_PER_S

Floats = NDArray[np.float64]
KEPT_POSES = 200
MOST_POINTS = 6000


class Placer:
    """Keeps the true poses of a body and places what a sensor on it saw."""

    def __init__(self, model: mujoco.MjModel, site: str) -> None:
        """Take the mount of `site` on its body from the model."""
        index = model.site(site).id
        self._mount = _matrix(np.asarray(model.site_quat[index])[[1, 2, 3, 0]])
        self._offset_m = np.asarray(model.site_pos[index], float)
        self._poses: deque[tuple[int, Floats, Floats]] = deque(maxlen=KEPT_POSES)

    def add_pose(self, odometry: Buffer) -> None:
        """Take the body's true pose (nav_msgs/Odometry)."""
        motion = read_odometry(odometry)
        if self._poses and motion.stamp_ns < self._poses[-1][0]:
            self._poses.clear()
        self._poses.append((motion.stamp_ns, np.array(motion.position_m),
                            np.array(motion.orientation_xyzw)))

    def scan(self, message: Buffer, capture_ns: int) -> tuple[Floats, Floats] | None:
        """Return points [n, 3] m and their age within the scan [n] of a LaserScan."""
        scan = read_scan(message)
        hit = np.isfinite(scan.ranges)
        rays = np.flatnonzero(hit)
        angle = scan.angle_min_rad + rays * scan.angle_increment_rad
        reach = scan.ranges[hit].astype(float)
        local = np.stack([np.cos(angle) * reach, np.sin(angle) * reach, np.zeros(len(rays))], 1)
        return self._placed(local, capture_ns, rays * scan.time_increment_s,
                            rays / max(len(scan.ranges), 1))

    def cloud(self, message: Buffer, capture_ns: int) -> tuple[Floats, Floats] | None:
        """Return points [n, 3] m and their intensity [n] of a PointCloud2."""
        points = read_cloud(message).points
        points = points[:: max(1, len(points) // MOST_POINTS)]
        local = np.stack([points[axis] for axis in 'xyz'], 1).astype(float)
        good = np.isfinite(local).all(1)
        names = points.dtype.names or ()
        times_s = points['time'][good].astype(float) if 'time' in names else np.zeros(good.sum())
        shade = points['intensity'][good].astype(float) if 'intensity' in names else times_s
        shade = shade / max(shade.max(initial=0.0), 1e-9)
        return self._placed(local[good], capture_ns, times_s, shade)

    def _placed(self, local: Floats, capture_ns: int, times_s: Floats, shade: Floats
                ) -> tuple[Floats, Floats] | None:
        if len(self._poses) < 2 or not len(local):
            return None
        known_s = np.array([(pose[0] - capture_ns) / NS_PER_S for pose in self._poses])
        if known_s[0] > 0.0 or known_s[-1] < times_s.max(initial=0.0):
            return None
        positions = np.array([pose[1] for pose in self._poses])
        quats = _continuous(np.array([pose[2] for pose in self._poses]))
        place = np.stack([np.interp(times_s, known_s, column) for column in positions.T], 1)
        turn = _matrix(np.stack([np.interp(times_s, known_s, column) for column in quats.T], 1))
        body = local @ self._mount.T + self._offset_m
        return place + np.einsum('nij,nj->ni', turn, body), shade


def _continuous(quats: Floats) -> Floats:
    """Flip quaternions so that neighbours lie on the same side: then they interpolate."""
    flips = np.sign(np.einsum('ni,ni->n', quats[1:], quats[:-1]))
    quats[1:] *= np.cumprod(np.where(flips < 0, -1.0, 1.0))[:, None]
    return quats


def _matrix(quat_xyzw: Floats) -> Floats:
    """Return rotation matrices [..., 3, 3] of quaternions [..., 4] of any length."""
    x, y, z, w = np.moveaxis(quat_xyzw / np.linalg.norm(quat_xyzw, axis=-1, keepdims=True), -1, 0)
    return np.stack([
        1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y),
    ], -1).reshape(*quat_xyzw.shape[:-1], 3, 3)
