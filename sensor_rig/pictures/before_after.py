"""Before and after: the same scans, put on one map by their raw stamps and by their synced ones.

Both maps use the true poses of the robot. Only the stamps differ, so what is off is due to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.msgs.decode import read_odometry
from rig_common.times import NS_PER_S
from sensor_rig.drawing.scan_points import SCAN_TYPES, Placer, mount_of
from sensor_rig.inprocess import InProcessRig
from sensor_rig.pictures.figures import figure, save
from sensor_rig.pictures.gallery_style import FIRST, INK, SECOND, SOFT, TRUE
from sensor_rig.rigfile import RigConfig
from sim_sensors.sensors.lidar.config import LidarConfig
from sim_sensors.sensors.lidar.scanner import Lidar
from sim_sensors.world.scene.pose_messages import (
    ODOM_RATE_HZ,
    TrueOdometry,
    base_of,
    schedule_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CHUNK_S = 0.1
"""How much is simulated between two updates of the progress bar, s."""


class BundledScan(NamedTuple):
    """One scan, with the three times that it can be placed by, ns."""

    message: bytes
    capture_ns: int
    stamp_ns: int
    synced_ns: int


@dataclass
class Maps:
    """Floats of the same rays on three maps, [n, 3] m in the world each."""

    sensor: str
    scans: int
    true: Floats
    raw: Floats
    synced: Floats
    clock_ms: float
    """What the sensor's clock is off by, mean over the scans."""
    synced_ms: float
    """What the synced stamps are off by, mean over the scans."""
    away: dict[str, Floats] = field(init=False)
    """Of each map: how far every point is from where it truly is, [n] m."""

    def __post_init__(self) -> None:
        self.away = {
            name: np.linalg.norm(points - self.true, axis=1)
            for name, points in (('raw', self.raw), ('synced', self.synced))
        }

    @property
    def sentence(self) -> str:
        """Say what the maps show."""
        raw, synced = (_cm(np.median(self.away[name])) for name in ('raw', 'synced'))
        return (
            f'{self.scans} scans of {self.sensor}; its points are off by {raw} with '
            f'raw stamps and by {synced} with synced ones (median)'
        )


def fuse(
    config: RigConfig,
    seconds: float,
    lead_s: float,
    wanted: str | None = None,
    advance: Callable[[float], None] = lambda _: None,
) -> Maps:
    """Run a rig with its sync for `lead_s` + `seconds`; map the scans of the latter."""
    lidar = _lidar_of(config, wanted)
    sensor = lidar.name
    topic, kind = next(
        (topic.of(sensor), topic.type_name)
        for topic in lidar.topics()
        if topic.type_name in SCAN_TYPES
    )
    rig = InProcessRig(config.with_world(num_envs=1), arrays=False)
    name = _input_of(rig, topic)
    if name is None:
        raise RigError(
            f'{config.path.name} does not sync {topic}, so there is no synced stamp to show'
        )
    placer = _placer(rig, sensor)
    scans = list(_scans(rig, placer, (topic, name), lead_s, seconds, advance))
    whole = [(scan, places) for scan in scans if (places := _places(placer, kind, scan))]
    if not whole:
        raise RigError(
            f'none of the {len(scans)} scans of {sensor!r} can be put on the map by '
            f'its raw and its synced stamp: no pose is known at those times'
        )
    true, raw, synced = (
        np.concatenate(each) for each in zip(*(places for _, places in whole), strict=True)
    )
    return Maps(
        sensor,
        len(whole),
        true,
        raw,
        synced,
        clock_ms=_mean_ms([scan.stamp_ns - scan.capture_ns for scan, _ in whole]),
        synced_ms=_mean_ms([scan.synced_ns - scan.capture_ns for scan, _ in whole]),
    )


def _places(placer: Placer, kind: str, scan: BundledScan) -> list[Floats] | None:
    """Return a scan's points by its capture time, its raw and its synced stamp; None without."""
    found = [
        placer.place(kind, scan.message, time_ns)
        for time_ns in (scan.capture_ns, scan.stamp_ns, scan.synced_ns)
    ]
    points = [each.points_m for each in found if each is not None]
    return points if len(points) == len(found) else None


def _cm(metres: float) -> str:
    value = 100.0 * float(metres)
    return f'{value:.0f} cm' if value >= 10.0 else f'{value:.1f} cm'


def _mean_ms(errors_ns: list[int]) -> float:
    return float(np.mean(errors_ns)) / 1e6


def _input_of(rig: InProcessRig, topic: str) -> str | None:
    """Return the sync input that hears `topic`."""
    inputs = {} if rig.sync is None or rig.config.sync is None else rig.config.sync.inputs
    return next((name for name, given in inputs.items() if given.topic.lstrip('/') == topic), None)


