"""What commands print: one JSON document or a table, the same everywhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rig_common.jsonable import json_text
from rig_common.text import printable, shortened

if TYPE_CHECKING:  # every command imports this module, few print a table
    from rich.console import Console, ConsoleOptions
    from rich.table import Table
    from rich.text import Text

WIDEST = 10_000
"""Columns of a screen that nothing has to be broken for."""
LONGEST_CELL = 2000
"""Characters of a cell; more would be an attack on the reader, and rich takes minutes for it."""


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    """Add `--json`, which replaces everything on stdout by one JSON document."""
    parser.add_argument('--json', action='store_true', help='print one JSON document on stdout')


def print_json(document: object) -> None:
    """Print `document` as JSON; numpy scalars and paths become plain values, NaN becomes null."""
    print(json_text(document, 2))


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> None:
    """Print a table on stdout; columns whose cells are numbers are aligned right.

    Cells are shown as they are; one that is to be coloured is a rich `Text`.
    """
    console().print(_table(columns, rows, title))


def print_whole_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None
) -> None:
    """Print a table whose cells are never broken, if need be wider than the screen."""
    table = _table(columns, rows, title, no_wrap=True)
    where = console()
    where.width = max(where.width, where.measure(table, options=_wide(where)).maximum)
    where.print(table)


def fits(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bool:
    """Return whether a table with whole cells is as narrow as the screen."""
    where = console()
    table = _table(columns, rows, None, no_wrap=True)
    return where.measure(table, options=_wide(where)).maximum <= where.width


def _wide(where: Console) -> ConsoleOptions:
    return where.options.update(width=WIDEST)


def _table(
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    title: str | None,
    *,
    no_wrap: bool = False,
) -> Table:
    from rich import box
    from rich.table import Table

    cells = [list(row) for row in rows]
    table = Table(
        title=None if title is None else _cell(title),
        title_justify='left',
        box=box.SIMPLE_HEAD,
        pad_edge=False,
    )
    for index, column in enumerate(columns):
        numeric = any(isinstance(row[index], (int, float)) for row in cells)
        table.add_column(
            column, justify='right' if numeric else 'left', overflow='fold', no_wrap=no_wrap
        )
    for row in cells:
        table.add_row(*(_cell(c) for c in row))
    return table


def _cell(value: object) -> Text:
    """Return a cell: a `Text` as it is, everything else as plain characters without markup."""
    from rich.text import Text

    if isinstance(value, Text):
        return value
    return Text(printable(shortened(str(value), LONGEST_CELL)))


def console() -> Console:
    """Return a console on stdout that does not cut lines when it is piped into a file."""
    from rich.console import Console

    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=140)
