"""The latency of each sample, drawn by its index from the model that the rig file names."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Ints
from sim_sensors.timing.arrays import Rows
from sim_sensors.timing.arrays.columns import Column, column, looked_up, truncated
from sim_sensors.timing.latency_config import LatencyConfig
from sim_sensors.timing.marginals import (
    STEPS,
    Z_MAX,
    filter_taps,
    marginal_of,
    normal_lags,
    trace_of,
)
from sim_sensors.timing.randomness.correlated import FilteredNormals
from sim_sensors.timing.randomness.random_streams import RandomStreams


class DrawnLatency:
    """Latencies of a distribution: a correlated normal, looked up in the model's table."""

    def __init__(self, config: LatencyConfig, streams: RandomStreams) -> None:
        """Draw for every environment of `streams`."""
        taps = filter_taps(normal_lags(config))
        self._normals = streams.keep('latency', FilteredNormals(streams.lanes, 'latency', taps))
        table_ns = marginal_of(config) * 1e9
        self._table_ns = streams.xp.asarray(table_ns)
        self._listed: list[float] = table_ns.tolist()
        self.least_ns, self.most_ns = int(self._listed[0]), int(self._listed[-1]) + 1

    def at(self, envs: Rows, index: Ints) -> Column:
        """Return the latencies of captures `index` [n] of `envs`, ns."""
        normal = column(self._normals.at(envs, index)[:, 0])
        place = (normal + Z_MAX) * (STEPS / (2.0 * Z_MAX))
        return truncated(looked_up(place, self._table_ns, self._listed))


class TraceLatency:
    """Measured latencies, played again in order, or in blocks with random starts."""

    def __init__(self, config: LatencyConfig, streams: RandomStreams) -> None:
        """Play the file of `config`."""
        values_ns = np.rint(trace_of(config) * 1e9).astype(np.int64)
        self._xp, self._values_ns = streams.xp, streams.xp.asarray(values_ns)
        blocks = config.playback == 'blocks'
        self._starts = streams.uniforms('latency_block', 1) if blocks else None
        self._length = config.block_length
        self.least_ns, self.most_ns = int(values_ns.min()), int(values_ns.max())

    def at(self, envs: Rows, index: Ints) -> Column:
        """Return the latencies of captures `index` [n] of `envs`, ns."""
        count = len(self._values_ns)
        place = index
        if self._starts is not None:
            block, part = self._xp.divmod(index, self._length)
            start = self._xp.astype(self._starts.at(envs, block)[:, 0] * count, np.int64)
            place = start + part
        return column(self._values_ns[place % count])


def make_latency(
    config: LatencyConfig, streams: RandomStreams
) -> DrawnLatency | TraceLatency | None:
    """Return what draws the latency of `config`; None for the short form, which draws none."""
    if config.model == 'delay':
        return None
    return (TraceLatency if config.model == 'trace' else DrawnLatency)(config, streams)
