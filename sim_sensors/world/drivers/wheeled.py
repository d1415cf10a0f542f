"""Drivers of wheeled bases: closed loop on the true pose, so that a run of hours stays on course.

Each steers one base: it sees a pose (x m, y m, yaw rad) and answers with a twist (m/s, rad/s).
It draws no random numbers and starts each episode with a rest, so that everything that adapts to
motion sees rest, cruise and hard turns. It reckons in plain floats: between two physics steps
caches are cold for all but the interpreter, and arrays of one element took three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import atan2, cos, pi, sin, sqrt
from typing import Protocol

import mujoco
import numpy as np

from rig_common.arrays import Ids
from rig_common.errors import RigError
from sim_sensors.world.actuation.diff_drive import Twist, custom_numbers
from sim_sensors.world.config.drivers import FigureEightConfig, RestCruiseTurnConfig
from sim_sensors.world.drivers.course import LOOK_AHEAD_M, Course, lay_out
from sim_sensors.world.world_base import Driver, WorldBase

FIRST_REST_S = 1.5
MAX_TURN_RAD_S = 1.5
LOST_RAD = 0.9
"""Bearing of the course beyond which it is not ahead any more."""
PERIOD_S = 0.02
"""Time between two decisions of a driver, s; longer where the physics step is."""


class Steering(Protocol):
    """Decides where one base goes."""

    def reset(self) -> None:
        """Begin a new episode."""

    def twist(self, x: float, y: float, yaw: float) -> Twist:
        """Return the wanted (forward, turn); called once a period."""


class Wheeled(Driver):
    """Steers the base of every environment."""

    period_s = PERIOD_S

    def __init__(self, world: WorldBase, steering: Callable[[float], Steering]) -> None:
        """Make one `steering` for each environment; it is told its period, s."""
        super().__init__(world)
        ticks = max(1, round(PERIOD_S * 1e9 / world.dt_ns))
        self._steering = [steering(ticks * world.dt_ns / 1e9) for _ in range(world.num_envs)]

    def reset(self, envs: Ids, time_ns: int) -> None:
        """Begin a new episode in `envs`."""
        super().reset(envs, time_ns)
        for env in envs.tolist():
            self._steering[env].reset()

    def act(self, world: WorldBase, time_ns: int) -> None:
        """Steer all bases by where they are."""
        drive = world.required_drive()
        twists = [
            each.twist(*pose)
            for each, pose in zip(self._steering, world.poses(drive.body).tolist(), strict=True)
        ]
        drive.write(twists, world.actuation)


def figure_eight(world: WorldBase, config: FigureEightConfig) -> Wheeled:
    """Return the driver of a figure eight."""
    own = custom_numbers(world.model, 'course_m')
    length, width = (4.0, 1.6) if own is None else own
    course = lay_out(config.half_length_m or length, config.half_width_m or width)
    return Wheeled(world, lambda period_s: FigureEight(course, period_s))


def rest_cruise_turn(world: WorldBase, config: RestCruiseTurnConfig) -> Wheeled:
    """Return the driver from waypoint to waypoint."""
    flat = config.waypoints_m
    waypoints = np.reshape(flat, (-1, 2)).tolist() if flat else _waypoints(world.model)
    return Wheeled(world, lambda period_s: RestCruiseTurn(waypoints, period_s))


def wrap(angle: float) -> float:
    """Return `angle` in [-pi, pi)."""
    return (angle + pi) % (2 * pi) - pi


def limited(value: float, low: float, high: float) -> float:
    """Return `value` inside [low, high]."""
    return min(max(value, low), high)


class FigureEight:
    """Round a figure eight with a slalom on top, as fast as the bends allow.

    The slalom makes the yaw rate swing between +-1.5 rad/s every few seconds: a motion that tells
    the time of every sensor that sees rotation.
    """

    ACCELERATION_M_S2 = 1.2

    def __init__(self, course: Course, period_s: float) -> None:
        """Follow `course`, deciding every `period_s`."""
        self._course = course
        self._period_s = period_s
        self._change = self.ACCELERATION_M_S2 * period_s
        self.reset()

    def reset(self) -> None:
        """Rest at the middle of the eight."""
        self._at = 0
        self._speed = 0.0
        self._rest_s = FIRST_REST_S

    def twist(self, x: float, y: float, yaw: float) -> Twist:
        """Pursue a point ahead on the course."""
        course = self._course
        self._rest_s -= self._period_s
        self._at = at = course.nearest(self._at, x, y)
        goal = 0.0 if self._rest_s > 0.0 else course.limit_m_s[at]
        self._speed += limited(goal - self._speed, -2 * self._change, self._change)
        ahead_x, ahead_y = course.ahead[at]
        bearing, distance = _polar(ahead_x - x, ahead_y - y)
        bearing = wrap(bearing - yaw)
        speed = self._speed * limited(cos(bearing), 0.1, 1.0)
        if abs(bearing) > LOST_RAD and self._speed > 0.0:
            # A rover pushed off its course turns towards it before it drives on.
            turn = 1.5 * bearing
        else:
            turn = 2.0 * speed * sin(bearing) / max(distance, LOOK_AHEAD_M)
        return speed, limited(turn, -MAX_TURN_RAD_S, MAX_TURN_RAD_S)


class RestCruiseTurn:
    """From waypoint to waypoint: rest, turn hard on the spot, cruise straight."""

    SPEED_M_S = 1.5
    ACCELERATION_M_S2 = 1.0
    TURN_ACCELERATION_RAD_S2 = 6.0
    REST_S = 1.0
    REACHED_M = 0.35
    FACING_RAD = 0.06

    def __init__(self, waypoints: Sequence[Sequence[float]], period_s: float) -> None:
        """Go round the `waypoints` (x m, y m), deciding every `period_s`."""
        self._waypoints = waypoints
        self._period_s = period_s
        self._faster = 2 * self.ACCELERATION_M_S2 * period_s
        self._harder = self.TURN_ACCELERATION_RAD_S2 * period_s
        self.reset()

    def reset(self) -> None:
        """Rest, then head for the first waypoint."""
        self._goal = 0
        self._is_turning = True
        self._rest_s = FIRST_REST_S
        self._twist = 0.0, 0.0

    def twist(self, x: float, y: float, yaw: float) -> Twist:
        """Turn on the spot until the waypoint is ahead, then drive to it."""
        self._rest_s -= self._period_s
        goal_x, goal_y = self._waypoints[self._goal]
        bearing, distance = _polar(goal_x - x, goal_y - y)
        bearing = wrap(bearing - yaw)
        reached = distance < self.REACHED_M
        if reached:
            self._goal = (self._goal + 1) % len(self._waypoints)
            # Every second waypoint is left at once: hard turns come with and without a rest.
            if self._goal % 2 == 0:
                self._rest_s = self.REST_S
        ahead_rad = self.FACING_RAD if self._is_turning else 0.6
        self._is_turning = reached or abs(bearing) > ahead_rad
        if self._rest_s > 0.0 or reached:
            speed = turn = 0.0
        elif self._is_turning:
            speed, turn = 0.0, 4.0 * bearing
        else:
            brake = sqrt(2 * self.ACCELERATION_M_S2 * max(distance - 0.2, 0.0))
            speed, turn = min(self.SPEED_M_S, brake + 0.15), 1.8 * bearing
        turn = limited(turn, -MAX_TURN_RAD_S, MAX_TURN_RAD_S)
        was_speed, was_turn = self._twist
        self._twist = (
            was_speed + limited(speed - was_speed, -self._faster, self._faster),
            was_turn + limited(turn - was_turn, -self._harder, self._harder),
        )
        return self._twist


def _polar(x: float, y: float) -> tuple[float, float]:
    """Return the bearing, rad, and the length of (x, y)."""
    return atan2(y, x), abs(complex(x, y))


def _waypoints(model: mujoco.MjModel) -> list[list[float]]:
    """Return the round that the model's `waypoints_m` (x, y, x, y ...) describes."""
    given = custom_numbers(model, 'waypoints_m')
    flat = np.array([3.0, 0.0, 3.0, 3.0, 0.0, 3.0, 0.0, 0.0]) if given is None else given
    if len(flat) < 4 or len(flat) % 2:
        raise RigError("the model's custom numeric 'waypoints_m' must be x y pairs, two at least")
    points: list[list[float]] = flat.reshape(-1, 2).tolist()
    return points
