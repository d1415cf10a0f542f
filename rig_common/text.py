"""Texts for people: from elsewhere (a recording, the graph) as they may be shown, and hints."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def printable(text: str) -> str:
    """Return `text` with everything that is no visible character written as an escape.

    A topic name from a recording can hold a terminal's control sequence, or a character that
    turns the direction of writing.
    """
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shortened(text: str, most: int) -> str:
    """Return `text`, or as much of it as `most` characters hold and how many more there are."""
    return text if len(text) <= most else f'{text[:most]}... ({len(text) - most} more characters)'


def near(name: object, known: Iterable[str]) -> str:
    """Return "did you mean 'imu'? " for the known name that looks like `name`, or nothing."""
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f'did you mean {found[0]!r}? ' if found else ''
