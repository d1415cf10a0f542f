"""The least sigma that any estimate can have: the posterior Cramer-Rao bound, moment by moment.

Unknown are the offset, its drift, the latency (with its prior), the gyro's bias and, where it is
not declared, the mounting. Given are the motion and the noise that were drawn. The clocks stand
still or drift: no wander is put in, and none is allowed for.
"""

from __future__ import annotations

import numpy as np
from support.trust_streams import LONGEST_TURN_S, SENSOR, Habits

from rig_common.arrays import Floats
from sync_engine.cues.turn_rows import GYRO_DENSITY

_BIAS_SIGMA_RAD_S, _MOUNTING_SIGMA_RAD = 0.02, 2.0
_BESIDE_S = 0.01
_IMU_LATENCY_SIGMA_S = 1e-3


def bounds_s(habits: Habits) -> tuple[Floats, Floats]:
    """Return the captures (s) and the least sigma of sensor minus IMU at each of them (s)."""
    captures = habits.captures_s()
    rows, noise = _rows(habits, captures)
    config = habits.streams().config
    latency_var = config.inputs[SENSOR].latency_sigma_s ** 2 + _IMU_LATENCY_SIGMA_S**2
    skew_var = config.adakf.skew_sigma**2
    known = any(habits.quat_wxyz)
    mounting_var = (0.035 if known else _MOUNTING_SIGMA_RAD) ** 2
    p = np.diag([latency_var + 1e-6, skew_var, latency_var, *[_BIAS_SIGMA_RAD_S**2] * 3]
                + [mounting_var] * 3)  # fmt: skip
    p[0, 2] = p[2, 0] = latency_var
    arrival = np.zeros((1, 9))
    arrival[0, [0, 2]] = 1.0, -1.0
    sigmas, block_s, since = [float(np.sqrt(p[0, 0]))], 0.0, 0
    for k, dt in enumerate(np.diff(captures)):
        step = np.eye(9)
        step[0, 1] = dt
        p = step @ p @ step.T
        if dt < LONGEST_TURN_S:
            p = _told(p, rows[k], noise[k])
        block_s, since = block_s + dt, since + 1
        if block_s >= config.adakf.block_s:
            p = _told(p, arrival, habits.jitter_s**2 / since)
            block_s, since = 0.0, 0
        sigmas.append(float(np.sqrt(p[0, 0])))
    return captures, np.array(sigmas)


def _rows(habits: Habits, captures: Floats) -> tuple[Floats, Floats]:
    """Return how the turns depend on the unknowns [n, 3, 9] and their variances [n]."""
    before, turns, after = (
        habits.turned(captures + by) for by in (-_BESIDE_S, 0.0, _BESIDE_S)
    )  # fmt: skip
    dt = np.diff(captures)
    rows = np.zeros((len(dt), 3, 9))
    rows[:, :, 0] = (before - after) / (2.0 * _BESIDE_S)
    rows[:, :, 3:6] = np.eye(3) * dt[:, None, None]
    x, y, z = turns.T
    zero = np.zeros(len(dt))
    rows[:, :, 6:9] = np.stack([zero, z, -y, -z, zero, x, y, -x, zero], axis=1).reshape(-1, 3, 3)
    return rows, habits.turn_sigma_rad**2 + GYRO_DENSITY**2 * dt


def _told(p: Floats, h: Floats, variance: float) -> Floats:
    gain = np.linalg.solve(h @ p @ h.T + variance * np.eye(len(h)), h @ p).T
    return np.asarray(p - gain @ h @ p)
