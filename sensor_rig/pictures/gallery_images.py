"""Panels that are pictures (the truth on the left) and scans seen from above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from sensor_rig.pictures.gallery_style import FIRST, SECOND, SOFT, TRUE, TRUE_OF
from sim_sensors.sensors.cameras.depth_camera import DepthCameraConfig
from sim_sensors.timing.arrays import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecFromSubplotSpec, SubplotSpec

    from sensor_rig.pictures.takes import Take

WIDE = 2.5
"""Pictures wider than this times their height stand one over the other."""


def _picture_axes(
    figure: Figure, cell: SubplotSpec, count: int = 2, *, stacked: bool = False
) -> list[Axes]:
    """Return axes for pictures side by side, or one over the other; below the panel's title."""
    below = _rows(cell)[1]
    parts = (
        below.subgridspec(count, 1, hspace=0.5)
        if stacked
        else below.subgridspec(1, count, wspace=0.06)
    )
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


def _rows(cell: SubplotSpec) -> GridSpecFromSubplotSpec:
    """Return the rows of a panel: room for the title, pictures, a gap, colour bar.

    Every panel has them all, so that pictures are of one size with and without a bar.
    """
    return cell.subgridspec(4, 1, height_ratios=[0.03, 1.0, 0.02, 0.035], hspace=0.06)


def _two_pictures(
    figure: Figure, cell: SubplotSpec, true: Array, measured: Array, **how: Any
) -> list[Axes]:
    axes = _picture_axes(figure, cell, stacked=true.shape[1] > WIDE * true.shape[0])
    for each, picture, label in zip(axes, (true, measured), ('true', 'measured'), strict=True):
        each.imshow(picture, **how)
        each.set_title(label, size=8.5, color=SOFT, pad=3)
    return axes


def _colour_bar(figure: Figure, cell: SubplotSpec, axes: list[Axes], label: str) -> None:
    bar = figure.colorbar(
        axes[-1].images[0], cax=figure.add_subplot(_rows(cell)[3]), orientation='horizontal'
    )
    bar.set_label(label, size=8.5, color=SOFT)
    bar.outline.set_visible(False)


def camera(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """The picture in the middle of the run."""
    measured, true = take.pair('data', len(take.samples) // 2)
    _two_pictures(figure, cell, true, measured, cmap='gray')


def depth(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Depth in the middle of the run."""
    import matplotlib as mpl

    measured, true = take.pair('data', len(take.samples) // 2)
    config = take.sensor.config
    assert isinstance(config, DepthCameraConfig)
    far = config.max_range_m
    colours = mpl.colormaps['turbo_r'].with_extremes(bad='black', over='#eceff1', under='black')
    # pictures take infinities for missing; here they are too far and too near
    shown = [
        np.nan_to_num(each, nan=np.nan, posinf=2.0 * far, neginf=-1.0) for each in (true, measured)
    ]
    axes = _two_pictures(figure, cell, *shown, cmap=colours, vmin=0.0, vmax=far)
    _colour_bar(figure, cell, axes, 'm; black: not measured')


def labels(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Each geom in a colour of its own."""
    _, true = take.pair('data', len(take.samples) // 2)
    names = np.unique(true)
    rng = np.random.default_rng(3)
    table = rng.uniform(0.25, 0.95, (len(names), 3))
    table[names == 65535] = (0.93, 0.95, 0.97)
    axes = _picture_axes(figure, cell, 1)[0]
    axes.imshow(table[np.searchsorted(names, true)])
    axes.set_title(f'{len(names)} geoms in view', size=8.5, color=SOFT, pad=3)


def heat(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Temperatures at the end of the run."""
    measured, true = take.pair('data', -1)
    low, high = true.min() - 0.3, true.max() + 0.3
    axes = _two_pictures(figure, cell, true, measured, cmap='inferno', vmin=low, vmax=high)
    _colour_bar(figure, cell, axes, '°C')


def heights(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Heights over the ground at the end of the run."""
    measured, true = take.pair('data', -1)
    span = {'vmin': float(true.min()), 'vmax': float(true.max()) + 0.01}
    axes = _two_pictures(figure, cell, true, measured, cmap='viridis', **span)
    _colour_bar(figure, cell, axes, 'm')


def tactile(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Depth and shear when the pad was pressed most."""
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
            each.quiver(
                -field[..., 1],
                field[..., 2],
                color='white',
                angles='uv',
                scale=9.0 * longest,
                width=0.009,
                pivot='middle',
            )
    _colour_bar(figure, cell, axes, 'mm deep; arrows: shear')


# ---- scans ------------------------------------------------------------------------------------


def scan(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """One scan from above."""
    axes = figure.add_subplot(cell)
    index = len(take.samples) // 2
    rays = _rays(take, index)
    measured, true = take.pair('ranges', index)
    for ranges, colour, size in ((true, TRUE_OF[FIRST], 14.0), (measured, FIRST, 1.6)):
        seen = np.isfinite(ranges)
        x, y = (rays[seen, :2] * ranges[seen, None]).T
        axes.scatter(x, y, s=size, c=colour, linewidths=0)
    _plan(axes)


def cloud(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """One sweep from above, coloured by height, over the pale truth."""
    axes = figure.add_subplot(cell)
    index = len(take.samples) // 2
    rays = _rays(take, index)
    measured, true = take.pair('ranges', index)
    seen = np.isfinite(true)
    x, y = (rays[seen, :2] * true[seen, None]).T
    axes.scatter(x, y, s=14.0, c=TRUE, linewidths=0)
    points = rays[np.isfinite(measured)] * measured[np.isfinite(measured), None]
    x, y, z = points[np.argsort(points[:, 2])].T
    dots = axes.scatter(x, y, s=1.6, c=z, cmap='viridis', linewidths=0, vmin=-0.6, vmax=2.0)
    _plan(axes)
    bar = figure.colorbar(dots, ax=axes, fraction=0.04, pad=0.02)
    bar.set_label('height, m', size=8.5, color=SOFT)
    bar.outline.set_visible(False)


def _rays(take: Take, index: int) -> Array:
    """Return the directions [n, 3] of the rays of a LiDAR's sample."""
    lidar: Any = take.sensor
    frame = take.samples[index].index % lidar.pattern.frames
    return np.asarray(lidar.pattern.directions[frame])


def _plan(axes: Axes) -> None:
    axes.plot(0.0, 0.0, marker=(3, 0, -90), color=SECOND, markersize=8, zorder=5)
    axes.set_aspect('equal', 'datalim')
    axes.set_xlabel('forward, m')
    axes.set_ylabel('left, m')
