"""Choose the fastest backend for a scene by trying them."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import mujoco
import numpy as np

from rig_common.errors import RigError
from sim_sensors.raycast import memory
from sim_sensors.raycast.arrangement import Arrangement, neighbour_rows
from sim_sensors.raycast.base import F64, Bool, RayCaster
from sim_sensors.raycast.embree import EmbreeCaster
from sim_sensors.raycast.embree_api import load_embree
from sim_sensors.raycast.multiray import MujocoCaster

Maker = Callable[[], RayCaster]

_ROUNDS = 8
_IN_A_ROW = 2
_BUDGET_S = 0.25
_USUAL = f'embree, {Arrangement()}'
_GROUPS = ((16, False), (16, True), (8, True))
"""Rays a call and whether they are bundled; without AVX-512 Embree bundles 8 at most."""
_CLEARLY = 0.96
"""The usual choice is left only for one at least 4 % faster, so that ties do not flip."""
_WORTH_A_THREAD = 0.7
"""Two threads may take this much of one's time: physics and other sensors want the second too."""


def choose_caster(
    model: mujoco.MjModel,
    max_range_m: float,
    visible: Bool,
    *,
    directions: F64 | None,
    data: mujoco.MjData | None = None,
    origin: F64 | None = None,
    use_memory: bool = True,
) -> RayCaster:
    """Return the caster that was fastest on `directions` ([n, 3]), with the figures as reason.

    Without `data` the model's initial state is used, without `origin` ([3] or [n, 3]) the middle
    of the scene.
    With `use_memory` a scene that was measured before on this machine is not measured again.
    """
    if directions is None:
        raise RigError("backend 'auto' needs the ray directions it is to be fast for")
    makers, missing = candidates(model, max_range_m, visible, directions)
    moves = origin is not None and origin.ndim > 1
    key = memory.scene_key(model, visible, max_range_m, len(directions), moves)
    best = memory.recall(key) if use_memory else None
    if best in makers:
        chosen, figures = makers[best](), 'as measured before on this machine'
    else:
        if data is None:
            data = mujoco.MjData(model)
            mujoco.mj_kinematics(model, data)
        if origin is None:
            origin = np.array(model.stat.center, dtype=float)
        best, chosen, figures = _fastest(makers, data, origin, directions)
        if use_memory:
            memory.remember(key, best)
    chosen.reason = f'auto chose {best} for {len(directions)} rays: {figures}{missing}'
    return chosen


def _fastest(
    makers: dict[str, Maker], data: mujoco.MjData, origin: F64, directions: F64
) -> tuple[str, RayCaster, str]:
    """Return the fastest caster with its name before and everyone's figures after it."""
    casters = {name: make() for name, make in makers.items()}
    times_s = _measure(casters, data, origin, directions)
    prices = {
        name: times_s[name] / (_WORTH_A_THREAD if caster.is_threaded else 1.0)
        for name, caster in casters.items()
    }
    best = min(prices, key=lambda name: prices[name])
    if _USUAL in prices and prices[best] > _CLEARLY * prices[_USUAL]:
        best = _USUAL
    chosen = casters.pop(best)
    for caster in casters.values():
        caster.close()
    figures = ', '.join(f'{name} {times_s[name] * 1e3:.3g} ms' for name in times_s)
    return best, chosen, figures


def candidates(
    model: mujoco.MjModel, max_range_m: float, visible: Bool, directions: F64
) -> tuple[dict[str, Maker], str]:
    """Return how to make everything that can cast `directions` ([n, 3]), and what is missing."""
    makers: dict[str, Maker] = {}
    missing = ''
    try:
        load_embree()
    except RigError as error:
        missing = f'; {error}'
    else:
        embree = functools.partial(EmbreeCaster, model, max_range_m, visible)
        rows = neighbour_rows(directions)
        for width, bundled in _GROUPS:
            arrangement = Arrangement(width, bundled, rows)
            makers[f'embree, {arrangement}'] = functools.partial(embree, arrangement)
        if (visible & (model.body_weldid[model.geom_bodyid] != 0)).any():
            makers['embree, moving geoms by mujoco'] = functools.partial(
                embree, Arrangement(rows=rows), 'mujoco'
            )
    own = functools.partial(MujocoCaster, model, max_range_m, visible)
    makers['mujoco'] = own
    makers['mujoco, 2 threads'] = functools.partial(own, threads=2)
    return makers, missing


def _measure(
    casters: dict[str, RayCaster], data: mujoco.MjData, origin: F64, directions: F64
) -> dict[str, float]:
    """Return each caster's fastest of a few scans, taken in turns, in seconds.

    Where one thread does all the work its own clock is read, which other processes do not move.
    """
    best = dict.fromkeys(casters, np.inf)
    clocks = {
        name: time.perf_counter if caster.is_threaded else time.thread_time
        for name, caster in casters.items()
    }
    for caster in casters.values():
        caster.cast(data, origin, directions)
    end = time.perf_counter() + _BUDGET_S
    for round_index in range(_ROUNDS):
        for name, caster in casters.items():
            for _ in range(_IN_A_ROW):
                start = clocks[name]()
                caster.cast(data, origin, directions)
                best[name] = min(best[name], clocks[name]() - start)
        if round_index >= 1 and time.perf_counter() > end:
            break
    return best
