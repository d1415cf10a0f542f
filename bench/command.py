"""The command line that benchmarks share: `--quick`, and `--json FILE` for the whole result."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.figures import Figure

Result = dict[str, Any]
"""What a benchmark measured; `headline` of its module knows the keys."""


def run_as_program(
    run: Callable[..., Result],
    show: Callable[[Result], None] | None = None,
    *,
    quick: str = 'fewer rounds',
    parts: Sequence[str] = (),
) -> None:
    """Measure, show the result (by default as JSON), and write it where `--json` asks for it.

    With `parts`, `run` takes those that are wanted as `only`, None for all.
    """
    parser = argparse.ArgumentParser(
        description=(sys.modules[run.__module__].__doc__ or '').partition('\n')[0]
    )
    parser.add_argument('--quick', action='store_true', help=quick)
    parser.add_argument('--json', type=Path, metavar='FILE', help='also write the result here')
    if parts:
        parser.add_argument('--only', nargs='+', choices=parts, help='these parts alone')
    given = parser.parse_args()
    result = run(given.quick, given.only) if parts else run(given.quick)
    text = json.dumps(result, indent=1, default=float)
    if show is None:
        print(text)
    else:
        show(result)
    if given.json:
        given.json.write_text(text + '\n')


def figures_of(headline: Callable[[Result], Sequence[Figure]]) -> Callable[[Result], None]:
    """Return what prints the headline of a result, a figure a line."""
    return partial(_print_figures, headline)


def _print_figures(headline: Callable[[Result], Sequence[Figure]], result: Result) -> None:
    for figure in headline(result):
        print(f'{figure.name:64} {figure.value:.3f} {figure.unit}  (target {figure.target})')
