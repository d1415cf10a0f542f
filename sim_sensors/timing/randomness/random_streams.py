"""All the randomness of one sensor, by name and index; see `streams` for how and `processes`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike

from rig_common.arrays import Ints
from sim_sensors.timing.arrays import NUMPY, Array, Arrays, Rows
from sim_sensors.timing.randomness.hashing import HashedNumbers
from sim_sensors.timing.randomness.lanes import Lanes
from sim_sensors.timing.randomness.noise_stream import Captures, Kind, NoiseStream
from sim_sensors.timing.randomness.processes import DriftSpec, DriftStream, MarkovStream

NoiseStreamT = TypeVar('NoiseStreamT', bound=NoiseStream)
White = NoiseStream | HashedNumbers


class RandomStreams:
    """Random streams of one name (a sensor, a recorded topic), made on first use, by purpose.

    Several sensors that are drawn together have a lane each in every environment; see `Lanes`.
    What is called an environment here and in the pipeline is then such a lane.
    """

    def __init__(
        self,
        seed: int,
        sensor: str | tuple[str, ...],
        num_envs: int = 1,
        dtype: DTypeLike = np.float64,
        episode: int = 0,
        *,
        xp: Arrays = NUMPY,
        fast: bool = False,
    ) -> None:
        """Serve `num_envs` environments of `sensor`, all in the given episode.

        White noise comes as float64 where the sensor's values (`dtype`) are, else as float32:
        enough for pixels and ranges, in half the memory. `fast` draws by a hash, and white noise
        always as float32.
        """
        names = (sensor,) if isinstance(sensor, str) else sensor
        self.lanes = Lanes(seed, names, num_envs, episode, xp, fast)
        self.xp = xp
        double = np.dtype(dtype) == np.float64 and not fast
        self._dtype = np.dtype(np.float64 if double else np.float32)
        self._streams: dict[str, White] = {}
        self._constants: dict[str, NoiseStream] = {}
        self._markov: dict[str, MarkovStream] = {}
        self._drifts: dict[str, DriftStream] = {}

    @property
    def sensor(self) -> str:
        """Name of the sensor, or of the first."""
        return self.lanes.names[0]

    def normals(self, stream: str, width: int) -> White:
        """Return the standard normals `stream`."""
        return self._stream(stream, 'normal', width, self._dtype)

    def uniforms(self, stream: str, width: int) -> White:
        """Return the uniforms [0, 1) `stream`."""
        return self._stream(stream, 'uniform', width, np.float64)

    def uniform_at(self, stream: str, envs: Rows, k: Ints, width: int) -> Array:
        """Return uniforms [0, 1) [n, width] of index `k` [n] of `envs`, the caller's own."""
        return self.uniforms(stream, width).at(envs, k)

    def draw(self, stream: str, captures: Captures) -> Array:
        """Return a uniform [0, 1) for each capture, [n]."""
        found: Array = self.uniform_at(stream, captures.envs, captures.index, 1)[:, 0]
        return found

    def constant(self, stream: str, envs: Rows, width: int, kind: Kind = 'normal') -> Array:
        """Return numbers [n, width] that hold for an episode (a turn-on bias); do not write."""
        found = self._constants.get(stream)
        if found is None:
            found = self._constants[stream] = NoiseStream(
                self.lanes, stream, width, kind, values_per_block=0
            )
        return found.first(envs)

    def walk_at(self, stream: str, envs: Rows, k: Ints, width: int) -> Array:
        """Return unit random walks [n, width] of `envs` after captures 0..k."""
        one = np.ones(width)
        return self.markov(stream, decay=one, gain=one, start=one).at(envs, k)

    def keep(self, name: str, stream: NoiseStreamT) -> NoiseStreamT:
        """Keep a stream of another kind, in place of one of that name, and return it."""
        self._streams[name] = stream
        return stream

    def markov(self, stream: str, *, decay: Array, gain: Array, start: Array) -> MarkovStream:
        """Return the first-order processes `stream`; see `MarkovStream`."""
        found = self._markov.get(stream)
        if found is None:
            found = MarkovStream(self.lanes, stream, decay=decay, gain=gain, start=start)
            self._markov[stream] = found
        return found

    def drift(self, stream: str, spec: Callable[[], DriftSpec]) -> DriftStream:
        """Return the slow drift `stream`, made of `spec()` on first use."""
        found = self._drifts.get(stream)
        if found is None:
            found = DriftStream(self.lanes, stream, spec())
            self._drifts[stream] = found
        return found

    def reset(self, envs: Rows) -> None:
        """Begin the next episode of `envs`: every number they get is new."""
        self.lanes.episode[envs] += 1
        for streams in (self._streams, self._constants, self._markov, self._drifts):
            for stream in streams.values():
                stream.reset(envs)

    def _stream(self, stream: str, kind: Kind, width: int, dtype: DTypeLike) -> White:
        found = self._streams.get(stream)
        if found is None:
            found = self._streams[stream] = (
                HashedNumbers(self.lanes, stream, width, 1, kind, dtype)
                if self.lanes.is_hashed
                else NoiseStream(self.lanes, stream, width, kind, dtype)
            )
        return found
