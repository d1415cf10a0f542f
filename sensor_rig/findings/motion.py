"""Stream against stream: clock offsets and rotations as the sync engine estimates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rig_common.errors import RigError
from rig_common.paramfile.reader import parse
from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import IMU_TYPE, input_names, starter_rig, usable
from sensor_rig.findings.imu import ImuDelay, ImuMotion
from sensor_rig.findings.model import Finding, Severity
from sensor_rig.findings.turning import AgreementCurve, Turning
from sensor_rig.rigfile import rig_from_parameters
from sensor_rig.syncing.bag_sync import fitted
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.engine import SyncEngine
from sync_engine.wire.session import WireSync

INFO, WARNING, WRONG = Severity.INFO, Severity.WARNING, Severity.WRONG
LOOKED_AT_S = 60.0
"""How much of a recording is read for it."""
VAGUE_S = 0.01
FEWEST_FIXES = 3
"""Times at which motion has to agree; one may be a chance."""
SURE = 4.0
"""An offset with a larger sigma is not said, unless it is this many times as large."""
IMU_SURE = 5.0
"""Sigmas from which on accelerometer and gyro are taken to be apart."""
TOLERATED_S, WRONG_S = 0.005, 0.02
"""Offsets that fusion does not notice, and those that spoil it."""


class MotionResult(NamedTuple):
    """What the motion of sensors tells."""

    findings: list[Finding]
    curves: dict[str, AgreementCurve]
    """By topic: how well its turns agree with the IMU's."""
    imus: dict[str, ImuDelay]
    """By topic of an IMU: how late its accelerometer is, where its motion tells."""


def compare_motion(bag: BagReader, facts: Sequence[TopicFacts]) -> MotionResult:
    """Return the offset of every stream to the IMU's clock where motion shows it.

    And whether the accelerometer and the gyro of every IMU are of the same moment.
    """
    topics = usable(facts)
    imus = [topic for topic in topics if topic.type_name == IMU_TYPE]
    result = MotionResult([], {}, _imu_delays(bag, [topic.name for topic in imus]))
    for name, delay in result.imus.items():
        result.findings.extend(_imu_delay(name, delay))
    if not imus:
        return result
    imu = imus[0]
    names = input_names([topic.name for topic in topics])
    try:
        engine, turning = _engine_after(bag, starter_rig(facts, str(bag.path)), imu.name)
    except RigError:
        return result  # what cannot be synced at all has been found elsewhere
    sensors = engine.status().sensors
    for topic in topics:
        about = sensors.get(names[topic.name])
        if (
            about is None
            or topic is imu
            or topic.shares_stamps_with
            or about.motion_fixes < FEWEST_FIXES
        ):
            continue
        offset = engine.offset(names[topic.name], to=names[imu.name])
        offset_s = offset.offset_ns / 1e9
        if offset.state is OffsetState.UNOBSERVABLE or (
            offset.sigma_s > VAGUE_S and abs(offset_s) < SURE * offset.sigma_s
        ):
            continue
        result.findings.extend(_offset(topic, imu, offset_s, offset.sigma_s))
        curve = turning.curve(names[topic.name], offset_s)
        if curve is not None:
            result.curves[topic.name] = curve
    return result


def _imu_delays(bag: BagReader, names: list[str]) -> dict[str, ImuDelay]:
    motions = {name: ImuMotion() for name in names}
    end_ns = bag.start_ns + int(LOOKED_AT_S * 1e9)
    for message in bag.messages(names) if names else ():
        if message.receive_ns > end_ns:
            break
        motions[message.topic].add(message.raw)
    found = {name: motion.delay() for name, motion in motions.items()}
    return {name: delay for name, delay in found.items() if delay is not None}


def _imu_delay(name: str, found: ImuDelay) -> Iterator[Finding]:
    delay_s, sigma_s = found.delay_s, found.sigma_s
    if abs(delay_s) < max(TOLERATED_S, IMU_SURE * sigma_s):
        return
    late, other = ('accelerometer', 'gyro') if delay_s > 0.0 else ('gyro', 'accelerometer')
    yield Finding(
        'imu_delay',
        WRONG if abs(delay_s) > WRONG_S + 3.0 * sigma_s else WARNING,
        (name,),
        f'its {late} is {abs(delay_s) * 1e3:.1f} ms late against its {other}, sigma '
        f'{sigma_s * 1e3:.1f} ms, as gravity shows when it tilts',
        'rotation and gravity are taken at different moments: roll and pitch are off '
        'while it turns',
        f'look for a low-pass filter of the {late}, or for samples that are paired with '
        'the next ones',
        {'delay_ms': delay_s * 1e3, 'sigma_ms': sigma_s * 1e3, 'parts': found.parts},
    )


def _engine_after(bag: BagReader, rig_text: str, imu: str) -> tuple[SyncEngine, Turning]:
    """Return the sync engine of a rig file after the first part of the recording.

    Also the turns that it compared with those of the topic `imu`.
    """
    rig = rig_from_parameters(parse(rig_text).values, Path('inspect'))
    assert rig.sync is not None
    config, names = fitted(rig.sync, bag)
    sync = WireSync(
        config, [name for topic, name in names.items() if not bag.topics[topic].stamped]
    )
    turning = Turning()
    sync.engine.on_rotation = turning.add_turn
    end_ns = bag.start_ns + int(LOOKED_AT_S * 1e9)
    for message in bag.messages(list(names)):
        if message.receive_ns > end_ns:
            break
        if message.topic == imu:
            turning.add_imu(message.raw)
        for _ in sync.advance([(names[message.topic], message.raw)], message.receive_ns):
            pass  # the clocks are wanted, not the bundles
    return sync.engine, turning


def _offset(
    topic: TopicFacts, imu: TopicFacts, offset_s: float, sigma_s: float
) -> Iterator[Finding]:
    evidence = {'offset_ms': offset_s * 1e3, 'sigma_ms': sigma_s * 1e3}
    name = (topic.name,)
    point = _point_of_sweep(offset_s, sigma_s, topic.sweep_s)
    if point:
        yield Finding(
            'stamp_point',
            WRONG,
            name,
            f'stamped {point} of the sweep, {offset_s * 1e3:.1f} ms late against '
            f'{imu.name}, sigma {sigma_s * 1e3:.1f} ms',
            'who takes the stamp for the first ray is that late',
            f'set stamp_point: {point.split()[-1]}, or stamp the first ray',
            {**evidence, 'sweep_ms': topic.sweep_s * 1e3},
        )
        return
    severity = INFO
    if abs(offset_s) > TOLERATED_S + 3.0 * sigma_s:
        severity = WRONG if abs(offset_s) > WRONG_S + 3.0 * sigma_s else WARNING
    later = 'late' if offset_s > 0.0 else 'early'
    yield Finding(
        'clock_offset',
        severity,
        name,
        f'stamped {abs(offset_s) * 1e3:.1f} ms {later} against {imu.name}, sigma '
        f'{sigma_s * 1e3:.1f} ms, as their motion shows',
        'turns and points of the two are put together at different times',
        'let the sync engine correct it, or set the clocks' if severity else '',
        evidence,
    )


def _point_of_sweep(offset_s: float, sigma_s: float, sweep_s: float) -> str:
    """Return which point of a sweep stamps of this offset tell; empty where they tell none."""
    if sweep_s:
        slack_s = max(3.0 * sigma_s, 0.03 * sweep_s)
        if abs(offset_s - sweep_s) < slack_s:
            return 'at the end'
        if abs(offset_s - sweep_s / 2.0) < slack_s:
            return 'in the middle'
    return ''
