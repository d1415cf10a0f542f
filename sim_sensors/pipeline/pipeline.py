"""The life of a measurement, from the truth to whoever reads it. Start reading here.

    truth of a tick ─┬─ respond ──────────────────────────────── post_process ─▶ ground truth
                     └─ physics_imperfections ─ respond ─ hardware_imperfections ─ post_process
                              └── timeline ring ──┘                     │
                 faults, clock, loss, delay, jitter (`Transit`) ◀───────┘
                       │
                       ├─▶ sample ring ─▶ read(): the newest sample that has arrived
                       └─▶ in flight   ─▶ due(): every sample once, in order of arrival

A *tick* is a truth row; a *capture* is a tick on which the sensor also measures. They differ only
for sensors with a stateful response, which run at `truth_rate_hz` and capture at `rate_hz`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rig_common.arrays import Flags, Ids, Ints
from rig_common.errors import RigError
from sim_sensors.interface import (
    AnySensor,
    Batch,
    NoiseSource,
    ReadoutErrors,
    Sample,
    SensorConfig,
)
from sim_sensors.pipeline.changes_at_run_time import check_change
from sim_sensors.pipeline.in_flight import InFlight
from sim_sensors.pipeline.progress import Progress, TickNumbers, drawn_phases_ns
from sim_sensors.pipeline.reading.lags import Lags
from sim_sensors.pipeline.reading.readout import Reading, Readout, asked_history
from sim_sensors.pipeline.stages import Stages, rows_of
from sim_sensors.pipeline.stream_traits import on_arrays, schedule_of, stream_of
from sim_sensors.timing.arrays import ALL, Array, Envs, RowChoice, Rows, arrays_of
from sim_sensors.timing.fates import CaptureFate
from sim_sensors.timing.faults import HEALTHY, FaultConfig, Faults
from sim_sensors.timing.link import LinkShare
from sim_sensors.timing.schedule import Schedule
from sim_sensors.timing.transit import Transit

Supplier = Callable[[Ids, Array], None]
"""`supplier(lanes, out)` writes the present truth of `lanes` into `out` [len(lanes), width]."""


@dataclass(frozen=True)
class RunSetup:
    """What the pipelines of one run share."""

    seed: int
    dt_ns: int
    """Physics step, ns."""
    num_envs: int = 1
    episode: int = 0
    """Episode that all environments begin in."""
    start_ns: int = 0
    """Time at which the run starts; messages, and clocks at the start, show it, ns."""
    messages: bool = False
    """Keep samples for `due`."""
    arrays: bool = True
    """Keep values for `read`."""
    device: str = ''
    """Device of torch ('cpu', 'cuda') on which all arrays are tensors; NumPy when empty."""


class Pipeline:
    """One sensor in `num_envs` environments, or several of one kind that are computed together.

    Every array has one row per *lane*: an environment of one sensor. With several sensors, the
    lanes are the sensors of the first environment, then those of the second, ... (see `Lanes`).

    Use one of two ways, never both: `update(now)` at every physics step with a `supplier` of truth
    (lazy where nothing needs every capture), or `tick(envs, time, rows)` with truth that came from
    elsewhere (a topic, a sweep that is complete). Then `read()`, or `due(now)` for messages.
    """

    def __init__(
        self,
        sensor: AnySensor,
        run: RunSetup,
        *,
        schedule: Schedule | None = None,
        supplier: Supplier | None = None,
        link: LinkShare | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        """Make the pipeline of `sensor`, as it is at the start of the run's episode.

        `schedule` is given for triggered sensors; `supplier` writes the truth that `update` needs;
        `link` is the line that its messages share with other sensors'. `names` are those of
        several sensors whose config is `sensor`'s.
        """
        self.config = config = sensor.config
        self.xp = xp = arrays_of(run.device)
        self.sensor = sensor = on_arrays(sensor, xp)
        self.names, self.num_envs = names or (sensor.name,), run.num_envs
        if run.messages and len(self.names) > 1:
            raise ValueError('sensors that share a pipeline send no messages')
        self.schedule = schedule or schedule_of(sensor.name, config, run.dt_ns)
        self.ticks = sensor.truth_ticks(self.schedule)
        """When truth is needed: at captures, or more often for a stateful response."""
        self._tick_s, self._capture_s = self.ticks.period_s, self.schedule.period_s
        self.noise = NoiseSource(
            run.seed,
            self.names,
            run.num_envs,
            sensor.truth_layout.dtype,
            run.episode,
            readout_errors=ReadoutErrors(config),
            xp=xp,
            fast=config.fast_noise,
        )
        self._choice = RowChoice(run.num_envs, len(self.names), xp)
        lanes = len(self._choice)
        self.stages = Stages(sensor, lanes, self._tick_s, xp)
        self.transit = Transit(
            config, self.noise, stream_of(sensor, self.schedule, link, run.start_ns)
        )
        self.faults = self.transit.faults = Faults(config.faults.values())
        self.in_flight = InFlight(run.start_ns) if run.messages else None
        self.watched = False
        """Set while a page or a viewer looks on: every capture is made while it is true."""
        self._lags = Lags(self.transit, xp)
        self._readout = (
            Readout(self.schedule, sensor, self._lags, lanes, xp, self.stages.truth_waits)
            if run.arrays
            else None
        )
        self.supplier = supplier
        """Where `update` and `read` get truth from; may also be set after making."""
        self.progress = Progress(self.schedule, self.ticks, lanes, xp)
        """How far each environment is."""
        if config.phase_range_s[1]:
            self.progress.reset(ALL, 0, drawn_phases_ns(config, run.dt_ns, self.noise, ALL))
        self._now_ns = 0
        self._injected: list[FaultConfig] = []
        self._plan()

    # ---- time passes --------------------------------------------------------------------------

    def update(self, now_ns: int, force_recompute: bool = False) -> None:
        """Let time be `now_ns`; capture now if this sensor must not skip any, or if forced."""
        self._now_ns = now_ns
        if now_ns >= self.progress.next_ns and (force_recompute or not self.is_lazy):
            self._compute_outdated(ALL)

    @property
    def is_lazy(self) -> bool:
        """Whether a capture that nobody reads need not be made."""
        return not (self._every or self.watched)

    @property
    def outdated(self) -> Flags:
        """Environments whose next tick is due but not computed yet, [num_envs]."""
        return self.progress.outdated(ALL, self._now_ns)

    def _compute_outdated(self, envs: Rows) -> None:
        if self.supplier is None:
            return
        if isinstance(envs, slice) and self.progress.is_together:
            if self.progress.is_due(self._now_ns):
                self._tick(ALL, self._now_ns, self._supplied(self._choice.every))
            return
        stale = self.progress.outdated(envs, self._now_ns)
        if not stale.any():
            return
        chosen = self._choice.every[envs][stale]
        if not isinstance(envs, slice):
            # whoever asks twice for one gets it twice, computed once
            chosen = self.xp.asarray(np.unique(chosen.tolist()))
        self._tick(self._choice.shortest(chosen), self._now_ns, self._supplied(chosen))

    def _supplied(self, lanes: Ids) -> Array:
        assert self.supplier is not None
        layout = self.sensor.truth_layout
        rows = self.xp.empty((len(lanes), layout.width), layout.dtype)
        self.supplier(lanes, rows)
        return rows

    def tick(self, envs: Envs, time_ns: int, truth: Array) -> None:
        """Take the truth rows [n, width] of `envs` at `time_ns`; they are not kept or changed."""
        self._tick(self._choice.of(envs), time_ns, truth)

    def _tick(self, rows: Rows, time_ns: int, truth: Array) -> None:
        self._now_ns = max(self._now_ns, time_ns)
        step = self.progress.advance(rows, time_ns)
        if step.captured is False and self.stages.passes(truth, rows):
            return
        batch = self._batch(rows, step, time_ns)
        clean, sensed = self.stages.sense(truth, batch)
        if step.captured:
            self._capture(batch, clean, sensed, time_ns)
        elif step.captured is None:
            chosen = batch.index >= 0
            part = rows_of(batch, chosen, self._choice.every)
            self._capture(part, clean[chosen], sensed[chosen], time_ns)

    def _capture(self, batch: Batch, clean: Array, sensed: Array, time_ns: int) -> None:
        """Measure, and send what was measured on its way."""
        condition = self.faults.at(time_ns) if self.faults else HEALTHY
        values, truth = self.stages.measure(clean, sensed, batch, condition)
        passage = self.transit.send(batch, condition)
        if self._readout is not None:
            self._readout.push(batch, values, truth, passage)
        if self.in_flight is not None:
            envs = self._choice.every[batch.envs].tolist()
            truth = self.stages.project_truth(truth, batch)
            copies = self.in_flight.send(envs, batch, passage, values, truth)
            if copies:
                self.transit.counts[CaptureFate.DUPLICATED] += copies

    # ---- reading --------------------------------------------------------------------------------

    def due(self, now_ns: int) -> list[Sample]:
        """Take out the samples that have arrived by `now_ns`, in order of arrival, each once."""
        if self.in_flight is None:
            raise ValueError('this pipeline was made without messages=True')
        samples = self.in_flight.due(now_ns)
        self.transit.counts[CaptureFate.DELIVERED] += len(samples)
        return samples

    def read(
        self,
        now_ns: int | ArrayLike | None = None,
        envs: Envs = None,
        history_length: int | None = None,
        *,
        interpolation: str | None = None,
        member: int | None = None,
    ) -> Reading:
        """Return the newest sample that has arrived by `now_ns` (by default the present).

        `now_ns` is one time or a time for each of `envs`. `history_length` N gives [n, N, width]:
        entry i is the sample i captures before entry 0, or, where that one was lost or is not here
        yet, the newest before it. `interpolation` answers between captures in another way than the
        config says. Two reads at one time are equal. `member` reads one sensor of several.
        """
        rows, readout, history = self._ready(envs, history_length, member)
        interpolator = readout.interpolator(
            interpolation or self.config.interpolation, self.config, self.sensor.name
        )
        now = self._now_ns if now_ns is None else now_ns
        if not isinstance(now, int):
            now = self._choice.spread(now, rows, member, self.sensor.name)
            return readout.measured(rows, now, history, interpolator)
        late_ns = self.faults.at(now).latency_ns if self.faults else 0
        return readout.measured(rows, now, history, interpolator, late_ns)

    def read_ground_truth(
        self, envs: Envs = None, history_length: int | None = None, *, member: int | None = None
    ) -> Reading:
        """Return the newest capture without noise, delay or loss; history as in `read`."""
        rows, readout, history = self._ready(envs, history_length, member)
        reading = readout.truth(rows, history)
        if not self.stages.truth_waits:
            return reading
        lanes, time_ns = self._choice.every[rows], reading.capture_ns.reshape(-1)
        if history is not None:
            lanes = (lanes[:, None] + self.xp.zeros((1, history), np.int64)).reshape(-1)
        index = self.schedule.indices_before(time_ns - self.progress.origin_ns[lanes])
        clean = reading.values.reshape(len(lanes), self.sensor.truth_layout.width)
        batch = self._batch(lanes, TickNumbers(index, index, True), time_ns)
        shape = *reading.valid.shape, self.sensor.return_layout.width
        values = self.stages.project_truth(clean, batch).reshape(shape)
        values[~reading.valid] = 0
        return reading._replace(values=values)

    def _ready(
        self, envs: Envs, history: int | None, member: int | None
    ) -> tuple[Rows, Readout, int | None]:
        """Compute what is outdated in `envs`; return what to read from, and how long a history."""
        if self._readout is None:
            raise ValueError('this pipeline was made without arrays=True')
        history = asked_history(self.config, self.sensor.name, history)
        rows = self._choice.of(envs, member)
        self._compute_outdated(rows)
        return rows, self._readout, history

    def start_history(
        self,
        times_ns: ArrayLike,
        values: ArrayLike,
        phase_ns: int | ArrayLike | None = None,
        envs: Envs = None,
        *,
        member: int | None = None,
    ) -> None:
        """Give `envs` a past: `values` [n, m, width] measured at capture times [m] or [n, m].

        The times are consecutive ones of the schedule, which goes on into the time before the
        episode. They arrive after the delay, without jitter or loss, stamped with their true time.
        A `phase_ns`, one time or [n], begins a new episode of which it is the first capture.
        """
        if self._readout is None:
            raise ValueError('this pipeline was made without arrays=True')
        rows = self._choice.of(envs, member)
        if phase_ns is not None:
            first_ns = self.xp.asarray(phase_ns, np.int64) - self._now_ns
            self._begin(rows, first_ns - self.schedule.phase_ns)
        ids = self._choice.every[rows]
        self._readout.start(
            ids,
            self.progress.origin_ns[ids],
            self.xp.asarray(times_ns, np.int64),
            self.xp.asarray(values),
            self.transit.latency_ns[ids],
            self.sensor.name,
        )

    # ---- resets and changes at run time -----------------------------------------------------

    def reset(self, env_ids: Envs = None, time_ns: int | None = None) -> None:
        """Begin a new episode of `env_ids` at `time_ns` (by default the present).

        Reset the world first: sensors that capture on schedule take their first sample at once.
        """
        rows = self._choice.of(env_ids)
        if time_ns is not None:
            self._now_ns = time_ns
        if not len(self._choice.every[rows]):
            return
        self._begin(rows, None)
        self.update(self._now_ns)

    def _begin(self, rows: Rows, phase_ns: Array | None) -> None:
        """Begin a new episode now, its captures `phase_ns` [n] later than the schedule says."""
        self.noise.reset(rows)
        self.stages.reset(rows)
        self.transit.reset(rows)
        self._lags.reset(rows)
        if self._readout is not None:
            self._readout.reset(rows)
        if self.in_flight is not None:
            flushed = self.in_flight.flush(set(self._choice.every[rows].tolist()))
            self.transit.counts[CaptureFate.FLUSHED] += flushed
        if phase_ns is None and self.config.phase_range_s[1]:
            phase_ns = drawn_phases_ns(self.config, self.schedule.dt_ns, self.noise, rows)
        self.progress.reset(rows, self._now_ns, phase_ns)
        self._plan()

    def reconfigure(self, config: SensorConfig) -> None:
        """Take delay, jitter, noise, clock, loss and the sensor's own keys from the next capture.

        What is on its way keeps the times it has.
        """
        self._check_alone('be reconfigured')
        check_change(self.sensor, config)
        self.noise.readout_errors.take(config)
        new = type(self.sensor)(self.sensor.name, config)
        self.sensor = self.stages.sensor = on_arrays(new, self.xp)
        self.transit.take(config)
        self._lags.widen()
        self.config = config
        self.faults = self.transit.faults = Faults([*config.faults.values(), *self._injected])
        self._plan()

    def inject(self, fault: FaultConfig) -> None:
        """Add a fault while running."""
        self._check_alone('be given a fault')
        self._injected.append(fault)
        self.faults.add(fault)
        self._plan()

    @property
    def counts(self) -> Counter[CaptureFate]:
        """What became of the captures so far."""
        return self.transit.counts

    def _check_alone(self, what: str) -> None:
        if len(self.names) > 1:
            raise RigError(
                f'{self.names[0]!r} is computed together with {len(self.names) - 1} '
                f'sensors like it and cannot {what} alone; make the rig with '
                'together=False'
            )

    # ---- bookkeeping --------------------------------------------------------------------------

    def _plan(self) -> None:
        """Derive from config and faults what must be kept and what may be skipped."""
        config, lags = self.config, self._lags
        lags.plan(self.progress, self.faults)
        self._every = bool(
            config.eager
            or self.sensor.stateful
            or config.history_length
            or not lags.are_zero
            or self.in_flight is not None
        )
        """Whether every capture is made, read or not."""
        if self.faults.repeat_values:
            self.stages.keep_last()
        if self._readout is not None:
            spread, slots = lags.overtaking(self.schedule), 1
            if self._every:
                slots += max(config.history_length, 1) + spread + lags.under_way(self.schedule)
            self._readout.plan(slots, spread, self._every)

    def _batch(self, rows: Rows, step: TickNumbers, time_ns: int | Ints) -> Batch:
        index = self.progress.each(step.capture)
        tick = index if step.tick is step.capture else self.progress.each(step.tick)
        times_ns = self.xp.empty(len(index), np.int64)
        times_ns[:] = time_ns
        return Batch(
            rows,
            index,
            tick,
            times_ns,
            self._tick_s,
            self._capture_s,
            True,
            self.noise,
            self.stages.state,
        )
