"""Say what a sweep found: up to where the system under test works, and what matters.

Writes one HTML page and its figures as SVG files. Exit code 1: a requirement of the plan is not
met.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from sensor_rig.cli.support.output import add_json_argument, print_json, print_table

if TYPE_CHECKING:
    from sensor_rig.sweep.analysis.study import Study

NAME = 'tolerance'
GROUP = 'stress'
HELP = 'find the limits within which a system works, from the results of a sweep'
EPILOG = """example: rig tolerance results/
Writes RESULTS/tolerance.html and RESULTS/figures/*.svg.
exit code: 0 every requirement of the plan is met; 1 one is not; 2 a mistake"""
PAGE, FIGURES = 'tolerance.html', 'figures'
SHOWN = 20
"""Rows of boundaries that are printed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the results and where to write."""
    parser.add_argument(
        'results', metavar='RESULTS', type=Path, help='the folder that "rig sweep" wrote'
    )
    parser.add_argument(
        '--html', metavar='FILE', type=Path, help=f'write the page to this file (RESULTS/{PAGE})'
    )
    parser.add_argument(
        '--figures',
        metavar='FOLDER',
        type=Path,
        help=f'write the figures into this folder (RESULTS/{FIGURES})',
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Study the results, write page and figures, judge the requirements."""
    from rig_common.errors import RigError, why
    from rig_common.saving import save_text
    from sensor_rig.drawing.html_page import svg_file
    from sensor_rig.sweep.analysis.document import document
    from sensor_rig.sweep.analysis.study import study_of
    from sensor_rig.sweep.analysis.tolerance_page import figures, tolerance_page

    study = study_of(args.results)
    html, folder = args.html or args.results / PAGE, args.figures or args.results / FIGURES
    drawings = {
        folder / f'{re.sub(r"[^a-zA-Z0-9_.-]+", "_", name)[:180]}.svg': svg_file(drawing)
        for name, drawing in figures(study).items()
    }
    try:
        save_text(html, tolerance_page(study))
        folder.mkdir(parents=True, exist_ok=True)
        for file, drawing in drawings.items():
            save_text(file, drawing)
    except OSError as error:
        raise RigError(f'cannot write {error.filename or html}: {why(error)}') from None
    if args.json:
        print_json(
            {**document(study), 'page': str(html), 'figures': [str(file) for file in drawings]}
        )
    else:
        _print(study)
        print(f'written: {html} and {len(drawings)} figures')
    return 0 if study.met else 1


def _print(study: Study) -> None:
    from sensor_rig.sweep.analysis.tolerance_page import shown, span

    ended = ', '.join(f'{count} {status}' for status, count in study.statuses.items())
    print(f'{len(study.rows)} runs: {ended}')
    rows = []
    for line in study.lines:
        others = ', '.join(f'{name} {shown(value)}' for name, value in line.others.items())
        for each in line.boundaries:
            rows.append(
                (
                    line.factor,
                    others or 'all',
                    'below' if each.good_below else 'above',
                    f'{each.low:g} to {each.high:g}',
                    f'{each.confidence:.0%}',
                    span(each),
                )
            )
        if not line.boundaries and line.levels:
            rows.append(
                (
                    line.factor,
                    others or 'all',
                    'everywhere' if line.levels[0].is_good else 'nowhere',
                    '-',
                    '-',
                    '-',
                )
            )
    if rows:
        print_table(
            (
                'factor',
                'others',
                'good',
                'boundary',
                'confidence',
                f'{study.plan.confidence:.0%} interval',
            ),
            rows[:SHOWN],
        )
    for found in study.indices:
        if found.factors:
            print_table(
                (f'{found.measure}: {found.method}', 'total', 'alone'),
                [
                    (each.factor, f'{each.total:.3g}', shown(each.first))
                    for each in sorted(found.factors, key=lambda each: -each.total)
                ],
            )
    for verdict in study.verdicts:
        print(('met: ' if verdict.met else 'NOT MET: ') + verdict.says)
