"""Small sensors with no world behind them, for testing the pipeline alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sim_sensors.interface.batch import Batch, Timeline
from sim_sensors.interface.config import SensorConfig
from sim_sensors.interface.sensor import Sample, Sensor, Topic
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.timing.arrays.layout import Array, Layout

MS = 1_000_000


class Plain(Sensor[SensorConfig]):
    """Two float64 columns, every hook left as it is."""

    truth_layout = Layout({'x': (2,)}, np.float64)

    def reader(self, view: Any) -> Any:
        raise AssertionError('no world here')

    def truth_template(self) -> Any:
        raise AssertionError('no messages here')

    def topics(self) -> Sequence[Topic]:
        return ()

    def encode(self, sample: Sample) -> Sequence[tuple[Topic, bytes]]:
        return ()


class LowPass(Plain):
    """Half of the old value, half of the new one."""

    stateful = True

    def respond(self, values: Array, timeline: Timeline, batch: Batch) -> None:
        old = np.where(timeline.filled[:, None], timeline.at(1), values)
        values += old
        values *= 0.5


class Counter(Plain):
    """Returns how many of its outputs came before (through `previous`), as integers."""

    stateful = True
    returns = Layout({'count': (1,)}, np.int32)

    def post_process(self, values: Array, previous: Array | None, batch: Batch) -> Array:
        if previous is None:
            return np.zeros((len(values), 1), np.int32)
        return previous + np.int32(1)


def config(**keys: Any) -> SensorConfig:
    return SensorConfig(type='toy', **keys)


def make(
    num_envs: int = 1,
    sensor: type[Plain] = Plain,
    *,
    seed: int = 1,
    name: str = 'toy',
    dt_ns: int = MS,
    pipeline: dict[str, Any] | None = None,
    **keys: Any,
) -> Pipeline:
    given = dict(pipeline or {})
    rest = {
        key: given.pop(key) for key in ('schedule', 'supplier', 'link', 'names') if key in given
    }
    return Pipeline(
        sensor(name, config(**keys)), RunSetup(seed, dt_ns, num_envs=num_envs, **given), **rest
    )


class Clockwork:
    """A truth supplier: environment e at time t reads (t in ms, e)."""

    def __init__(self, **keys: Any) -> None:
        self.now_ns = 0
        self.calls: list[tuple[int, list[int]]] = []
        self.pipeline = make(pipeline={'supplier': self.supply}, **keys)

    def supply(self, envs: Any, out: Array) -> None:
        self.calls.append((self.now_ns, envs.tolist()))
        out[:, 0] = self.now_ns / MS
        out[:, 1] = envs

    def at(self, time_ms: float) -> Pipeline:
        """Let time be `time_ms`."""
        self.now_ns = round(time_ms * MS)
        self.pipeline.update(self.now_ns)
        return self.pipeline
