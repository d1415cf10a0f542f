"""Which latency model: the one that makes held-out latencies most likely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig_common.errors import RigError
from rig_common.validation import hint
from sensor_rig.fit.fitted import Fitted
from sensor_rig.fit.models import CANDIDATES
from sensor_rig.fit.statistics import Array

FOLDS = 5
MOST = 6000
"""Latencies that models are compared on; of more, evenly chosen ones."""
FEWEST = 20


@dataclass(frozen=True)
class ChosenModel:
    """The chosen model, and how all did."""

    fitted: Fitted
    scores: dict[str, float]
    """Mean log density of held-out latencies, by model; larger is better."""


def choose(x: Array, only: str = '') -> ChosenModel:
    """Fit every model (or those of the kind `only`) and return the likeliest.

    Each fold is a stretch of time, so that neighbours do not tell about each other.
    """
    names = [name for name in CANDIDATES if not only or only in (name, name.partition('_')[0])]
    if not names:
        kinds = sorted({name.partition('_')[0] for name in CANDIDATES})
        raise RigError(f'the model {only!r} cannot be fitted; {hint(only, kinds, "there are")}')
    x = x[::-(-len(x) // MOST)]
    scores: dict[str, float] = {}
    for name in names:
        found = [_held_out(name, x, part) for part in np.array_split(np.arange(len(x)), FOLDS)]
        scores[name] = float(np.concatenate(found).mean())
    best = max(scores, key=lambda name: scores[name])
    return ChosenModel(CANDIDATES[best](x), scores)


def _held_out(name: str, x: Array, part: np.typing.NDArray[np.intp]) -> Array:
    kept = np.delete(x, part)
    fitted = CANDIDATES[name](kept)
    found = fitted.log_density(x[part], fitted.values)
    return np.where(np.isfinite(found), np.maximum(found, -50.0), -50.0)
