"""Joint trajectories by command: points in time, followed through the actuators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from rig_common.arrays import Floats, Ids
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sim_sensors.world.actuation.commands import Actuation, Changes
from sim_sensors.world.actuation.transmissions import Field


@dataclass(frozen=True)
class JointPath:
    """Positions of joints over time."""

    names: tuple[str, ...]
    times_s: Floats
    """[k], strictly increasing, from the start of the path."""
    positions: Floats
    """[k, n], rad or m."""
    velocities: Floats | None = None
    """[k, n], rad/s or m/s; None joins the points by straight lines."""

    def __post_init__(self) -> None:
        count, width = len(self.times_s), len(self.names)
        for array, what in ((self.positions, 'positions'), (self.velocities, 'velocities')):
            if array is not None and array.shape != (count, width):
                raise RigError(
                    f'the trajectory has {count} points of {width} joints, but '
                    f'{what} of shape {list(array.shape)}'
                )
            if array is not None and not np.isfinite(array).all():
                raise RigError(f'the trajectory has {what} that are not finite')
        if not count or not np.isfinite(self.times_s).all() or (np.diff(self.times_s) <= 0).any():
            raise RigError('the trajectory needs points at finite times that increase strictly')

    def at(self, time_s: float) -> tuple[Floats, Floats]:
        """Return positions and velocities [n] at a time; beyond the ends the end's, at rest."""
        times = self.times_s
        after = int(np.searchsorted(times, time_s, 'right'))
        if after == 0 or after == len(times):
            row = self.positions[0 if after == 0 else -1]
            return row, np.zeros_like(row)
        low, high = after - 1, after
        span = times[high] - times[low]
        part = (time_s - times[low]) / span
        start, end = self.positions[low], self.positions[high]
        if self.velocities is None:
            return start + part * (end - start), (end - start) / span
        return _hermite(part, span, start, end, self.velocities[low], self.velocities[high])


def _hermite(
    x: float, span: float, start: Floats, end: Floats, start_speed: Floats, end_speed: Floats
) -> tuple[Floats, Floats]:
    a, b = span * start_speed, span * end_speed
    place = (
        (2 * x**3 - 3 * x**2 + 1) * start
        + (x**3 - 2 * x**2 + x) * a
        + (3 * x**2 - 2 * x**3) * end
        + (x**3 - x**2) * b
    )
    speed = (
        (6 * x**2 - 6 * x) * (start - end) + (3 * x**2 - 4 * x + 1) * a + (3 * x**2 - 2 * x) * b
    ) / span
    return place, speed


class PathFollower:
    """Paths that environments are on; a new one replaces the old one of that environment."""

    def __init__(self, actuation: Actuation, position_of: Callable[[str, int], float]) -> None:
        """`position_of` returns the present position of a joint or tendon in an environment."""
        self._actuation, self._position_of = actuation, position_of
        self._paths: dict[int, tuple[int, JointPath]] = {}

    def start(self, path: JointPath | None, env: int, start_ns: int) -> None:
        """Follow `path` in `env` from `start_ns` on; None stops where it is."""
        if path is None:
            self._paths.pop(env, None)
            return
        for row in (path.positions.min(0), path.positions.max(0)):
            self._changes(path.names, row, np.zeros_like(row))
        if path.times_s[0] > 0.0:
            here = [self._position_of(name, env) for name in path.names]
            speeds = (
                None
                if path.velocities is None
                else np.vstack([np.zeros(len(here)), path.velocities])
            )
            path = JointPath(
                path.names, np.r_[0.0, path.times_s], np.vstack([here, path.positions]), speeds
            )
        self._paths[env] = start_ns, path

    def reset(self, envs: Ids) -> None:
        """Forget the paths of `envs`."""
        for env in envs.tolist():
            self._paths.pop(env, None)

    def act(self, time_ns: int) -> None:
        """Want what the paths say at `time_ns`."""
        if not self._paths:
            return
        for env, (start_ns, path) in list(self._paths.items()):
            elapsed_s = (time_ns - start_ns) / NS_PER_S
            if elapsed_s < 0.0:
                continue
            position, velocity = path.at(elapsed_s)
            self._actuation.apply(self._changes(path.names, position, velocity), env)
            if elapsed_s >= path.times_s[-1]:
                del self._paths[env]

    def _changes(self, names: Sequence[str], position: Floats, velocity: Floats) -> Changes:
        wanted: dict[str, dict[Field, float]] = {
            name: {'position': float(q), 'velocity': float(v)}
            for name, q, v in zip(names, position, velocity, strict=True)
        }
        return self._actuation.joint_changes(wanted)
