"""One sensor and the IMU of a recording, as the engine sees them: stamps, arrivals and turns.

Without an IMU another stream takes its place, with the mean rates of its turns. For a sensor whose
speed is compared it is the stream with the reference's speed, and "gyro" is its velocity (m/s).

The cues run once, over the recording as it is. What they found is then replayed as often as a test
needs it, with other stamps or fewer messages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rig_common.arrays import Floats, Ints
from rig_common.cdr import CdrError
from rig_common.errors import RigError
from rig_common.msgs.decode import read_imu
from rig_common.times import NS_PER_S
from sensor_rig.bags.reader import BagReader
from sensor_rig.syncing.bag_sync import fitted
from sync_engine.config import TELLS_TURNS, InputConfig, SyncConfig
from sync_engine.cues.motion import Rotation
from sync_engine.wire.session import WireSync

Shift = Callable[[Ints], Ints]
"""Stamps [n] (ns) -> what is added to each (ns)."""

_LONGEST_NS = NS_PER_S // 2
"""Turns over longer gaps are not known."""


@dataclass(frozen=True)
class Streams:
    """A sensor with a cue, and the IMU or what is in its place. By message in order of arrival."""

    sensor: str
    imu: str
    config: SyncConfig
    """Of these two inputs; its cue is off, because the turns are handed over."""
    is_imu: NDArray[np.bool_]
    arrival_ns: Ints
    stamp_ns: Ints
    rate_ns: Ints
    """Stamp of the rate: the message's, or the middle of a turn."""
    gyro: Floats
    """[n, 3] (rad/s); zeros where the message is the sensor's."""
    turns: tuple[tuple[int, Rotation], ...]
    """(index of the message that completed it, turn in the sensor's frame and clock)."""

    @property
    def start_ns(self) -> int:
        """Arrival of the first message."""
        return int(self.arrival_ns[0]) if len(self.arrival_ns) else 0

    @property
    def duration_s(self) -> float:
        """Time from the first arrival to the last (s)."""
        return float(self.arrival_ns[-1] - self.arrival_ns[0]) / NS_PER_S

    def with_stamps(self, shift: Shift) -> Streams:
        """Return the streams with the sensor's clock changed by `shift`."""
        stamps = self.stamp_ns.copy()
        own = ~self.is_imu
        stamps[own] += shift(stamps[own])
        if not self.turns:
            return replace(self, stamp_ns=stamps)
        ends = np.array([(turn.stamp_from_ns, turn.stamp_to_ns) for _, turn in self.turns])
        moved = (ends + shift(ends.ravel()).reshape(ends.shape)).tolist()
        turns = tuple(
            (index, replace(turn, stamp_from_ns=start, stamp_to_ns=end))
            for (index, turn), (start, end) in zip(self.turns, moved, strict=True)
        )
        return replace(self, stamp_ns=stamps, turns=turns)

    def without(self, lost: NDArray[np.bool_]) -> Streams:
        """Return the streams without the messages of `lost` [n]; turns over a gap are joined."""
        place = np.cumsum(~lost) - 1
        turns: list[tuple[int, Rotation]] = []
        waiting: Rotation | None = None
        for index, turn in self.turns:
            joined = turn if waiting is None else _joined(waiting, turn)
            waiting = None
            if joined is None:
                continue
            if lost[index]:
                waiting = joined
            else:
                turns.append((int(place[index]), joined))
        return self._messages(~lost, turns)

    def between(self, start_ns: int, end_ns: int) -> Streams:
        """Return what arrived from `start_ns` to `end_ns`."""
        first, last = np.searchsorted(self.arrival_ns, [start_ns, end_ns]).tolist()
        turns = [(index - first, turn) for index, turn in self.turns if first < index < last]
        return self._messages(slice(first, last), turns)

    def _messages(
        self, kept: slice | NDArray[np.bool_], turns: list[tuple[int, Rotation]]
    ) -> Streams:
        """Return some of the messages, with these `turns`."""
        columns = ('is_imu', 'arrival_ns', 'stamp_ns', 'rate_ns', 'gyro')
        chosen = {name: getattr(self, name)[kept] for name in columns}
        return replace(self, turns=tuple(turns), **chosen)


def _joined(one: Rotation, two: Rotation) -> Rotation | None:
    """Return two turns in a row as one; None where they do not meet or last too long."""
    if (
        one.stamp_to_ns != two.stamp_from_ns
        or one.axes != two.axes
        or two.stamp_to_ns - one.stamp_from_ns > _LONGEST_NS
    ):
        return two if one.stamp_to_ns != two.stamp_from_ns else None
    return replace(
        one,
        stamp_to_ns=two.stamp_to_ns,
        values_rad=tuple(a + b for a, b in zip(one.values_rad, two.values_rad, strict=True)),
        variances=tuple(a + b for a, b in zip(one.variances, two.variances, strict=True)),
    )


