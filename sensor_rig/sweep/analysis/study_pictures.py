"""The figures of a study as PNG files."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rig_common.saving import saving
from sensor_rig.sweep.analysis.binomial import interval
from sensor_rig.sweep.analysis.study import Interaction, Line, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE_IN = (7.0, 3.4)
DPI = 130


def write_pictures(study: Study, folder: Path) -> list[Path]:
    """Write every figure into `folder` and return the files."""
    import matplotlib as mpl

    mpl.use('Agg')
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for factor in study.factors:
        for measure in study.shown:
            if study.numeric(factor) and len(study.curve(factor, measure)) > 1:
                written.append(
                    _saved(
                        folder,
                        f'curve {factor} {measure}',
                        partial(_curve, study, factor, measure),
                    )
                )
    for line in study.lines:
        if not line.others:
            written.append(_saved(folder, f'good {line.factor}', partial(_success, study, line)))
    for each in study.interactions:
        written.append(_saved(folder, f'heat {each.x} {each.y}', partial(_heat, study, each)))
    return written


def _saved(folder: Path, name: str, draw: Callable[[Axes], None]) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=SIZE_IN, layout='constrained')
    draw(axes)
    file = folder / f'{re.sub(r"[^a-zA-Z0-9_.-]+", "_", name)[:180]}.png'
    try:
        with saving(file) as part:
            figure.savefig(part, dpi=DPI, metadata={'Software': None})
    finally:
        pyplot.close(figure)
    return file


def _curve(study: Study, factor: str, measure: str, axes: Axes) -> None:
    points = study.curve(factor, measure)
    xs = [point.value for point in points]
    axes.fill_between(
        xs,
        [point.low for point in points],
        [point.high for point in points],
        alpha=0.2,
        label=f'{study.plan.confidence:.0%} interval',
    )
    axes.plot(xs, [point.mean for point in points], 'o-', ms=3, label='mean')
    axes.plot(xs, [point.least for point in points], color='0.6', lw=0.7)
    axes.plot(xs, [point.most for point in points], color='0.6', lw=0.7, label='least, most')
    for claim in study.plan.claims:
        if claim.key == measure:
            axes.axhline(claim.limit, color='k', ls='--', lw=1, label=f'limit {claim.limit:g}')
    axes.set(xlabel=factor, ylabel=measure)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def _success(study: Study, line: Line, axes: Axes) -> None:
    xs = [level.value for level in line.levels]
    ys = np.array([level.good / level.runs for level in line.levels])
    bounds = np.array(
        [interval(level.good, level.runs, study.plan.confidence) for level in line.levels]
    )
    # A rounding error below zero is refused.
    ends = np.maximum([ys - bounds[:, 0], bounds[:, 1] - ys], 0.0)
    axes.errorbar(xs, ys, ends, fmt='o-', ms=3, capsize=2)
    for each in line.boundaries:
        axes.axvspan(each.low, each.high, color='tab:red', alpha=0.2)
    axes.set(xlabel=line.factor, ylabel='fraction of good runs', ylim=(-0.05, 1.05))
    axes.grid(alpha=0.3)


def _heat(study: Study, found: Interaction, axes: Axes) -> None:
    cells, what = (
        (found.good, 'fraction of good runs')
        if study.plan.limits
        else (found.means, found.measure)
    )
    table = np.array([[np.nan if cell is None else cell for cell in line] for line in cells])
    low, high = (0.0, 1.0) if study.plan.limits else (None, None)
    picture = axes.imshow(
        table, origin='lower', aspect='auto', cmap='viridis', vmin=low, vmax=high
    )
    for values, set_ticks in ((found.xs, axes.set_xticks), (found.ys, axes.set_yticks)):
        set_ticks(
            range(len(values)),
            [f'{v:.3g}' if isinstance(v, float) else str(v) for v in values],
            fontsize=8,
        )
    axes.set(xlabel=found.x, ylabel=found.y)
    axes.figure.colorbar(picture, ax=axes, label=what)
