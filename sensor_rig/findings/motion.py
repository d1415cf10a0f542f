"""Stream against stream: clock offsets and rotations as the sync engine estimates them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rig_common.errors import RigError
from rig_common.msgs.catalogue import known
from rig_common.paramfile.reader import parse
from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import (
    FIX_TYPE,
    IMU_TYPE,
    input_names,
    speed_pairs,
    starter_rig,
    usable,
)
from sensor_rig.findings.imu import ImuDelay, ImuMotion
from sensor_rig.findings.kinds import Need, found
from sensor_rig.findings.model import INFO, WARNING, WRONG, Finding, lasting
from sensor_rig.findings.turning import AgreementCurve, Turning
from sensor_rig.rigfile import rig_from_parameters
from sensor_rig.syncing.bag_sync import fitted
from sync_engine.clocks.offset_state import OffsetState
from sync_engine.engine import SyncEngine
from sync_engine.wire.session import WireSync

LOOKED_AT_S = 60.0
"""How much of a recording is read for it."""
VAGUE_S = 0.01
FEWEST_FIXES = 3
"""Times at which motion has to agree; one may be a chance."""
SLOWEST_IMU_HZ = 40.0
"""Rate below which turns cannot be placed in time: a gyro of 10 Hz was 89 ms and 4 sigma off."""
SURE = 4.0
"""An offset with a larger sigma is not said, unless it is this many times as large."""
IMU_SURE = 5.0
"""Sigmas from which on accelerometer and gyro are taken to be apart."""
LEAST_AGREEMENT = 0.3
"""Share of a sensor's turns that the IMU must explain."""
APART_S, APART_SIGMAS = 0.01, 4.0
"""How far the best agreement of the turns may be from the estimate."""
TOLERATED_S, WRONG_S = 0.005, 0.02
"""Offsets that fusion does not notice, and those that spoil it."""


class MotionResult(NamedTuple):
    """What the motion of sensors tells."""

    findings: list[Finding]
    curves: dict[str, AgreementCurve]
    """By topic: how well its turns agree with the IMU's."""
    imus: dict[str, ImuDelay]
    """By topic of an IMU: how late its accelerometer is, where its motion tells."""
    lacks: dict[str, str]
    """By topic: what is missing for its comparison; topics that were compared are not in it."""


def compare_motion(
    bag: BagReader, facts: Sequence[TopicFacts], periods_s: Mapping[str, float]
) -> MotionResult:
    """Return the offset of every stream to the IMU's clock where motion shows it.

    Without an IMU another stream that tells turns takes its place. Also whether the
    accelerometer and the gyro of every IMU are of the same moment.
    """
    topics = usable(facts)
    imus = [topic for topic in topics if topic.type_name == IMU_TYPE]
    lacks = {topic.name: Need.IMU.value for topic in facts if topic.type_name != IMU_TYPE}
    result = MotionResult([], {}, _imu_delays(bag, [topic.name for topic in imus]), lacks)
    lacks.update({each.name: Need.SPEED.value for each in facts if each.type_name == FIX_TYPE})
    if pair := speed_pairs(topics):
        _compare(bag, pair, result, pair[0].name)
    lacks.update({imu.name: Need.TILTING.value for imu in imus if imu.name not in result.imus})
    for name, delay in result.imus.items():
        result.findings.extend(_imu_delay(name, delay))
    period_s = periods_s.get(imus[0].name, 0.0) if imus else 0.0
    if period_s * SLOWEST_IMU_HZ > 1.0:  # between its samples it says nothing
        slow = f'an IMU of {SLOWEST_IMU_HZ:g} Hz or more; {imus[0].name} has {1 / period_s:.3g} Hz'
        lacks.update(
            {each.name: slow for each in topics if each.type_name not in (IMU_TYPE, FIX_TYPE)}
        )
        return result
    if imus or can_be_compared(topics):
        _compare(bag, [each for each in topics if each.type_name != FIX_TYPE], result)
    return result


def _compare(
    bag: BagReader, topics: Sequence[TopicFacts], result: MotionResult, reference: str = ''
) -> None:
    """Add what the motion of some topics says of their clocks; `reference`: by speed with this."""
    lacks = result.lacks
    names = input_names([topic.name for topic in topics])
    try:
        engine, turning = _engine_after(
            bag, starter_rig(topics, str(bag.path)), names.get(reference, '')
        )
    except RigError:
        return  # what cannot be synced at all has been found elsewhere
    imu = next((each for each in topics if names[each.name] == turning.reference), None)
    if imu is None:
        return
    if imu.type_name != IMU_TYPE and not reference:
        lacks.pop(imu.name, None)
    for topic in topics:
        if topic is imu or topic.type_name == IMU_TYPE or topic.shares_stamps_with:
            continue
        name = names[topic.name]
        lacks[topic.name] = _lack(topic, engine, name)
        if lacks[topic.name]:
            continue
        del lacks[topic.name]
        offset = engine.offset(name, to=names[imu.name])
        offset_s = offset.offset_ns / 1e9
        curve = turning.curve(name, offset_s)
        doubt = 'more turns' if curve is None else _doubt(curve, offset_s, offset.sigma_s)
        if doubt:
            lacks[topic.name] = doubt
            continue
        assert curve is not None
        result.findings.extend(_offset(topic, imu, offset_s, offset.sigma_s))
        result.curves[topic.name] = curve


