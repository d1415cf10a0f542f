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
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common.errors import RigError
from rig_common.paramfile import flatten
from sim_sensors.config import SensorConfig
from sim_sensors.pipeline.columns import listed
from sim_sensors.pipeline.faults import HEALTHY, Faults
from sim_sensors.pipeline.imperfections import ReadoutErrors
from sim_sensors.pipeline.interpolation import Interpolator
from sim_sensors.pipeline.layout import Array
from sim_sensors.pipeline.link import LinkShare
from sim_sensors.pipeline.progress import Progress
from sim_sensors.pipeline.readout import Reading, Readout
from sim_sensors.pipeline.rings import ALL, Rows
from sim_sensors.pipeline.stages import Stages, rows_of
from sim_sensors.pipeline.transit import CaptureFate, InFlight, Transit
from sim_sensors.pipeline.wiring import stream_of
from sim_sensors.randomness.noise import NoiseSource
from sim_sensors.sensors.base import Batch, Sample, Sensor
from sim_sensors.timekeeping.schedule import Schedule
from sim_sensors.timing_config import FaultConfig

Envs = Sequence[int] | NDArray[np.intp] | NDArray[np.bool_] | slice | None
"""Environments by number, by a mask [num_envs] or by a slice; None is all of them."""
Supplier = Callable[[NDArray[np.intp], Array], None]
"""`supplier(envs, out)` writes the present truth of `envs` into `out` [len(envs), width]."""

FIXED_KEYS: tuple[str, ...] = (
    'type', 'mount', 'rate_hz', 'phase_s', 'truth_rate_hz', 'trigger', 'trigger_delay_s',
    'delay_backend', 'interpolation', 'history_length', 'frame_id', 'link', 'size_bytes')
"""What cannot change while a rig runs."""


