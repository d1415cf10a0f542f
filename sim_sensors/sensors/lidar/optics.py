"""What a beam sends back: echoes, their strength, the noise and the gaps that follow from it."""

from __future__ import annotations

import mujoco
import numpy as np

from rig_common.arrays import Flags, Floats32
from sim_sensors.interface import Batch
from sim_sensors.raycast.shape_exceptions import flex_id, flex_material
from sim_sensors.sensors.lidar.config import BeamConfig, LidarConfig, OpticsConfig
from sim_sensors.timing.arrays import Array, arrays_holding

TUPLE_NAME = 'reflectivity'
"""Name of the model's custom tuple of materials and geoms with their reflectivity."""
DARK_TARGET = 0.1
"""Reflectivity of the target that data sheets quote the shorter range for."""
LEAST_SIGNAL = 1e-3
"""Weaker returns count as this strong in the noise, which then has grown 30 times."""


def reflectivity_table(model: mujoco.MjModel, config: OpticsConfig) -> Floats32:
    """Return reflectivities by the ids in `Hits.geom`: of geoms, flexes and, last, of a miss, 0.

    The ids of flexes and of a miss are negative, and count from the end of the table.
    """
    by_material: dict[int, float] = {}
    by_geom: dict[int, float] = {}
    for index in range(model.ntuple):
        if model.tuple(index).name != TUPLE_NAME:
            continue
        start, size = model.tuple_adr[index], model.tuple_size[index]
        for entry in range(start, start + size):
            place = (
                by_geom
                if model.tuple_objtype[entry] == mujoco.mjtObj.mjOBJ_GEOM
                else (by_material)
            )
            place[int(model.tuple_objid[entry])] = float(model.tuple_objprm[entry])
    for name, value in config.reflectivity.items():
        material = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_MATERIAL, name)
        geom = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, name)
        if material >= 0:
            by_material[material] = value
        if geom >= 0:
            by_geom[geom] = value
    table = np.full(model.ngeom + model.nflex + 1, config.default_reflectivity, np.float32)
    table[-1] = 0.0
    materials = [*enumerate(model.geom_matid.tolist())]
    materials += [(flex_id(flex), flex_material(model, flex)) for flex in range(model.nflex)]
    for surface, material in materials:
        table[surface] = by_geom.get(surface, by_material.get(material, table[surface]))
    return table


def sub_beams(directions: Array, config: BeamConfig) -> Array:
    """Return [n, rays, 3] unit vectors: each direction [n, 3] first, then its cone around it."""
    count = config.rays
    if count == 1:
        return directions[:, None]
    helper = np.where(np.abs(directions[:, 2:]) < 0.9, [[0.0, 0.0, 1.0]], [[1.0, 0.0, 0.0]])
    side = np.cross(directions, helper)
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, directions)
    # A sunflower: evenly spread over the disc, whatever their number.
    rank = np.arange(count)
    reach = np.tan(config.divergence_rad / 2.0) * np.sqrt(rank / (count - 1))
    turn = np.pi * (3.0 - np.sqrt(5.0)) * rank
    beams = (
        directions[:, None]
        + (reach * np.cos(turn))[:, None] * side[:, None]
        + (reach * np.sin(turn))[:, None] * up[:, None]
    )
    return np.asarray(beams / np.linalg.norm(beams, axis=2, keepdims=True))


def merge_echoes(
    ranges: Floats32, signal: Floats32, config: BeamConfig
) -> tuple[Floats32, Floats32]:
    """Return the reported range [n] (+inf: none) and signal [n] of beams of [n, rays].

    Every ray carries an equal share of the beam; its echo arrives with signal / range squared.
    The chosen echo takes in all others within a pulse length, weighted by their energy.
    """
    energy = np.where(np.isfinite(ranges), signal / np.square(ranges), 0.0)
    if config.returns == 'first':
        anchor = ranges.min(axis=1)
    elif config.returns == 'last':
        anchor = np.where(np.isfinite(ranges), ranges, -np.inf).max(axis=1)
    else:
        anchor = ranges[np.arange(len(ranges)), energy.argmax(axis=1)]
    with np.errstate(invalid='ignore', divide='ignore'):
        apart = np.abs(ranges - anchor[:, None])
        energy[~(apart <= config.pulse_length_m)] = 0.0
        total = energy.sum(axis=1)
        merged = np.where(np.isfinite(ranges), ranges * energy, 0.0).sum(axis=1) / total
    found = total > 0.0
    mixed = np.where(found, merged, np.inf).astype(np.float32)
    back = np.where(found, total * np.square(np.where(found, merged, 0.0)), 0.0)
    return mixed, (back / ranges.shape[1]).astype(np.float32)


def is_surface_needed(config: LidarConfig, intensities: bool) -> bool:
    """Tell whether anything depends on how strong a return is."""
    optics = config.optics
    grows = (config.noise > 0.0 or config.noise_per_m > 0.0) and optics.weak_signal_noise > 0.0
    return bool(intensities or optics.dark_range_m or grows or config.beam.rays > 1)


def extra_deviation(ranges: Floats32, signal: Floats32, config: LidarConfig) -> Floats32 | None:
    """Return the standard deviation [m, n] to add to the generic `noise`; None for none at all.

    Together they make (noise + noise_per_m * range) * (reference / signal) ^ exponent.
    """
    optics = config.optics
    exponent = optics.weak_signal_noise if config.noise or config.noise_per_m else 0.0
    if not exponent and not config.noise_per_m:
        return None
    xp = arrays_holding(ranges)
    finite = xp.where(xp.isfinite(ranges), ranges, 0.0)
    deviation = config.noise + config.noise_per_m * finite
    if exponent:
        weak = optics.reference_signal / xp.maximum(signal, LEAST_SIGNAL)
        deviation *= xp.pow(xp.maximum(weak, 1.0), exponent)
    extra = deviation * deviation - float(np.float32(config.noise) ** 2)
    return xp.sqrt(xp.maximum(extra, 0.0))


def lost_returns(
    ranges: Floats32, signal: Floats32, config: OpticsConfig, batch: Batch
) -> Flags | None:
    """Return [m, n] True where a return is too weak to be seen, or is lost anyway."""
    if not config.dark_range_m and not config.dropout_probability:
        return None
    xp, kept = batch.noise.xp, float(np.float32(1.0 - config.dropout_probability))
    chance: Array | float = kept
    if config.dark_range_m:
        with np.errstate(divide='ignore', over='ignore', invalid='ignore'):
            needed = DARK_TARGET * (ranges / config.dark_range_m) ** 2
            chance = kept / (1.0 + xp.pow(needed / signal, config.dropout_slope))
    drawn = batch.noise.uniform('dropout', batch, ranges.shape[1])
    return ~(drawn < chance)


def intensity(ranges: Floats32, signal: Floats32, config: OpticsConfig) -> Floats32:
    """Return what a sensor reports as intensity, [m, n]; 0 without a return."""
    strength, xp = signal * config.intensity_scale, arrays_holding(ranges)
    if config.intensity_range_m:
        with np.errstate(invalid='ignore'):
            far = config.intensity_range_m / xp.maximum(xp.abs(ranges), config.intensity_range_m)
            strength *= far * far
    strength[~xp.isfinite(ranges)] = 0.0
    return strength
