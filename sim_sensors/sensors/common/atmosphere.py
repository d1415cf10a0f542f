"""The standard atmosphere below 11 km (ISO 2533 / ICAO Doc 7488), for barometers."""

from __future__ import annotations

import numpy as np

from rig_common.arrays import Floats

SEA_LEVEL_PRESSURE_PA = 101_325.0
SEA_LEVEL_TEMPERATURE_K = 288.15
CELSIUS_ZERO_K = 273.15

LAPSE_K_M = 0.0065
EARTH_RADIUS_M = 6_356_766.0
_GRAVITY = 9.80665
_GAS_CONSTANT_AIR = 287.05287
EXPONENT = _GRAVITY / (_GAS_CONSTANT_AIR * LAPSE_K_M)


def pressure_pa(
    altitude_m: object,
    sea_level_pressure_pa: float = SEA_LEVEL_PRESSURE_PA,
    sea_level_temperature_k: float = SEA_LEVEL_TEMPERATURE_K,
) -> Floats:
    """Return the static pressure, Pa, at geometric altitudes above mean sea level, m."""
    height = geopotential_m(altitude_m)
    ratio = 1.0 - LAPSE_K_M * height / sea_level_temperature_k
    return np.asarray(sea_level_pressure_pa * ratio**EXPONENT)


def geopotential_m(altitude_m: object) -> Floats:
    """Return the geopotential height, m: the geometric one less what gravity loses with it."""
    altitude = np.asarray(altitude_m, float)
    return EARTH_RADIUS_M * altitude / (EARTH_RADIUS_M + altitude)
