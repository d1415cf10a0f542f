"""Panels of quantities over time: the truth as a broad pale line, the measurement over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sensor_rig.pictures.gallery_style import FIRST, LOST, SECOND, TRUE, TRUE_OF
from sensor_rig.pictures.takes import Panel
from sim_sensors.timing.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from sensor_rig.pictures.takes import Take


class Line(NamedTuple):
    """One quantity of a panel over time."""

    field: str
    column: int | None = 0
    """Column of the field; None takes the length of its vectors."""
    scale: float = 1.0
    label: str = ''
    colour: str = FIRST


def _errors(axes: Axes, take: Take, errors: Mapping[str, Any], unit: str, **line: Any) -> None:
    """Two errors over time around a line for the truth."""
    for (label, values), colour in zip(errors.items(), (FIRST, SECOND), strict=True):
        axes.plot(take.time_s, values, color=colour, label=label, **line)
    axes.axhline(0.0, color=TRUE, linewidth=4.0, zorder=1)
    _over_time(axes, unit)
    axes.margins(y=0.25)
    axes.legend(loc='upper right', ncols=2)


def _over_time(axes: Axes, unit: str, *, bottom: bool = True) -> None:
    axes.set_ylabel(unit)
    if bottom:
        axes.set_xlabel('s')
    else:
        axes.tick_params(labelbottom=False)


def over_time(unit: str, *lines: Line) -> Panel:
    """Return a panel of quantities in one unit."""

    def panel(figure: Figure, cell: SubplotSpec, take: Take) -> None:
        _draw(figure.add_subplot(cell), take, unit, lines)

    return panel


def _draw(
    axes: Axes, take: Take, unit: str, lines: Sequence[Line], *, bottom: bool = True
) -> None:
    for line in lines:
        measured, true = (
            _column(values, line.column) * line.scale
            for values in (take.measured(line.field), take.true(line.field))
        )
        axes.plot(
            take.time_s, true, color=TRUE_OF[line.colour], linewidth=4.0, solid_capstyle='round'
        )
        axes.plot(take.time_s, measured, color=line.colour, linewidth=1.0, label=line.label)
    axes.margins(x=0.01, y=0.12)
    _over_time(axes, unit, bottom=bottom)
    if len(lines) > 1:
        axes.legend(loc='upper right', ncols=2)


def _column(values: Array, column: int | None) -> Array:
    """Return one number of each sample, NaN for those that are not finite."""
    flat = values.reshape(len(values), -1).astype(float)
    found = np.linalg.norm(flat, axis=1) if column is None else flat[:, column]
    return np.where(np.isfinite(found), found, np.nan)


def first_field(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Show the first value of a sensor nobody has drawn a panel for."""
    field = next(iter(take.sensor.return_layout.shapes))
    over_time(field, Line(field))(figure, cell, take)


def imu(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Yaw rate and what is felt upwards."""
    yaw = Line('angular_velocity', 2, float(np.degrees(1.0)))
    up = Line('linear_acceleration', 2, colour=SECOND)
    rows = cell.subgridspec(2, 1, hspace=0.18)
    _draw(figure.add_subplot(rows[0]), take, 'yaw rate, deg/s', [yaw], bottom=False)
    _draw(figure.add_subplot(rows[1]), take, 'up, m/s²', [up])


def gnss(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """How far the fix is off."""
    axes = figure.add_subplot(cell)
    measured, true = take.measured('position'), take.true('position')
    per_degree = 111_320.0 * np.array([1.0, np.cos(np.radians(true[0, 0]))])
    error_cm = 100.0 * (measured[:, :2] - true[:, :2]) * per_degree
    _errors(
        axes,
        take,
        {'east': error_cm[:, 1], 'north': error_cm[:, 0]},
        'error, cm',
        linewidth=1.0,
        marker='.',
        markersize=4,
    )


def pose(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """How far the position is off."""
    axes = figure.add_subplot(cell)
    error_mm = 1e3 * (take.measured('position') - take.true('position'))
    _errors(axes, take, {'x': error_mm[:, 0], 'y': error_mm[:, 1]}, 'error, mm', linewidth=0.9)


def odometry(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """The way from above."""
    axes = figure.add_subplot(cell)
    measured, true = take.measured('pose'), take.true('pose')
    axes.plot(true[:, 0], true[:, 1], color=TRUE_OF[FIRST], linewidth=4.0)
    axes.plot(measured[:, 0], measured[:, 1], color=FIRST, linewidth=1.2)
    axes.plot(*measured[-1, :2], color=FIRST, marker='o', markersize=5)
    axes.set_aspect('equal', 'datalim')
    axes.set_xlabel('x, m')
    axes.set_ylabel('y, m')


def pulses(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """How far each pulse is off."""
    axes = figure.add_subplot(cell)
    error_ns = (take.measured('time_ref') - take.true('time_ref')).astype(float)
    axes.axhline(0.0, color=TRUE, linewidth=4.0, zorder=1)
    axes.vlines(take.time_s, 0.0, error_ns, color=FIRST, linewidth=2.0)
    axes.plot(take.time_s, error_ns, color=FIRST, marker='o', linestyle='', markersize=5)
    _over_time(axes, 'pulse off by, ns')
    axes.margins(x=0.06, y=0.2)


def switch(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Closed and open."""
    axes = figure.add_subplot(cell)
    axes.fill_between(
        take.time_s,
        take.true('contact').astype(float),
        step='post',
        color=TRUE_OF[FIRST],
        linewidth=0.0,
    )
    axes.step(
        take.time_s,
        take.measured('contact').astype(float),
        where='post',
        color=FIRST,
        linewidth=1.2,
    )
    axes.set_yticks([0.0, 1.0], ['open', 'closed'])
    axes.set_ylim(-0.15, 1.2)
    axes.set_xlabel('s')
    axes.margins(x=0.01)


def ranger(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Distance, and when there was none."""
    over_time('m', Line('range'))(figure, cell, take)
    axes = figure.axes[-1]
    none = ~np.isfinite(take.measured('range').astype(float))
    if none.any():
        low, high = axes.get_ylim()
        axes.plot(
            take.time_s[none],
            np.full(none.sum(), high),
            color=LOST,
            marker='|',
            linestyle='',
            markersize=7,
            label='nothing in range',
            clip_on=False,
        )
        axes.set_ylim(low, high)
        axes.legend(loc='lower right')
