"""What the actuators of a model take, by which names, and in which units.

MuJoCo's actuators all compute `force = gain * ctrl + b0 + b1 * length + b2 * velocity` from the
length and velocity of their transmission (joint position times gear, or a tendon's length). From
these numbers follows what a command means:

    kind        b1      b2      ctrl for a joint at rest at q       example
    effort      0       0       torque / (gear * gain)              <motor>
    position    not 0   any     (-b0 - b1 * gear * q) / gain        <position>
    velocity    0       not 0   (-b0 - b2 * gear * v) / gain        <velocity>, <intvelocity>
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Literal

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ids
from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name

Kind = Literal['effort', 'position', 'velocity', 'other']
Field = str
"""position, velocity or effort."""

JOINT_TRANSMISSIONS = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
TENDON = int(mujoco.mjtTrn.mjTRN_TENDON)
FIXED = int(mujoco.mjtGain.mjGAIN_FIXED)
AFFINE = int(mujoco.mjtBias.mjBIAS_AFFINE)
NO_BIAS = int(mujoco.mjtBias.mjBIAS_NONE)
INTEGRATOR = int(mujoco.mjtDyn.mjDYN_INTEGRATOR)
ONE_DOF = (int(mujoco.mjtJoint.mjJNT_SLIDE), int(mujoco.mjtJoint.mjJNT_HINGE))

WHAT = {
    'effort': 'a torque motor, which takes effort',
    'position': 'a position servo',
    'velocity': 'a velocity servo',
    'other': 'an actuator that takes its own unit only',
}


class Actuators:
    """Names, kinds and units of the actuators of one model, a row for each control.

    One with several inputs (a PID with its rates, say) has as many controls, `name`, `name/1` ...;
    each takes its own unit only.
    """

    def __init__(self, model: mujoco.MjModel) -> None:
        self._model = model
        self.count = int(model.nu)
        actuators = len(model.actuator_trntype)
        inputs = getattr(model, 'actuator_ctrlnum', 1)  # MuJoCo 3: an actuator has one control
        self.ids: Ids = np.repeat(np.arange(actuators), inputs)
        """Actuator that each control belongs to."""
        self.outs: Ids = getattr(model, 'actuator_outadr', np.arange(actuators))[self.ids]
        """Where its length and its force are."""
        self.joint = [self._joint_of(index) for index in range(self.count)]
        """Joint that each actuator drives, -1 for none."""
        self.gear: Floats = model.actuator_gear[self.outs, 0]
        self.gain: Floats = model.actuator_gainprm[self.ids, 0]
        self.bias: Floats = model.actuator_biasprm[self.ids, :3]
        self.integrates = model.actuator_dyntype[self.ids] == INTEGRATOR
        """Whether ctrl is the rate of what the actuator holds."""
        self.kinds: list[Kind] = [self._kind(index) for index in range(self.count)]
        self.driven = [self._driven_name(index) for index in range(self.count)]
        """Joint or tendon that each actuator drives, by name."""
        self._driven: dict[str, list[int]] = {}
        for index, name in enumerate(self.driven):
            if name:
                self._driven.setdefault(name, []).append(index)
        own = [self._own_name(index) for index in range(self.count)]
        self._own = {name: index for index, name in enumerate(own) if name}
        self.labels = [
            name or driven or str(index)
            for index, (name, driven) in enumerate(zip(own, self.driven, strict=True))
        ]
        """How each actuator is called in sentences: its name, else what it drives."""

    # ---- names ----------------------------------------------------------------------------

    @property
    def names(self) -> dict[str, int]:
        """Actuator ids by the names that a raw command takes.

        An actuator answers to its own name, to that of the joint or tendon it drives where that
        has no other actuator (many models name their joints only); to its index, too.
        """
        alone = {name: ids[0] for name, ids in self._driven.items() if len(ids) == 1}
        return alone | self._own

    def of(self, name: str, where: str = 'the command') -> list[int]:
        """Return the actuators called `name` or driving the joint or tendon of that name."""
        if name in self._own:
            return [self._own[name]]
        if name in self._driven:
            return self._driven[name]
        if name.isdecimal() and int(name) < self.count:
            return [int(name)]
        raise RigError(self._unknown(name, where))

    def matching(self, patterns: Iterable[str], where: str) -> list[int]:
        """Return the actuators that `patterns` (with * and ?) name, in the model's order."""
        found: set[int] = set()
        for pattern in patterns:
            hits = [
                index
                for index in range(self.count)
                if any(fnmatchcase(name, pattern) for name in self._names_of(index))
            ]
            if not hits:
                raise RigError(self._unknown(pattern, where))
            found.update(hits)
        return sorted(found)

    def _unknown(self, name: str, where: str) -> str:
        model = self._model
        joints = {model.joint(index).name for index in range(model.njnt)}
        if name in joints:
            return (
                f'{where} is {name!r}, a joint that no actuator drives; add one with '
                f'world.actuators'
            )
        return unknown_name(where, 'actuator', name, [*self._own, *self._driven])

    def _names_of(self, index: int) -> list[str]:
        driven = [name for name, ids in self._driven.items() if index in ids]
        return [str(index), *driven, *(n for n, i in self._own.items() if i == index)]

    def _own_name(self, index: int) -> str:
        name: str = self._model.actuator(self.ids[index]).name
        place = index - int(np.searchsorted(self.ids, self.ids[index]))
        return f'{name}/{place}' if name and place else name

    def _driven_name(self, index: int) -> str:
        if self.joint[index] >= 0:
            return str(self._model.joint(self.joint[index]).name)
        actuator = self.ids[index]
        if self._model.actuator_trntype[actuator] == TENDON:
            return str(self._model.tendon(int(self._model.actuator_trnid[actuator, 0])).name)
        return ''

    # ---- kinds and units --------------------------------------------------------------------

    def _joint_of(self, index: int) -> int:
        model, actuator = self._model, self.ids[index]
        if int(model.actuator_trntype[actuator]) not in JOINT_TRANSMISSIONS:
            return -1
        return int(model.actuator_trnid[actuator, 0])

    def _kind(self, index: int) -> Kind:
        model, actuator = self._model, self.ids[index]
        if model.actuator_gaintype[actuator] != FIXED or not self.gain[index]:
            return 'other'
        joint = self.joint[index]
        if joint >= 0 and int(model.jnt_type[joint]) not in ONE_DOF:
            return 'other'
        if joint < 0 and model.actuator_trntype[actuator] != TENDON:
            return 'other'
        bias, (_, b1, b2) = model.actuator_biastype[actuator], self.bias[index]
        if self.integrates[index]:
            return 'velocity' if bias == AFFINE and b1 else 'other'
        if bias == NO_BIAS or (bias == AFFINE and not b1 and not b2):
            return 'effort'
        if bias != AFFINE:
            return 'other'
        return 'position' if b1 else 'velocity'

    def ctrl(self, index: int, value: float) -> float:
        """Return the ctrl of actuator `index` for `value` of its kind, in joint units.

        A position is rad or m, a velocity rad/s or m/s, an effort N m or N.
        """
        kind, gear, gain = self.kinds[index], self.gear[index], self.gain[index]
        b0, b1, b2 = self.bias[index]
        if kind == 'effort':
            return float((value / gear - b0) / gain)
        if kind == 'position':
            return float((-b0 - b1 * gear * value) / gain)
        if self.integrates[index]:
            return float(gear * value)
        return float((-b0 - b2 * gear * value) / gain)


def force_limits(
    model: mujoco.MjModel, actuators: Actuators, chosen: Sequence[int]
) -> tuple[Floats, Floats]:
    """Return the least and the largest force of `chosen`, each [n], N or N m at the actuator."""
    low, high = np.full(len(chosen), -np.inf), np.full(len(chosen), np.inf)
    for row, index in enumerate(chosen):
        ranges, actuator = [], actuators.ids[index]
        if model.actuator_forcelimited[actuator]:
            ranges.append(model.actuator_forcerange[actuator])
        joint = actuators.joint[index]
        if joint >= 0 and model.jnt_actfrclimited[joint]:
            ranges.append(model.jnt_actfrcrange[joint] / abs(actuators.gear[index]))
        if actuators.kinds[index] == 'effort' and model.actuator_ctrllimited[index]:
            ranges.append(np.sort(model.actuator_ctrlrange[index] * actuators.gain[index]))
        for least, most in ranges:
            low[row], high[row] = max(low[row], least), min(high[row], most)
    return low, high
