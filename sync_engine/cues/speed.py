"""How far a sensor went: clocks of machines that hardly turn, and of sensors that show no turns.

Positions (GNSS, odometry, poses of a LiDAR) or velocities (wheels, Doppler, radar) of one sensor
are laid over the way of another one, as turns are laid over the integrated gyro. The scale is free
(a wheel's radius, km/h), and so is the rotation between the two frames (east and north, and where
an odometry began).

| reference has a heading | sensor gives | compared |
|---|---|---|
| yes | positions | places of 10 s at a time, against their mean: the error of each counts once |
| yes | velocities | how far it went from sample to sample |
| no | any | how far it went: positions over stretches that are long against their noise |

A velocity in the body's frame with turns about z has a heading; without turns it is a speed.
"""

from __future__ import annotations

from collections import deque
from math import cos, radians, sin, sqrt

import numpy as np

from rig_common.arrays import Floats
from rig_common.times import NS_PER_S
from sync_engine.cues.base import XYZ_AXES, GyroLookup
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import CueTraits, Rotation, RotationFit
from sync_engine.streams.payload import CueValues

SPEED_TRAITS = CueTraits(
    scale_sigma=1.0,
    least_honesty=1.0,
    mounting_walk=3e-2,
    pace=8.0,
    piece_s=(10.0, 10.0),
    piece_sigma_s=0.02,
)
"""Wheels lose their heading by degrees where a machine turns, and a heading that is off looks like
a time on a circle: 20 ms in 10 s where they turn 2 % too far. Residuals of places against their
own mean show too little noise."""
_SHARED_S = 10.0
"""Positions of this time are compared with their mean."""
_SPACING_S = 0.09
"""Samples that come sooner than this after another one tell little more."""
_LONGEST_S = 2.0
"""Over a longer gap the way in between is not known; also the longest stretch of a size."""
_CLEAR = 10.0
"""A stretch of positions is as long as this many times their noise."""
_NOISE_OF = 40
"""Samples that show the noise, by their third differences."""
_LEAST_OF = 8
"""Of these as many as are needed."""
_ASTRAY = 0.01
"""Share of a way by which the reference's own one bends and stretches besides."""
_LEAST_NOISE = 2e-3
"""Of a position (m), or of a velocity (m/s)."""
_STILL_M_S = 0.02
_EQUATOR_M, _E2 = 6378137.0, 0.00669438
"""Of the WGS 84 ellipsoid: radius and squared eccentricity."""


class Travel:
    """Where a sensor is, from any start (m): positions, fixes, or velocities added up."""

    def __init__(self) -> None:
        self._origin: tuple[float, float] | None = None
        self._last: tuple[int, Floats, float] | None = None
        self._before: tuple[int, Floats | None] | None = None
        self._place, self._heading = np.zeros(3), 0.0
        self.has_heading = False
        """Whether it bends where the sensor turns; else it is a straight line, as long as it."""

    def follow(self, stamp_ns: int, values: CueValues) -> Floats | None:
        """Return the place [3] of an input; None where it has none."""
        if 'velocity' in values and np.isfinite(values['velocity']).all():
            velocity, turn_rate = np.asarray(values['velocity']), float(values['turn_rate'][2])
            self.has_heading |= turn_rate != 0.0
            self._add(stamp_ns, velocity, turn_rate)
            return self._place.copy()
        place = self._local(*values['fix']) if 'fix' in values else values.get('position')
        if place is None or not np.isfinite(place).all():
            return None
        self.has_heading = True
        return np.asarray(place, dtype=np.float64)

    def moved(self, stamp_ns: int, values: CueValues) -> Rotation | None:
        """Return how far it went since the last input; None at first and after a gap."""
        place = self.follow(stamp_ns, values)
        before, self._before = self._before, (stamp_ns, place)
        if place is None or before is None or before[1] is None:
            return None
        if not 0 < stamp_ns - before[0] <= _LONGEST_S * NS_PER_S:
            return None
        way = tuple((place - before[1]).tolist())
        return Rotation(before[0], stamp_ns, way, XYZ_AXES, (0.0,) * 3, is_way=True)

    def _add(self, stamp_ns: int, velocity: Floats, turn_rate: float) -> None:
        """Go on with the mean of the last velocity and this one (body frame, m/s, rad/s)."""
        last, self._last = self._last, (stamp_ns, velocity, turn_rate)
        if last is None or not 0 < stamp_ns - last[0] <= _LONGEST_S * NS_PER_S:
            return
        dt = (stamp_ns - last[0]) / NS_PER_S
        turned = 0.5 * dt * (turn_rate + last[2])
        along = 0.5 * dt * (velocity + last[1])
        if not self.has_heading:
            along = np.array([sqrt(float(along @ along)), 0.0, 0.0])
        middle, self._heading = self._heading + 0.5 * turned, self._heading + turned
        c, s = cos(middle), sin(middle)
        moved = c * along[0] - s * along[1], s * along[0] + c * along[1], along[2]
        self._place = self._place + np.array(moved)

    def _local(self, latitude_deg: float, longitude_deg: float, height_m: float) -> Floats:
        """Return metres to the east, north and up of the first fix (height above any zero)."""
        if self._origin is None:
            self._origin = latitude_deg, longitude_deg
        latitude = radians(self._origin[0])
        turned = (longitude_deg - self._origin[1] + 180.0) % 360.0 - 180.0
        flat = 1.0 - _E2 * sin(latitude) ** 2
        across_m = _EQUATOR_M / sqrt(flat)
        along_m = across_m * (1.0 - _E2) / flat
        north_deg = latitude_deg - self._origin[0]
        return np.array(
            [across_m * cos(latitude) * radians(turned), along_m * radians(north_deg), height_m]
        )


