"""The joint filter behind every clock offset: what is known of a clock, all of history in it.

State, in seconds, rad/s and rad:

    o  sensor clock minus host clock    g  its skew, do/dt    l  smallest latency
    c  error of the IMU's offset        r  rate at which o and l drift together
    b  bias of the gyro [3]             m  further turn of the mounting [3]
    s  share by which the sensor's turns are too large

Two kinds of observation:

    arrival   z = o - l                      the smallest (arrival - stamp) of a block, negated
    motion    y = root . (o - c, b, m, s)    the turns of about a second, over the gyro's

Arrival alone cannot tell a clock that is ahead from a message that is slow: it pins o - l, and o
stays as uncertain as the latency prior. Motion pins the sensor to the IMU; what the IMU's own
offset may be wrong by is common to all sensors and is carried as c, so that it cancels in every
difference and still shows in the sigma against the host.

How fast clocks wander is not known beforehand, so a filter runs for each of `WAYS`, is believed as
much as it foresaw what came, and the estimate is the mean of all: see `ways.py`. Example: a camera
whose clock is 37 ms ahead and whose latency is 20 ms, declared as 12 ms with a sigma of 10 ms; the
sigma of o is the one against host or IMU, whichever is smaller (all in ms):

                                   o      l    sigma of o   of o - l    state
    first message                 29.0   12.0     11.2        5.00      converging
    30 blocks of arrivals         29.0   12.0     10.0        0.37      converging: o - l is known
    one motion, of sigma 2        36.7   19.7      2.0        0.38      locked (about 2)
    nine motions                  37.0   20.0      0.7        0.38      locked
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np

from rig_common.arrays import Floats
from rig_common.jsonable import JsonObject
from sync_engine.clocks.channel import GateResult, InnovationGate
from sync_engine.clocks.smoothing import Note, SmoothedClock, Tape, known_clock
from sync_engine.clocks.ways import MOTION, SIZE, O, WayBank
from sync_engine.config import AdaKFConfig

_FIRST_ARRIVAL_SIGMA_S = 2e-3
_ARRIVAL_SIGMA_S = (5e-5, 2e-2)
"""Of an arrival observation: before its scatter is known, and the limits of what it may be."""
_BIAS_SIGMA_RAD_S = 0.05
"""Prior sigma of the gyro's bias, and of what a cue adds to it."""
_MISFIT = 4.0
"""Squared innovations of a piece of motion, over what is expected, that make it count for less."""


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
    """How likely it is that the times of its turns wander (ways.py)."""


class MotionPrior(NamedTuple):
    """What is known of (o - c, b, m, s) at one moment."""

    mean: Floats
    """[8]."""
    covariance: Floats
    """[8, 8]."""


class MotionFix(NamedTuple):
    """What one piece of motion says: y = root . (o - c, b, m, s), noise of variance `scale`."""

    root: Floats
    """[8, 8], upper triangle."""
    value: Floats
    """[8]."""
    scale: float
    """Variance that the residuals of the cue show, over what it claims."""
    offset_var: float
    """Variance that the offset has besides, in this piece alone (s^2)."""
    time_ns: int
    """Host time of its middle."""
    is_found: bool = False
    """Whether the offset was searched for in all of history, wherever it might be."""


