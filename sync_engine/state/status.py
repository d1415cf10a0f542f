"""The engine's state as plain data, for diagnostics, pages and reports."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Protocol

from rig_common.jsonable import JsonObject, jsonable
from rig_common.times import NS_PER_MS, NS_PER_S
from sync_engine.clocks.epochs import Epochs
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.clocks.pairing import PairingOffset
from sync_engine.config import SyncConfig
from sync_engine.cues.image_status import CameraStatus
from sync_engine.cues.mounting import MountingStatus
from sync_engine.cues.runner import CueRunner
from sync_engine.matching.assembly import Assembler
from sync_engine.matching.window import AdaptiveWindow
from sync_engine.state.machine import SyncState
from sync_engine.streams.ledger import Counts
from sync_engine.streams.stream import Stream


@dataclass(slots=True)
class SensorStatus:
    """One stream. Offsets in seconds, sensor clock minus the other."""

    rate_hz: float
    silent: bool
    """Nothing has come for a deadline and two periods, or ever."""
    offset_to_host_s: float
    sigma_to_host_s: float
    offset_to_reference_s: float
    sigma_to_reference_s: float
    skew_ppm: float
    latency_s: float
    state: OffsetState
    rests_on: str
    """What the offset rests on: `rotation`, `speed`, `arrivals`, `declared` (PTP), `trigger`,
    `pairing` or `nothing`."""
    motion_fixes: int
    motion_refused: int
    """Stretches of motion that were not sharp enough to be an observation."""
    motion_mismatched: int
    """Of these, stretches in which the gyro does not explain what the sensor reports."""
    motion_sigma_s: float
    """Sharpness of the last stretch tried (s)."""
    mounting: MountingStatus | None
    """Rotation against the IMU, declared or estimated; None for a sensor without rotations."""
    scale: float
    """Share by which its turns are too large (0.1: a tenth), 0 where they count as right."""
    scale_sigma: float
    motion_refusal: str
    """One sentence on why its turns gave no offset so far; empty where they did, or none came."""
    camera: CameraStatus | None
    """Lens and shutter of a camera, as its pictures show them; None for other sensors."""
    latency_conflict_s: float
    """By how much motion contradicts the declared latencies, its own or the IMU's; else 0."""
    clock_steps: int
    latency_steps: int
    resets: int
    buffered: int
    bytes_held: int
    counts: Counts
    """The ledger's counters."""


@dataclass(slots=True)
class EngineStatus:
    """The whole engine."""

    state: SyncState
    now_ns: int
    epoch: int
    epochs: list[tuple[int, int, str]]
    """The last (epoch, host time it began, reason)."""
    bundles: int
    bundles_dropped: dict[str, int]
    """"<sensor>: <reason>" -> reference frames that got no bundle."""
    window_ms: float
    motion_intensity: float
    motion_reference: str
    """The input that turns are compared with, an IMU or another; empty for none."""
    speed_reference: str
    """The input that speeds are compared with; empty for none."""
    imu: str
    """`none`, `waiting`, `ok` or `stale`."""
    cue_failures: dict[str, str]
    cues_skipped: int
    sensors: dict[str, SensorStatus]

    def as_dict(self) -> JsonObject:
        """Return it as JSON-able values: enums are their names, what is not known is None."""
        plain: JsonObject = jsonable(asdict(self))
        return plain


def engine_status(
    engine: _Engine, streams: dict[str, Stream], assembler: Assembler, cues: CueRunner
) -> EngineStatus:
    """Gather the status of `engine` out of its parts."""
    now_ns = engine.now_ns
    return EngineStatus(
        state=engine.state,
        now_ns=now_ns,
        epoch=engine.epochs.number,
        epochs=list(engine.epochs.recent),
        bundles=assembler.made,
        bundles_dropped={
            f'{sensor_id}: {reason.value}': count
            for (sensor_id, reason), count in assembler.dropped.items()
        },
        window_ms=engine.window.half_width_ns(now_ns) / NS_PER_MS,
        motion_intensity=engine.window.intensity,
        motion_reference=engine.config.turn_reference,
        speed_reference=engine.config.speed_reference,
        imu=_imu_state(engine, now_ns),
        cue_failures=dict(cues.failed),
        cues_skipped=cues.skipped,
        sensors={
            name: _sensor_status(stream, now_ns, assembler, cues)
            for name, stream in streams.items()
        },
    )


class _Engine(Protocol):
    config: SyncConfig
    window: AdaptiveWindow
    epochs: Epochs

    @property
    def now_ns(self) -> int: ...

    @property
    def state(self) -> SyncState: ...


def _imu_state(engine: _Engine, now_ns: int) -> str:
    if not engine.config.imu_sensor_id:
        return 'none'
    if not engine.window.has_seen:
        return 'waiting'
    return 'stale' if engine.window.is_stale(now_ns) else 'ok'


def _rests_on(stream: Stream, cues: CueRunner) -> str:
    if stream.pair_offset is not None:
        return 'pairing' if isinstance(stream.pair_offset, PairingOffset) else 'trigger'
    if stream.clock.filter is None:
        return 'nothing'
    motion = cues.rests_on(stream.sensor_id)
    if motion or stream.clock.filter.motion_count:
        return motion or 'rotation'
    return 'declared' if stream.given.stamp_source == 'ptp' else 'arrivals'


def _sensor_status(
    stream: Stream, now_ns: int, assembler: Assembler, cues: CueRunner
) -> SensorStatus:
    clock, fit = stream.clock, cues.fit_of(stream.sensor_id)
    relative = assembler.clocks.of(stream, now_ns)
    learned = clock.filter
    return SensorStatus(
        rate_hz=stream.arrivals.rate_hz,
        silent=stream.is_silent(now_ns),
        offset_to_host_s=clock.offset_ns(now_ns) / NS_PER_S,
        sigma_to_host_s=clock.host_sigma_s,
        offset_to_reference_s=relative.offset_ns / NS_PER_S,
        sigma_to_reference_s=relative.sigma_s,
        skew_ppm=learned.known().skew * 1e6 if learned else 0.0,
        latency_s=learned.latency_s if learned else stream.given.latency_s,
        state=relative.state,
        rests_on=_rests_on(stream, cues),
        motion_fixes=fit.fits,
        motion_refused=fit.refused,
        motion_mismatched=fit.mismatched,
        motion_sigma_s=fit.last_sigma_s,
        mounting=cues.mounting_of(stream.sensor_id),
        scale=fit.scale,
        scale_sigma=fit.scale_sigma,
        motion_refusal=cues.refusal_of(stream.sensor_id),
        camera=cues.camera_of(stream.sensor_id),
        latency_conflict_s=learned.conflict_s if learned else 0.0,
        clock_steps=clock.clock_steps,
        latency_steps=clock.latency_steps,
        resets=clock.resets,
        buffered=stream.held,
        bytes_held=stream.buffer.nbytes,
        counts=replace(stream.counts),
    )
