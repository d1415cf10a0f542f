"""Scripted drivers: closed loop on the true pose, so that a run of hours stays on its course.

A driver sees poses [E, 3] (x m, y m, yaw rad) and answers with twists [E, 2] (m/s, rad/s). It is
vectorised over environments, draws no random numbers and starts each episode with a rest, so that
everything that adapts to motion sees rest, cruise and hard turns.
"""

from __future__ import annotations

from typing import Protocol

import mujoco
import numpy as np
from numpy.typing import NDArray

from sensor_rig.errors import RigError
from sim_sensors.drive import DiffDrive, custom_numbers

Floats = NDArray[np.float64]

FIRST_REST_S = 1.5
MAX_TURN_RAD_S = 1.5
LOST_RAD = 0.9
"""Bearing of the course beyond which it is not ahead any more."""
PERIOD_S = 0.02
"""Time between two decisions of a driver, s; longer where the physics step is."""


class Driver(Protocol):
    """Decides where a base goes."""

    def reset(self, envs: NDArray[np.intp]) -> None:
        """Begin a new episode in `envs`."""

    def twist(self, pose: Floats) -> Floats:
        """Return the wanted twists [E, 2]; called once a period."""


def make_driver(name: str, model: mujoco.MjModel, drive: DiffDrive | None,
                num_envs: int, period_s: float = PERIOD_S) -> Driver | None:
    """Return the driver `name` that decides every `period_s`; None for `none` and `commands`."""
    if name in ('none', 'commands'):
        return None
    kinds: dict[str, type[FigureEight] | type[RestCruiseTurn]] = {
        'figure_eight': FigureEight, 'rest_cruise_turn': RestCruiseTurn}
    if name not in kinds:
        raise RigError(f'world.driver is {name!r}; allowed are none, commands, '
                       f'{", ".join(kinds)}')
    if drive is None:
        raise RigError(f'world.driver is {name!r}, but the model does not say how it is driven; '
                       f'give it the custom entries drive, drive_left, drive_right and '
                       f'drive_geometry_m, or set driver: none')
    return kinds[name](model, num_envs, period_s)


def wrap(angle: Floats) -> Floats:
    """Return `angle` in [-pi, pi)."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def limited(values: Floats, low: float, high: float) -> Floats:
    """Return `values` inside [low, high]; several times faster on few than numpy's clip."""
    return np.minimum(np.maximum(values, low), high)


class FigureEight:
    """Round a figure eight with a slalom on top, as fast as the bends allow.

    The slalom makes the yaw rate swing between +-1.5 rad/s every few seconds: a motion that tells
    the time of every sensor that sees rotation.
    """

    SPACING_M = 0.02
    SLALOMS = 9
    AMPLITUDE_M = 0.22
    LOOK_AHEAD_M = 0.4
    SPEED_M_S = 1.4
    MAX_LATERAL_M_S2 = 1.7
    ACCELERATION_M_S2 = 1.2

    def __init__(self, model: mujoco.MjModel, num_envs: int, period_s: float) -> None:
        """Lay the course out inside the model's `course_m` (half length, half width)."""
        course = custom_numbers(model, 'course_m')
        half_length, half_width = (4.0, 1.6) if course is None else course
        self.points, curvature = self._course(half_length, half_width)
        limit = np.minimum(np.sqrt(self.MAX_LATERAL_M_S2 / curvature),
                           0.85 * MAX_TURN_RAD_S / curvature)
        self.limit = np.minimum(self.SPEED_M_S, limit)
        self.period_s = period_s
        self.at = np.zeros(num_envs, np.intp)
        self.speed = np.zeros(num_envs)
        self.rest = np.zeros(num_envs)
        self.window = np.arange(-10, 30)
        self.reset(np.arange(num_envs))

    def _course(self, half_length: float, half_width: float) -> tuple[Floats, Floats]:
        """Return points [n, 2] every `SPACING_M` and the curvature there [n], 1/m."""
        s = np.linspace(0.0, 2 * np.pi, 20_000, endpoint=False)
        eight = np.stack([half_length * np.sin(s), half_width * np.sin(2 * s)], 1)
        tangent = np.stack([half_length * np.cos(s), 2 * half_width * np.cos(2 * s)], 1)
        normal = np.stack([-tangent[:, 1], tangent[:, 0]], 1)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(eight, axis=0), axis=1))]
        wave = np.sin(2 * np.pi * self.SLALOMS * length / length[-1])
        curve = eight + self.AMPLITUDE_M * wave[:, None] * normal
        length = np.r_[0.0, np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))]
        even = np.arange(0.0, length[-1], self.SPACING_M)
        points = np.stack([np.interp(even, length, curve[:, i]) for i in range(2)], 1)
        step = np.roll(points, -1, 0) - points
        bend = wrap(np.diff(np.arctan2(step[:, 1], step[:, 0]), append=0.0))
        curvature = np.convolve(np.abs(np.r_[bend[-8:], bend, bend[:8]]), np.ones(17) / 17,
                                'valid') / self.SPACING_M
        return points, np.maximum(curvature, 1e-3)

    def reset(self, envs: NDArray[np.intp]) -> None:
        """Rest at the middle of the eight."""
        self.at[envs] = 0
        self.speed[envs] = 0.0
        self.rest[envs] = FIRST_REST_S

    def twist(self, pose: Floats) -> Floats:
        """Pursue a point ahead on the course."""
        self.rest -= self.period_s
        near = (self.at[:, None] + self.window) % len(self.points)
        offset = self.points[near] - pose[:, None, :2]
        nearest = np.einsum('ewi,ewi->ew', offset, offset).argmin(1)
        self.at = near[np.arange(len(near)), nearest]
        ahead = (self.at + round(self.LOOK_AHEAD_M / self.SPACING_M)) % len(self.points)
        brake = (self.at + round(0.5 / self.SPACING_M)) % len(self.points)
        goal = np.where(self.rest > 0.0, 0.0, np.minimum(self.limit[self.at], self.limit[brake]))
        change = self.ACCELERATION_M_S2 * self.period_s
        self.speed += limited(goal - self.speed, -2 * change, change)
        target = self.points[ahead] - pose[:, :2]
        bearing = wrap(np.arctan2(target[:, 1], target[:, 0]) - pose[:, 2])
        distance = np.maximum(np.hypot(target[:, 0], target[:, 1]), self.LOOK_AHEAD_M)
        speed = self.speed * limited(np.cos(bearing), 0.1, 1.0)
        turn = 2.0 * speed * np.sin(bearing) / distance
        # A rover pushed off its course turns towards it before it drives on.
        lost = np.abs(bearing) > LOST_RAD
        turn = np.where(lost & (self.speed > 0.0), 1.5 * bearing, turn)
        twist = np.empty((len(speed), 2))
        twist[:, 0], twist[:, 1] = speed, limited(turn, -MAX_TURN_RAD_S, MAX_TURN_RAD_S)
        return twist


