"""How each type of sensor looks on the picture sheet.

A panel function draws into one cell of the sheet's grid. Truth is always the broad pale line or
the picture on the left, the measurement the fine dark one or the picture on the right.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from sim_sensors.layout import Array

if TYPE_CHECKING:
    from sensor_rig.report.gallery import Take

INK, SOFT, RULE = '#1d2733', '#66727f', '#dfe4e8'
TRUE, FIRST, SECOND, LOST = '#c5ccd3', '#0f6cbd', '#d1495b', '#f2a541'
TRUE_OF = {FIRST: '#a9cdea', SECOND: '#efb9c0'}
"""Pale partner of each colour, for the truth of the same quantity."""
STYLE: Any = {
    'font.family': 'DejaVu Sans', 'font.size': 9.0, 'text.color': INK, 'axes.labelcolor': SOFT,
    'axes.edgecolor': '#b8c1c9', 'axes.linewidth': 0.8, 'axes.spines.top': False,
    'axes.spines.right': False, 'axes.grid': True, 'grid.color': RULE, 'grid.linewidth': 0.6,
    'axes.axisbelow': True, 'xtick.color': SOFT, 'ytick.color': SOFT, 'xtick.labelsize': 8.0,
    'ytick.labelsize': 8.0, 'axes.labelsize': 8.5, 'figure.facecolor': 'white',
    'legend.frameon': False, 'legend.fontsize': 8.0, 'image.interpolation': 'nearest',
}
WIDE = 2.5
"""Pictures wider than this times their height stand one over the other."""
Panel = Callable[[Any, Any, 'Take'], None]
"""`panel(figure, cell, take)` draws `take` into a cell of the figure's grid."""


def draw(figure: Any, cell: Any, take: Take) -> None:
    """Draw one sensor with its title: name, type, rate and latency."""
    config = take.sensor.config
    PANELS.get(config.type, _first_field)(figure, cell, take)
    box = cell.get_position(figure)
    height = figure.get_size_inches()[1]
    low, high = (1e3 * each for each in config.delay_range_s)
    delay = f', {low:g} ms late' if low == high and low else (
        f', {low:g} to {high:g} ms late' if high else '')
    rate = f'{config.rate_hz:g} Hz' if config.rate_hz else 'every step'
    figure.text(box.x0, box.y1 + 0.36 / height, take.sensor.name, size=12, weight='bold')
    figure.text(box.x0, box.y1 + 0.17 / height, f'{config.type}, {rate}{delay}', size=8.5,
                color=SOFT)


def legend(figure: Any) -> None:
    """Explain the two lines once, at the top of the sheet."""
    width, height = figure.get_size_inches()
    for place, label, colour, thick in ((3.6, 'true', TRUE, 5.0), (2.4, 'measured', FIRST, 1.4)):
        x, y = 1.0 - place / width, 1.0 - 0.42 / height
        from matplotlib.lines import Line2D
        figure.add_artist(Line2D([x, x + 0.35 / width], [y, y], color=colour, linewidth=thick))
        figure.text(x + 0.45 / width, y, label, size=11, va='center')


# ---- curves over time -------------------------------------------------------------------------


def _curve(axes: Any, time_s: Array, measured: Array, true: Array, *, colour: str = FIRST,
           label: str = '') -> None:
    axes.plot(time_s, true, color=TRUE_OF[colour], linewidth=4.0, solid_capstyle='round')
    axes.plot(time_s, measured, color=colour, linewidth=1.0, label=label)
    axes.margins(x=0.01, y=0.12)


def _over_time(axes: Any, unit: str, *, bottom: bool = True) -> None:
    axes.set_ylabel(unit)
    if bottom:
        axes.set_xlabel('s')
    else:
        axes.tick_params(labelbottom=False)


def _series(unit: str, field: str, *, column: int | None = None, scale: float = 1.0) -> Panel:
    """Return a panel of one quantity over time."""
    def panel(figure: Any, cell: Any, take: Take) -> None:
        axes = figure.add_subplot(cell)
        measured, true = (_column(values, column) * scale
                          for values in (take.measured(field), take.true(field)))
        with np.errstate(invalid='ignore'):
            finite = [np.where(np.isfinite(values), values, np.nan) for values in (measured, true)]
        _curve(axes, take.time_s, *finite)
        _over_time(axes, unit)
    return panel


