"""Pulse per second: the edge that triggers the sensors of a rig."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import mujoco
import numpy as np

from rig_common import msgs
from rig_common.times import NS_PER_S
from sim_sensors.interface import Batch, Sensor, SensorConfig, Topic
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.timing.arrays import Array, Layout
from sim_sensors.timing.units import NonNegative


class ClockPpsConfig(SensorConfig):
    """A pulse."""

    rate_hz: NonNegative = 1.0
    """Pulses a second; 0 pulses at every physics step."""
    accuracy_s: NonNegative = 0.0
    """Standard deviation of the time the pulse stands for, s."""
    source: str = 'pps'
    """Name of the time source in the message."""


class _TimeReader:
    """Truth is the time of the capture itself."""

    parts_ns: Sequence[int] = (0,)

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write the instant, ns."""
        out[:] = view.stamp_ns


class ClockPps(Sensor[ClockPpsConfig]):
    """A pulse at exact times.

    The header says when the receiver's clock saw the pulse, `time_ref` what time it marks.
    """

    config_class = ClockPpsConfig
    topic = Topic('pps', 'sensor_msgs/msg/TimeReference')
    on_tensors = True

    def __init__(self, name: str, config: ClockPpsConfig) -> None:
        super().__init__(name, config)
        self.truth_layout = Layout({'time_ref': ()}, np.int64)
        """Time of the pulse, ns."""
        self._template = msgs.time_reference(self.frame_id, config.source)

    def mount(self, spec: mujoco.MjSpec) -> None:
        """A pulse has no place."""

    def reader(self, view: WorldView) -> TruthReader:
        """Read the time."""
        return _TimeReader()

    def hardware_imperfections(self, values: Array, batch: Batch) -> None:
        """Shift the time the pulse stands for."""
        xp = batch.noise.xp
        if self.config.accuracy_s > 0.0:
            error_s = self.config.accuracy_s * batch.noise.normal('pulse', batch, 1)
            values += xp.astype(xp.round(error_s * NS_PER_S), np.int64)

    def truth_to_blocks(self, row: Array) -> dict[str, Array]:
        """Split nanoseconds into the message's sec and nanosec."""
        return {'time_ref': np.array(divmod(int(row[0]), NS_PER_S), np.int32)}

    def blocks_to_truth(self, blocks: Mapping[str, Array], out: Array) -> None:
        """Join sec and nanosec."""
        sec, nanosec = blocks['time_ref']
        out[0] = int(sec) * NS_PER_S + int(nanosec)

    blocks = truth_to_blocks
