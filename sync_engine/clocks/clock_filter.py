"""The adaptive Kalman filter behind every clock offset.

State, in seconds:

    x = [o, g, l, c]    o  sensor clock minus host clock        g  skew, do/dt
                        l  smallest latency                     c  error of the IMU's offset

Two kinds of observation:

    arrival   z = o - l    the smallest (arrival - stamp) of a block, negated
    motion    z = o - c    the sensor's rotations against the gyro, plus the IMU's offset

Arrival alone cannot tell a clock that is ahead from a message that is slow: it pins o - l, and o
stays as uncertain as the latency prior. Motion pins the sensor to the IMU; what the IMU's own
offset may be wrong by is common to all sensors and is carried as c, so that it cancels in every
difference and still shows in the sigma against the host.

A camera whose clock is 37 ms ahead and whose latency is 20 ms, declared as 12 ms with a sigma of
10 ms; the sigma of o is the one against host or IMU, whichever is smaller (all in ms):

                                   o      l    sigma of o   of o - l    state
    first message                 29.0   12.0     10.2        2.00      converging
    30 blocks of arrivals         29.0   12.0     10.0        0.26      converging: o - l is known
    one motion, of sigma 2        36.6   19.6      2.0        0.28      locked (below 2)
    nine motions                  36.9   19.9      0.7        0.21      locked
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rig_common.jsonable import JsonObject
from sync_engine.clocks.channel import GateResult, ObservationChannel
from sync_engine.clocks.smoothing import Note, Tape
from sync_engine.clocks.wander import Wander
from sync_engine.config import AdaKFConfig

_H_ARRIVAL = np.array([[1.0, 0.0, -1.0, 0.0]])
_H_MOTION = np.array([[1.0, 0.0, 0.0, -1.0]])
_COMMON = np.ix_((0, 2), (0, 2))

_ARRIVAL_SIGMA_S = (5e-5, 2e-3, 2e-2)
"""Least, first and largest sigma of an arrival observation."""
_MOTION_SCALE = (0.3, 1.0, 50.0)
"""Least, first and largest factor on the variance that a motion observation claims."""
_CLEARLY_WORSE = 1.5
"""Below this the factor is not used: a fit's own residuals (turn_rows.py) give its variance well
in both directions, while the fading memory here is only accurate to 25 %. A stretch that was
quiet by chance would make sigma and gate narrow; good observations after it would be rejected, and
because they agree they would be taken for a jump. Above it there are errors that a fit does not
see, because they last longer than its stretch."""
_Q_STABLE, _Q_JUMP = 0.2, 100.0
"""Factors on the process noise when long stable, and of what has just jumped."""
_Q_STABLE_DECAY = 0.97
_Q_JUMP_DECAY = 0.5
_TRENDING, _TREND_GROWTH, _TREND_DECAY, _TREND_MOST = 2.0, 2.0, 0.9, 1e4
"""Innovations of arrivals whose mean is beyond these sigmas: a skew that wanders. Its walk then
grows by a factor for each innovation, up to 10 ppm per root second, and else decays."""


@dataclass(frozen=True)
class ClockPrior:
    """What is believed before anything is measured (s; skew without unit)."""

    offset_s: float
    offset_sigma_s: float
    latency_s: float
    latency_sigma_s: float
    skew_sigma: float
    anchor_sigma_s: float
    """How wrong the IMU's own offset may be."""
    is_anchor: bool
    """Whether this is the IMU: against itself only the wander of its estimate counts."""
    tied: bool
    """Whether the offset was set from an arrival (o = l + constant), as device clocks are."""
    wander_chance: float = 0.5
    """How likely it is that the times of its turns wander (wander.py)."""


