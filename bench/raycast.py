"""Ray casting against its peers: same rays, same answers, all in turns in one run.

    ./rig python -m bench.raycast [--quick] [--json FILE]

A ratio is how many times longer a peer takes than `auto`, the median over rounds in which
everything has its turn; between rounds the moving bodies move. The peers are MuJoCo's `mj_ray` in
a loop, MuJoCo's `mj_multiRay`, the package `mujoco-lidar` on the CPU, and `embreex` as it comes
(on the mesh, where it is exact).
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from bench.command import Result, run_as_program
from bench.figures import Figure, absent, greatest, least
from rig_common.arrays import Flags, Floats
from sim_sensors.raycast.arrangement import Arrangement, neighbour_rows
from sim_sensors.raycast.choice import make_caster
from sim_sensors.raycast.embree import EmbreeCaster
from sim_sensors.raycast.embree_api import has_embree
from sim_sensors.raycast.multiray import MujocoCaster
from sim_sensors.raycast.patterns import ELEVATION_TABLES_DEG, Pattern, multi_beam, single_plane
from sim_sensors.raycast.ray_caster import RayCaster, visible_geoms
from sim_sensors.sensors.lidar.cloud import Lidar3d
from sim_sensors.sensors.lidar.config import Lidar3dConfig

MAX_RANGE_M = 60.0
ORIGIN = (0.0, 0.0, 1.2)
TERRAIN_SIDE = 257  # vertices; 131072 triangles
KINDS = ('box', 'sphere', 'capsule', 'cylinder', 'ellipsoid')
SCENES = ('primitives', 'bodies', 'mesh', 'mixed')


def make_scene(name: str) -> mujoco.MjModel:
    """Return one of `SCENES`; a site `lidar` marks the sensor.

    primitives: 50 in the world body; bodies: 50 with a body each; mesh: 131072 triangles of
    terrain; mixed: terrain, 30 primitives and 20 bodies that move freely. All have a ground plane.
    """
    rng = np.random.default_rng(11)
    spec = mujoco.MjSpec()
    world = spec.worldbody
    carrier = world.add_body(pos=ORIGIN)
    carrier.add_freejoint()
    carrier.mass, carrier.inertia, carrier.explicitinertial = 1.0, [1.0, 1.0, 1.0], True
    carrier.add_site(name='lidar')
    if name in ('mesh', 'mixed'):
        vertices, faces = _terrain(rng)
        spec.add_mesh(name='terrain', uservert=vertices.ravel(), userface=faces.ravel())
        world.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname='terrain')
    else:
        world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])
    count = {'primitives': 50, 'bodies': 50, 'mesh': 0, 'mixed': 50}[name]
    for index in range(count):
        angle, distance = rng.uniform(-np.pi, np.pi), rng.uniform(2.5, 15.0)
        pos = [distance * np.cos(angle), distance * np.sin(angle), rng.uniform(0.3, 2.0)]
        quat = rng.normal(size=4)
        shape: dict[str, Any] = {
            'type': getattr(mujoco.mjtGeom, f'mjGEOM_{KINDS[index % len(KINDS)].upper()}'),
            'size': rng.uniform(0.2, 0.7, 3),
        }
        if name == 'primitives' or (name == 'mixed' and index >= 20):
            world.add_geom(pos=pos, quat=quat, **shape)
        else:
            body = world.add_body(pos=pos, quat=quat)
            if name == 'mixed':
                body.add_freejoint()
            body.add_geom(**shape)
    return spec.compile()


def _terrain(rng: np.random.Generator) -> tuple[Floats, Any]:
    side = np.linspace(-25.0, 25.0, TERRAIN_SIDE)
    x, y = np.meshgrid(side, side, indexing='ij')
    height = np.zeros_like(x)
    for _ in range(24):
        kx, ky = rng.normal(size=2) * 0.8
        height += 0.06 * np.cos(kx * x + ky * y + rng.uniform(0.0, 2.0 * np.pi))
    height += 0.002 * (x**2 + y**2)  # a bowl, so that level rays land too
    index = np.arange(TERRAIN_SIDE**2).reshape(TERRAIN_SIDE, TERRAIN_SIDE)
    a, b, c, d = (
        part.ravel() for part in (index[:-1, :-1], index[1:, :-1], index[1:, 1:], index[:-1, 1:])
    )
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return np.stack([x, y, height], axis=-1).reshape(-1, 3), faces


def patterns() -> dict[str, Pattern]:
    """Return the scans that every scene is cast with."""
    planes = {str(count): single_plane(count) for count in (64, 360, 1024)}
    return {**planes, '16x1024': multi_beam(ELEVATION_TABLES_DEG[16], 1024)}


def ways_to_cast(
    model: mujoco.MjModel, visible: Flags, directions: Floats
) -> dict[str, RayCaster]:
    """Return every way that can cast `directions` ([n, 3]), by name."""
    rows = neighbour_rows(directions)
    ways: dict[str, RayCaster] = {'mujoco': MujocoCaster(model, MAX_RANGE_M, visible)}
    if has_embree():
        for bundled in (False, True):
            how = Arrangement(bundled, rows)
            ways[f'embree, {how}'] = EmbreeCaster(model, MAX_RANGE_M, visible, how)
    return ways


class Cell:
    """One scene and one pattern, with everything that casts it."""

    def __init__(self, model: mujoco.MjModel, pattern: Pattern) -> None:
        self.model = model
        self._rng = np.random.default_rng(5)
        self.data = mujoco.MjData(model)
        mujoco.mj_forward(model, self.data)
        self.directions = np.array(pattern.directions[0])
        self.origin = np.array(ORIGIN)
        visible = visible_geoms(model)
        auto = make_caster('auto', model, MAX_RANGE_M, visible, directions=self.directions)
        self.reason = auto.reason
        casters = {'auto': auto, **ways_to_cast(model, visible, self.directions)}
        self.ours = tuple(casters)
        self.calls: dict[str, Callable[[], Any]] = {
            name: functools.partial(self._cast, caster) for name, caster in casters.items()
        }
        self.calls['mj_multiRay'] = self._multiray()
        self.calls['mj_ray loop'] = self._ray_loop
        peer = self._mujoco_lidar()
        if peer is not None:
            self.calls['mujoco-lidar'] = peer
        if model.ngeom == 1:
            plain = self._embreex()
            if plain is not None:
                self.calls['embreex'] = plain

    def _move(self) -> None:
        """Push every moving body a little, so that nothing can be left from the last round."""
        self.data.qpos[7:] += self._rng.normal(scale=0.01, size=self.model.nq - 7)
        mujoco.mj_kinematics(self.model, self.data)

    def _cast(self, caster: RayCaster) -> Any:
        return caster.cast(self.data, self.origin, self.directions).range_m

    def _ray_loop(self) -> Floats:
        geom = np.zeros(1, np.int32)
        return np.array(
            [
                mujoco.mj_ray(
                    self.model, self.data, self.origin, direction, None, 1, -1, geom, None
                )
                for direction in self.directions
            ]
        )

    def _multiray(self) -> Callable[[], Floats]:
        count = len(self.directions)
        geom, distance = np.empty(count, np.int32), np.empty(count)
        flat = self.directions.ravel()

        def cast() -> Floats:
            mujoco.mj_multiRay(
                self.model, self.data, self.origin, flat, None, 1, -1, geom, distance, None, count,
                MAX_RANGE_M,
            )  # fmt: skip
            return distance

        return cast

    def _mujoco_lidar(self) -> Callable[[], Floats] | None:
        try:
            from mujoco_lidar import MjLidarWrapper
        except ImportError:
            return None
        lidar = MjLidarWrapper(self.model, 'lidar', backend='cpu', cutoff_dist=MAX_RANGE_M)
        azimuth = np.arctan2(self.directions[:, 1], self.directions[:, 0])
        elevation = np.arcsin(self.directions[:, 2])
        return lambda: np.array(lidar.trace_rays(self.data, azimuth, elevation))

    def _embreex(self) -> Callable[[], Floats] | None:
        try:
            from embreex import mesh_construction, rtcore_scene
        except ImportError:
            return None
        scene = rtcore_scene.EmbreeScene()
        placed = self.model.mesh_vert @ self.data.geom_xmat[0].reshape(3, 3).T
        placed += self.data.geom_xpos[0]
        mesh_construction.TriangleMesh(
            scene, placed.astype(np.float32), self.model.mesh_face.astype(np.int32)
        )
        origins = np.tile(self.origin, (len(self.directions), 1)).astype(np.float32)
        directions = self.directions.astype(np.float32)
        return lambda: np.array(scene.run(origins, directions, query='DISTANCE'))

    def measure(self, rounds: int) -> dict[str, Floats]:
        """Return [rounds] seconds of each call, all taken in turns.

        A turn is a block of calls of which the fastest counts, and the clock is that of the
        thread, so that what the call before left in the caches and what else the machine does
        stay out of it.
        """
        # A large scan takes some calls to bring its tree back into the caches.
        repeats = max(4, min(41, 1 + 8192 // len(self.directions)))
        times: dict[str, list[float]] = {name: [] for name in self.calls}
        for _ in range(rounds):
            self._move()
            for name, call in self.calls.items():
                block = []
                for _ in range(1 + (repeats if name != 'mj_ray loop' else 2)):
                    start = time.thread_time()
                    call()
                    block.append(time.thread_time() - start)
                times[name].append(min(block))
        return {name: np.array(values) for name, values in times.items()}

    def disagreements(self) -> dict[str, int]:
        """Return how many rays of each peer differ from `auto` by more than 0.1 mm."""
        expected = np.array(self.calls['auto']())
        counts = {}
        for name, call in self.calls.items():
            other = np.array(call(), dtype=float)
            other[(other < 0.0) | (other > MAX_RANGE_M)] = np.inf
            with np.errstate(invalid='ignore'):
                far = np.abs(other - expected) > 1e-4
            counts[name] = int((far | (np.isinf(other) != np.isinf(expected))).sum())
        return counts


def run(quick: bool) -> dict[str, Any]:
    """Return the table of times and ratios, by scene and pattern."""
    table: dict[str, Any] = {}
    for scene in SCENES:
        model = make_scene(scene)
        chosen = patterns()
        if quick:
            del chosen['360']
        if scene == 'mesh':
            chosen['512'] = single_plane(512)
        for label, pattern in chosen.items():
            cell = Cell(model, pattern)
            times = cell.measure(4 if quick else 25)
            best = min(
                (name for name in cell.ours if name != 'auto'),
                key=lambda name: float(np.median(times[name])),
            )
            table[f'{scene} {label}'] = {
                'auto_ms': float(np.median(times['auto'])) * 1e3,
                'ratio': {
                    name: float(np.median(values / times['auto']))
                    for name, values in times.items()
                    if name != 'auto'
                },
                'auto_over_best': float(np.median(times['auto'] / times[best])),
                'reason': cell.reason,
                'differing_rays': cell.disagreements(),
            }
    return {**table, **run_sweeps(3 if quick else 15)}


class _View:
    """One instant of a world whose sensor drives and turns."""

    num_envs, time_ns = 1, 0

    def __init__(self, model: mujoco.MjModel) -> None:
        self.model = model
        self._data = mujoco.MjData(model)
        self._data.qvel[:6] = (2.0, 0.5, 0.0, 0.0, 0.0, 1.0)
        mujoco.mj_forward(model, self._data)
        self.sensordata = self._data.sensordata[None]

    def data(self, env: int) -> mujoco.MjData:
        """Return the state."""
        return self._data


def run_sweeps(rounds: int) -> dict[str, Any]:
    """Return what a distorted 16x1024 sweep at 10 Hz costs against a frozen one, by scene."""
    table = {}
    for scene in SCENES:
        view = _View(make_scene(scene))
        readers, rows = {}, {}
        for name, distorted in (('frozen', False), ('distorted', True)):
            config = Lidar3dConfig(type='lidar3d', backend='embree', motion_distortion=distorted)
            sensor = Lidar3d('lidar', config)
            readers[name] = sensor.reader(view)
            rows[name] = sensor.truth_layout.zeros(1)
        times: dict[str, list[float]] = {name: [] for name in readers}
        for _ in range(rounds):
            for name, reader in readers.items():
                block = []
                for _ in range(3):
                    start = time.thread_time()
                    for part in range(len(reader.parts_ns)):
                        reader.read(view, [0], part, rows[name])
                    block.append(time.thread_time() - start)
                times[name].append(min(block))
        ratios = np.array(times['distorted']) / times['frozen']
        table[f'{scene} sweep'] = {
            'frozen_ms': float(np.median(times['frozen'])) * 1e3,
            'distorted_over_frozen': float(np.median(ratios)),
        }
    return table


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count; ratios over several cells are those of the worst cell."""
    cells = {name: row for name, row in result.items() if 'ratio' in row}

    def over(peer: str, *scenes: str) -> list[float]:
        return [
            row['ratio'][peer]
            for name, row in cells.items()
            if name.split()[0] in scenes and peer in row['ratio']
        ]

    peer = 'mujoco-lidar'
    figures = [
        least(
            'times faster than an mj_ray loop, worst cell',
            over('mj_ray loop', *SCENES),
            unit='x',
            target=5.0,
        ),
        Figure(
            'times faster than mj_multiRay, 1024 rays on a mesh',
            cells['mesh 1024']['ratio']['mj_multiRay'],
            'x',
            target=6.0,
        ),
    ]
    for name, target, scenes in (
        ('primitives', 1.4, ('primitives', 'bodies')),
        ('a mesh', 6.0, ('mesh',)),
        ('moving bodies', 1.4, ('mixed',)),
    ):
        title = f'times faster than mujoco-lidar, {name}, worst cell'
        found = over(peer, *scenes)
        figures.append(
            least(title, found, unit='x', target=target)
            if found
            else absent(title, f'{peer} is not installed', unit='x', target=target)
        )
    plain = cells['mesh 512']['ratio'].get('embreex')
    return [
        *figures,
        greatest(
            'automatic choice over the best backend, worst cell',
            [row['auto_over_best'] for row in cells.values()],
            unit='x',
            target=1.1,
        ),
        greatest(
            'distorted over frozen 16x1024 sweep, worst scene',
            [
                row['distorted_over_frozen']
                for row in result.values()
                if 'distorted_over_frozen' in row
            ],
            unit='x',
            target=1.5,
        ),
        Figure('time of plain embreex over ours, 512 rays on a mesh', plain, 'x')
        if plain
        else absent('time of plain embreex over ours, 512 rays on a mesh', 'no embreex'),
        Figure(
            '512 rays on a mesh',
            cells['mesh 512']['auto_ms'],
            'ms',
            better='lower',
            kind='absolute',
        ),
        greatest(
            'rays that differ from a peer by more than 0.1 mm, worst cell',
            [max(row['differing_rays'].values()) for row in cells.values()],
            kind='accuracy',
            target=0.0,
        ),
    ]


def show(result: Result) -> None:
    """Print the result."""
    for cell, row in result.items():
        if 'frozen_ms' in row:
            ratio = row['distorted_over_frozen']
            print(f'{cell:18} frozen {row["frozen_ms"]:.3f} ms  distorted {ratio:.2f}x')
            continue
        ratios = '  '.join(f'{name} {value:.1f}x' for name, value in row['ratio'].items())
        print(f'{cell:18} auto {row["auto_ms"]:7.3f} ms  auto/best {row["auto_over_best"]:.2f}')
        print(f'{"":18} {ratios}')
        print(f'{"":18} {row["reason"]}')
        if any(row['differing_rays'].values()):
            print(f'{"":18} rays that differ: {row["differing_rays"]}')


if __name__ == '__main__':
    run_as_program(run, show)
