"""Whether the runs of a sweep show what its plan requires."""

from __future__ import annotations

from dataclasses import dataclass, field

from sensor_rig.sweep.analysis.binomial import lower_bound, runs_needed
from sensor_rig.sweep.analysis.boundaries import FactorLevel
from sensor_rig.sweep.plan.sweep_plan import Requirement


@dataclass(frozen=True)
class RequirementVerdict:
    """Whether a requirement is met."""

    requirement: Requirement
    confidence: float
    met: bool
    says: str
    levels: tuple[FactorLevel, ...] = field(default_factory=tuple)


def verdict(
    wanted: Requirement, sure: float, levels: tuple[FactorLevel, ...], *, name_level: bool
) -> RequirementVerdict:
    """Judge `wanted` with confidence `sure` by its worst level; without levels it is not met."""
    where = ' and '.join(
        filter(
            None,
            (
                f'from {wanted.down_to:g}' if wanted.down_to is not None else '',
                f'up to {wanted.up_to:g}' if wanted.up_to is not None else '',
            ),
        )
    )
    claim = (
        f'{wanted.factor} {where}: at least {wanted.success:.0%} good with {sure:.0%} confidence'
    )
    if not levels:
        return RequirementVerdict(wanted, sure, False, f'{claim}: no run is in there')
    worst = min(levels, key=lambda each: lower_bound(each.good, each.runs, sure))
    least = lower_bound(worst.good, worst.runs, sure)
    at = f' at {worst.value:g}' if name_level else ''
    told = f'{worst.good} of {worst.runs} good{at} show at least {least:.1%}'
    if least >= wanted.success:
        return RequirementVerdict(wanted, sure, True, f'{claim}: {told}', levels)
    if worst.good == worst.runs:
        told += f'; it takes {runs_needed(wanted.success, sure)} runs, all of them good'
    return RequirementVerdict(wanted, sure, False, f'{claim}: {told}', levels)
