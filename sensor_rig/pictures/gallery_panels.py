"""Which panel draws which type of sensor, and what stands above each.

A panel function draws into one cell of the sheet's grid.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sensor_rig.pictures import gallery_curves as curves
from sensor_rig.pictures import gallery_images as pictures
from sensor_rig.pictures.gallery_curves import Line, over_time
from sensor_rig.pictures.gallery_style import FIRST, SECOND, SOFT, TRUE
from sensor_rig.pictures.takes import Panel

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from sensor_rig.pictures.takes import Take

LONG_MS = 20.0
"""A capture that lasts longer is said to sweep."""


def draw(figure: Figure, cell: SubplotSpec, take: Take) -> None:
    """Draw one sensor with its title: name, type, rate and latency."""
    config = take.sensor.config
    PANELS.get(config.type, curves.first_field)(figure, cell, take)
    box = cell.get_position(figure)
    height = figure.get_size_inches()[1]
    low, high = (1e3 * each for each in config.delay_range_s)
    delay = (
        f', {low:g} ms late'
        if low == high and low
        else (f', {low:g} to {high:g} ms late' if high else '')
    )
    lasts_ms = take.sensor.duration_ns / 1e6
    if lasts_ms >= LONG_MS:
        delay += f' after a sweep of {lasts_ms:.3g} ms'
    rate = f'{config.rate_hz:g} Hz' if config.rate_hz else 'every step'
    figure.text(box.x0, box.y1 + 0.36 / height, take.sensor.name, size=12, weight='bold')
    figure.text(
        box.x0, box.y1 + 0.17 / height, f'{config.type}, {rate}{delay}', size=8.5, color=SOFT
    )


def legend(figure: Figure) -> None:
    """Explain the two lines once, at the top of the sheet."""
    width, height = figure.get_size_inches()
    for place, label, colour, thick in ((3.6, 'true', TRUE, 5.0), (2.4, 'measured', FIRST, 1.4)):
        x, y = 1.0 - place / width, 1.0 - 0.42 / height
        from matplotlib.lines import Line2D

        figure.add_artist(Line2D([x, x + 0.35 / width], [y, y], color=colour, linewidth=thick))
        figure.text(x + 0.45 / width, y, label, size=11, va='center')


PANELS: dict[str, Panel] = {
    'barometer': over_time('Pa', Line('fluid_pressure')),
    'camera': pictures.camera,
    'clock_pps': curves.pulses,
    'contact': curves.switch,
    'contact_force': over_time('force, N', Line('force', None)),
    'contact_probe': over_time('mm', Line('range', scale=1e3)),
    'depth_camera': pictures.depth,
    'force_torque': over_time('force, N', Line('force', None)),
    'gnss': curves.gnss,
    'height_scan': pictures.heights,
    'imu': curves.imu,
    'joint_state': over_time('rad/s', Line('velocity')),
    'lidar2d': pictures.scan,
    'lidar3d': pictures.cloud,
    'magnetometer': over_time(
        'µT',
        Line('magnetic_field', 0, 1e6, 'x'),
        Line('magnetic_field', 1, 1e6, 'y', SECOND),
    ),
    'pose': curves.pose,
    'range': curves.ranger,
    'segmentation': pictures.labels,
    'tactile': pictures.tactile,
    'temperature_grid': pictures.heat,
    'wheel_odometry': curves.odometry,
    'wind': over_time('m/s', Line('vector')),
}
"""Type name -> how it is drawn; what is not here shows its first value over time."""
