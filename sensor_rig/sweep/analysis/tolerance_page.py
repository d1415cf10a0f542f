"""The page of `rig tolerance`: the verdict, where it stops working, curves, what matters."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from sensor_rig.drawing import html_page as page
from sensor_rig.drawing import svg
from sensor_rig.drawing.plots import LETTER, Plot, label
from sensor_rig.sweep.analysis.binomial import interval
from sensor_rig.sweep.analysis.boundaries import Boundary
from sensor_rig.sweep.analysis.indices import Indices
from sensor_rig.sweep.analysis.study import CurvePoint, FactorLine, Interaction, Study

MOST_LINES = 60
"""Rows of the table of boundaries."""
CELL_PX = (74.0, 26.0)


def tolerance_page(study: Study) -> str:
    """Return the HTML of a study."""
    limits, drawn = ' and '.join(study.plan.limits), figures(study)
    subtitle = f'{len(study.rows)} runs' + (f'; good is: {limits}' if limits else '')
    return page.page(
        study.plan.title or study.name,
        subtitle,
        [
            _tiles(study),
            *_requirements(study),
            *_boundaries(study, drawn),
            *_curves(study, drawn),
            *_indices(study),
            *_interactions(study, drawn),
        ],
    )


def figures(study: Study) -> dict[str, str]:
    """Return the figures of the page by name, as SVG."""
    found = {
        f'good {line.factor}': _success(line, study.plan.confidence)
        for line in study.lines
        if not line.others
    }
    for factor, measure in product(filter(study.numeric, study.factors), study.shown):
        points = study.curve(factor, measure)
        if len(points) > 1:
            found[f'curve {factor} {measure}'] = _curve_plot(study, factor, measure, points)
    for each in study.interactions:
        if study.plan.limits:
            drawn = heat_map(each, each.good, 'fraction of good runs', (0.0, 1.0))
        elif each.measure:
            drawn = heat_map(each, each.means, each.measure)
        else:
            continue
        found[f'heat {each.x} {each.y}'] = drawn
    return found


def _tiles(study: Study) -> str:
    entries = [(f'{len(study.rows)}', 'runs', '')]
    entries += [
        (f'{count}', status, '' if status == 'ok' else 'bad')
        for status, count in study.statuses.items()
    ]
    if study.plan.limits:
        good = sum(row.good for row in study.rows)
        entries.append((f'{good}', 'good', ''))
    if study.verdicts:
        met = sum(each.met for each in study.verdicts)
        entries.append(
            (f'{met} of {len(study.verdicts)}', 'requirements met', 'good' if study.met else 'bad')
        )
    return page.tiles(entries)


def _requirements(study: Study) -> list[str]:
    if not study.verdicts:
        return []
    return [
        page.section(
            'Requirements',
            *(
                page.text(f'Met: {each.says}')
                if each.met
                else page.warning(f'Not met: {each.says}')
                for each in study.verdicts
            ),
        )
    ]


# ---- boundaries ---------------------------------------------------------------------------------


def _boundaries(study: Study, drawn: Mapping[str, str]) -> list[str]:
    if not study.lines:
        return []
    rows = [row for line in study.lines for row in _boundary_rows(line, study)]
    parts = [
        page.table(
            (
                'factor',
                'the others',
                'runs are good',
                'boundary',
                'confidence',
                f'{study.plan.confidence:.0%} interval',
            ),
            rows[:MOST_LINES],
        )
    ]
    if len(rows) > MOST_LINES:
        parts.append(page.text(f'{len(rows) - MOST_LINES} more are in the JSON document.'))
    parts += [
        page.figure(
            drawn[f'good {line.factor}'],
            f'How often runs are good along {line.factor}, with exact binomial '
            f'intervals; red: the boundary.',
        )
        for line in study.lines
        if not line.others
    ]
    return [
        page.section(
            'Where it stops working',
            page.text(
                'The boundary is where half of the runs are good. Its confidence follows from '
                'exact binomial tests at the two levels around it; the interval counts '
                'levels together '
                'until it has the confidence that is asked for.'
            ),
            *parts,
        )
    ]


def _boundary_rows(line: FactorLine, study: Study) -> list[tuple[object, ...]]:
    others = ', '.join(f'{name} {shown(value)}' for name, value in line.others.items()) or (
        'all together' if len(study.factors) > 1 else '-'
    )
    if not line.boundaries:
        good = line.levels[0].is_good if line.levels else False
        return [(line.factor, others, 'everywhere' if good else 'nowhere', '-', '-', '-')]
    return [
        (
            line.factor,
            others,
            'below' if each.good_below else 'above',
            f'{each.low:g} to {each.high:g}',
            f'{each.confidence:.0%}',
            span(each),
        )
        for each in line.boundaries
    ]


def span(boundary: Boundary) -> str:
    """Return the interval of a boundary as text."""
    if boundary.interval is None:
        return 'too few runs'
    return f'{boundary.interval[0]:g} to {boundary.interval[1]:g}'


def _success(line: FactorLine, confidence: float) -> str:
    xs = [level.value for level in line.levels]
    plot = Plot((min(xs), max(xs)), (0.0, 1.0), xlabel=line.factor, ylabel='fraction good')
    for each in line.boundaries:
        plot.bar((each.low, each.high), (0.0, 1.0), 6, f'{each.low:g} to {each.high:g}', 0.25)
    bounds = [interval(level.good, level.runs, confidence) for level in line.levels]
    plot.band(xs, [low for low, _ in bounds], [high for _, high in bounds], 0)
    ys = [level.good / level.runs for level in line.levels]
    plot.line(xs, ys, 0)
    plot.dots(xs, ys, 0, 3.0)
    return plot.svg(f'fraction of good runs along {line.factor}')


# ---- curves -------------------------------------------------------------------------------------


def _curves(study: Study, drawn: Mapping[str, str]) -> list[str]:
    sections = []
    for factor in study.factors:
        parts = [_curve(study, factor, measure, drawn) for measure in study.shown]
        if any(parts):
            sections.append(page.section(f'Along {factor}', *parts))
    return sections


def _curve(study: Study, factor: str, measure: str, drawn: Mapping[str, str]) -> str:
    if study.numeric(factor):
        caption = (
            f'{measure}: mean and its {study.plan.confidence:.0%} interval; thin: least and '
            f'most. Dashed: the limit.'
        )
        plot = drawn.get(f'curve {factor} {measure}')
        return page.figure(plot, caption) if plot else ''
    points = study.curve(factor, measure)
    if len(points) < 2:
        return ''
    return page.table(
        (factor, 'runs', 'mean', 'low', 'high', 'least', 'most'),
        [
            (
                point.value,
                point.runs,
                *(
                    f'{number:.4g}'
                    for number in (point.mean, point.low, point.high, point.least, point.most)
                ),
            )
            for point in points
        ],
    ) + page.text(f'{measure} by {factor}')


def _curve_plot(study: Study, factor: str, measure: str, points: Sequence[CurvePoint]) -> str:
    xs = [float(point.value) for point in points]
    limits = [
        claim.limit
        for claim in study.plan.claims
        if claim.key == measure and math.isfinite(claim.limit)
    ]
    low = min([point.least for point in points] + limits)
    high = max([point.most for point in points] + limits)
    margin = 0.05 * (high - low) or 1.0
    plot = Plot((min(xs), max(xs)), (low - margin, high + margin), xlabel=factor, ylabel=measure)
    plot.band(xs, [point.low for point in points], [point.high for point in points], 0)
    for ends in ([point.least for point in points], [point.most for point in points]):
        plot.polyline(list(zip(xs, ends, strict=True)))
    plot.line(xs, [point.mean for point in points], 0)
    plot.dots(xs, [point.mean for point in points], 0, 3.0)
    for limit in limits:
        plot.polyline([(min(xs), limit), (max(xs), limit)], 'truth')
    return plot.svg(f'{measure} along {factor}')


# ---- what matters -------------------------------------------------------------------------------


def _indices(study: Study) -> list[str]:
    if not study.indices:
        return []
    morris = study.plan.sample.method == 'morris'
    columns = (
        ('factor', 'mu star', '±', 'mu', 'sigma')
        if morris
        else ('factor', 'total', '±', 'alone', '±')
    )
    parts = []
    for each in study.indices:
        parts.append(page.text(f'{each.measure}: {each.says}' if each.says else each.measure))
        if each.factors:
            parts.append(page.table(columns, _index_rows(each, morris)))
    return [
        page.section(
            'Which factors matter',
            page.text(
                'Morris: mean size of the effects; a large sigma means interactions or curvature.'
                if morris
                else 'Sobol: part of the variance that a factor explains with all its '
                'interactions, and alone.'
            ),
            *parts,
        )
    ]


def _index_rows(found: Indices, morris: bool) -> list[tuple[object, ...]]:
    ordered = sorted(found.factors, key=lambda each: -each.total)
    return [
        (
            each.factor,
            f'{each.total:.3g}',
            f'{each.total_half:.2g}',
            '-' if each.first is None else f'{each.first:.3g}',
            shown(each.spread if morris else each.first_half),
        )
        for each in ordered
    ]


def _interactions(study: Study, drawn: Mapping[str, str]) -> list[str]:
    parts = []
    for each in study.interactions:
        what = 'Fraction of good runs' if study.plan.limits else f'Mean of {each.measure}'
        if plot := drawn.get(f'heat {each.x} {each.y}'):
            parts.append(page.figure(plot, f'{what} over {each.x} and {each.y}.'))
    return [page.section('Interactions', *parts)] if parts else []


def heat_map(
    found: Interaction,
    cells: Sequence[Sequence[float | None]],
    what: str,
    ends: tuple[float, float] | None = None,
) -> str:
    """Return a heat map as SVG: darker is more, every cell has its number."""
    numbers = [cell for line in cells for cell in line if cell is not None]
    low, high = ends or ((min(numbers), max(numbers)) if numbers else (0.0, 1.0))
    wide, tall = CELL_PX
    left, above = 150.0, 24.0
    width = max(left + wide * len(found.xs), 2.0 * left + LETTER * len(found.x)) + 10.0
    height = above + tall * len(found.ys) + 44.0
    shapes = [label(left - 6.0, 14.0, f'{found.y} (up)', 'start')]
    for row, line in enumerate(cells):
        y = above + tall * (len(found.ys) - 1 - row)
        shapes.append(label(left - 6.0, y + tall / 2 + 4.0, shown(found.ys[row]), 'end'))
        for column, cell in enumerate(line):
            x = left + wide * column
            part = 0.0 if cell is None else (cell - low) / ((high - low) or 1.0)
            shapes.append(
                f'<rect class="fill c0" fill-opacity="{0.06 + 0.4 * part:.3f}" x="{x}" '
                f'y="{y}" width="{wide - 2}" height="{tall - 2}"/>'
            )
            shapes.append(label(x + wide / 2, y + tall / 2 + 4.0, shown(cell), 'middle'))
    for column, value in enumerate(found.xs):
        shapes.append(label(left + wide * (column + 0.5), height - 28.0, shown(value), 'middle'))
    shapes.append(label(left, height - 8.0, found.x, 'start'))
    return svg.document(width, height, shapes, what, f' style="max-width:{width:g}px"')


def shown(value: object) -> str:
    """Return a value in a table or a cell."""
    if value is None:
        return '-'
    return f'{value:.3g}' if isinstance(value, float) else str(value)