def _placer(rig: InProcessRig, sensor: str) -> Placer:
    model, data = rig.world.model, rig.world.data(0)
    mujoco.mj_forward(model, data)
    mount = mount_of(model, data, sensor, base_of(rig.world).body)
    if mount is None:
        raise RigError(
            f'{sensor!r} sits on a part that moves against the robot; only a LiDAR on '
            f'its base can be put on the map'
        )
    return Placer(mount, kept_poses=None)


def _scans(
    rig: InProcessRig,
    placer: Placer,
    source: tuple[str, str],
    lead_s: float,
    seconds: float,
    advance: Callable[[float], None],
) -> Iterator[BundledScan]:
    """Run the rig, tell `placer` every true pose, and yield the scans that were synced.

    `source` is their topic and the sync input that hears it.
    """
    topic, name = source
    odometry, times = TrueOdometry(rig.world), schedule_of(ODOM_RATE_HZ, rig.world)
    sent: dict[int, tuple[bytes, int]] = {}
    told_ns = 0
    while rig.elapsed_ns < (lead_s + seconds) * NS_PER_S:
        for message in rig.step():
            if message.topic == topic:
                sent[message.stamp_ns] = (message.data, message.sample.capture_ns)
        if times.index_at(rig.world.time_ns) is not None:
            placer.add_pose(read_odometry(odometry.message(rig.world, 0)))
        for bundle in rig.bundles if rig.elapsed_ns >= lead_s * NS_PER_S else ():
            member = bundle.members.get(name)
            if member is not None and member.stamp_ns in sent:
                yield BundledScan(
                    *sent.pop(member.stamp_ns), member.stamp_ns, member.corrected_timestamp_ns
                )
        if rig.elapsed_ns - told_ns >= CHUNK_S * NS_PER_S:
            advance(CHUNK_S)
            told_ns = rig.elapsed_ns


def draw(maps: Maps, title: str, out: Path) -> None:
    """Draw both maps side by side and save them; the suffix of `out` says the format."""
    with figure(10.4, 5.9) as sheet:
        sheet.text(0.022, 0.955, title, size=15, weight='bold', va='center', color=INK)
        sheet.text(
            0.022,
            0.905,
            f'the same {maps.scans} scans of {maps.sensor}, each placed '
            'where the robot truly was at the time of its stamp; grey: the true surfaces',
            size=9.5,
            va='center',
            color=SOFT,
        )
        grid = sheet.add_gridspec(
            1, 2, left=0.05, right=0.985, bottom=0.075, top=0.775, wspace=0.12
        )
        before = sheet.add_subplot(grid[0])
        after = sheet.add_subplot(grid[1], sharex=before, sharey=before)
        _map(before, maps, 'raw', SECOND, f'Raw stamps: off by {maps.clock_ms:+.0f} ms')
        _map(after, maps, 'synced', FIRST, f'Synced stamps: off by {maps.synced_ms:+.1f} ms')
        low, high = maps.true[:, :2].min(0), maps.true[:, :2].max(0)
        margin = 0.04 * (high - low).max()
        before.set_xlim(low[0] - margin, high[0] + margin)
        before.set_ylim(low[1] - margin, high[1] + margin)
        save(sheet, out)


def _map(axes: Axes, maps: Maps, name: str, colour: str, heading: str) -> None:
    """Draw one map over the true one, and say how far it is off."""
    points, away = getattr(maps, name), maps.away[name]
    axes.set_aspect('equal', adjustable='box')
    axes.plot(
        points[:, 0],
        points[:, 1],
        '.',
        color=colour,
        markersize=1.0,
        zorder=2,
        alpha=0.6,
        rasterized=True,
    )
    axes.plot(
        maps.true[:, 0],
        maps.true[:, 1],
        '.',
        color=TRUE,
        markersize=3.6,
        zorder=1,
        rasterized=True,
    )
    axes.text(0.0, 1.075, heading, transform=axes.transAxes, size=13, weight='bold', color=colour)
    axes.text(
        0.0,
        1.025,
        f'points off by {_cm(np.median(away))} (median), {_cm(np.percentile(away, 95))} (p95)',
        transform=axes.transAxes,
        size=9.5,
        color=SOFT,
    )
    axes.set_xlabel('m')


def _lidar_of(config: RigConfig, wanted: str | None) -> Lidar[LidarConfig]:
    """Return the LiDAR called `wanted`, by default the first one of the rig."""
    lidars = {
        name: each for name, each in config.make_sensors().items() if isinstance(each, Lidar)
    }
    name = wanted or next(iter(lidars), '')
    if name not in lidars:
        known = f'its LiDARs are {", ".join(lidars)}' if lidars else 'it has no LiDAR'
        raise RigError(
            f'{config.path.name} has no LiDAR {name!r}; {known}'
            if wanted
            else f'{config.path.name}: {known}'
        )
    return lidars[name]
