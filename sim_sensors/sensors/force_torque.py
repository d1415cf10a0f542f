"""Force and torque: a six-axis wrist sensor, and the net contact force on a body."""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

import mujoco
import numpy as np
from pydantic import Field

from rig_common import msgs
from rig_common.errors import RigError
from sim_sensors.interface import Batch, Timeline, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.sensors.common.net_force import NetForceReader, add_net_force
from sim_sensors.sensors.common.phenomena import FilteredSensor, PhysicalConfig
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import Fraction, NonNegative

FORCE, TORQUE = slice(0, 3), slice(3, 6)


class WrenchConfig(PhysicalConfig):
    """What both wrench sensors understand. `noise`, `bias`, `random_walk`, `physics` are in N."""

    rate_hz: NonNegative = 500.0
    """Captures a second; 0 captures at every physics step."""
    noise: NonNegative = 0.05
    """White noise of each force axis, N."""
    torque_noise_nm: NonNegative = 0.002
    """White noise of each torque axis, N m."""
    force_range_n: NonNegative = 0.0
    """Clamp of each force axis, N; 0 is none."""
    torque_range_nm: NonNegative = 0.0
    """Clamp of each torque axis, N m; 0 is none."""
    force_deadband_n: NonNegative = 0.0
    """Forces smaller than this read zero, N."""
    torque_deadband_nm: NonNegative = 0.0
    """Torques smaller than this read zero, N m."""
    cross_talk: Annotated[float, Field(ge=0.0, le=0.5)] = 0.0
    """Fraction of every other axis, each in units of its range (or 1 N to 0.1 N m where no range
    is given), that an axis picks up."""
    bandwidth_hz: NonNegative = 0.0
    """-3 dB frequency of a first-order low pass, Hz; 0 is none."""
    overload_n: NonNegative = 0.0
    """A force on an axis beyond this, however short, leaves a lasting bias, N; 0 is none."""
    overload_bias: Fraction = 0.02
    """Fraction of the overload that stays as bias."""


ConfigT = TypeVar('ConfigT', bound=WrenchConfig)


class WrenchSensor(FilteredSensor[ConfigT], Generic[ConfigT]):
    """Force [3] N and torque [3] N m in the sensor's axes, and what a strain-gauge cell adds."""

    topic = Topic('wrench', 'geometry_msgs/msg/WrenchStamped')
    disturbed = FORCE

    def __init__(self, name: str, config: ConfigT) -> None:
        super().__init__(name, config)
        self.state_shapes = {'overload': (3,)}
        self.truth_layout = Layout({'force': (3,), 'torque': (3,)}, float)
        """Force N and torque N m, sensor's axes."""
        self._template = msgs.wrench_stamped(self.frame_id)
        self.low_pass(config.bandwidth_hz)
        self.stateful = self.responds = self.responds or config.overload_n > 0.0
        self._mixing = _mixing(config)
        self._limit = np.repeat(
            [config.force_range_n or np.inf, config.torque_range_nm or np.inf], 3
        )
        self._deadband = np.repeat([config.force_deadband_n, config.torque_deadband_nm], 3)

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        """Note overloads, then low-pass the cell, exactly for a wrench held over a tick."""
        if self.config.overload_n > 0.0:
            self._overload(values[:, FORCE], batch)
        if self.config.bandwidth_hz > 0.0:
            super().respond(values, timeline, batch)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Apply overload bias, cross-talk, the generic errors of the forces, torque noise."""
        values[:, FORCE] += batch.state['overload'][batch.envs]
        if self._mixing is not None:
            values[:] = values @ self._mixing.T
        batch.noise.apply_readout_errors(values[:, FORCE], batch)
        if self.config.torque_noise_nm > 0.0:
            values[:, TORQUE] += self.config.torque_noise_nm * batch.noise.normal(
                'torque', batch, 3
            )

    def _overload(self, force_n: Array, batch: Batch) -> None:
        """Shift the zero for good when a force [n, 3] goes beyond what the cell bears."""
        lasting, xp = batch.state['overload'], batch.noise.xp
        excess = xp.maximum(xp.abs(force_n) - self.config.overload_n, 0.0)
        left = self.config.overload_bias * xp.sign(force_n) * excess
        before = lasting[batch.envs]
        lasting[batch.envs] = xp.where(xp.abs(left) > xp.abs(before), left, before)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Clamp to the range and silence the deadband."""
        if not batch.is_measured:
            return values
        batch.noise.xp.clip_in_place(values, -self._limit, self._limit)
        values[abs(values) < self._deadband] = 0.0
        return values


class ForceTorqueConfig(WrenchConfig):
    """A six-axis force-torque sensor between a body and its parent."""


class ForceTorque(WrenchSensor[ForceTorqueConfig]):
    """What the parent body exerts on the sensor's body and all it carries, at the mount."""

    config_class = ForceTorqueConfig
    natives = ('force', 'torque')

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and its native sensors; the world carries nothing."""
        super().mount(spec)
        if spec.site(self.name).parent.name == 'world':
            raise RigError(
                f'sensor {self.name!r}: mount.body is world, which is attached to '
                f'nothing; name the body whose joint or weld carries the load'
            )

    def validate(self, view: WorldView) -> None:
        """Raise RigError where the body floats: then nothing is carried by anything."""
        model = view.model
        body = model.body(int(model.site(self.name).bodyid[0]))
        joint = int(body.jntadr[0])
        if joint >= 0 and model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            raise RigError(
                f'sensor {self.name!r}: body {body.name!r} floats (free joint), so no '
                f'parent carries it; name a body further out, or use contact_force'
            )


class ContactForceConfig(WrenchConfig):
    """The net contact force on a body."""

    against: str = ''
    """Count only contacts with this body; empty counts all."""


class ContactForce(WrenchSensor[ContactForceConfig]):
    """The net wrench of all contacts of a body, about the sensor's origin."""

    config_class = ContactForceConfig

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add the site and the native contact sensor of its body."""
        super().mount(spec)
        add_net_force(spec, self.name, self.config.against)

    def reader(self, view: WorldView) -> TruthReader:
        """Read the net wrench."""
        return NetForceReader(view.model, self.name, with_torque=True)


def _mixing(config: WrenchConfig) -> Array | None:
    """Return the [6, 6] cross-talk matrix, or None; torques count in units of their range."""
    if config.cross_talk == 0.0:
        return None
    lever_m = (
        config.torque_range_nm / config.force_range_n
        if config.torque_range_nm and config.force_range_n
        else 0.1
    )
    scale = np.repeat([1.0, lever_m], 3)
    leak = config.cross_talk * scale[:, None] / scale[None, :]
    np.fill_diagonal(leak, 1.0)
    return np.asarray(leak)