class Pipeline:
    """One sensor in `num_envs` environments.

    Drive it either way, never both: `update(now)` at every physics step with a `supplier` of truth
    (lazy where nothing needs every capture), or `tick(envs, time, rows)` with truth that came from
    elsewhere (a topic, a sweep that is complete). Then `read()`, or `due(now)` for messages.
    """

    def __init__(self, sensor: Sensor[Any], num_envs: int = 1, *, seed: int, dt_ns: int,
                 schedule: Schedule | None = None, supplier: Supplier | None = None,
                 messages: bool = False, arrays: bool = True, episode: int = 0,
                 link: LinkShare | None = None, start_ns: int = 0) -> None:
        """Make the pipeline of `sensor`, as it is at the start of `episode`.

        `schedule` is given for triggered sensors; `messages` keeps samples for `due`, `arrays` for
        `read`; `link` is the line that its messages share with other sensors', `start_ns` what
        stamps count the start of the run as.
        """
        self.config = config = sensor.config
        self.sensor, self.num_envs = sensor, num_envs
        self.schedule = schedule or Schedule.of(sensor.name, config, dt_ns)
        self.ticks = sensor.truth_ticks(self.schedule)
        """When truth is needed: at captures, or more often for a stateful response."""
        self._tick_s, self._capture_s = self.ticks.period_s, self.schedule.period_s
        self.noise = NoiseSource(seed, sensor.name, num_envs, ReadoutErrors(config),
                                 sensor.truth_layout.dtype, episode)
        self.stages = Stages(sensor, num_envs)
        self.transit = Transit(config, self.noise,
                               stream_of(sensor, self.schedule, link, start_ns))
        self.faults = self.transit.faults = Faults(config.faults.values())
        self.in_flight = InFlight() if messages else None
        self.watched = False
        """Set by whoever looks on (a page, a viewer): capture on schedule while it is true."""
        self._readout = self._make_readout() if arrays else None
        self.supplier = supplier
        """Where `update` and `read` get truth from; may also be set after making."""
        self._envs = np.arange(num_envs)
        self.progress = Progress(self.schedule, self.ticks, num_envs)
        """How far each environment is."""
        self._now_ns = 0
        self._injected: list[FaultConfig] = []
        self._least_ns = self.transit.latency_ns.copy()
        self._most_ns = self._least_ns + self.transit.spread_ns
        self._plan()

    # ---- time passes --------------------------------------------------------------------------

    def update(self, now_ns: int) -> None:
        """Let time be `now_ns`; capture now if this sensor must not skip captures."""
        self._now_ns = now_ns
        if now_ns >= self.progress.next_ns and (self._every or self.watched):
            self._compute_outdated(ALL)

    @property
    def outdated(self) -> NDArray[np.bool_]:
        """Environments whose next tick is due and not computed, [num_envs]."""
        return self.progress.outdated(ALL, self._now_ns)

    def _compute_outdated(self, envs: Rows) -> None:
        if self.supplier is None:
            return
        if isinstance(envs, slice) and self.progress.is_together:
            if self.progress.is_due(self._now_ns):
                rows = self.sensor.truth_layout.empty(self.num_envs)
                self.supplier(self._envs, rows)
                self.tick(None, self._now_ns, rows)
            return
        stale = self.progress.outdated(envs, self._now_ns)
        if not stale.any():
            return
        chosen = self._envs[envs][stale]
        if not isinstance(envs, slice):
            chosen = np.unique(chosen)  # whoever asks twice for one gets it twice, computed once
        rows = self.sensor.truth_layout.empty(len(chosen))
        self.supplier(chosen, rows)
        self.tick(chosen, self._now_ns, rows)

    def tick(self, envs: Envs, time_ns: int, truth: Array) -> None:
        """Take the truth rows [n, width] of `envs` at `time_ns`; they are not kept or changed."""
        rows = self._rows(envs)
        self._now_ns = max(self._now_ns, time_ns)
        step = self.progress.advance(rows, time_ns)
        batch = self._batch(rows, step.capture, step.tick, time_ns)
        clean, sensed = self.stages.sense(truth, batch)
        if step.captured:
            self._capture(batch, clean, sensed, time_ns)
        elif step.captured is None:
            chosen = step.capture >= 0
            part = rows_of(batch, chosen, self._envs)
            self._capture(part, clean[chosen], sensed[chosen], time_ns)

    def _capture(self, batch: Batch, clean: Array, sensed: Array, time_ns: int) -> None:
        """Measure, and send what was measured on its way."""
        condition = self.faults.at(time_ns) if self.faults else HEALTHY
        values, truth = self.stages.measure(clean, sensed, batch, condition)
        passage = self.transit.send(batch, condition)
        if self._readout is not None:
            self._readout.push(batch, values, truth, passage)
        if self.in_flight is not None:
            times = zip(self._envs[batch.envs].tolist(), batch.index.tolist(),
                        batch.time_ns.tolist(), listed(passage.stamp_ns),
                        listed(passage.arrival_ns), strict=True)
            for row, (env, index, capture_ns, stamp_ns, arrival_ns) in enumerate(times):
                if passage.lost is None or not passage.lost[row]:
                    sample = Sample(self.sensor.name, env, index, capture_ns, stamp_ns,
                                    arrival_ns, values[row].copy(), truth[row].copy())
                    self.in_flight.add(sample)
                    if passage.twice is not None and passage.twice[row]:
                        self.transit.counts[CaptureFate.DUPLICATED] += 1
                        self.in_flight.add(replace(sample))

    # ---- reading --------------------------------------------------------------------------------

    def due(self, now_ns: int) -> list[Sample]:
        """Take out the samples that have arrived by `now_ns`, in order of arrival, each once."""
        if self.in_flight is None:
            raise ValueError('this pipeline was made without messages=True')
        samples = self.in_flight.due(now_ns)
        self.transit.counts[CaptureFate.DELIVERED] += len(samples)
        return samples

    def read(self, now_ns: int | None = None, envs: Envs = None,
             history_length: int | None = None) -> Reading:
        """Return the newest sample that has arrived by `now_ns` (by default the present).

        `history_length` N gives [n, N, width]: entry i is the sample i captures before entry 0,
        or, where that one was lost or is not here yet, the newest before it. Two reads at one time
        are equal.
        """
        now_ns = self._now_ns if now_ns is None else now_ns
        rows, readout = self._ready(envs, history_length)
        sent_ns = now_ns - self._lag_ns[rows]
        if self.faults and self.config.interpolation != 'zoh':
            sent_ns -= self.faults.at(now_ns).latency_ns
        return readout.measured(rows, sent_ns, now_ns, history_length)

    def read_ground_truth(self, envs: Envs = None, history_length: int | None = None) -> Reading:
        """Return the newest capture without noise, delay or loss; history as in `read`."""
        rows, readout = self._ready(envs, history_length)
        return readout.truth(rows, history_length)

    def _ready(self, envs: Envs, history: int | None) -> tuple[Rows, Readout]:
        """Compute what is outdated among `envs` and return what to read from."""
        if self._readout is None:
            raise ValueError('this pipeline was made without arrays=True')
        most = max(self.config.history_length, 1)
        if history is not None and not 1 <= history <= most:
            raise RigError(f'{self.sensor.name!r} was asked for a history of {history}; its '
                           f'history_length allows 1 to {most}')
        rows = self._rows(envs)
        self._compute_outdated(rows)
        return rows, self._readout

    # ---- resets and changes at run time -----------------------------------------------------

    def reset(self, env_ids: Envs = None, time_ns: int | None = None) -> None:
        """Begin a new episode of `env_ids` at `time_ns` (by default the present).

        Reset the world first: sensors that capture on schedule take their first sample at once.
        """
        rows = self._rows(env_ids)
        if time_ns is not None:
            self._now_ns = time_ns
        if not len(self._envs[rows]):
            return
        self.noise.reset(rows)
        self.noise.readout_errors.reset(rows)
        self.stages.reset(rows)
        self.transit.reset(rows)
        self._least_ns[rows] = self.transit.latency_ns[rows]
        self._most_ns[rows] = self._least_ns[rows] + self.transit.spread_ns
        if self._readout is not None:
            self._readout.reset(rows)
        if self.in_flight is not None:
            flushed = self.in_flight.flush(set(self._envs[rows].tolist()))
            self.transit.counts[CaptureFate.FLUSHED] += flushed
        self.progress.reset(rows, self._now_ns)
        self._plan()
        self.update(self._now_ns)

    def reconfigure(self, config: SensorConfig) -> None:
        """Take delay, jitter, noise, clock, loss and the sensor's own keys from the next capture.

        What is on its way keeps the times it has.
        """
        self._check_change(config)
        self.noise.readout_errors.reconfigure(config, self.noise, self.progress.last_captures())
        self.sensor = self.stages.sensor = type(self.sensor)(self.sensor.name, config)
        self.transit.take(config)
        latency_ns = self.transit.latency_ns
        np.minimum(self._least_ns, latency_ns, out=self._least_ns)
        np.maximum(self._most_ns, latency_ns + self.transit.spread_ns, out=self._most_ns)
        self.config = config
        self.faults = self.transit.faults = Faults([*config.faults.values(), *self._injected])
        self._plan()

    def _check_change(self, config: SensorConfig) -> None:
        fixed = FIXED_KEYS
        if config.delay_backend == 'mujoco':
            fixed += ('delay_range_s', 'jitter_s', 'latency', 'order')
        for key in fixed:
            if getattr(config, key) != getattr(self.config, key):
                raise RigError(f'{key} of {self.sensor.name!r} cannot change while it runs')
        check_interpolation(self.sensor, config)
        new = type(self.sensor)(self.sensor.name, config)
        for fact in ('truth_layout', 'return_layout', 'stateful', 'fine_truth', 'duration_ns'):
            if getattr(new, fact) != getattr(self.sensor, fact):
                raise RigError(f'{self.sensor.name!r} cannot take '
                               f'{" and ".join(_changes(self.config, config))} while it runs; '
                               f'write it into the rig file and start again')

    def inject(self, fault: FaultConfig) -> None:
        """Add a fault while running."""
        self._injected.append(fault)
        self.faults.add(fault)
        self._plan()

    @property
    def counts(self) -> Counter[CaptureFate]:
        """What became of the captures so far."""
        return self.transit.counts

    # ---- bookkeeping --------------------------------------------------------------------------

    def _make_readout(self) -> Readout:
        config, layout = self.config, self.sensor.return_layout
        check_interpolation(self.sensor, config)
        interpolator = (None if config.interpolation == 'zoh' else
                        Interpolator(config.interpolation, layout, self.sensor.name))
        return Readout(self.schedule, layout, self.num_envs, config.history_length, interpolator)

    def _plan(self) -> None:
        """Derive from config and faults what must be kept and what may be skipped."""
        config, transit, slow_ns = self.config, self.transit, self.faults.most_latency_ns
        spread_ns = int((self._most_ns - self._least_ns).max()) + slow_ns
        latency_ns = max(int(self._most_ns.max()), transit.most_latency_ns) + slow_ns
        irregular = bool(spread_ns or self.faults or not transit.is_regular)
        # interpolation is for a line of one latency: the present one, for what is under way too
        least_ns = self._least_ns if config.interpolation == 'zoh' else transit.latency_ns
        self._lag_ns = self.progress.origin_ns + least_ns
        self._every = bool(config.eager or self.sensor.stateful or config.history_length
                           or latency_ns or irregular or self.in_flight is not None)
        """Whether every capture is made, read or not."""
        if self.faults.has('stuck'):
            self.stages.keep_last()
        if self._readout is not None:
            spread = self.schedule.captures_in(spread_ns) if irregular else 0
            slots = 1
            if self._every:
                slots += max(config.history_length, 1) + spread
                slots += self.schedule.captures_in(latency_ns) if latency_ns else 0
            self._readout.plan(slots, spread, self._every)

    def _rows(self, envs: Envs) -> Rows:
        if envs is None or (isinstance(envs, slice) and envs == ALL):
            return ALL
        ids = self._envs[envs] if isinstance(envs, slice) else np.asarray(envs)
        ids = ids.nonzero()[0] if ids.dtype == np.bool_ else ids.astype(np.intp, copy=False)
        return ALL if len(ids) == self.num_envs and (ids == self._envs).all() else ids

    def _batch(self, rows: Rows, index: NDArray[np.int64], tick: NDArray[np.int64],
               time_ns: int) -> Batch:
        times_ns = np.empty(len(index), np.int64)
        times_ns.fill(time_ns)
        return Batch(rows, index, tick, times_ns, self._tick_s, self._capture_s, True, self.noise,
                     self.stages.state)


def check_interpolation(sensor: Sensor[Any], config: SensorConfig) -> None:
    """Refuse jitter where reads are interpolated: there is no one time to interpolate at."""
    if config.interpolation == 'zoh':
        return
    for key, given in (('jitter_s', config.jitter_s), ('link', config.link),
                       ('latency.model', config.latency.model != 'delay'),
                       ('latency.stalls', config.latency.stalls.probability)):
        if given:
            raise RigError(f'{sensor.name!r} has {key} and interpolation {config.interpolation}; '
                           'only zoh knows latencies that change from sample to sample')


def _changes(old: SensorConfig, new: SensorConfig) -> list[str]:
    """Return `key value` of every key of the rig file in which two configs differ."""
    before, after = flatten(old.model_dump()), flatten(new.model_dump())
    return [f'{key} {value}' for key, value in after.items() if before.get(key) != value]
