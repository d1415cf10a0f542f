"""SVG as text, for the live page, reports and plots.

`more` is written into an element as it is: attributes with a space before each.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def document(width: float, height: float, parts: Iterable[str], name: str, more: str = '') -> str:
    """Return a drawing; `name` is what a screen reader says."""
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" '
        f'aria-label="{escape(name, quote=True)}"{more}>{"".join(parts)}</svg>'
    )


def text(x: float, y: float, words: str, more: str = '') -> str:
    """Return a line of text at its baseline."""
    return f'<text x="{x:.1f}" y="{y:.1f}"{more}>{escape(words)}</text>'


def polyline(points: Iterable[tuple[float, float]], more: str) -> str:
    """Return a line through points."""
    path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in points)
    return f'<polyline points="{path}" fill="none"{more}/>'
