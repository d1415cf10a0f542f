"""Drives in a plane with known speed and turns, for clocks that are compared by speed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rig_common.arrays import Floats

STEP_S = 0.01
Speed = Callable[[Floats], Floats]


def varying(t_s: Floats) -> Floats:
    return np.asarray(0.8 + 0.5 * np.sin(0.9 * t_s) + 0.2 * np.sin(2.3 * t_s))


def constant(t_s: Floats) -> Floats:
    return np.full_like(t_s, 1.0)


def bends(t_s: Floats) -> Floats:
    return np.asarray(0.5 * np.sin(0.4 * t_s) + 0.3 * np.sin(1.1 * t_s))


def straight(t_s: Floats) -> Floats:
    return np.zeros_like(t_s)


def driven(speed: Speed, turn_rate: Speed, lasting_s: float = 60.0) -> tuple[Floats, Floats]:
    """Return times [n] and places [n] (complex, m) of a drive."""
    t_s = np.arange(0.0, lasting_s, STEP_S)
    heading = np.cumsum(turn_rate(t_s)) * STEP_S
    return t_s, np.cumsum(speed(t_s) * np.exp(1j * heading)) * STEP_S
