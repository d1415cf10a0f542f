"""How fast a clock wanders is not known beforehand: one filter for each way, mixed by belief.

Most clocks stand still but for the drift of a crystal. Poses that another computer timed go astray
from their stamps by tens of ppm, or swing with its temperature; clocks swing, too. One filter that
allows for the worst is blunt on all others, one that allows for nothing is wrong where it happens.
So a filter runs for each of `WAYS`, and each is believed as much as its predictions have earned. A
clock may begin or end to wander: a way that had lost all belief begins again from what all know.

One more way stands still, too, but holds the declared latencies for wrong. Example: a latency
declared to 2 ms is 14 ms off, and turns tell the offset to 4 ms a second. Without this way it was
10 ms wrong after three seconds and sure of 1.9: too little to contradict what was declared at any
one moment.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from rig_common.arrays import Floats

SIZE = 12
O = 0  # noqa: E741  the offset, as in the formulas
MOTION = slice(5, SIZE)
"""Where bias, mounting and scale are in the state."""
_RATE = 4
_CHANGE_S = 1000.0
"""Mean time after which a stream changes its way."""
_BIAS_WALK, _MOUNTING_WALK = 1e-4, 1e-5
"""Walks of the gyro's bias (rad/s) and of the mounting (rad), per root second."""
_LEAST_BELIEF = 1e-12
_LOST = 0.01
"""Share of its first belief below which a way begins again."""
_MISDECLARED, _MISDECLARED_SIGMAS = 0.02, 8.0
"""Chance that a declared latency is wrong, and by how many of its sigmas it then is."""
_NO_RATE = 1e-8
"""Sigma of a rate that is none; matrices stay regular."""


class WanderWay(NamedTuple):
    """How offset and latency move together, and how the skew does."""

    rate_sigma: float
    """How fast they may drift, one sigma (s per s)."""
    rate_walk: float
    """Random walk of that rate (1 per root second)."""
    skew_walk: float
    """Random walk of the clock's skew, where it is faster than configured (1 per root second)."""
    share: float
    """Of all that wander, how many do it this way."""


WAYS = (
    WanderWay(0.0, 0.0, 0.0, 0.0),
    WanderWay(3e-5, 1e-7, 0.0, 0.35),
    WanderWay(1e-4, 5e-5, 0.0, 0.45),
    WanderWay(0.0, 0.0, 3e-5, 0.2),
    WanderWay(0.0, 0.0, 0.0, 0.0),
)
"""Stands still; its turns drift against its stamps; they swing; the clock itself swings; stands
still, and a latency was declared wrongly."""


def declared_cost(sigmas: Floats) -> Floats:
    """Return minus twice the log likelihood of being so many `sigmas` off what was declared: as
    much as a normal's up to three, and hardly more than a dozen where it was declared wrongly."""
    wrong = np.log(_MISDECLARED / _MISDECLARED_SIGMAS) - 0.5 * (sigmas / _MISDECLARED_SIGMAS) ** 2
    return np.asarray(-2.0 * np.logaddexp(-0.5 * sigmas**2, wrong))


