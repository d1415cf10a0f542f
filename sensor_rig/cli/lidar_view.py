"""Show a LiDAR's scan as a polar plot: a PNG, or a window that follows the simulation.

The rig's world runs without ROS. Dots are what the sensor reports, the line is the truth; of a
scanner with many lasers the distance over ground is shown, coloured by height.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rig_common.errors import RigError, why
from sensor_rig.cli.support.arguments import not_negative, output_file, positive

if TYPE_CHECKING:
    from sim_sensors.outbox import Message
    from sim_sensors.rig import Rig
    from sim_sensors.sensors.lidar.config import LidarConfig
    from sim_sensors.sensors.lidar.scanner import Lidar

NAME = 'lidar-view'
GROUP = 'look'
HELP = 'show a LiDAR of a rig as a polar plot (PNG or live)'
EPILOG = """examples:
  lidar-view demo --png scan.png --at 2.5
  lidar-view demo --sensor front_lidar"""
PATIENCE_S = 10.0
"""Simulated time after which a scan that should have come does not come any more."""
IDLE_NS = 250_000_000
"""Simulated time without a scan after which the window is attended to all the same."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument('rig', metavar='RIG', help='a rig file, or the name of a shipped one')
    parser.add_argument('--sensor', metavar='NAME', help='which LiDAR; the first one by default')
    parser.add_argument(
        '--at',
        type=not_negative,
        default=1.0,
        metavar='S',
        help='simulated time of the scan in the PNG, s (default 1)',
    )
    parser.add_argument(
        '--png',
        type=output_file,
        metavar='FILE',
        help='write this file instead of opening a window',
    )
    parser.add_argument(
        '--seconds', type=positive, metavar='N', help='close the window after N simulated seconds'
    )


def run(args: argparse.Namespace) -> int:
    """Draw one scan, or scan after scan."""
    rig, sensor = _open(args.rig, args.sensor)
    import matplotlib

    if args.png is not None:
        matplotlib.use('Agg')
        message = _scan_at(rig, sensor, args.at)
        plot = LidarPlot(sensor)
        plot.show(message)
        plot.save(args.png)
        print(f'{args.png}: {plot.caption}')
        return 0
    _follow(rig, LidarPlot(sensor, window=True), args.seconds)
    return 0


def _open(path: str, wanted: str | None) -> tuple[Rig, Lidar[LidarConfig]]:
    """Return the rig's world with one LiDAR in it, and that LiDAR."""
    from sensor_rig.pictures.lidars import lidar_of
    from sensor_rig.rigfile import load_rig
    from sim_sensors.rig import Rig

    config = load_rig(path)
    lidar = lidar_of(config, wanted)
    world = config.simulated_world.model_copy(update={'num_envs': 1})
    rig = Rig(
        world,
        [lidar],
        seed=config.seed,
        base_dir=config.path.parent,
        messages=True,
        links=config.links,
    )
    return rig, lidar


def _scan_at(rig: Rig, sensor: Lidar[LidarConfig], at_s: float) -> Message:
    """Return the first scan captured at `at_s` or later, or say that none comes."""
    config = sensor.config
    period_s = 1.0 / config.rate_hz if config.rate_hz else 0.0
    pipeline = rig.pipelines[sensor.name]
    latency_s = (pipeline.transit.most_latency_ns + pipeline.faults.most_latency_ns) / 1e9
    until_s = at_s + PATIENCE_S + period_s + latency_s
    while rig.elapsed_ns < until_s * 1e9:
        for message in rig.step():
            if message.sample.elapsed_ns >= at_s * 1e9:
                return message
    raise RigError(
        f'no scan that {sensor.name!r} took at {at_s:g} s or later arrived by '
        f'{until_s:.1f} s of simulated time; see its loss, faults, phase_s and trigger'
    )


def _follow(rig: Rig, plot: LidarPlot, seconds: float | None) -> None:
    """Draw scans at the pace of the clock until the window is closed."""
    start = time.monotonic()
    waited_ns = 0
    while plot.is_open and (seconds is None or rig.elapsed_ns < seconds * 1e9):
        messages = rig.step()
        for message in messages:
            plot.show(message)
        if messages or rig.elapsed_ns - waited_ns >= IDLE_NS:
            plot.wait(max(start + rig.elapsed_ns / 1e9 - time.monotonic(), 0.001))
            waited_ns = rig.elapsed_ns


