"""The engine's status as /diagnostics: one status for the engine, one for every input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rig_common.msgs import Level, Status
from rig_common.quantiles import LogHistogram
from sync_engine.bundle import OffsetState
from sync_engine.config import SyncConfig
from sync_engine.status import EngineStatus, SensorStatus


def statuses(status: EngineStatus, config: SyncConfig, latency: LogHistogram,
             extra: Mapping[str, str]) -> Iterator[Status]:
    """Yield the diagnostics of the engine; `latency` is last member received -> published."""
    yield _engine(status, config, latency, extra)
    for name, sensor in status.sensors.items():
        yield _sensor(name, sensor, config, status.cue_failures.get(name, ''))


def _engine(status: EngineStatus, config: SyncConfig, latency: LogHistogram,
            extra: Mapping[str, str]) -> Status:
    silent = [name for name, sensor in status.sensors.items() if sensor.silent]
    waiting = [name for name in config.required_sensors if name in silent]
    values = {
        'state': status.state.value,
        'epoch': str(status.epoch),
        'epoch reason': status.epochs[-1][2] if status.epochs else '',
        'bundles': str(status.bundles),
        'window (ms)': f'{status.window_ms:.2f}',
        'motion intensity': f'{status.motion_intensity:.3f}',
        'imu': status.imu,
        'bytes held': str(sum(sensor.bytes_held for sensor in status.sensors.values())),
        'latency p50 (ms)': f'{latency.quantile_s(0.5) * 1e3:.3f}',
        'latency p99 (ms)': f'{latency.quantile_s(0.99) * 1e3:.3f}',
        'latency max (ms)': f'{latency.max_s * 1e3:.3f}',
        **{f'no bundle: {why}': str(count) for why, count in status.bundles_dropped.items()},
        **extra,
    }
    if waiting or config.reference_sensor_id in silent:
        missing = waiting or [config.reference_sensor_id]
        return Status(Level.ERROR, 'sync: engine', f'no data from {", ".join(missing)}', values)
    if silent:
        return Status(Level.WARN, 'sync: engine', f'no data from {", ".join(silent)}', values)
    if status.imu == 'stale':
        return Status(Level.WARN, 'sync: engine', 'the IMU is stale, the window is at its '
                                                  'maximum', values)
    return Status(Level.OK, 'sync: engine', status.state.value, values)


def _sensor(name: str, sensor: SensorStatus, config: SyncConfig, cue_failure: str) -> Status:
    given = config.inputs[name]
    values = {
        'rate (Hz)': f'{sensor.rate_hz:.2f}',
        'offset to reference (ms)': f'{sensor.offset_to_reference_s * 1e3:.4f}',
        'sigma to reference (ms)': f'{sensor.sigma_to_reference_s * 1e3:.4f}',
        'offset to host (ms)': f'{sensor.offset_to_host_s * 1e3:.4f}',
        'sigma to host (ms)': f'{sensor.sigma_to_host_s * 1e3:.4f}',
        'skew (ppm)': f'{sensor.skew_ppm:.2f}',
        'latency (ms)': f'{sensor.latency_s * 1e3:.3f}',
        'offset state': sensor.state.value,
        'observability': sensor.observability,
        'motion fixes': str(sensor.motion_fixes),
        'motion refused': str(sensor.motion_refused),
        'clock steps': str(sensor.clock_steps),
        'latency steps': str(sensor.latency_steps),
        'buffered': str(sensor.buffered),
        'bytes held': str(sensor.bytes_held),
        **{name: str(count) for name, count in sensor.counts.items()},
    }
    if cue_failure:
        values['cue failure'] = cue_failure
    level, message = _judged(sensor, config)
    return Status(level, f'sync: {name}', message, values, given.topic)


def _judged(sensor: SensorStatus, config: SyncConfig) -> tuple[Level, str]:
    if sensor.silent:
        return Level.WARN, 'silent' if sensor.counts['received'] else 'never seen'
    if config.estimator == 'none':
        return Level.OK, 'stamps taken as they are'
    if sensor.state is OffsetState.UNOBSERVABLE:
        return Level.WARN, 'offset unobservable, so it corrects nothing'
    return Level.OK, f'offset {sensor.state.value}'
