"""What a run gives to the system under test, made when it is asked for, in the run's folder."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from sensor_rig.bags.recorder import record_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.degrade.recording import degrade_recording
from sensor_rig.inprocess import InProcessRig
from sensor_rig.measures.keys import Measures
from sensor_rig.measures.recorded import recorded_measures
from sensor_rig.measures.simulated import RigWatch
from sensor_rig.rigfile import RigConfig
from sensor_rig.sweep.running.experiment import Experiment, Task
from sensor_rig.sweep.running.trajectory_error import Trajectory, recorded_truth
from sim_sensors.outbox import Message


class WatchedRig(InProcessRig):
    """A rig that takes its measures at every step."""

    def __init__(self, config: RigConfig) -> None:
        super().__init__(config)
        self.watch = RigWatch(self)

    def step(self, *, force_recompute: bool = False) -> list[Message]:
        """Move on by one physics step."""
        messages = super().step(force_recompute=force_recompute)
        self.watch.take(messages)
        return messages


class Material:
    """The recordings of one run."""

    def __init__(self, experiment: Experiment, task: Task, scratch: Path) -> None:
        self._experiment, self._task, self._scratch = experiment, task, scratch
        self.rig = experiment.rig(task.values, task.seed)
        self.measures: Measures = {}
        """What was measured while making them."""

    @property
    def gives_rig(self) -> bool:
        """Whether the system under test gets the rig itself rather than a recording."""
        asked = self._experiment.plan.system.input
        return asked == 'rig' or (
            asked == 'auto' and not self.rig.streams and not self._experiment.recordings
        )

    @cached_property
    def source(self) -> Path:
        """The recording before it is degraded: the plan's, or one of a simulation."""
        if self._experiment.recordings:
            return self._experiment.recordings[self._task.recording]
        simulated = InProcessRig(self.rig, arrays=False, sync=False)
        target = self._scratch / 'source'
        with BagWriter(target) as writer:
            record_rig(simulated, writer, self._experiment.plan.seconds, lambda done: None)
        return target

    @cached_property
    def recording(self) -> Path:
        """The recording that the system under test reads: degraded where the rig has streams."""
        if not self.rig.streams:
            return self.source
        target = self._scratch / 'recording'
        degrade_recording(self.source, target, self.rig, storage='mcap')
        return target

    @cached_property
    def synced(self) -> Path:
        """The same, put right by the rig's sync engine, with its measures."""
        target = self._scratch / 'synced'
        with BagWriter(target) as writer:
            self.measures |= self.sync_measures(writer)
        return target

    def sync_measures(self, writer: BagWriter | None = None) -> Measures:
        """Run the rig's sync engine over the recording and return what comes of it."""
        return recorded_measures(
            self.recording,
            self.rig.required_sync,
            writer=writer,
            learn=self._experiment.plan.sync == 'smoothed',
        )

    @cached_property
    def truth(self) -> Trajectory:
        """The true poses."""
        return recorded_truth(self.source, self._experiment.plan.truth)
