"""Which latency model: the one that makes held-out latencies most likely, if its tail is right.

The likelihood of some hundred latencies hardly sees the few late ones, which matter most to a
user: of models that are about as likely, 99 % quantiles differ by a quarter. So among these one
with the measured quantiles is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.validation import hint, validated
from sensor_rig.fit.fitted import Fitted
from sensor_rig.fit.models import CANDIDATES, fixed
from sim_sensors.timing.latency_config import LatencyConfig
from sim_sensors.timing.marginals import quantile_of

FOLDS = 5
MOST = 6000
"""Latencies that models are compared on; of more, evenly chosen ones."""
TAIL, TAIL_MISFIT = (0.95, 0.99), 0.05
"""Quantiles whose distance from the median a model has to have, and how far off it may be."""
CLOSE = 0.02
"""Of the mean log density: models that are about as likely as the best. A model that is right is
often further ahead than this of those that are not."""
LEAST_LOG = -50.0
"""Log density of a latency that a model holds for impossible."""
NOISELESS_S = 1e-8
"""Standard deviation below which a latency is fixed."""


@dataclass(frozen=True)
class ChosenModel:
    """The chosen model, and how all did."""

    fitted: Fitted
    scores: dict[str, float]
    """Mean log density of held-out latencies, by model; larger is better."""
    passed_over: tuple[str, ...] = ()
    """Likelier ones whose tail is not the measured one."""


def candidates(only: str) -> list[str]:
    """Return the models of the kind `only`, all without one; RigError where there are none."""
    names = [name for name in CANDIDATES if not only or only in (name, name.partition('_')[0])]
    if not names:
        kinds = sorted({name.partition('_')[0] for name in CANDIDATES})
        raise RigError(f'the model {only!r} cannot be fitted; {hint(only, kinds, "there are")}')
    return names


def choose(x: Floats, only: str = '') -> ChosenModel:
    """Fit every model (or those of the kind `only`); return the likeliest with the right tail.

    Each fold is a stretch of time, so that neighbours do not tell about each other.
    """
    names = candidates(only)
    x = x[:: -(-len(x) // MOST)]
    if x.std() < NOISELESS_S:
        return ChosenModel(fixed(x), {})
    models, scores = {}, {}
    for name in names:
        found = _fitted(name, x)
        parts = [_held_out(name, x, part) for part in np.array_split(np.arange(len(x)), FOLDS)]
        if found is not None and config_of(found) is not None:
            models[name], scores[name] = found, float(np.concatenate(parts).mean())
    if not models:
        return ChosenModel(fixed(x), {})
    best = max(scores.values())
    close = sorted(
        (name for name in models if scores[name] > best - CLOSE), key=lambda name: -scores[name]
    )
    misfits = [tail_misfit(models[name], x) for name in close]
    right = next((i for i, misfit in enumerate(misfits) if misfit <= TAIL_MISFIT), 0)
    return ChosenModel(models[close[right]], scores, tuple(close[:right]))


def _fitted(name: str, x: Floats) -> Fitted | None:
    """Return the model fitted to `x`; None where these latencies have no such model."""
    try:
        found = CANDIDATES[name](x)
    except (ArithmeticError, ValueError, np.linalg.LinAlgError):
        return None
    return found if np.isfinite(found.values).all() else None


def config_of(fitted: Fitted) -> LatencyConfig | None:
    """Return the model as a rig file has it; None where a rig file cannot have it."""
    try:
        return validated(LatencyConfig, fitted.keys(), fitted.name)
    except RigError:
        return None


def tail_misfit(fitted: Fitted, x: Floats) -> float:
    """Return how far the tail of a model is off, as a part of the measured one."""
    from scipy.stats.mstats import hdquantiles  # half a second to load

    config = config_of(fitted)
    if config is None:
        return np.inf
    at = np.array([0.5, *TAIL])
    # Harrell and Davis (1982): less noisy than one order statistic in the tail of some hundred
    theirs, ours = quantile_of(config, at), np.asarray(hdquantiles(x, at))
    measured = np.maximum(ours[1:] - ours[0], 1e-9)
    return float(np.abs((theirs[1:] - theirs[0]) / measured - 1.0).max())


def _held_out(name: str, x: Floats, part: np.typing.NDArray[np.intp]) -> Floats:
    fitted = _fitted(name, np.delete(x, part))
    if fitted is None:
        return np.full(len(part), LEAST_LOG)
    found = fitted.log_density(x[part], fitted.values)
    return np.where(np.isfinite(found), np.maximum(found, LEAST_LOG), LEAST_LOG)