def _column(values: Array, column: int | None) -> Array:
    flat = values.reshape(len(values), -1).astype(float)
    return flat[:, column or 0]


def _first_field(figure: Any, cell: Any, take: Take) -> None:
    """Show the first value of a sensor nobody has drawn a panel for."""
    field = next(iter(take.sensor.return_layout.shapes))
    _series(field, field)(figure, cell, take)


def _imu(figure: Any, cell: Any, take: Take) -> None:
    upper, lower = cell.subgridspec(2, 1, hspace=0.18)
    axes = figure.add_subplot(upper)
    _curve(axes, take.time_s, np.degrees(take.measured('angular_velocity')[:, 2]),
           np.degrees(take.true('angular_velocity')[:, 2]))
    _over_time(axes, 'yaw rate, deg/s', bottom=False)
    axes = figure.add_subplot(lower)
    _curve(axes, take.time_s, take.measured('linear_acceleration')[:, 2],
           take.true('linear_acceleration')[:, 2], colour=SECOND)
    _over_time(axes, 'up, m/s²')


def _magnetometer(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    measured, true = (1e6 * each for each in (take.measured('magnetic_field'),
                                              take.true('magnetic_field')))
    _curve(axes, take.time_s, measured[:, 0], true[:, 0], label='x')
    _curve(axes, take.time_s, measured[:, 1], true[:, 1], colour=SECOND, label='y')
    _over_time(axes, 'µT')
    axes.legend(loc='upper right', ncols=2)


def _gnss(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    measured, true = take.measured('position'), take.true('position')
    per_degree = 111_320.0 * np.array([1.0, np.cos(np.radians(true[0, 0]))])
    error_cm = 100.0 * (measured[:, :2] - true[:, :2]) * per_degree
    for values, colour, label in ((error_cm[:, 1], FIRST, 'east'), (error_cm[:, 0], SECOND,
                                                                    'north')):
        axes.plot(take.time_s, values, color=colour, linewidth=1.0, marker='.', markersize=4,
                  label=label)
    axes.axhline(0.0, color=TRUE, linewidth=4.0, zorder=1)
    _over_time(axes, 'error, cm')
    axes.margins(y=0.25)
    axes.legend(loc='upper right', ncols=2)


def _pose(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    error_mm = 1e3 * (take.measured('position') - take.true('position'))
    for axis, colour, label in ((0, FIRST, 'x'), (1, SECOND, 'y')):
        axes.plot(take.time_s, error_mm[:, axis], color=colour, linewidth=0.9, label=label)
    axes.axhline(0.0, color=TRUE, linewidth=4.0, zorder=1)
    _over_time(axes, 'error, mm')
    axes.margins(y=0.25)
    axes.legend(loc='upper right', ncols=2)


def _odometry(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    measured, true = take.measured('pose'), take.true('pose')
    axes.plot(true[:, 0], true[:, 1], color=TRUE_OF[FIRST], linewidth=4.0)
    axes.plot(measured[:, 0], measured[:, 1], color=FIRST, linewidth=1.2)
    axes.plot(*measured[-1, :2], color=FIRST, marker='o', markersize=5)
    axes.set_aspect('equal', 'datalim')
    axes.set_xlabel('x, m')
    axes.set_ylabel('y, m')


def _pulses(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    error_ns = (take.measured('time_ref') - take.true('time_ref')).astype(float)
    axes.axhline(0.0, color=TRUE, linewidth=4.0, zorder=1)
    axes.vlines(take.time_s, 0.0, error_ns, color=FIRST, linewidth=2.0)
    axes.plot(take.time_s, error_ns, color=FIRST, marker='o', linestyle='', markersize=5)
    _over_time(axes, 'pulse off by, ns')
    axes.margins(x=0.06, y=0.2)


def _switch(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    axes.fill_between(take.time_s, take.true('contact').astype(float), step='post',
                      color=TRUE_OF[FIRST], linewidth=0.0)
    axes.step(take.time_s, take.measured('contact').astype(float), where='post', color=FIRST,
              linewidth=1.2)
    axes.set_yticks([0.0, 1.0], ['open', 'closed'])
    axes.set_ylim(-0.15, 1.2)
    axes.set_xlabel('s')
    axes.margins(x=0.01)


def _ranger(figure: Any, cell: Any, take: Take) -> None:
    _series('m', 'range')(figure, cell, take)
    axes = figure.axes[-1]
    none = ~np.isfinite(take.measured('range').astype(float))
    if none.any():
        low, high = axes.get_ylim()
        axes.plot(take.time_s[none], np.full(none.sum(), high), color=LOST, marker='|',
                  linestyle='', markersize=7, label='nothing in range', clip_on=False)
        axes.set_ylim(low, high)
        axes.legend(loc='lower right')


def _wrench(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    measured, true = (np.linalg.norm(each, axis=1)
                      for each in (take.measured('force'), take.true('force')))
    _curve(axes, take.time_s, measured, true)
    _over_time(axes, 'force, N')


# ---- pictures ---------------------------------------------------------------------------------


def _picture_axes(figure: Any, cell: Any, count: int = 2, *, stacked: bool = False) -> list[Any]:
    """Return axes for pictures side by side, or one over the other; below the panel's title."""
    below = cell.subgridspec(2, 1, height_ratios=[0.03, 1.0], hspace=0.06)[1]
    parts = (below.subgridspec(count, 1, hspace=0.5) if stacked
             else below.subgridspec(1, count, wspace=0.06))
    found = []
    for index in range(count):
        axes = figure.add_subplot(parts[index])
        axes.set_anchor('N')
        axes.grid(False)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set_visible(False)
        found.append(axes)
    return found


def _two_pictures(figure: Any, cell: Any, true: Array, measured: Array, **how: Any) -> list[Any]:
    axes = _picture_axes(figure, cell, stacked=true.shape[1] > WIDE * true.shape[0])
    for each, picture, label in zip(axes, (true, measured), ('true', 'measured'), strict=True):
        each.imshow(picture, **how)
        each.set_title(label, size=8.5, color=SOFT, pad=3)
    return axes


def _colour_bar(figure: Any, axes: list[Any], label: str) -> None:
    bar = figure.colorbar(axes[-1].images[0], ax=axes, orientation='horizontal', fraction=0.06,
                          pad=0.06, aspect=40)
    bar.set_label(label, size=8.5, color=SOFT)
    bar.outline.set_visible(False)


def _camera(figure: Any, cell: Any, take: Take) -> None:
    measured, true = take.pair('data', len(take.samples) // 2)
    _two_pictures(figure, cell, true, measured, cmap='gray')


def _depth(figure: Any, cell: Any, take: Take) -> None:
    import matplotlib as mpl
    measured, true = take.pair('data', len(take.samples) // 2)
    far = take.sensor.config.max_range_m
    colours = mpl.colormaps['turbo_r'].with_extremes(bad='black', over='#eceff1', under='black')
    # pictures take infinities for missing; here they are too far and too near
    shown = [np.nan_to_num(each, nan=np.nan, posinf=2.0 * far, neginf=-1.0)
             for each in (true, measured)]
    axes = _two_pictures(figure, cell, *shown, cmap=colours, vmin=0.0, vmax=far)
    _colour_bar(figure, axes, 'm; black: not measured')


def _labels(figure: Any, cell: Any, take: Take) -> None:
    _, true = take.pair('data', len(take.samples) // 2)
    names = np.unique(true)
    rng = np.random.default_rng(3)
    table = rng.uniform(0.25, 0.95, (len(names), 3))
    table[names == 65535] = (0.93, 0.95, 0.97)
    axes = _picture_axes(figure, cell, 1)[0]
    axes.imshow(table[np.searchsorted(names, true)])
    axes.set_title(f'{len(names)} geoms in view', size=8.5, color=SOFT, pad=3)


def _heat(figure: Any, cell: Any, take: Take) -> None:
    measured, true = take.pair('data', -1)
    low, high = true.min() - 0.3, true.max() + 0.3
    axes = _two_pictures(figure, cell, true, measured, cmap='inferno', vmin=low, vmax=high)
    _colour_bar(figure, axes, '°C')


def _tactile(figure: Any, cell: Any, take: Take) -> None:
    fields = 1e3 * take.true('data')
    depth = fields[..., 0] if fields.ndim == 4 else fields
    index = int(depth.reshape(len(depth), -1).sum(axis=1).argmax())
    measured, true = (1e3 * each for each in take.pair('data', index))
    flat = [each[..., 0] if each.ndim == 3 else each for each in (true, measured)]
    top = max(float(flat[0].max()), 1e-3)
    axes = _two_pictures(figure, cell, *flat, cmap='viridis', vmin=0.0, vmax=top)
    if measured.ndim == 3:
        longest = max(float(np.linalg.norm(true[..., 1:], axis=-1).max()), 0.05 * top)
        for each, field in zip(axes, (true, measured), strict=True):
            # columns run towards -y, rows towards -z: as the arrows of the picture
            each.quiver(-field[..., 1], field[..., 2], color='white', angles='uv',
                        scale=9.0 * longest, width=0.009, pivot='middle')
    _colour_bar(figure, axes, 'mm deep; arrows: shear')


# ---- scans ------------------------------------------------------------------------------------


def _scan(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    index = len(take.samples) // 2
    rays = _rays(take, index)
    measured, true = take.pair('ranges', index)
    for ranges, colour, size in ((true, TRUE_OF[FIRST], 14.0), (measured, FIRST, 1.6)):
        seen = np.isfinite(ranges)
        axes.scatter(*(rays[seen, :2] * ranges[seen, None]).T, s=size, c=colour, linewidths=0)
    _plan(axes)


def _cloud(figure: Any, cell: Any, take: Take) -> None:
    axes = figure.add_subplot(cell)
    index = len(take.samples) // 2
    rays = _rays(take, index)
    measured, _ = take.pair('ranges', index)
    points = rays[np.isfinite(measured)] * measured[np.isfinite(measured), None]
    order = np.argsort(points[:, 2])
    dots = axes.scatter(*points[order, :2].T, s=1.6, c=points[order, 2], cmap='viridis',
                        linewidths=0, vmin=-0.6, vmax=2.0)
    _plan(axes)
    bar = figure.colorbar(dots, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label('height, m', size=8.5, color=SOFT)
    bar.outline.set_visible(False)


def _rays(take: Take, index: int) -> Array:
    """Return the directions [n, 3] of the rays of a LiDAR's sample."""
    lidar: Any = take.sensor
    frame = take.samples[index].index % lidar.pattern.frames
    return np.asarray(lidar.pattern.directions[frame])


def _plan(axes: Any) -> None:
    axes.plot(0.0, 0.0, marker=(3, 0, -90), color=SECOND, markersize=8, zorder=5)
    axes.set_aspect('equal', 'datalim')
    axes.set_xlabel('forward, m')
    axes.set_ylabel('left, m')


PANELS: dict[str, Panel] = {
    'imu': _imu, 'magnetometer': _magnetometer, 'gnss': _gnss, 'pose': _pose,
    'barometer': _series('Pa', 'fluid_pressure'), 'wheel_odometry': _odometry,
    'joint_state': _series('rad/s', 'velocity'), 'clock_pps': _pulses,
    'contact': _switch, 'range': _ranger, 'contact_probe': _series('mm', 'range', scale=1e3),
    'contact_force': _wrench, 'force_torque': _wrench, 'camera': _camera,
    'depth_camera': _depth, 'segmentation': _labels, 'temperature_grid': _heat,
    'tactile': _tactile, 'lidar2d': _scan, 'lidar3d': _cloud,
}
"""Type name -> how it is drawn; what is not here shows its first value over time."""