class ClockFilter:
    """Offset, skew and latency of one sensor. Time is handed in as seconds since any start."""

    def __init__(self, prior: ClockPrior, config: AdaKFConfig) -> None:
        self._config = config
        self._is_anchor = prior.is_anchor
        self._wander_chance = prior.wander_chance
        self._time_s = 0.0
        self.q_scale = 1.0
        """Factor on the process noise: 1 as configured, less when long stable."""
        self.last_nis = 0.0
        self.motion_count = 0
        self._skew_wander = 1.0
        """Factor on the walk of the skew: a clock whose arrivals keep running away."""
        self._wander: Wander | None = None
        """What offset and latency do in common, which only motion sees; from its first fix on."""
        self._motion_s = 0.0
        least, first, largest = (sigma**2 for sigma in _ARRIVAL_SIGMA_S)
        self.arrivals = ObservationChannel(least, first, largest, config.forgetting)
        self.motions = ObservationChannel(*_MOTION_SCALE, config.forgetting)
        from filterpy.kalman import KalmanFilter  # brings all of scipy along: half of a start

        kf = KalmanFilter(dim_x=4, dim_z=1)
        kf.x = np.array([[prior.offset_s], [0.0], [prior.latency_s], [0.0]])
        latency_var = prior.latency_sigma_s**2
        kf.P = np.diag(
            [prior.offset_sigma_s**2, prior.skew_sigma**2, latency_var, prior.anchor_sigma_s**2]
        )
        if prior.tied:
            kf.P[0, 0] += latency_var
            kf.P[0, 2] = kf.P[2, 0] = latency_var
        self._kf: Any = kf
        self._f = np.eye(4)
        self.tape: Tape | None = None
        """Where the steps are noted for the smoother; None where nobody looks back."""
        self._q_rate = np.array(
            [config.offset_walk_s, config.skew_walk, config.latency_walk_s, config.offset_walk_s]
        )
        self._q_rate = np.diag(self._q_rate**2)
        self._q_rate[3, 3] *= 0.01  # the anchor's error is a constant of the rig, nearly
        self._q_raised: NDArray[np.float64] | None = None
        """Further factor on the process noise of what jumped, [4], fading."""
        self._cache()

    def _cache(self) -> None:
        """Keep what selection reads as plain floats; numpy scalars cost ten times as much."""
        x, p = self._kf.x, self._kf.P
        self.offset_s = float(x[0, 0])
        self.skew = float(x[1, 0]) + (self._wander.rate if self._wander is not None else 0.0)
        self.latency_s = float(x[2, 0])
        self.anchor_s = float(x[3, 0])
        self.offset_var = float(p[0, 0])
        self.arrival_var = float(p[0, 0] + p[2, 2] - 2.0 * p[0, 2])
        self.anchored_var = float(p[0, 0] + p[3, 3] - 2.0 * p[0, 3])
        if self._is_anchor:
            self.anchored_var = self.arrival_var

    @property
    def time_s(self) -> float:
        """Time of the state."""
        return self._time_s

    @property
    def sigma_s(self) -> float:
        """Sigma of the offset, against the host or against the IMU, whichever is surer (s)."""
        return sqrt(max(min(self.offset_var, self.anchored_var), 0.0))

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of [o, g, l, c], [4, 4]."""
        return np.array(self._kf.P)

    @property
    def state(self) -> NDArray[np.float64]:
        """State [o, g, l, c], [4]."""
        return np.array(self._kf.x[:, 0])

    def predict(self, time_s: float) -> None:
        """Carry the state to `time_s`; going back is ignored."""
        dt = time_s - self._time_s
        if dt <= 0.0:
            return
        transition = self._f.copy()
        transition[0, 1] = dt
        noise = self._q_rate * (dt * self.q_scale)
        noise[1, 1] *= self._skew_wander
        drifted = 0.0
        if self._wander is not None:
            drifted, grown = self._wandered(time_s)
            noise[_COMMON] += grown
        if self._q_raised is not None:
            noise += self._q_rate * (dt * self._q_raised)
            self._q_raised *= _Q_JUMP_DECAY**dt
            if self._q_raised.max() < _Q_STABLE:
                self._q_raised = None
        if self.tape is not None:
            self.tape.note(
                Note(self._time_s, self.state, self.covariance, transition, noise, drifted)
            )
        self._kf.predict(F=transition, Q=noise)
        self._kf.x[[0, 2], 0] += drifted
        self._time_s = time_s
        self._cache()

    def _wandered(self, time_s: float) -> tuple[float, float]:
        """Return by how much o and l drift together until `time_s`, and its variance grows."""
        assert self._wander is not None
        now, now_var = self._wander.ahead(max(self._time_s - self._motion_s, 0.0))
        then, then_var = self._wander.ahead(max(time_s - self._motion_s, 0.0))
        return then - now, max(then_var - now_var, 0.0)

    def finish_tape(self) -> None:
        """Note the last state; no step follows it."""
        if self.tape is not None:
            self.tape.note(
                Note(self._time_s, self.state, self.covariance, np.eye(4), np.zeros((4, 4)), 0.0)
            )

    def observe_arrival(self, z: float, clock_held: bool = True) -> GateResult:
        """Take o - l (s) at the state's time; `clock_held`: the stamps prove that o held."""
        noise = self.arrivals.noise
        innovation = z - (self._kf.x[0, 0] - self._kf.x[2, 0])
        variance = self._projected(2) + noise
        outcome = self._gate(self.arrivals, innovation, variance)
        if outcome is GateResult.REJECTED:
            return outcome
        if outcome is GateResult.JUMP:
            # Stamps that kept to their grid leave only the latency, unless it would be negative.
            if self.latency_s - innovation < -3.0 * self._config.lock_sigma_s:
                self._open(0, innovation)
            elif clock_held:
                self._open(2, innovation)
            else:
                self.open_either(innovation)
        self.arrivals.note(innovation, variance)
        self._skew_wander = _follow(self._skew_wander, self.arrivals.trend)
        # Correlated errors carry less than they seem to: n of them count for n (1-r)/(1+r).
        apart = (1.0 + self.arrivals.correlation) / (1.0 - self.arrivals.correlation)
        self._kf.update(z, R=noise * apart, H=_H_ARRIVAL)
        residual = z - float(self._kf.x[0, 0] - self._kf.x[2, 0])
        self.arrivals.adapt(residual**2 + self._projected(2))
        self._cache()
        return outcome

    def observe_motion(self, z: float, variance: float) -> GateResult:
        """Take o - c (s) at the state's time, with the variance its author claims (s^2)."""
        worse = self.motions.noise
        noise = variance * (worse if worse > _CLEARLY_WORSE else 1.0)
        innovation = z - (self._kf.x[0, 0] - self._kf.x[3, 0])
        expected = self._projected(3) + noise
        outcome = self._gate(self.motions, innovation, expected)
        if outcome is GateResult.REJECTED:
            return outcome
        if outcome is GateResult.JUMP:
            self._open_along((0, 2), innovation)  # o - l is known from arrival and stays known
        self._follow_wander(z, noise)
        residual = z - float(self._kf.x[0, 0] - self._kf.x[3, 0])
        self.motions.adapt((residual**2 + self._projected(3)) / variance)
        self.motion_count += 1
        self._cache()
        return outcome

    def _follow_wander(self, z: float, noise: float) -> None:
        """Take o - c, and what its history says of how fast it wanders."""
        known = float(self._kf.x[0, 0] - self._kf.x[3, 0])
        variance = self._projected(3)
        if self._wander is None:
            self._wander = Wander(variance, self._wander_chance)
        else:
            self._wander.carry(self._time_s - self._motion_s, variance)
        self._motion_s = self._time_s
        mean, variance = self._wander.observe(z - known, noise)
        self._kf.update(z, R=noise, H=_H_MOTION)
        self._kf.x[[0, 2], 0] += known + mean - float(self._kf.x[0, 0] - self._kf.x[3, 0])
        self._kf.P[_COMMON] += max(variance - self._projected(3), 0.0)
        self._wander.settle(mean, self._projected(3))

    def step_clock(self, step_s: float, sigma_s: float) -> None:
        """The clock was seen to step by `step_s`: move the offset, widen it by `sigma_s`."""
        self._kf.x[0, 0] += step_s
        self._open(0, sigma_s)
        self._cache()

    def open_either(self, size_s: float) -> None:
        """Offset or latency changed by `size_s`: widen both, so that motion may tell which."""
        self._open(0, size_s)
        self._open(2, size_s)
        self._cache()

    def _open(self, index: int, size_s: float) -> None:
        self._open_along((index,), size_s)

    def _open_along(self, indices: tuple[int, ...], size_s: float) -> None:
        """Widen the state by a fully correlated `size_s` along `indices`; raise Q for a while."""
        if self.tape is not None:
            self.tape.split()
        rows = np.ix_(indices, indices)
        self._kf.P[rows] += size_s**2
        if self._q_raised is None:
            self._q_raised = np.zeros(4)
        self._q_raised[list(indices)] = _Q_JUMP

    def _projected(self, other: int) -> float:
        """Return the variance of o minus the state at `other`."""
        p = self._kf.P
        return float(p[0, 0] + p[other, other] - 2.0 * p[0, other])

    def _gate(self, channel: ObservationChannel, innovation: float, variance: float) -> GateResult:
        self.last_nis = innovation**2 / variance
        outcome = channel.judge(innovation, variance, self._config.gate_nis)
        held = outcome is GateResult.ACCEPTED
        self.q_scale = max(_Q_STABLE, self.q_scale * _Q_STABLE_DECAY) if held else 1.0
        return outcome

    def dump(self) -> JsonObject:
        """Return the learned state as plain JSON values."""
        return {
            'x': [float(value) for value in self._kf.x[:, 0]],
            'p': [[float(value) for value in row] for row in self._kf.P],
            'arrival_noise': self.arrivals.noise,
            'motion_noise': self.motions.noise,
            'motion_count': self.motion_count,
        }

    def load(self, values: JsonObject) -> None:
        """Take a state that `dump` returned; time starts at zero again."""
        x = np.array(values['x'], dtype=np.float64).reshape(4, 1)
        p = np.array(values['p'], dtype=np.float64).reshape(4, 4)
        if not (np.isfinite(x).all() and np.isfinite(p).all() and (np.diag(p) >= 0.0).all()):
            raise ValueError('state or covariance is not finite and positive')
        self._kf.x, self._kf.P = x, p
        self.arrivals.set(float(values['arrival_noise']))
        self.motions.set(float(values['motion_noise']))
        self.motion_count = int(values['motion_count'])
        self._time_s = 0.0
        self._cache()


def _follow(factor: float, trend: float) -> float:
    """Return the next factor on a walk, from how strongly innovations are correlated."""
    if trend > _TRENDING:
        return min(_TREND_GROWTH * factor, _TREND_MOST)
    return max(_TREND_DECAY * factor, 1.0)