class LidarPlot:
    """A polar plot of one LiDAR."""

    def __init__(self, sensor: Lidar[LidarConfig], *, window: bool = False) -> None:
        import matplotlib.pyplot as plt

        if window and plt.get_backend().lower() in ('agg', 'pdf', 'svg', 'ps', 'cairo'):
            raise RigError('there is no display to open a window on; use --png FILE')
        from sensor_rig.pictures.gallery_style import STYLE

        self._plt: Any = plt
        plt.rcParams.update(STYLE)
        self._sensor = sensor
        self.caption = ''
        self._figure, axes = plt.subplots(subplot_kw={'projection': 'polar'}, figsize=(7, 7))
        self._axes: Any = axes
        self._bar: Any = None
        if window:
            plt.show(block=False)

    @property
    def is_open(self) -> bool:
        """Whether the user has not closed the window."""
        return bool(self._plt.fignum_exists(self._figure.number))

    def show(self, message: Message) -> None:
        """Draw a scan instead of the one before."""
        import numpy as np

        from sensor_rig.pictures.gallery_style import FIRST, RULE, SECOND, SOFT, TRUE_OF

        sensor, sample = self._sensor, message.sample
        from sim_sensors.sensors.lidar.ray_reader import frame_of

        frame = frame_of(sample.elapsed_ns, sensor.config.rate_hz, sensor.pattern.frames)
        rays = sensor.pattern.directions[frame]
        angles = np.arctan2(rays[:, 1], rays[:, 0])
        measured, true = (
            sensor.return_layout.view(values, 'ranges') for values in (sample.values, sample.truth)
        )
        found = np.isfinite(measured)
        over_ground = np.hypot(rays[:, 0], rays[:, 1])
        axes = self._axes
        axes.clear()
        if sensor.pattern.ring.any():
            self._show_heights(
                axes.scatter(
                    angles[found],
                    (measured * over_ground)[found],
                    s=2,
                    c=(measured * rays[:, 2])[found],
                    cmap='viridis',
                )
            )
        else:
            line = np.where(np.isfinite(true), true, np.nan)
            axes.plot(angles, line, '.', color=TRUE_OF[FIRST], markersize=6, label='true')
            axes.plot(
                angles[found], measured[found], '.', color=FIRST, markersize=2, label='measured'
            )
            axes.legend(loc='lower right', bbox_to_anchor=(1.08, -0.06))
        axes.plot(0.0, 0.0, marker=(3, 0, -90), color=SECOND, markersize=9)
        farthest = measured[found].max() if found.any() else sensor.config.max_range_m
        axes.set_ylim(0.0, min(sensor.config.max_range_m, 1.1 * float(farthest)))
        self.caption = (
            f'{sensor.name} at {sample.elapsed_ns / 1e9:.3f} s: '
            f'{int(found.sum())} of {len(measured)} rays return'
        )
        axes.set_title(sensor.name, loc='left', weight='bold', size=13, pad=44)
        axes.text(0.0, 1.075, self.caption, transform=axes.transAxes, color=SOFT, size=9)
        axes.spines['polar'].set_color(RULE)
        axes.yaxis.set_major_formatter('{x:g} m')

    def _show_heights(self, dots: Any) -> None:
        """Explain the colours of `dots`, with one bar however many scans there are."""
        if self._bar is None:
            self._bar = self._figure.colorbar(dots, ax=self._axes, fraction=0.04, pad=0.1)
            self._bar.set_label('height above the sensor, m')
        else:
            self._bar.update_normal(dots)

    def wait(self, seconds: float) -> None:
        """Let the window live for a while."""
        self._figure.canvas.draw_idle()
        self._plt.pause(seconds)

    def save(self, file: Path) -> None:
        """Write a PNG."""
        try:
            self._figure.savefig(file, dpi=120)
        except (OSError, ValueError) as error:
            raise RigError(f'{file} cannot be written: {why(error)}') from None
        self._plt.close(self._figure)