def can_be_compared(facts: Sequence[TopicFacts]) -> bool:
    """Return whether a payload may show turns, and there is an IMU or a second such payload."""
    turning = [
        topic
        for topic in facts
        if known(topic.type_name).cue != 'none' and not topic.shares_stamps_with
    ]
    return len(turning) + any(topic.type_name == IMU_TYPE for topic in facts) > 1


def _doubt(curve: AgreementCurve, offset_s: float, sigma_s: float) -> str:
    """Return why the turns alone do not confirm an estimate, which rests on arrivals too."""
    best = int(np.argmax(curve.agreement))
    if curve.agreement[best] < LEAST_AGREEMENT:
        share = max(float(curve.agreement[best]), 0.0)
        return f'turns that agree: at best {share * 100:.0f} % of its turns are explained'
    apart_s = float(curve.offsets_s[best]) - offset_s
    if abs(apart_s) > max(APART_SIGMAS * sigma_s, APART_S):
        return (
            f'a sharper motion: turns alone say {(offset_s + apart_s) * 1e3:.0f} ms, with '
            f'arrivals it is {offset_s * 1e3:.0f} ms'
        )
    return ''


def _lack(topic: TopicFacts, engine: SyncEngine, name: str) -> str:
    """Return what the comparison of a topic with the IMU lacks; empty for nothing."""
    about = engine.status().sensors.get(name)
    if engine.config.inputs[name].cue == 'none':
        return Need.CUE.value
    if about is None or about.motion_fixes < FEWEST_FIXES:
        why = about.motion_refusal if about is not None else ''
        return f'{Need.MOTION.value}; {why}' if why else Need.MOTION.value
    offset = engine.offset(name, to=engine.config.clock_anchor(name))
    vague = offset.sigma_s > VAGUE_S and abs(offset.offset_ns) / 1e9 < SURE * offset.sigma_s
    if offset.state is OffsetState.UNOBSERVABLE or vague:
        return f'{Need.MOTION.value}: its offset is known to {lasting(offset.sigma_s)} only'
    return ''


def _imu_delays(bag: BagReader, names: list[str]) -> dict[str, ImuDelay]:
    motions = {name: ImuMotion() for name in names}
    end_ns = bag.start_ns + int(LOOKED_AT_S * 1e9)
    for message in bag.messages(names) if names else ():
        if message.receive_ns > end_ns:
            break
        motions[message.topic].add(message.raw)
    found = {name: motion.delay() for name, motion in motions.items()}
    return {name: delay for name, delay in found.items() if delay is not None}


def _imu_delay(name: str, told: ImuDelay) -> Iterator[Finding]:
    delay_s, sigma_s = told.delay_s, told.sigma_s
    if abs(delay_s) < max(TOLERATED_S, IMU_SURE * sigma_s):
        return
    late, other = ('accelerometer', 'gyro') if delay_s > 0.0 else ('gyro', 'accelerometer')
    yield found(
        'imu_delay',
        WRONG if abs(delay_s) > WRONG_S + 3.0 * sigma_s else WARNING,
        (name,),
        f'its {late} is {abs(delay_s) * 1e3:.1f} ms late against its {other}, sigma '
        f'{sigma_s * 1e3:.1f} ms, as gravity shows when it tilts',
        {'delay_ms': delay_s * 1e3, 'sigma_ms': sigma_s * 1e3, 'parts': told.parts},
        change=f'look for a low-pass filter of the {late}, or for samples that are paired with '
        'the next ones',
    )


def _engine_after(bag: BagReader, rig_text: str, speed_of: str) -> tuple[SyncEngine, Turning]:
    """Return the sync engine of a rig file after the first part of the recording.

    Also the turns that it compared, and those of the IMU or of what is in its place; or the speeds
    with that of `speed_of`.
    """
    rig = rig_from_parameters(parse(rig_text).values, Path('inspect'))
    assert rig.sync is not None
    config, names = fitted(rig.sync, bag)
    sync = WireSync(
        config, [name for topic, name in names.items() if not bag.topics[topic].stamped]
    )
    turning = Turning(speed_of or config.turn_reference, is_speed=bool(speed_of))
    sync.engine.on_rotation = turning.add_turn
    end_ns = bag.start_ns + int(LOOKED_AT_S * 1e9)
    for message in bag.messages(list(names)):
        if message.receive_ns > end_ns:
            break
        if names[message.topic] == config.imu_sensor_id:
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
        yield found(
            'stamp_point',
            WRONG,
            name,
            f'stamped {point} of the sweep, {offset_s * 1e3:.1f} ms late against '
            f'{imu.name}, sigma {sigma_s * 1e3:.1f} ms',
            {**evidence, 'sweep_ms': topic.sweep_s * 1e3},
            related=(imu.name,),
            change=f'set stamp_point: {point.split()[-1]}, or stamp the first ray',
            rests_on='motion',
        )
        return
    severity, by = INFO, 'speed' if topic.type_name == FIX_TYPE else 'motion'
    if abs(offset_s) > TOLERATED_S + 3.0 * sigma_s:
        # A fix or an odometry may come out of a filter that is late by itself.
        clear = abs(offset_s) > WRONG_S + 3.0 * sigma_s and by != 'speed'
        severity = WRONG if clear else WARNING
    later = 'late' if offset_s > 0.0 else 'early'
    yield found(
        'clock_offset',
        severity,
        name,
        f'stamped {lasting(offset_s)} {later} against {imu.name}, sigma '
        f'{sigma_s * 1e3:.1f} ms, as their {by} shows',
        evidence,
        related=(imu.name,),
        change='let the sync engine correct it, or set the clocks' if severity else '',
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
