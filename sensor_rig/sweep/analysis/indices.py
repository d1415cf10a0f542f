"""Which factors matter: Sobol and Morris indices by SALib, of plans sampled for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sensor_rig.sweep.plan.sampling import problem, units
from sensor_rig.sweep.plan.sweep_plan import Plan

RESAMPLES = 1000


@dataclass(frozen=True)
class Index:
    """How much one factor matters, with the half-width of its confidence interval."""

    factor: str
    first: float | None
    """Sobol: part of the variance by this factor alone. Morris: mean of the effects, mu."""
    first_half: float | None
    total: float
    """Sobol: part with all its interactions. Morris: mean size of the effects, mu star."""
    total_half: float
    spread: float | None = None
    """Morris: sigma of the effects; large against mu star where it interacts or is not linear."""


@dataclass(frozen=True)
class Indices:
    """The factors, for one measure."""

    measure: str
    method: str
    factors: tuple[Index, ...] = ()
    says: str = ''
    """Why there are none."""


def indices_of(plan: Plan, measure: str, outputs: Mapping[int, float]) -> Indices:
    """Return the indices of a measure; `outputs` is its mean by point of the design."""
    method = plan.sample.method
    cube = units(plan.sample, len(plan.vary))
    missing = len(cube) - len(outputs)
    if missing:
        return Indices(measure, method, says=f'{missing} of {len(cube)} points have no value')
    values = np.array([outputs[point] for point in range(len(cube))])
    if np.ptp(values) == 0.0:
        return Indices(measure, method, says='it is the same everywhere')
    given = {**problem(list(plan.vary))}
    if method == 'saltelli':
        from SALib.analyze import sobol

        found = sobol.analyze(
            given,
            values,
            calc_second_order=False,
            conf_level=plan.confidence,
            num_resamples=RESAMPLES,
            seed=plan.sample.seed,
        )
        return Indices(
            measure,
            method,
            tuple(
                Index(name, *(float(found[key][at]) for key in ('S1', 'S1_conf', 'ST', 'ST_conf')))
                for at, name in enumerate(plan.vary)
            ),
        )
    from SALib.analyze import morris

    found = morris.analyze(
        given,
        cube,
        values,
        conf_level=plan.confidence,
        num_levels=plan.sample.levels,
        num_resamples=RESAMPLES,
        seed=plan.sample.seed,
    )
    return Indices(
        measure,
        method,
        tuple(
            Index(
                name,
                float(found['mu'][at]),
                None,
                float(found['mu_star'][at]),
                float(found['mu_star_conf'][at]),
                float(found['sigma'][at]),
            )
            for at, name in enumerate(plan.vary)
        ),
    )