class RestCruiseTurn:
    """From waypoint to waypoint: rest, turn hard on the spot, cruise straight."""

    SPEED_M_S = 1.5
    ACCELERATION_M_S2 = 1.0
    TURN_ACCELERATION_RAD_S2 = 6.0
    REST_S = 1.0
    REACHED_M = 0.35
    FACING_RAD = 0.06

    def __init__(self, model: mujoco.MjModel, num_envs: int, period_s: float) -> None:
        """Take the round from the model's `waypoints_m` (x, y, x, y ...)."""
        given = custom_numbers(model, 'waypoints_m')
        flat = np.array([3.0, 0.0, 3.0, 3.0, 0.0, 3.0, 0.0, 0.0]) if given is None else given
        if len(flat) < 4 or len(flat) % 2:
            raise RigError("the model's custom numeric 'waypoints_m' must be x y pairs, two at "
                           'least')
        self.points = flat.reshape(-1, 2)
        self.period_s = period_s
        self.goal = np.zeros(num_envs, np.intp)
        self.turning = np.ones(num_envs, np.bool_)
        self.rest = np.zeros(num_envs)
        self.out = np.zeros((num_envs, 2))
        self.reset(np.arange(num_envs))

    def reset(self, envs: NDArray[np.intp]) -> None:
        """Rest, then head for the first waypoint."""
        self.goal[envs] = 0
        self.turning[envs] = True
        self.rest[envs] = FIRST_REST_S
        self.out[envs] = 0.0

    def twist(self, pose: Floats) -> Floats:
        """Turn on the spot until the waypoint is ahead, then drive to it."""
        self.rest -= self.period_s
        target = self.points[self.goal] - pose[:, :2]
        distance = np.hypot(target[:, 0], target[:, 1])
        reached = distance < self.REACHED_M
        self.goal = np.where(reached, (self.goal + 1) % len(self.points), self.goal)
        # Every second waypoint is left at once, so that hard turns come with and without a rest.
        self.rest = np.where(reached & (self.goal % 2 == 0), self.REST_S, self.rest)
        bearing = wrap(np.arctan2(target[:, 1], target[:, 0]) - pose[:, 2])
        self.turning = reached | np.where(self.turning, np.abs(bearing) > self.FACING_RAD,
                                          np.abs(bearing) > 0.6)
        brake = np.sqrt(2 * self.ACCELERATION_M_S2 * np.maximum(distance - 0.2, 0.0))
        speed = np.where(self.turning, 0.0, np.minimum(self.SPEED_M_S, brake + 0.15))
        turn = np.clip(np.where(self.turning, 4.0, 1.8) * bearing, -MAX_TURN_RAD_S,
                       MAX_TURN_RAD_S)
        idle = (self.rest > 0.0) | reached
        wanted = np.where(idle[:, None], 0.0, np.stack([speed, turn], 1))
        change = np.array([2 * self.ACCELERATION_M_S2, self.TURN_ACCELERATION_RAD_S2])
        change *= self.period_s
        self.out += np.clip(wanted - self.out, -change, change)
        return self.out.copy()
