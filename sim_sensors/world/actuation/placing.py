"""Poses of bodies by command: mocap bodies, and bodies with a free joint."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ids
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.timing.arrays import EnvIndex
from sim_sensors.world.actuation.delay_lines import ControlDelay
from sim_sensors.world.model.stance import free_bodies

Bound = Callable[[str], Floats]


class Placing:
    """Where commands put bodies.

    A mocap body is there from the next tick on, or later by the control latency, and stays. A
    body on a free joint is put there at rest and goes on from there.
    """

    def __init__(self, model: mujoco.MjModel, num_envs: int, delay_s: float, dt_ns: int) -> None:
        self._model, self._num_envs = model, num_envs
        self._delay_s, self._dt_ns = delay_s, dt_ns
        moved = np.flatnonzero(model.body_mocapid >= 0)
        self.mocap = {self._name(body): int(model.body_mocapid[body]) for body in moved.tolist()}
        """Mocap ids by name of body."""
        self.free = {
            self._name(body): int(model.jnt_qposadr[model.body_jntadr[body]])
            for body in free_bodies(model)
        }
        """Places in qpos by name of body."""
        self._home = np.hstack([model.body_pos[moved], model.body_quat[moved]]).ravel()
        self.reset(None)

    def _name(self, body: int) -> str:
        return self._model.body(body).name or f'body_{body}'

    def reset(self, envs: Ids | None) -> None:
        """Put the mocap bodies of `envs` back; None restarts time."""
        if envs is None:
            self.wanted: Floats = np.tile(self._home, (self._num_envs, 1))
            self._line = (
                ControlDelay(
                    self._num_envs, len(self._home), self._delay_s, self._dt_ns, initial=self._home
                )
                if self._delay_s
                else None
            )
            self._is_moved = False
            return
        self.wanted[envs] = self._home
        if self._line is not None:
            self._line.reset(envs, self._home)

    def mocap_body(self, name: str, where: str) -> str:
        """Return the mocap body called `name`, the only one where that is empty."""
        if not self.mocap:
            raise RigError(f'{where}: the model has no mocap body')
        if not name and len(self.mocap) == 1:
            return next(iter(self.mocap))
        if name not in self.mocap:
            raise RigError(unknown_name(where, 'mocap body', name, self.mocap))
        return name

    def place(
        self,
        body: str,
        pos_m: Sequence[float],
        quat_wxyz: Sequence[float],
        envs: EnvIndex,
        bound: Bound,
    ) -> None:
        """Want `body` at a pose in the world, in `envs`."""
        if body not in self.mocap and body not in self.free:
            raise RigError(
                unknown_name(
                    'the pose command', 'mocap or free body', body, [*self.mocap, *self.free]
                )
            )
        pose = np.r_[np.asarray(pos_m, float), np.asarray(quat_wxyz, float)]
        size = np.linalg.norm(pose[3:])
        if pose.shape != (7,) or not np.isfinite(pose).all() or not 0.9 < size < 1.1:
            raise RigError(
                f'the pose command of {body!r} is {pose.round(6).tolist()}; it should '
                f'be a finite position and a unit quaternion'
            )
        pose[3:] /= size
        if body in self.mocap:
            first = 7 * self.mocap[body]
            self.wanted[envs, first : first + 7] = pose
            self._is_moved = True
            return
        at = self.free[body]
        dof = int(self._model.jnt_dofadr[np.flatnonzero(self._model.jnt_qposadr == at)[0]])
        bound('qpos')[envs, at : at + 7] = pose
        bound('qvel')[envs, dof : dof + 6] = 0.0

    def move(self, env: int, columns: slice, pose: Floats) -> None:
        """Want a mocap body, by its `columns`, at `pose` (position, wxyz) in `env`."""
        self.wanted[env, columns] = pose
        self._is_moved = True

    def apply(self, time_ns: int, bound: Bound) -> None:
        """Move the mocap bodies to where they are wanted at `time_ns`."""
        if not self._is_moved:
            return
        wanted = self.wanted
        if self._line is not None:
            self._line.set(time_ns, wanted)
            wanted = self._line.read(time_ns)
        poses = wanted.reshape(self._num_envs, -1, 7)
        bound('mocap_pos')[:] = poses[..., :3]
        bound('mocap_quat')[:] = poses[..., 3:]
