"""Text from elsewhere (a recording, the graph) as it may be shown."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return `text` with everything that is no visible character written as an escape.

    A topic name from a recording can hold a terminal's control sequence, or a character that
    turns the direction of writing.
    """
    if text.isprintable():
        return text
    return ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
