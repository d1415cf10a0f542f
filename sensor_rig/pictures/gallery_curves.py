"""Panels of quantities over time: the truth as a broad pale line, the measurement over it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from sensor_rig.pictures.gallery_style import FIRST, LOST, SECOND, TRUE, TRUE_OF, Panel
from sim_sensors.timing.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from sensor_rig.pictures.gallery import Take


def _curve(
    axes: Axes,
    time_s: Array,
    measured: Array,
    true: Array,
    *,
    colour: str = FIRST,
    label: str = '',
) -> None:
    axes.plot(time_s, true, color=TRUE_OF[colour], linewidth=4.0, solid_capstyle='round')
    axes.plot(time_s, measured, color=colour, linewidth=1.0, label=label)
    axes.margins(x=0.01, y=0.12)


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


def series(unit: str, field: str, *, column: int | None = None, scale: float = 1.0) -> Panel:
    """Return a panel of one quantity over time."""

    def panel(figure: Figure, cell: SubplotSpec, take: Take) -> None:
        axes = figure.add_subplot(cell)
        measured, true = (
            _column(values, column) * scale for values in (take.measured(field), take.true(field))
        )
        with np.errstate(invalid='ignore'):
            finite = [np.where(np.isfinite(values), values, np.nan) for values in (measured, true)]
        _curve(axes, take.time_s, *finite)
        _over_time(axes, unit)

    return panel


def _column(values: Array, column: int | None) -> Array:
    flat = values.reshape(len(values), -1).astype(float)
    return flat[:, column or 0]


def first_field(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Show the first value of a sensor nobody has drawn a panel for."""
    field = next(iter(take.sensor.return_layout.shapes))
    series(field, field)(figure, cell, take)


def imu(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Yaw rate and what is felt upwards."""
    rows = cell.subgridspec(2, 1, hspace=0.18)
    axes = figure.add_subplot(rows[0])
    _curve(
        axes,
        take.time_s,
        np.degrees(take.measured('angular_velocity')[:, 2]),
        np.degrees(take.true('angular_velocity')[:, 2]),
    )
    _over_time(axes, 'yaw rate, deg/s', bottom=False)
    axes = figure.add_subplot(rows[1])
    _curve(
        axes,
        take.time_s,
        take.measured('linear_acceleration')[:, 2],
        take.true('linear_acceleration')[:, 2],
        colour=SECOND,
    )
    _over_time(axes, 'up, m/s²')


def magnetometer(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Field along x and y."""
    axes = figure.add_subplot(cell)
    measured, true = (
        1e6 * each for each in (take.measured('magnetic_field'), take.true('magnetic_field'))
    )
    _curve(axes, take.time_s, measured[:, 0], true[:, 0], label='x')
    _curve(axes, take.time_s, measured[:, 1], true[:, 1], colour=SECOND, label='y')
    _over_time(axes, 'µT')
    axes.legend(loc='upper right', ncols=2)


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
    series('m', 'range')(figure, cell, take)
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


def wrench(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Size of the force."""
    axes = figure.add_subplot(cell)
    measured, true = (
        np.linalg.norm(each, axis=1) for each in (take.measured('force'), take.true('force'))
    )
    _curve(axes, take.time_s, measured, true)
    _over_time(axes, 'force, N')
