"""The engine's status as /diagnostics: one status for the engine, one for every input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rig_common.diagnostic_fields import fact, to_values
from rig_common.msgs import Level, Status
from rig_common.quantiles import LogHistogram
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.config import SyncConfig
from sync_engine.cues.mounting import MountingStatus
from sync_engine.state.status import EngineStatus, SensorStatus
from sync_engine.streams.ledger import Counts


@dataclass(frozen=True)
class EngineFacts:
    """The engine as a whole."""

    state: str = fact('state')
    epoch: int = fact('epoch')
    epoch_reason: str = fact('epoch reason')
    bundles: int = fact('bundles')
    window_ms: float = fact('window (ms)', '.2f')
    motion_intensity: float = fact('motion intensity', '.3f')
    imu: str = fact('imu')
    motion_reference: str = fact('motion reference')
    speed_reference: str = fact('speed reference')
    bytes_held: int = fact('bytes held')
    latency_p50_ms: float = fact('latency p50 (ms)', '.3f')
    """Last member received -> bundle published, wall time."""
    latency_p99_ms: float = fact('latency p99 (ms)', '.3f')
    latency_max_ms: float = fact('latency max (ms)', '.3f')


@dataclass(frozen=True)
class InputFacts:
    """One input; offsets are its clock minus the other."""

    rate_hz: float = fact('rate (Hz)', '.2f')
    offset_to_reference_ms: float = fact('offset to reference (ms)', '.4f')
    sigma_to_reference_ms: float = fact('sigma to reference (ms)', '.4f')
    offset_to_host_ms: float = fact('offset to host (ms)', '.4f')
    sigma_to_host_ms: float = fact('sigma to host (ms)', '.4f')
    skew_ppm: float = fact('skew (ppm)', '.2f')
    latency_ms: float = fact('latency (ms)', '.3f')
    offset_state: str = fact('offset state')
    rests_on: str = fact('rests on')
    motion_fixes: int = fact('motion fixes')
    motion_refused: int = fact('motion refused')
    motion_mismatched: int = fact('motion mismatched')
    clock_steps: int = fact('clock steps')
    latency_steps: int = fact('latency steps')
    buffered: int = fact('buffered')
    bytes_held: int = fact('bytes held')
    counts: Counts = field(default_factory=Counts)

    def ledger(self) -> dict[str, int]:
        """Return the messages received and where they went; the parts add up."""
        return {**self.counts.ledger(), 'buffered': self.buffered}


@dataclass(frozen=True)
class MountingFacts:
    """How one input is turned against the IMU; only inputs with a cue have it."""

    source: str = fact('mounting')
    quat_wxyz: str = fact('mounting quaternion (wxyz)')
    axis: str = fact('axis in the IMU frame')
    """Of a yaw-only cue."""
    sigma_deg: float = fact('mounting sigma (deg)', '.2f')
    observable: str = fact('mounting observable')


ENGINE = 'engine'


def statuses(
    status: EngineStatus, config: SyncConfig, latency: LogHistogram, extra: Mapping[str, str]
) -> Iterator[Status]:
    """Yield the diagnostics of the engine; `latency` is last member received -> published."""
    yield _engine(status, config, latency, extra)
    for name, sensor in status.sensors.items():
        yield _sensor(name, sensor, config, status.cue_failures.get(name, ''))


def _engine(
    status: EngineStatus, config: SyncConfig, latency: LogHistogram, extra: Mapping[str, str]
) -> Status:
    silent = [name for name, sensor in status.sensors.items() if sensor.silent]
    waiting = [name for name in config.required_sensors if name in silent]
    facts = EngineFacts(
        state=status.state.value,
        epoch=status.epoch,
        epoch_reason=status.epochs[-1][2] if status.epochs else '',
        bundles=status.bundles,
        window_ms=status.window_ms,
        motion_intensity=status.motion_intensity,
        imu=status.imu,
        motion_reference=status.motion_reference,
        speed_reference=status.speed_reference,
        bytes_held=sum(sensor.bytes_held for sensor in status.sensors.values()),
        latency_p50_ms=latency.quantile_s(0.5) * 1e3,
        latency_p99_ms=latency.quantile_s(0.99) * 1e3,
        latency_max_ms=latency.max_s * 1e3,
    )
    values = {
        **to_values(facts),
        **{f'no bundle: {why}': str(count) for why, count in status.bundles_dropped.items()},
        **extra,
    }
    if waiting or config.reference_sensor_id in silent:
        missing = waiting or [config.reference_sensor_id]
        return Status(Level.ERROR, ENGINE, f'no data from {", ".join(missing)}', values)
    if silent:
        return Status(Level.WARN, ENGINE, f'no data from {", ".join(silent)}', values)
    if status.imu == 'stale':
        return Status(Level.WARN, ENGINE, 'the IMU is stale, the window is at its maximum', values)
    return Status(Level.OK, ENGINE, status.state.value, values)


def _sensor(name: str, sensor: SensorStatus, config: SyncConfig, cue_failure: str) -> Status:
    given = config.inputs[name]
    values = to_values(
        InputFacts(
            rate_hz=sensor.rate_hz,
            offset_to_reference_ms=sensor.offset_to_reference_s * 1e3,
            sigma_to_reference_ms=sensor.sigma_to_reference_s * 1e3,
            offset_to_host_ms=sensor.offset_to_host_s * 1e3,
            sigma_to_host_ms=sensor.sigma_to_host_s * 1e3,
            skew_ppm=sensor.skew_ppm,
            latency_ms=sensor.latency_s * 1e3,
            offset_state=sensor.state.value,
            rests_on=sensor.rests_on,
            motion_fixes=sensor.motion_fixes,
            motion_refused=sensor.motion_refused,
            motion_mismatched=sensor.motion_mismatched,
            clock_steps=sensor.clock_steps,
            latency_steps=sensor.latency_steps,
            buffered=sensor.buffered,
            bytes_held=sensor.bytes_held,
            counts=sensor.counts,
        )
    )
    if sensor.mounting is not None:
        values |= to_values(_mounting(sensor.mounting))
    if cue_failure:
        values['cue failure'] = cue_failure
    if sensor.camera is not None:
        values['focal length (px)'] = f'{sensor.camera.focal_px:.1f}'
        if sensor.camera.readout_s is not None:
            values['readout (ms)'] = f'{sensor.camera.readout_s * 1e3:.2f}'
    if sensor.motion_refusal:
        values['motion refusal'] = sensor.motion_refusal
    level, message = _judged(name, sensor, config)
    return Status(level, name, message, values, given.topic)


def _mounting(mounting: MountingStatus) -> MountingFacts:
    return MountingFacts(
        source=mounting.source.value,
        quat_wxyz=' '.join(f'{value:.4f}' for value in mounting.quat_wxyz),
        axis=' '.join(f'{value:.4f}' for value in mounting.axis_imu or ()),
        sigma_deg=mounting.sigma_deg,
        observable='yes' if mounting.observable else 'no',
    )


def _judged(name: str, sensor: SensorStatus, config: SyncConfig) -> tuple[Level, str]:
    if sensor.silent:
        return Level.WARN, 'silent' if sensor.counts.received else 'never seen'
    if config.estimator == 'none':
        return Level.OK, 'stamps taken as they are'
    if sensor.mounting is not None and sensor.mounting.contradiction:
        return Level.WARN, sensor.mounting.contradiction
    if sensor.camera is not None and sensor.camera.contradiction:
        return Level.WARN, sensor.camera.contradiction
    if sensor.latency_conflict_s:
        return Level.WARN, (
            f'the turns of {name} contradict the declared latencies, its own or that of '
            f'{config.imu_sensor_id}, by {1e3 * sensor.latency_conflict_s:.1f} ms'
        )
    if sensor.state is OffsetState.UNOBSERVABLE:
        return Level.WARN, 'offset unobservable, so it corrects nothing'
    return Level.OK, f'offset {sensor.state.value}'
