"""The PD layer: holds actuators of any kind at wanted lengths, as a motor's own electronics do.

It works in the space of the actuators: the length of a transmission is the joint's position times
the gear, or a tendon's length, so joints, tendons and gears are one case. Gravity and springs are
compensated from MuJoCo's own terms; what remains is load, which the stiffness carries.

    effort      force = kp (wanted - length) + kd (wanted rate - rate) + gravity + wanted effort
    position    the servo in the model does that with its own gains; it gets the wanted length
    velocity    wanted rate + OUTER_RAD_S (wanted - length)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import pi

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ids
from rig_common.errors import RigError
from sim_sensors.world.actuation.transmissions import Actuators, force_limits
from sim_sensors.world.config.drivers import GainConfig
from sim_sensors.world.model.stance import Stance, is_above, stand

BANDWIDTH_RAD_S = 2 * pi * 5.0
"""Natural frequency of a joint that carries nothing but its own links."""
OUTER_RAD_S = 8.0
"""Bandwidth of the position loop around a velocity servo."""
TOPPLE = 1.5
"""Stiffness of a joint that carries a robot, in units of weight times height above the joint: at
1 an inverted pendulum falls over."""
SATURATED_RAD = 0.1
"""The stiffness stays so low that an error of this size does not use up the force limit."""
STIFF, DAMPED = 0.2, 0.5
"""Largest kp dt^2 / inertia and kd dt / inertia: the layer acts once a physics step."""


class Servo:
    """PD control of some actuators of every environment."""

    def __init__(
        self,
        model: mujoco.MjModel,
        actuators: Actuators,
        data: mujoco.MjData,
        gains: Mapping[str, GainConfig],
        wheels: Sequence[int] = (),
    ) -> None:
        """Make the layer for all actuators it can hold, at the pose of `data` (after forward).

        `wheels` are held at their speeds only.
        """
        self.chosen = [i for i, kind in enumerate(actuators.kinds) if kind != 'other']
        if not self.chosen:
            raise RigError(
                'the model has no joint or tendon actuator that a PD layer can work '
                'with; add actuators with world.actuators'
            )
        self.row = {index: row for row, index in enumerate(self.chosen)}
        """Row of each actuator in `lengths`."""
        self._actuators = actuators
        self._dt_s = float(model.opt.timestep)
        self.gear: Floats = actuators.gear[self.chosen]
        self.outs = actuators.outs[self.chosen]
        """Where their lengths are."""
        moment = moments(model, data)[self.outs]
        self.dofs = np.flatnonzero(np.abs(moment).max(0) > 1e-9).tolist()
        self.moment: Floats = moment
        """Change of each length with each velocity, [n, nv]."""
        self._to_force = np.linalg.pinv(moment.T)
        self.stance = stand(model, data, self.dofs)
        self._low, self._high = force_limits(model, actuators, self.chosen)
        self.kp, self.kd = self._default_gains(model, data)
        for row in (self.row[wheel] for wheel in wheels):
            self.kp[row], self.kd[row] = 0.0, self._most_kd[row]
        self._take(gains)
        kinds = np.array([actuators.kinds[index] for index in self.chosen])
        self._is_effort, self._is_position = kinds == 'effort', kinds == 'position'
        self._is_integrating = actuators.integrates[self.chosen]
        self._gain, self._bias = actuators.gain[self.chosen], actuators.bias[self.chosen]

    def write(
        self,
        ctrl: Floats,
        wanted: tuple[Floats, Floats, Floats],
        lengths: Floats,
        qvel: Floats,
        load: Floats,
    ) -> None:
        """Write the ctrl of the chosen actuators into `ctrl` [E, nu].

        `wanted` are lengths, rates and efforts [E, n]; `lengths` [E, nout] and `load` [E, nv]
        (gravity less springs) are those of the last tick, `qvel` [E, nv] that of this one.
        """
        length, rate, effort = wanted
        rates = qvel @ self.moment.T
        error = length - lengths[:, self.outs] - self._dt_s * rates
        force = load @ self._to_force.T + effort
        b0, b1, b2 = self._bias.T
        push = self.kp * error + self.kd * (rate - rates) + force
        push = np.clip(push, self._low, self._high)
        speed = rate + OUTER_RAD_S * error
        ctrl[:, self.chosen] = np.where(
            self._is_effort,
            (push - b0) / self._gain,
            np.where(
                self._is_position,
                (force - b0 - b1 * length - b2 * rate) / self._gain,
                np.where(self._is_integrating, speed, (force - b0 - b2 * speed) / self._gain),
            ),
        )

    # ---- gains ------------------------------------------------------------------------------

    def _default_gains(self, model: mujoco.MjModel, data: mujoco.MjData) -> tuple[Floats, Floats]:
        """Return kp and kd [n] from inertia, load, force limits and the physics step."""
        inertia = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, inertia)
        moment = self.moment
        size = np.maximum((moment**2).sum(1), 1e-12)
        locked = np.einsum('ij,jk,ik->i', moment, inertia, moment) / size**2
        loose = 1.0 / np.maximum(
            np.einsum('ij,ij->i', moment, np.linalg.solve(inertia, moment.T).T), 1e-12
        )
        loose = np.minimum(loose, locked)  # with all other joints free
        kp, carried = locked * BANDWIDTH_RAD_S**2, locked.copy()
        if self.stance is not None:
            for row in range(len(self.chosen)):
                arm_m = _arm_m(model, data, self.stance, moment[row])
                mass = self.stance.mass_kg / size[row]
                kp[row] = max(kp[row], TOPPLE * 9.81 * mass * arm_m)
                carried[row] = max(carried[row], mass * arm_m**2)
        kp = np.minimum(kp, np.minimum(np.abs(self._low), self._high) / SATURATED_RAD)
        dt = model.opt.timestep
        kp = np.minimum(kp, STIFF * loose / dt**2)
        self._most_kd = DAMPED * loose / dt
        kd = np.minimum(2.0 * np.sqrt(kp * carried), self._most_kd)
        return _calm(kp, inertia, moment, STIFF / dt**2), _calm(kd, inertia, moment, DAMPED / dt)

    def _take(self, gains: Mapping[str, GainConfig]) -> None:
        for name, given in gains.items():
            where = f'world.driver.gains.{name}.joints'
            for index in self._actuators.matching(given.joints, where):
                if index not in self.row:
                    raise RigError(
                        f'{where} names actuator {self._actuators.labels[index]!r}, '
                        f'which a PD layer cannot drive'
                    )
                row = self.row[index]
                per_joint = 1.0 / self.gear[row] ** 2
                self.kp[row] = given.kp * per_joint or self.kp[row]
                self.kd[row] = given.kd * per_joint or self.kd[row]


def _calm(gains: Floats, inertia: Floats, moment: Floats, most: float) -> Floats:
    """Return `gains` [n], lowered where joints together would be stiffer than each alone.

    No eigenvalue of gains over inertia is then above `most`, 1/s or 1/s^2.
    """
    gains = gains.copy()
    for _ in range(50):
        values, vectors = np.linalg.eig(
            np.linalg.solve(inertia, moment.T @ (gains[:, None] * moment))
        )
        top = int(values.real.argmax())
        if values[top].real <= most:
            break
        share = gains * (moment @ vectors[:, top].real) ** 2
        gains[share > 0.1 * share.max()] *= 0.95 * most / values[top].real
    return gains


def _arm_m(model: mujoco.MjModel, data: mujoco.MjData, stance: Stance, moment: Floats) -> float:
    """Return how far the centre of mass is from the joints of one actuator, 0 where they carry
    no foot."""
    arms = [0.0]
    for dof in np.flatnonzero(np.abs(moment) > 1e-9):
        body = int(model.dof_bodyid[dof])
        if any(is_above(model, body, foot.body) for foot in stance.feet):
            anchor = data.xanchor[int(model.dof_jntid[dof])]
            arms.append(float(np.linalg.norm(stance.com_m - anchor)))
    return max(arms)


def moments(model: mujoco.MjModel, data: mujoco.MjData) -> Floats:
    """Return the moment arms of all actuators' forces, dense, [nout, nv]."""
    dense = np.zeros((len(data.moment_rownnz), model.nv))
    mujoco.mju_sparse2dense(
        dense, data.actuator_moment, data.moment_rownnz, data.moment_rowadr, data.moment_colind
    )
    return dense


def lengths_at(model: mujoco.MjModel, qpos: Floats, outs: Ids) -> Floats:
    """Return the actuators' lengths at the places `outs` with the model at `qpos`, [n]."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_fwdPosition(model, data)
    return np.array(data.actuator_length[outs])
