"""Figures on paper: one style, no display, and a sentence where a file cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rig_common.errors import RigError, why
from rig_common.saving import saving
from sensor_rig.pictures.gallery_style import STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ('.png', '.svg', '.pdf')


def require_picture(out: Path) -> None:
    """Raise RigError where `out` names no picture that can be written; before any work is done."""
    if out.suffix.lower() not in FORMATS:
        raise RigError(f'{out} should end in {", ".join(FORMATS)}')
    if not out.parent.is_dir():
        raise RigError(f'{out} cannot be written: there is no folder {out.parent}')


@contextmanager
def figure(width_in: float, height_in: float, dpi: int = 110) -> Iterator[Figure]:
    """Give a figure in the style of all pictures; it is closed at the end."""
    import matplotlib

    matplotlib.use('Agg')
    import matplotlib.pyplot as plt

    with plt.rc_context(STYLE):
        sheet = plt.figure(figsize=(width_in, height_in), dpi=dpi)
        try:
            yield sheet
        finally:
            plt.close(sheet)


def save(sheet: Figure, out: Path) -> None:
    """Write a figure; the suffix of `out` says the format."""
    try:
        with saving(out) as file:
            sheet.savefig(file)
    except ValueError as error:
        raise RigError(f'cannot write {out}: {why(error)}') from None