class ClockFilter:
    """Offset, skew and latency of one sensor. Time is handed in as seconds since any start."""

    def __init__(self, prior: ClockPrior, config: AdaKFConfig) -> None:
        self._config = config
        self._is_anchor = prior.is_anchor
        self._time_s = 0.0
        self.motion_count = 0
        self.arrival_noise = _FIRST_ARRIVAL_SIGMA_S**2
        self.arrivals = InnovationGate(config.gate_nis)
        self.motions = InnovationGate(config.gate_nis)
        self._risen_s = 0.0
        """How far jumps of the arrivals have raised the latency."""
        self._unproven_var = 0.0
        """Squared size of the last jump that only motion saw, less with each fix that follows."""
        self.conflict_s = 0.0
        """By how much motion contradicted the declared latencies, 0 where it does not."""
        mean = np.zeros(SIZE)
        mean[[O, 2]] = prior.offset_s, prior.latency_s
        latency_var = prior.latency_sigma_s**2
        p = np.zeros((SIZE, SIZE))
        p[:5, :5] = np.diag(
            [prior.offset_sigma_s**2, prior.skew_sigma**2, latency_var, prior.anchor_sigma_s**2, 0]
        )
        if prior.tied:
            p[O, O] += latency_var
            p[O, 2] = p[2, O] = latency_var
        walks = config.offset_walk_s, config.skew_walk, config.latency_walk_s
        self._bank = WayBank(mean, p, walks, prior.wander_chance)
        self.forget_motion(np.eye(3) * 4.0, 0.0, (0.0, 0.0))
        self.tape: Tape | None = None
        """Where the steps are noted for the smoother; None where nobody looks back."""

    def _cache(self) -> None:
        """Keep what is asked for often as plain floats; numpy scalars cost ten times as much."""
        x, p = self._bank.mean, self._bank.covariance
        self.offset_s, self.latency_s = float(x[O]), float(x[2])
        self.arrival_var = float(p[O, O] + p[2, 2] - 2.0 * p[O, 2])

    def known(self, epoch_ns: int = 0, base_ns: int = 0, bias_var: float = 0.0) -> SmoothedClock:
        """Return the clock as it is known, its time counted from `epoch_ns`."""
        mean, p = self._bank.mean, self._bank.covariance
        known = known_clock(mean, p, self._is_anchor, self._time_s, epoch_ns, base_ns, bias_var)
        unproven = self._unproven_var
        return known._replace(
            offset_var=known.offset_var + unproven,
            anchored_var=known.anchored_var + unproven * (not self._is_anchor),
        )

    @property
    def state(self) -> Floats:
        """Mean of the state [12], in the order of the module's text."""
        return self._bank.mean.copy()

    @property
    def covariance(self) -> Floats:
        """Covariance of the state [12, 12]."""
        return self._bank.covariance.copy()

    @property
    def time_s(self) -> float:
        """Time of the state."""
        return self._time_s

    @property
    def beliefs(self) -> tuple[float, ...]:
        """Belief in each of the ways to wander."""
        return tuple(self._bank.beliefs.tolist())

    @property
    def sigma_s(self) -> float:
        """Sigma of the offset, against the host or against the IMU, whichever is surer (s)."""
        known = self.known()
        return sqrt(max(min(known.offset_var, known.anchored_var), 0.0))

    def forget_motion(
        self, mounting_covariance: Floats, scale_sigma: float, walks: tuple[float, float]
    ) -> None:
        """Bias, mounting and scale begin again: the mounting with a turn of zero.

        `walks`: of the scale and of the mounting (1 and rad per root second).
        """
        start = np.zeros((7, 7))
        start[:3, :3] = np.eye(3) * _BIAS_SIGMA_RAD_S**2
        start[3:6, 3:6] = mounting_covariance
        start[6, 6] = scale_sigma**2 + 1e-8
        self._bank.replace(slice(5, SIZE), start)
        self._bank.set_walks(*walks)
        self._cache()

    def turn_reference(self, turn: Floats) -> None:
        """The mounting is counted from another rotation, further by `turn` [3] (rad)."""
        self._bank.shift(slice(8, 11), -turn)

    def predict(self, time_s: float) -> None:
        """Carry the state to `time_s`; going back is ignored."""
        dt = time_s - self._time_s
        if dt <= 0.0:
            return
        before = (self._bank.mean, self._bank.covariance) if self.tape is not None else None
        transition, noise = self._bank.predict(dt)
        if self.tape is not None and before is not None:
            self.tape.note(Note(self._time_s, *before, transition, noise))
        self._time_s = time_s
        self._cache()

    def finish_tape(self) -> None:
        """Note the last state; no step follows it."""
        if self.tape is not None:
            nothing = np.zeros((SIZE, SIZE))
            self.tape.note(
                Note(self._time_s, self._bank.mean, self._bank.covariance, np.eye(SIZE), nothing)
            )

    def set_arrival_noise(self, variance: float) -> None:
        """Take the variance (s^2) with which arrivals scatter from block to block."""
        least, most = _ARRIVAL_SIGMA_S
        self.arrival_noise = min(max(variance, least**2), most**2)

    def observe_arrival(self, z: float, shown_s: float = 0.0) -> GateResult:
        """Take o - l (s) at the state's time; the stamps prove that o has not stepped by `shown_s`
        or more."""
        root = np.zeros((1, SIZE))
        root[0, [O, 2]] = 1.0, -1.0
        latency_s = self.latency_s
        innovation = z - (self.offset_s - latency_s)
        variance = self.arrival_var + self.arrival_noise
        outcome = self.arrivals.judge(innovation, variance)
        if outcome is GateResult.REJECTED:
            return outcome
        if outcome is GateResult.JUMP:
            # Stamps that kept to their grid leave only the latency, unless it would be negative;
            # what it had risen by before, as behind a hole, it falls by first.
            if latency_s - innovation < -3.0 * self._config.lock_sigma_s:
                fallen_s = min(self._risen_s, innovation)
                self._open((O,), innovation - fallen_s)
                self._open((2,), fallen_s)
            elif abs(innovation) >= shown_s:
                self._open((2,), innovation)
            else:
                self.open_either(innovation)
        self._bank.update(root, np.array([z]), np.array([[self.arrival_noise]]))
        self._cache()
        if outcome is GateResult.JUMP:
            self._risen_s = max(self._risen_s + self.latency_s - latency_s, 0.0)
        return outcome

    def motion_prior(self, time_s: float) -> MotionPrior:
        """Return what is known of (o - c, b, m, s) at `time_s`, which may be past."""
        h = self._motion_rows(self._time_s - time_s)
        covariance = h @ self._bank.covariance @ h.T
        covariance[0, 0] += self._unproven_var
        return MotionPrior(h @ self._bank.mean, covariance)

    def _motion_rows(self, ago_s: float) -> Floats:
        h = np.zeros((8, SIZE))
        h[0, [O, 3]] = 1.0, -1.0
        h[0, [1, 4]] = -ago_s
        h[1:, MOTION] = np.eye(7)
        return h

    def observe_motion(self, fix: MotionFix, time_s: float, bias_var: float) -> GateResult:
        """Take one piece of motion, whose value is relative to the same zero as the state.

        `bias_var`: of what is the same for the whole piece and not part of its noise (s^2).
        """
        rows = fix.root @ self._motion_rows(self._time_s - time_s)
        along = fix.root[:, 0]
        noise = fix.scale * np.eye(8) + (fix.offset_var + bias_var) * np.outer(along, along)
        wrong = fix.value - rows @ self._bank.mean
        expected = rows @ self._bank.covariance @ rows.T + noise
        weighted = np.linalg.solve(expected, np.stack([wrong, along], axis=1))
        sharp = float(along @ weighted[:, 1])
        if sharp <= 0.0:
            return GateResult.REJECTED
        jump_s = float(along @ weighted[:, 0]) / sharp
        outcome = self.motions.judge(jump_s, 1.0 / sharp)
        if fix.is_found and outcome is not GateResult.ACCEPTED:
            outcome = self.motions.trust(jump_s)
        self._bank.see_motion()
        if outcome is GateResult.REJECTED:
            self._cache()
            return outcome
        if outcome is GateResult.JUMP:
            self._jump(jump_s, fix.is_found)
        else:
            surplus = max(float(wrong @ weighted[:, 0]) - jump_s**2 * sharp, 0.0)
            noise *= max(1.0, surplus / (_MISFIT * 8.0))
        self._bank.update(rows, fix.value, noise)
        self.motion_count += 1
        if outcome is GateResult.ACCEPTED:
            self._unproven_var *= 0.5
        self._cache()
        return outcome

    def _jump(self, size_s: float, is_found: bool) -> None:
        """Motion contradicts what was known: it moves o and l together, o - l is known.

        What all of history says is believed; a latency was declared wrongly, this sensor's or the
        IMU's. Else a jump of two pieces, which those that follow have to prove.
        """
        if is_found:
            self.conflict_s = size_s
            self._open((3,), size_s)
        else:
            self._unproven_var = size_s**2
        self._open((O, 2), size_s)

    @property
    def is_unproven(self) -> bool:
        """Whether the last jump that only motion saw waits for fixes that confirm it, or the last
        observation was rejected and the next one decides."""
        matters_s = 0.5 * self._config.lock_sigma_s
        arrival_s = self.arrivals.rejected or 0.0
        unproven = self._unproven_var > matters_s**2 or abs(arrival_s) > matters_s
        return unproven or self.motions.rejected is not None

    def step_clock(self, step_s: float, sigma_s: float) -> None:
        """The clock was seen to step by `step_s`: move the offset, widen it by `sigma_s`."""
        self._bank.shift(O, step_s)
        self._open((O,), sigma_s)
        self._cache()

    def open_either(self, size_s: float) -> None:
        """Offset or latency changed by `size_s`: widen both, so that motion may tell which."""
        self._open((O,), size_s)
        self._open((2,), size_s)
        self._cache()

    def widen_anchor(self, size_s: float) -> None:
        """The IMU's offset may have been moved by `size_s`."""
        self._open((3,), size_s)
        self._cache()

    def _open(self, indices: tuple[int, ...], size_s: float) -> None:
        """Widen the state by a fully correlated `size_s` along `indices`."""
        if self.tape is not None:
            self.tape.split()
        self._bank.widen(indices, size_s**2)

    def dump(self) -> JsonObject:
        """Return the learned clock as plain JSON values, without what only motion shows."""
        return {
            'x': [float(value) for value in self._bank.mean[:4]],
            'p': [[float(value) for value in row] for row in self._bank.covariance[:4, :4]],
            'arrival_noise': self.arrival_noise,
            'motion_count': self.motion_count,
        }

    def load(self, values: JsonObject) -> None:
        """Take a state that `dump` returned; time starts at zero again."""
        x = np.array(values['x'], dtype=np.float64).reshape(4)
        p = np.array(values['p'], dtype=np.float64).reshape(4, 4)
        if not (np.isfinite(x).all() and np.isfinite(p).all() and (np.diag(p) >= 0.0).all()):
            raise ValueError('state or covariance is not finite and positive')
        self._bank.replace(slice(0, 4), p, x)
        self.set_arrival_noise(float(values['arrival_noise']))
        self.motion_count = int(values['motion_count'])
        self._time_s = 0.0
        self._cache()
