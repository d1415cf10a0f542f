"""The result of a rig file's timing keys: latency quantiles, correlation, clock errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from sensor_rig.rigfile import RigConfig
    from sim_sensors.timing.config import TimingConfig
    from sim_sensors.timing.schedule import Schedule
    from sim_sensors.timing.transit import Transit

RUNS, CAPTURES = 20, 300
"""Simulated runs and captures of each that quantiles are taken from."""
MINUTE_S, HOUR_S = 60.0, 3600.0


@dataclass(frozen=True)
class ClockError:
    """Sensor clock minus true time at one moment."""

    mean_s: float
    sigma_s: float
    """Standard deviation over runs; the stamp's own jitter is not in it."""


@dataclass(frozen=True)
class TimingFigures:
    """The timing of one sensor as its readers will see it."""

    latency_p5_s: float
    """From capture to arrival, the capture's own duration included."""
    latency_p50_s: float
    latency_p95_s: float
    latency_p99_s: float
    correlation: float
    """Of the latency with the one before, within a run; nan where it does not change."""
    clock_after_minute: ClockError
    clock_after_hour: ClockError

    def as_json(self) -> dict[str, object]:
        """Return plain values."""
        return asdict(self)


def timing_figures(rig: RigConfig) -> dict[str, TimingFigures]:
    """Return the figures of every simulated sensor, faults left out."""
    from rig_common.times import seconds_to_ns
    from sim_sensors.pipeline.assembly import link_shares, schedules_of
    from sim_sensors.pipeline.stream_traits import stream_of
    from sim_sensors.timing.randomness.random_streams import RandomStreams
    from sim_sensors.timing.transit import Transit

    sensors = rig.make_sensors()
    if not sensors:
        return {}
    schedules = schedules_of(rig.sensors, seconds_to_ns(rig.simulated_world.timestep_s))
    shares = link_shares(sensors, rig.links, schedules)
    found = {}
    for name, sensor in sensors.items():
        stream = stream_of(sensor, schedules[name], shares.get(name), 0)
        transit = Transit(sensor.config, RandomStreams(rig.seed, name, RUNS), stream)
        latency_s = _latencies(transit, schedules[name])
        p5, p50, p95, p99 = np.quantile(latency_s, [0.05, 0.5, 0.95, 0.99]).tolist()
        found[name] = TimingFigures(
            p5,
            p50,
            p95,
            p99,
            _correlation(latency_s),
            clock_error(sensor.config, MINUTE_S),
            clock_error(sensor.config, HOUR_S),
        )
    return found


def _latencies(transit: Transit, schedule: Schedule) -> NDArray[np.float64]:
    from sim_sensors.timing.transit import CaptureNumbers

    envs, rows = np.arange(RUNS), []
    for k in range(CAPTURES):
        index = np.full(RUNS, k)
        times_ns = schedule.times_of(index)
        rows.append(transit.send(CaptureNumbers(envs, index, times_ns)).arrival_ns - times_ns)
    return np.array(rows, float) / 1e9


def _correlation(latency_s: NDArray[np.float64]) -> float:
    centred = latency_s - latency_s.mean(axis=0)
    power = float((centred**2).mean())
    if power < 1e-18:
        return float('nan')
    return float((centred[1:] * centred[:-1]).mean()) / power


def clock_error(config: TimingConfig, time_s: float) -> ClockError:
    """Return the error of a clock `time_s` after the start, before rounding and TAI."""
    from sim_sensors.timing.discipline import warmth_s

    clock = config.clock
    if clock.stamp_at == 'arrival':
        return ClockError(0.0, 0.0)
    if clock.servo.kind == 'ptp' and time_s >= clock.servo.start_s:
        return ClockError(0.0, clock.servo.sigma_s * (2.0 / 3.0) ** 0.5)  # between corrections
    if clock.servo.kind == 'ntp':
        return _simulated_error(config, time_s)
    mean_s = clock.offset_s + clock.drift_ppm * 1e-6 * time_s
    mean_s += float(warmth_s(clock.temperature, np.array([time_s]))[0])
    variance = clock.white_fm**2 * time_s + clock.random_walk_fm**2 * time_s**3 / 3.0
    return ClockError(mean_s, variance**0.5)


def _simulated_error(config: TimingConfig, time_s: float) -> ClockError:
    from sim_sensors.timing.clocks import SensorClock
    from sim_sensors.timing.randomness.random_streams import RandomStreams
    from sim_sensors.timing.schedule import Schedule
    from sim_sensors.timing.transit import CaptureNumbers

    schedule = Schedule(1.0, 1_000_000)
    plain = config.model_copy(
        update={
            'clock': config.clock.model_copy(
                update={
                    'stamp_jitter_s': 0.0,
                    'resolution_s': 0.0,
                    'counter_bits': 0,
                    'tai_utc_s': 0,
                }
            )
        }
    )
    clock = SensorClock(plain, RandomStreams(1, 'clock', 100), schedule)
    index = np.full(100, round(time_s))
    times_ns = schedule.times_of(index)
    captures = CaptureNumbers(np.arange(100), index, times_ns)
    error_s = (clock.stamps(captures, times_ns, 0) - times_ns) / 1e9
    return ClockError(float(error_s.mean()), float(error_s.std()))
