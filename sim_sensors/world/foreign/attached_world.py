"""A world that somebody else steps: their MjModel and MjData, seen through a twin with sensors.

The twin is their model, rebuilt with the rig's sensors mounted. It takes over their state at the
end of every step of theirs. Where sensors measure in between (an environment moves by several
physics steps at once), the twin walks the same steps itself first, from the state before and
under the commands that hold now; MuJoCo is deterministic, so it arrives where they did.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Floats, Ids
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sim_sensors.world.foreign.constants import Constants
from sim_sensors.world.foreign.names import Names
from sim_sensors.world.foreign.rebuild import same_structure, spec_of
from sim_sensors.world.model.model_file import compile_spec, one_line, read_spec
from sim_sensors.world.world import World

log = logging.getLogger(__name__)

ATTACHED = '(attached)'
"""`world.model` of a rig that is attached: the model is the one that it is attached to."""
STEPPED, INPUTS = int(mujoco.mjtState.mjSTATE_INTEGRATION), int(mujoco.mjtState.mjSTATE_USER)
"""What a step changes or depends on, and what of that an environment sets."""
ARRIVED = 1e-6
"""Difference of positions up to which a walk arrived where the environment did, m or rad."""


class AttachedWorld(World):
    """One MjModel and MjData of somebody else's; `look` says how many steps they moved on."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData, *world: Any) -> None:
        """Rebuild `model` with sensors mounted, or load `config.model` where it names a file.

        `world` is what every world is made of: config, sensors, ...
        """
        self._theirs, self._their_data = model, data
        self._seen_s = float(data.time)
        self._left = 1
        self._is_walking = self._is_ahead = False
        self._next: Floats | None = None
        self.mismatch = 0.0
        """How far a walk between two looks ended from the environment, m or rad; the largest."""
        super().__init__(*world)

    def _compile(self) -> mujoco.MjModel:
        is_rebuilt = self.config.model == ATTACHED
        names = Names(self._theirs, self._names_of_sensors() if is_rebuilt else ())
        spec = (
            spec_of(self._theirs, names)
            if is_rebuilt
            else read_spec(self.config, self.base_dir)[0]
        )
        try:
            twin = compile_spec(spec, self.config, self.sensors)
        except ValueError as error:
            raise RigError(f'the attached model with its sensors: {one_line(error)}') from None
        problem = same_structure(self._theirs, twin)
        if problem:
            what = (
                'the attached model cannot be rebuilt'
                if is_rebuilt
                else f'world.model {self.config.model} is not the attached model'
            )
            raise RigError(f'{what}: {problem}; name its own file as world.model')
        self._constants = Constants(self._theirs, twin, names)
        # All that both have; delays of their sensors are not rebuilt.
        bits = (1 << bit for bit in range(STEPPED.bit_length()))
        self._shared = sum(
            bit
            for bit in bits
            if bit & STEPPED
            and mujoco.mj_stateSize(self._theirs, bit) == mujoco.mj_stateSize(twin, bit)
        )
        self._state = np.empty(mujoco.mj_stateSize(twin, STEPPED))
        return twin

    def _names_of_sensors(self) -> set[str]:
        """Return the names of the sensors, but for those of sites that one is mounted on."""
        return {sensor.name for sensor in self.sensors} - {
            sensor.config.mount.site for sensor in self.sensors
        }

    # ---- following ------------------------------------------------------------------------

    def look(self) -> int:
        """Return how many physics steps the environment moved on; negative after its reset."""
        passed_s = float(self._their_data.time) - self._seen_s
        steps = round(passed_s / self._theirs.opt.timestep)
        if passed_s >= 0.0 and abs(passed_s * NS_PER_S - steps * self.dt_ns) > 0.1 * self.dt_ns:
            raise RigError(
                f'the attached simulation moved on by {passed_s:g} s, which is no '
                f'whole number of its steps of {self.dt_ns / NS_PER_S:g} s'
            )
        return steps if passed_s >= 0.0 else -1

    def follow(self, steps: int, *, walk: bool) -> int:
        """Prepare for `steps` that the environment moved on; return how often to `step()`.

        Without `walk` nothing measures in between, and one is enough.
        """
        if steps > 1 and not walk:
            self.tick += steps - 1
            steps = 1
        self._left = steps
        self._is_walking = steps > 1
        if self._is_walking:
            self._take(self._shared & INPUTS)
            if not self.is_rk4:
                self._walk()
        return steps

    def _advance(self, ctrl: Floats) -> None:
        self._left -= 1
        if self._left > 0:
            self._walk()
            if self.is_rk4:
                self._forward()
            return
        if self._is_walking:
            if self.is_rk4:
                self._walk()
            self._compare()
        self._take_over()
        self._forward()

    @property
    def next_velocity(self) -> Floats | None:
        """Velocity at the end of the step that begins now; see `WorldView`."""
        if self._is_ahead or self.is_rk4:
            return super().next_velocity
        if self._next is None:
            state = self._state
            mujoco.mj_getState(self.model, self._data, state, STEPPED)
            is_euler = self.model.opt.integrator == mujoco.mjtIntegrator.mjINT_EULER
            (mujoco.mj_Euler if is_euler else mujoco.mj_implicit)(self.model, self._data)
            self._next = self._data.qvel[None].copy()
            mujoco.mj_setState(self.model, self._data, state, STEPPED)
        return self._next

    def _walk(self) -> None:
        """Move the twin by one step; its derived arrays are of where the step began.

        Those of Runge-Kutta are of a substep: it walks first, and computes them where it is.
        """
        mujoco.mj_step(self.model, self._data)
        self._is_ahead = True

    def _forward(self) -> None:
        """Compute the derived arrays of the present state, and leave the solver's memory."""
        warm = self._data.qacc_warmstart.copy()
        mujoco.mj_forward(self.model, self._data)
        self._data.qacc_warmstart[:] = warm
        self._is_ahead, self._next = False, None

    def _take_over(self) -> None:
        self._take(self._shared)
        self._seen_s = float(self._their_data.time)

    def _take(self, what: int) -> None:
        """Take the parts `what` of their state."""
        state = self._state[: mujoco.mj_stateSize(self.model, what)]
        mujoco.mj_getState(self._theirs, self._their_data, state, what)
        mujoco.mj_setState(self.model, self._data, state, what)

    def _compare(self) -> None:
        away = float(np.abs(self._data.qpos - self._their_data.qpos).max(initial=0.0))
        if away > ARRIVED and self.mismatch <= ARRIVED:
            log.warning(
                'the attached environment changes its state or its commands within a '
                'step (%.2g m or rad); what sensors measure in between is approximate',
                away,
            )
        self.mismatch = max(self.mismatch, away)

    def _check(self) -> None:
        """Leave it to the environment whether its simulation is good."""

    def _reset(self, envs: Ids, *, is_midway: bool) -> None:
        self._constants.copy()
        self._take_over()
        self._forward()

    def attach(self, data: mujoco.MjData) -> None:
        """Follow another MjData of the same model, from the next reset on."""
        self._their_data = data

    def _field(self, name: str) -> AnyArray:
        raise RigError(
            f'this rig is attached to a simulation of somebody else; write {name} of its MjModel'
        )

    def command(self, values: Mapping[str, float], envs: object = slice(None)) -> None:
        """Refuse: the environment has its own commands."""
        raise RigError(
            'this rig is attached to a simulation that somebody else commands; write '
            'to its MjData, or act through its environment'
        )