class WayBank:
    """The filters of all ways, each with a mean [SIZE] and a covariance [SIZE, SIZE]."""

    def __init__(
        self, mean: Floats, p: Floats, walks: tuple[float, float, float], chance: float
    ) -> None:
        """Begin all of them alike; `walks` of offset, skew, latency, `chance` of wander at all."""
        from filterpy.kalman import KalmanFilter  # brings all of scipy along: half of a start

        shares = [1.0 - chance, *(chance * way.share for way in WAYS[1:-1]), _MISDECLARED]
        self._prior = np.maximum(shares, _LEAST_BELIEF) / (1.0 + _MISDECLARED)
        self.beliefs = self._prior.copy()
        self._filters: list[Any] = []
        for _ in WAYS:
            kf = KalmanFilter(dim_x=SIZE, dim_z=1)
            kf.x, kf.P = mean.copy(), p.copy()
            self._filters.append(kf)
        rates = np.zeros(SIZE)
        rates[:3] = walks
        rates[3] = 0.1 * walks[0]  # the anchor's error is a constant of the rig, nearly
        rates[5:8], rates[8:11] = _BIAS_WALK, _MOUNTING_WALK
        self._noises = []
        for way in WAYS:
            own = rates.copy()
            own[1] = max(own[1], way.skew_walk)
            self._noises.append(np.diag(own**2))
        self._has_motion = False
        for k in range(len(WAYS)):
            self._begin_rate(k)
        self._mix()

    def see_motion(self) -> None:
        """From the first motion on its times may wander, and it may contradict what was declared;
        before, arrivals are all there is."""
        if self._has_motion:
            return
        self._has_motion = True
        for k, (noise, way) in enumerate(zip(self._noises, WAYS, strict=True)):
            self._begin_rate(k)
            noise[_RATE, _RATE] = way.rate_walk**2
        p = self._filters[-1].P
        for declared in (O, 2), (3,):
            p[np.ix_(declared, declared)] += _MISDECLARED_SIGMAS**2 * np.diag(p)[[*declared]].min()
        self._mix()

    def set_walks(self, scale_walk: float, mounting_walk: float) -> None:
        """Let scale and mounting of turns walk (1 and rad per root second)."""
        for noise in self._noises:
            noise[8:11, 8:11] = np.eye(3) * max(mounting_walk, _MOUNTING_WALK) ** 2
            noise[-1, -1] = scale_walk**2

    def _mix(self) -> None:
        """Keep mean and covariance of all together."""
        means = np.array([kf.x for kf in self._filters])
        self.mean: Floats = self.beliefs @ means
        apart = means - self.mean
        each = np.array([kf.P for kf in self._filters])
        self.covariance: Floats = (
            np.tensordot(self.beliefs, each, 1) + (apart.T * self.beliefs) @ apart
        )

    def predict(self, dt: float) -> tuple[Floats, Floats]:
        """Go on by `dt` s; return the transition and the noise of all together."""
        transition = np.eye(SIZE)
        transition[O, 1] = transition[O, _RATE] = transition[2, _RATE] = dt
        noises = [self._noise(k, dt) for k in range(len(WAYS))]
        for kf, noise in zip(self._filters, noises, strict=True):
            kf.predict(F=transition, Q=noise)
        self._exchange(dt)
        self._mix()
        return transition, np.tensordot(self.beliefs, np.array(noises), 1)

    def _noise(self, k: int, dt: float) -> Floats:
        noise: Floats = self._noises[k] * dt
        for rate, moved in ((1, (O,)), (_RATE, (O, 2))):
            walked = noise[rate, rate]
            noise[np.ix_(moved, moved)] += walked * dt * dt / 3.0
            for index in moved:
                noise[index, rate] += 0.5 * walked * dt
                noise[rate, index] += 0.5 * walked * dt
        return noise

    def _exchange(self, dt: float) -> None:
        """Give each some belief again, as the stream may have changed its way; one that had lost
        all of it begins again from what all together know."""
        changed = min(dt / _CHANGE_S, 1.0)
        for k in np.flatnonzero(self.beliefs < _LOST * self._prior).tolist():
            self._filters[k].x, self._filters[k].P = self.mean.copy(), self.covariance.copy()
            self._begin_rate(k)
        self.beliefs = (1.0 - changed) * self.beliefs + changed * self._prior

    def _begin_rate(self, k: int) -> None:
        """Turns may drift against stamps from here on, as way `k` says."""
        kf = self._filters[k]
        kf.x[_RATE] = kf.P[_RATE, :] = kf.P[:, _RATE] = 0.0
        kf.P[_RATE, _RATE] = (WAYS[k].rate_sigma * self._has_motion) ** 2 + _NO_RATE**2

    def update(self, rows: Floats, value: Floats, noise: Floats) -> None:
        """Take value [k] = rows [k, SIZE] . state, noise [k, k]; what foresaw it counts more."""
        scores = np.zeros(len(WAYS))
        for k, kf in enumerate(self._filters):
            wrong = value - rows @ kf.x
            expected = rows @ kf.P @ rows.T + noise
            scores[k] = -0.5 * (
                wrong @ np.linalg.solve(expected, wrong) + np.linalg.slogdet(expected)[1]
            )
            kf.update(value, R=noise, H=rows)
        self.beliefs = self.beliefs * np.exp(scores - scores.max()) + _LEAST_BELIEF
        self.beliefs /= self.beliefs.sum()
        self._mix()

    def shift(self, index: int | slice, by: float | Floats) -> None:
        """Move the mean at `index`."""
        for kf in self._filters:
            kf.x[index] += by
        self._mix()

    def widen(self, indices: tuple[int, ...], variance: float) -> None:
        """Add a fully correlated variance along `indices`."""
        rows = np.ix_(indices, indices)
        for kf in self._filters:
            kf.P[rows] += variance
        self._mix()

    def replace(self, part: slice, p: Floats, x: Floats | None = None) -> None:
        """Begin a part of the state again, independent of all others."""
        for kf in self._filters:
            kf.P[part, :] = 0.0
            kf.P[:, part] = 0.0
            kf.P[part, part] = p
            kf.x[part] = 0.0 if x is None else x
        self._mix()
