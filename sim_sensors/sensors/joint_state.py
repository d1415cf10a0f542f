"""Joint encoders: positions in counts, velocity from counts, backlash, counts that get lost."""

from __future__ import annotations

from math import tau
from typing import Annotated, Literal

import mujoco
import numpy as np
from pydantic import Field, model_validator

from rig_common import msgs
from rig_common.errors import RigError
from rig_common.times import NS_PER_S
from sim_sensors.interface import Batch, Sensor, SensorConfig, Timeline, Topic
from sim_sensors.interface.truth import ColumnReader, TruthReader, WorldView
from sim_sensors.sensors.common.axes import quantise
from sim_sensors.sensors.common.native import add_joint_native
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative, Probability

NATIVE = {'position': 'jointpos', 'velocity': 'jointvel', 'effort': 'jointactfrc'}


class JointStateConfig(SensorConfig):
    """Encoders; `noise`, `bias`, `random_walk` and `resolution` act on positions, rad or m."""

    rate_hz: NonNegative = 100.0
    """Captures a second; 0 captures at every physics step."""
    joints: Annotated[tuple[str, ...], Field(min_length=1)]
    """Hinge and slide joints, by name."""
    counts_per_rev: NonNegative = 0.0
    """Encoder counts per turn of a hinge (after quadrature); 0 is a continuous position. Slides
    take `resolution` instead."""
    velocity_from: Literal['counts', 'tachometer'] = 'counts'
    """`counts`: difference of positions over the time between captures. `tachometer`: the joint's
    own velocity."""
    velocity_noise: NonNegative = 0.0
    """Standard deviation of a tachometer's velocity, rad/s or m/s."""
    effort_noise: NonNegative = 0.0
    """Standard deviation of the effort, N m or N."""
    backlash: NonNegative = 0.0
    """Play between joint and encoder, rad or m: the encoder follows a reversal only after it."""
    drop_probability: Probability = 0.0
    """Chance per capture that a moving joint loses one count, for good."""
    namespaced: bool = False
    """Publish on `<name>/joint_states` instead of `joint_states`, for rigs with several."""

    @model_validator(mode='after')
    def _only_counts_get_lost(self) -> JointStateConfig:
        if self.drop_probability and not (self.counts_per_rev or self.resolution):
            raise ValueError(
                f'drop_probability is {self.drop_probability}, but nothing is '
                f'counted; give counts_per_rev or resolution'
            )
        return self


class JointState(Sensor[JointStateConfig]):
    """Positions, velocities and efforts of some joints."""

    config_class = JointStateConfig
    on_tensors = True
    truth_responds = False

    def __init__(self, name: str, config: JointStateConfig) -> None:
        super().__init__(name, config)
        count = len(config.joints)
        self.truth_layout = Layout(
            dict.fromkeys(('position', 'velocity', 'effort'), (count,)), float
        )
        """Position rad or m, velocity per s, effort N m or N; each [joints]."""
        self._template = msgs.joint_state(config.joints, frame_id=config.frame_id, effort=True)
        suffix = 'joint_states' if config.namespaced else '/joint_states'
        self.topic = Topic(suffix, self._template.type_name)
        self._count_size = tau / config.counts_per_rev if config.counts_per_rev else 0.0
        self._differs = config.velocity_from == 'counts'
        self.responds = config.backlash > 0.0
        self.remembers_captures = not self.responds
        self.stateful = bool(self._differs or config.backlash or config.drop_probability)
        self.state_shapes = {'time_s': (), 'lost': (count,), 'position': (count,)}

    # ---- the world's side -----------------------------------------------------------------

    def mount(self, spec: mujoco.MjSpec) -> None:
        """Add MuJoCo's own joint sensors."""
        for kind in NATIVE.values():
            for joint in self.config.joints:
                add_joint_native(spec, self.name, kind, joint)
        for joint in self.config.joints:
            is_slide = spec.joint(joint).type == mujoco.mjtJoint.mjJNT_SLIDE
            if is_slide and self.config.counts_per_rev:
                raise RigError(
                    f'sensor {self.name!r}: joint {joint!r} slides, it makes no turns; '
                    f'give resolution in m instead of counts_per_rev'
                )

    def reader(self, view: WorldView) -> TruthReader:
        """Read the native sensors' columns."""
        return ColumnReader(
            view.model,
            [
                f'{self.name}/{kind}/{joint}'
                for kind in NATIVE.values()
                for joint in self.config.joints
            ],
        )

    # ---- the pipeline's stages ----------------------------------------------------------------

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        """Let the encoder hang back by the play: it moves only when pushed from either side."""
        half, xp = 0.5 * self.config.backlash, batch.noise.xp
        joint = self.truth_layout.view(values, 'position')
        before = self.truth_layout.view(timeline.at(1), 'position')
        follows = xp.clip(before, joint - half, joint + half)
        joint[:] = xp.where(timeline.filled[:, None], follows, joint)

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Lose counts, add noise, count."""
        position, velocity, effort = self.truth_layout.unpack(values).values()
        if self.config.drop_probability:
            self._lose_counts(position, batch)
        batch.noise.apply_readout_errors(position, batch)
        quantise(position, self._count_size)
        for name, rows, sigma in (
            ('velocity', velocity, self.config.velocity_noise),
            ('effort', effort, self.config.effort_noise),
        ):
            if sigma:
                rows += sigma * batch.noise.normal(name, batch, rows.shape[1])

    def _lose_counts(self, position: Array, batch: Batch) -> None:
        """Subtract what was lost so far; a count lost moving forward makes the reading short."""
        lost, before = batch.state['lost'], batch.state['position']
        moved = position - before[batch.envs]
        moved[batch.index == 0] = 0.0
        before[batch.envs] = position
        chance = batch.noise.uniform('drop', batch, position.shape[1])
        size = self._count_size or self.config.resolution
        lost[batch.envs] += (
            size * batch.noise.xp.sign(moved) * (chance < self.config.drop_probability)
        )
        position -= lost[batch.envs]

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        """Difference the counts; the first capture has nothing to compare with and reads 0."""
        if not (self._differs and batch.is_measured):
            return values
        now_s = batch.noise.xp.astype(batch.time_ns, np.float64) / NS_PER_S
        layout = self.truth_layout
        velocity = layout.view(values, 'velocity')
        if previous is None:
            velocity[:] = 0.0
        else:
            moved = layout.view(values, 'position') - layout.view(previous, 'position')
            velocity[:] = moved / (now_s - batch.state['time_s'][batch.envs])[:, None]
        batch.state['time_s'][batch.envs] = now_s
        return values
