"""A progress line on stderr that disappears when it is done and is silent in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rig_common.text import printable

Advance = Callable[[float], None]


@contextmanager
def progress(description: str, total: float) -> Iterator[Advance]:
    """Show progress towards `total` (any unit) and yield a function that adds to it.

    >>> with progress('recording', total=10.0) as advance:
    ...     advance(10.0)
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    bar = Progress(
        TextColumn('{task.description}'),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with bar:
        task = bar.add_task(description, total=total)
        yield lambda amount: bar.advance(task, amount)


def note(text: str) -> None:
    """Print a remark on stderr, where it cannot disturb a piped result."""
    print(printable(text), file=sys.stderr, flush=True)


def tell_problems(problems: Sequence[str]) -> int:
    """Say what is wrong with an input whose result was written all the same; return the exit code.

    >>> tell_problems([])
    0
    """
    for problem in problems:
        note(f'WARNING: {problem}')
    return 1 if problems else 0


@contextmanager
def spinner(description: str) -> Iterator[None]:
    """Show that something of unknown length is under way; silent in a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(description):
        yield
