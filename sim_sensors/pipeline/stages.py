"""The stages of both branches, in order, with copies only where a stage changes something."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rig_common.arrays import Flags, Ids
from sim_sensors.interface import AnySensor, Batch, Sensor, clip_to
from sim_sensors.pipeline.tick_history import TimelineRing
from sim_sensors.timing.arrays import ALL, NUMPY, Array, Arrays, Rows
from sim_sensors.timing.faults import Condition

MOST_PASSED = 256
"""Ticks between captures that are kept at most; beyond it costs no more to integrate twice."""


class Stages:
    """Runs a sensor's hooks over a batch and keeps what they remember.

    A hook the sensor does not override is the identity and costs nothing: the branches then share
    one array with the truth they came from.
    """

    def __init__(
        self, sensor: AnySensor, num_envs: int, tick_s: float, xp: Arrays = NUMPY
    ) -> None:
        """Make the timelines and the state of `num_envs` environments; truth every `tick_s`."""
        self.sensor, self._xp, self._tick_s = sensor, xp, tick_s
        layout = sensor.truth_layout
        self._disturbs = sensor.disturbs and (
            _overrides(sensor, 'physics_imperfections') or _overrides(sensor, 'sense')
        )
        self._integrates = sensor.responds and _overrides(sensor, 'integrate')
        self._responds = sensor.responds and _overrides(sensor, 'respond')
        self._projects = _overrides(sensor, 'post_process')
        self.truth_waits = self._projects and not sensor.stateful
        """Whether ground truth is projected when somebody wants it: nothing builds on it."""
        self._owns_sensed = self._disturbs or self._responds
        """Whether `sense` hands out rows that nothing else looks at, to be worked on in place."""
        self._reads_out = _overrides(sensor, 'hardware_imperfections')
        self._truth_responds = self._responds and sensor.truth_responds
        self._has_timeline = sensor.stateful and (self._responds or self._integrates)
        depth, rows = (sensor.timeline_length, num_envs) if self._has_timeline else (1, 0)
        self._sensed_line = TimelineRing(depth, rows, layout, xp)
        self._clean_line = TimelineRing(depth, rows, layout, xp)
        self._passed: list[Array] = []
        """Truth of all rows at the ticks since the last that was integrated."""
        self.state: dict[str, Array] = _zeros(sensor, num_envs, xp)
        """`Sensor.state_shapes` of the measured branch."""
        self._clean_state = _zeros(sensor, num_envs, xp)
        self._has_last = xp.zeros(num_envs, np.bool_)
        self._keeps_last = False
        if sensor.stateful and self._projects:
            self.keep_last()

    def keep_last(self) -> None:
        """Remember outputs from now on: for `post_process`, or for a `stuck` fault."""
        if not self._keeps_last:
            self._keeps_last = True
            layout, rows = self.sensor.return_layout, len(self._has_last)
            self._last, self._last_clean = (
                self._xp.zeros((rows, layout.width), layout.dtype) for _ in range(2)
            )

    # ---- truth tick -> timeline ---------------------------------------------------------------

    def passes(self, truth: Array, envs: Rows) -> bool:
        """Keep a tick that is no capture for later, if that can be; else `sense` it."""
        if not (self._integrates and isinstance(envs, slice)):
            return False
        self._passed.append(self._xp.copy(truth))
        if len(self._passed) == MOST_PASSED:
            self._integrate(envs)
        return True

    def _integrate(self, envs: Rows) -> Array:
        """Integrate over the ticks that were kept; return the last row of each of `envs`."""
        series = self._xp.stack(self._passed)
        self._passed.clear()
        self.sensor.integrate(series, self._sensed_line.bind(envs), self._tick_s)
        last: Array = series[-1]
        self._sensed_line.push(last, envs)
        return last

    def sense(self, truth: Array, batch: Batch) -> tuple[Array, Array]:
        """Return (clean, sensed) rows [n, width] after physics imperfections and response."""
        if self._integrates:
            if self._passed and not isinstance(batch.envs, slice):
                self._integrate(ALL)
            self._passed.append(truth)
            truth = self._integrate(batch.envs)
        clean = sensed = truth
        if self._disturbs:
            sensed = self.sensor.sense(truth, batch)
        if self._responds:
            sensed = self._xp.copy(truth) if sensed is truth else sensed
            self._respond(sensed, self._sensed_line, batch)
        if self._truth_responds:
            clean = self._xp.copy(truth)
            batch.is_measured, batch.state = False, self._clean_state
            self._respond(clean, self._clean_line, batch)
            batch.is_measured, batch.state = True, self.state
        return clean, sensed

    def _respond(self, values: Array, line: TimelineRing, batch: Batch) -> None:
        self.sensor.respond(values, line.bind(batch.envs), batch)
        if self._has_timeline:
            line.push(values, batch.envs)

    # ---- capture -> return space ----------------------------------------------------------------

    def measure(
        self, clean: Array, sensed: Array, batch: Batch, condition: Condition
    ) -> tuple[Array, Array]:
        """Return (measured, ground truth) rows [n, width] in return space.

        Where `truth_waits`, ground truth is still to be projected, see `project_truth`.
        """
        work = sensed
        if self._reads_out or not batch.noise.readout_errors.is_identity or condition.wrong:
            work = sensed if self._owns_sensed else self._xp.copy(sensed)
            batch.noise.gain = condition.noise_gain
            self.sensor.hardware_imperfections(work, batch)
            batch.noise.gain = 1.0
            for scale, offset in condition.wrong:
                clip_to(work, self._xp.astype(work, np.float64) * scale + offset)
        if self._projects:
            borrowed = work is sensed and not self._owns_sensed
            work = self._project(self._xp.copy(work) if borrowed else work, batch)
            if not self.truth_waits:
                batch.is_measured, batch.state = False, self._clean_state
                own = clean if self._truth_responds else self._xp.copy(clean)
                clean = self._project(own, batch)
        if self._keeps_last:
            work = self._remember(work, clean, batch.envs, condition.stuck)
        return work, clean

    def project_truth(self, clean: Array, batch: Batch) -> Array:
        """Return the ground truth of `measure` in return space."""
        if not self.truth_waits:
            return clean
        batch.is_measured, batch.state = False, self._clean_state
        return self.sensor.post_process(self._xp.copy(clean), None, batch)

    def _project(self, values: Array, batch: Batch) -> Array:
        """Run `post_process`, apart for rows that have an earlier output and rows that do not."""
        if not self.sensor.stateful:
            return self.sensor.post_process(values, None, batch)
        last = self._last if batch.is_measured else self._last_clean
        known = self._has_last[batch.envs]
        if known.all():
            return self.sensor.post_process(values, last[batch.envs], batch)
        if not known.any():
            return self.sensor.post_process(values, None, batch)
        layout = self.sensor.return_layout
        out = self._xp.empty((len(values), layout.width), layout.dtype)
        for chosen in (known, ~known):
            part = rows_of(batch, chosen, self._xp.arange(len(self._has_last)))
            previous = last[part.envs] if chosen is known else None
            out[chosen] = self.sensor.post_process(values[chosen], previous, part)
        return out

    def _remember(self, values: Array, clean: Array, envs: Rows, stuck: bool) -> Array:
        """Note the last output; a stuck sensor gives it again instead of a new one."""
        if stuck:
            values = self._xp.where(self._has_last[envs][:, None], self._last[envs], values)
        self._last[envs] = values
        if not self.truth_waits:
            self._last_clean[envs] = clean
        self._has_last[envs] = True
        return values

    def reset(self, envs: Rows) -> None:
        """Forget everything about `envs`."""
        if self._passed:
            self._integrate(ALL)
        if self._has_timeline:
            self._sensed_line.reset(envs)
            self._clean_line.reset(envs)
        self._has_last[envs] = False
        for state in (self.state, self._clean_state):
            for array in state.values():
                array[envs] = 0.0


def rows_of(batch: Batch, chosen: Flags, ids: Ids) -> Batch:
    """Return the rows of `batch` where `chosen`; `ids` are all environments."""
    return replace(
        batch,
        envs=ids[batch.envs][chosen],
        index=batch.index[chosen],
        tick=batch.tick[chosen],
        time_ns=batch.time_ns[chosen],
    )


def _overrides(sensor: AnySensor, hook: str) -> bool:
    return getattr(type(sensor), hook) is not getattr(Sensor, hook)


def _zeros(sensor: AnySensor, num_envs: int, xp: Arrays) -> dict[str, Array]:
    return {name: xp.zeros((num_envs, *shape)) for name, shape in sensor.state_shapes.items()}
