"""Colours and fonts of the picture sheet; truth is the pale partner of what was measured."""

from __future__ import annotations

from typing import Any

INK, SOFT, RULE = '#1d2733', '#66727f', '#dfe4e8'
TRUE, FIRST, SECOND, LOST = '#c5ccd3', '#0f6cbd', '#d1495b', '#f2a541'
TRUE_OF = {FIRST: '#a9cdea', SECOND: '#efb9c0'}
"""Pale partner of each colour, for the truth of the same quantity."""
STYLE: Any = {
    'font.family': 'DejaVu Sans',
    'font.size': 9.0,
    'text.color': INK,
    'axes.labelcolor': SOFT,
    'axes.edgecolor': '#b8c1c9',
    'axes.linewidth': 0.8,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'grid.color': RULE,
    'grid.linewidth': 0.6,
    'axes.axisbelow': True,
    'xtick.color': SOFT,
    'ytick.color': SOFT,
    'xtick.labelsize': 8.0,
    'ytick.labelsize': 8.0,
    'axes.labelsize': 8.5,
    'figure.facecolor': 'white',
    'legend.frameon': False,
    'legend.fontsize': 8.0,
    'image.interpolation': 'nearest',
}