def read_streams(
    path: str | Path,
    config: SyncConfig,
    advance: Callable[[float], None] = lambda done: None,
    sidecar: Path | None = None,
) -> list[Streams]:
    """Return every sensor of a recording that has a cue, each with the IMU or what replaces it."""
    with BagReader(path, sidecar) as bag:
        config, names = fitted(config, bag)
        cued = [
            name
            for name in names.values()
            if config.inputs[name].cue != 'none'
            and config.clock_anchor(name) not in ('', name)
            and config.clock_anchor(name) in names.values()
        ]
        if not cued:
            imu = config.turn_reference
            has = f'beside {imu!r} no other' if imu in names.values() else 'neither'
            raise RigError(
                f'{path} has {has} stream that tells turns, so motion has nothing to be compared '
                f'with: it needs an IMU and an input with a cue ({", ".join(TELLS_TURNS)}), '
                'two such inputs, or two with cue speed'
            )
        gathered = _Gathered(config, names, bag, cued)
        for done, (topic, receive_ns, raw, _) in enumerate(bag.messages(list(names)), 1):
            gathered.take(names[topic], raw, receive_ns)
            if done % 200 == 0:
                advance(200)
    return [gathered.streams(name) for name in cued]


class _Gathered:
    """One pass over the recording through the engine, whose cues' turns are kept."""

    def __init__(
        self, config: SyncConfig, names: dict[str, str], bag: BagReader, cued: list[str]
    ) -> None:
        self._config = config
        self._references = {name: config.clock_anchor(name) for name in cued}
        headerless = [name for topic, name in names.items() if not bag.topics[topic].stamped]
        self._sync = WireSync(config, headerless)
        self._sync.engine.on_rotation = self._keep
        self._arrivals: dict[str, list[tuple[int, int]]] = {
            name: [] for name in (*cued, *self._references.values())
        }
        self._rates: dict[tuple[str, bool], dict[int, tuple[int, list[float]]]] = defaultdict(dict)
        """By reference and whether it is a velocity, by message: stamp and rate."""
        self._turns: dict[str, list[tuple[int, Rotation]]] = {name: [] for name in cued}

    def take(self, name: str, raw: bytes, receive_ns: int) -> None:
        """Take one message of the recording."""
        if name in self._arrivals and name not in self._sync.headerless:
            try:
                stamp_ns = self._sync.stamp_ns(name, raw)
                if stamp_ns is not None:
                    if name == self._config.imu_sensor_id:
                        rate = stamp_ns, list(read_imu(raw)[0])
                        self._rates[name, False][len(self._arrivals[name])] = rate
                    self._arrivals[name].append((receive_ns, stamp_ns))
            except CdrError:
                pass  # the engine counts it as invalid
        for _ in self._sync.advance([(name, raw)], receive_ns):
            pass  # the turns are wanted, not the bundles

    def _keep(self, name: str, rotation: Rotation) -> None:
        index = len(self._arrivals[name]) - 1
        if name in self._turns:
            self._turns[name].append((index, rotation))
        elif (mean := rotation.mean_rate()) is not None:
            self._rates[name, rotation.is_way][index] = mean

    def streams(self, name: str) -> Streams:
        """Return one sensor with the IMU, merged by arrival."""
        own = np.array(self._arrivals[name], dtype=np.int64).reshape(-1, 2)
        reference = self._references[name]
        told = self._rates[reference, self._config.inputs[name].cue == 'speed']
        imu = np.array(self._arrivals[reference], dtype=np.int64).reshape(-1, 2)[[*told]]
        if not len(own) or not len(imu):
            silent = name if not len(own) else reference
            raise RigError(f'no message of {silent} can be read, so there is nothing to score')
        rate_ns, rates = zip(*told.values(), strict=True)
        times = np.concatenate([own, imu])
        is_imu = np.arange(len(times)) >= len(own)
        order = np.lexsort((~is_imu, times[:, 0]))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        gyro = np.concatenate([np.zeros((len(own), 3)), rates])
        return Streams(
            name,
            reference,
            two_inputs(self._config, name),
            is_imu[order],
            times[order, 0],
            times[order, 1],
            np.concatenate([own[:, 1], rate_ns])[order],
            gyro[order],
            tuple((int(place[index]), turn) for index, turn in self._turns[name]),
        )


def two_inputs(config: SyncConfig, sensor: str) -> SyncConfig:
    """Return the configuration of one sensor and the IMU; turns are handed over, not read."""
    given = config.inputs[sensor].model_dump()
    is_speed = given['cue'] == 'speed'
    common = {'type': '', 'cue': 'speed' if is_speed else 'none', 'member': True, 'clock_of': ''}
    own = InputConfig.model_validate(given | common | {'collect': False})
    reference = config.clock_anchor(sensor)
    imu = config.inputs[reference].model_copy(update={**common, 'collect': True})
    return config.model_copy(
        update={
            'inputs': {sensor: own, reference: imu},
            'imu_sensor_id': '' if is_speed else reference,
            'motion_reference': reference if is_speed else '',
            'reference_sensor_id': sensor,
            'required_sensors': (sensor,),
        }
    )