class SpeedCue:
    """`position` [3] (m), `fix` (degrees, degrees, m), or `velocity` [3] with `turn_rate` [3].

    `straight`: the reference knows no heading, so that only how far it went can be compared.
    """

    def __init__(self) -> None:
        self._way = Travel()
        self._noise: deque[Floats] = deque(maxlen=_NOISE_OF)
        """Squared third differences of what was read last."""
        self.reset()

    def reset(self) -> None:
        """Forget the last input."""
        self._recent: deque[tuple[int, Floats]] = deque(maxlen=4)
        self._start: tuple[int, Floats] | None = None
        self._told_ns = 0

    def feed(
        self, stamp_ns: int, values: CueValues, gyro: GyroLookup | None = None
    ) -> Rotation | None:
        """Take one input; return how far it went since an earlier one."""
        is_rate = 'velocity' in values
        place = self._way.follow(stamp_ns, {**values, 'turn_rate': (0.0, 0.0, 0.0)})
        if place is None or (self._recent and stamp_ns <= self._recent[-1][0]):
            return None
        read = [float(np.linalg.norm(values['velocity']))] if is_rate else place[:2]
        self._recent.append((stamp_ns, np.asarray(read)))
        noise_var = self._noise_var()
        if self._start is None:
            self._start = stamp_ns, place
        since_ns, start = self._start
        lasted_s, moved = (stamp_ns - since_ns) / NS_PER_S, (place - start)[:2]
        if noise_var is None or (stamp_ns - max(self._told_ns, since_ns)) / NS_PER_S < _SPACING_S:
            return None
        if is_rate or values.get('straight'):
            far = float(np.linalg.norm(moved))
            if not is_rate and far < _CLEAR * noise_var**0.5 and lasted_s < _LONGEST_S:
                return None
            variance = noise_var * (lasted_s**2 if is_rate else 2.0)
            self._start, self._told_ns = (stamp_ns, place), stamp_ns
            return (
                Rotation(since_ns, stamp_ns, (far,), None, (variance,), is_way=True)
                if lasted_s <= _LONGEST_S
                else None
            )
        self._told_ns = stamp_ns
        if lasted_s > _SHARED_S:
            self._start = stamp_ns, place
            return None
        east, north = moved.tolist()
        variance = noise_var + _ASTRAY**2 * (east**2 + north**2)
        return Rotation(
            since_ns, stamp_ns, (east, north), XYZ_AXES[:2], (variance,) * 2, is_way=True
        )

    def _noise_var(self) -> float | None:
        """Return the variance of what is read, as its third differences show; None at first."""
        if len(self._recent) == 4:
            stamps, read = (np.array(each) for each in zip(*self._recent, strict=True))
            apart = np.subtract.outer(stamps, stamps) / (stamps[-1] - stamps[0]) + np.eye(4)
            weights = 1.0 / apart.prod(axis=1)  # of the third divided difference
            self._noise.append((weights @ read) ** 2 / (weights @ weights))
        if len(self._noise) < _LEAST_OF:
            return None
        return max(float(np.median(np.concatenate(self._noise))) / 0.455, _LEAST_NOISE**2)


def speed_doubt(reference: GyroTrack, fit: RotationFit, of: str) -> str:
    """Say in one sentence why a sensor's speed, against that `of` another, gave no offset."""
    if fit.is_found or not fit.refused:
        return ''
    rates = reference.rates()
    if np.sqrt(rates.var(axis=1).sum()) < _STILL_M_S:
        still = np.linalg.norm(rates.mean(axis=1)) < _STILL_M_S
        return f'nothing moves, as {of} says' if still else f'{of} shows no change of speed'
    if fit.mismatched:
        share = round(100.0 * fit.explained)
        return f'the speed does not follow {of}, which explains {share} % of it'
    return 'the motion fits more than one offset: too little braking and turning'
