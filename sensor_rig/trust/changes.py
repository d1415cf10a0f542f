"""Known changes of a recording that an estimate has to follow, find or refuse.

A change is made to one sensor's stamps or messages, or to the IMU's rates; what the estimate
should do about it is known exactly, without knowing the truth of the recording.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from rig_common.arrays import Floats, Ints
from rig_common.times import NS_PER_MS, NS_PER_S
from sensor_rig.trust.streams import Streams

STEP_AT = 0.6
"""Where in the recording a clock steps, as a share of its length."""
_GYRO_NOISE_RAD_S = 0.003
"""What a gyro shows of a robot that stands."""


class Wanted(str, Enum):
    """What the estimate should do."""

    FOLLOW = 'follow'
    STEP = 'step'
    """Follow, and report one clock step more than without the change."""
    REFUSE = 'refuse'
    """Not be locked on something that is wrong."""


@dataclass(frozen=True)
class Change:
    """One change and what is wanted of the estimate."""

    name: str
    wanted: Wanted
    apply: Callable[[Streams], Streams]
    injected: Callable[[Ints, Streams], Ints]
    """(host times [n], streams) -> what the offset changed by there (ns)."""


def changes_of(streams: Streams) -> list[Change]:
    """Return the changes that a recording is scored with."""
    return [
        _offset('stamps 37 ms ahead', 37 * NS_PER_MS),
        _offset('stamps 112 ms behind', -112 * NS_PER_MS),
        _drift('clock 40 ppm fast', 40e-6),
        _step('clock steps by 60 ms', 60 * NS_PER_MS),
        _step('clock steps by -35 ms', -35 * NS_PER_MS),
        Change('30 % of the messages lost', Wanted.FOLLOW, _thinned, _nothing),
        Change('motion removed', Wanted.REFUSE, _stilled, _nothing),
        Change('gyro replaced by noise', Wanted.REFUSE, _scrambled, _nothing),
    ]


def _nothing(times_ns: Ints, streams: Streams) -> Ints:
    return np.zeros_like(times_ns)


def _offset(name: str, size_ns: int) -> Change:
    def same(times_ns: Ints) -> Ints:
        return np.full_like(times_ns, size_ns)

    return Change(
        name,
        Wanted.FOLLOW,
        lambda streams: streams.with_stamps(same),
        lambda times_ns, streams: same(times_ns),
    )


def _drift(name: str, rate: float) -> Change:
    def apply(streams: Streams) -> Streams:
        first_ns = int(streams.stamp_ns[~streams.is_imu][0])
        return streams.with_stamps(lambda stamps: _grown(stamps - first_ns, rate))

    def injected(times_ns: Ints, streams: Streams) -> Ints:
        first_ns = int(streams.arrival_ns[~streams.is_imu][0])
        return _grown(times_ns - first_ns, rate)

    return Change(name, Wanted.FOLLOW, apply, injected)


def _grown(elapsed_ns: Ints, rate: float) -> Ints:
    grown: Ints = np.rint(elapsed_ns * rate).astype(np.int64)
    return grown


def step_ns_of(streams: Streams) -> int:
    """Return the arrival of the first message after the clock stepped."""
    arrivals = streams.arrival_ns[~streams.is_imu]
    return int(arrivals[int(STEP_AT * len(arrivals))])


def _step(name: str, size_ns: int) -> Change:
    def apply(streams: Streams) -> Streams:
        own = ~streams.is_imu
        first_ns = int(streams.stamp_ns[own][int(STEP_AT * np.count_nonzero(own))])
        return streams.with_stamps(
            lambda stamps: np.where(stamps >= first_ns, size_ns, 0).astype(np.int64)
        )

    def injected(times_ns: Ints, streams: Streams) -> Ints:
        return np.where(times_ns >= step_ns_of(streams), size_ns, 0).astype(np.int64)

    return Change(name, Wanted.STEP, apply, injected)


def _thinned(streams: Streams) -> Streams:
    drawn = np.random.default_rng(11).random(len(streams.is_imu))
    return streams.without((drawn < 0.3) & ~streams.is_imu)


def _stilled(streams: Streams) -> Streams:
    """Nothing turns: gyro and turns show their noise alone."""
    rng = np.random.default_rng(12)
    gyro = rng.normal(0.0, _GYRO_NOISE_RAD_S, streams.gyro.shape)
    turns = tuple(
        (index, replace(turn, values_rad=tuple(rng.normal(0.0, np.sqrt(turn.variances)).tolist())))
        for index, turn in streams.turns
    )
    return replace(streams, gyro=gyro, turns=turns)


def _scrambled(streams: Streams) -> Streams:
    """The gyro is noise of its own size, and knows nothing of the sensor's turns."""
    rng = np.random.default_rng(13)
    size: Floats = np.std(streams.gyro[streams.is_imu], axis=0) + _GYRO_NOISE_RAD_S
    return replace(streams, gyro=rng.normal(0.0, 1.0, streams.gyro.shape) * size)


def settled_from_ns(streams: Streams) -> int:
    """Return the host time from which an estimate is scored: a third of it, 20 s at most."""
    return streams.start_ns + round(min(20.0, streams.duration_s / 3.0) * NS_PER_S)
