"""Taxels: MuJoCo's own tactile sensor on any body, and the sliding of whatever touches it."""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from rig_common.arrays import Floats, Ids
from sim_sensors.interface.mounts import add_frame
from sim_sensors.interface.truth import WorldView
from sim_sensors.sensors.common.rotations import cross
from sim_sensors.timing.arrays import Array

_PLATE_M = 0.01 * np.array(
    [[0.0, -0.5, -1.0], [0.0, 0.5, -1.0], [0.0, 0.5, 1.0], [0.0, -0.5, 1.0]]
)


def add_taxels(spec: mujoco.MjSpec, name: str, points_m: Floats) -> None:
    """Add a tactile sensor with taxels at `points_m` [..., 3] in the frame of site `name`.

    MuJoCo takes taxels from the vertices of a mesh, places them in the frame of a geom, and asks
    which bodies touch the body of that geom. The compiler turns a mesh into the principal axes of
    its faces: these are a plate of our own, twice as long in z as in y, so its axes stay ours
    whatever the taxels do. The geom is a point that touches and weighs nothing.
    """
    label = f'{name}/taxels'
    taxels = points_m.reshape(-1, 3)
    vertices = np.concatenate([taxels, _PLATE_M])
    first = len(taxels)
    mesh = spec.add_mesh(name=label)
    mesh.uservert = vertices.ravel()
    mesh.userface = [first, first + 1, first + 2, first, first + 2, first + 3]
    mesh.usernormal = np.tile([1.0, 0.0, 0.0], len(vertices))
    mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL
    site = spec.site(name)
    point = site.parent.add_geom(
        name=label,
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[1e-4, 0.0, 0.0],
        contype=0,
        conaffinity=0,
        mass=0.0,
        group=5,
        rgba=[0.0, 0.0, 0.0, 0.0],
    )
    point.set_frame(add_frame(spec, site))
    spec.add_sensor(
        name=label,
        type=mujoco.mjtSensor.mjSENS_TACTILE,
        objtype=mujoco.mjtObj.mjOBJ_MESH,
        objname=label,
        reftype=mujoco.mjtObj.mjOBJ_GEOM,
        refname=label,
    )


class TaxelReader:
    """Depth of each taxel inside what touches the pad, and how fast that slides along y and z.

    The native sensor's own sliding channels have no sign and no sense of how the pad is turned, so
    only its depth is used. A taxel slides with the body of the contact point nearest to it.
    """

    parts_ns: Sequence[int] = (0,)

    def __init__(
        self, model: mujoco.MjModel, name: str, points_m: Floats, *, with_sliding: bool
    ) -> None:
        """Find the columns of the native sensor and the bodies welded to the pad's."""
        self._model = model
        self._with_sliding = with_sliding
        self._points = points_m.reshape(-1, 3)
        start = int(model.sensor(f'{name}/taxels').adr[0])
        self._depth = slice(start, start + len(self._points))
        self._site = int(model.site(name).id)
        self._body = int(model.site_bodyid[self._site])
        self._weld = int(model.body_weldid[self._body])

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write depth m and, if asked for, sliding speeds m/s; the rest is the response's."""
        channels = 3 if self._with_sliding else 1
        out[:] = 0.0
        taxels = out[:, : channels * len(self._points)].reshape(len(out), -1, channels)
        taxels[..., 0] = view.sensordata[np.asarray(envs), self._depth]
        if self._with_sliding:
            for row, env in enumerate(envs):
                touched = taxels[row, :, 0] > 0.0
                if touched.any():
                    taxels[row, touched, 1:] = self._sliding(view.data(env), self._points[touched])

    def _sliding(self, data: mujoco.MjData, points_m: Floats) -> Floats:
        """Return the speeds [n, 2] along y and z of what touches at `points_m` [n, 3]."""
        axes = data.site_xmat[self._site].reshape(3, 3)
        places = points_m @ axes.T + data.site_xpos[self._site]
        bodies = self._model.geom_bodyid[data.contact.geom]
        is_own = self._model.body_weldid[bodies] == self._weld
        touching = (is_own.any(axis=1) & (data.contact.geom >= 0).all(axis=1)).nonzero()[0]
        if not len(touching):
            return np.zeros((len(points_m), 2))
        others = np.where(is_own[touching, 0], bodies[touching, 1], bodies[touching, 0])
        away = places[:, None] - data.contact.pos[touching]
        nearest = others[np.einsum('ijk,ijk->ij', away, away).argmin(axis=1)]
        own = np.full(len(places), self._body)
        relative = self._velocity(data, nearest, places) - self._velocity(data, own, places)
        return np.asarray((relative @ axes)[:, 1:])

    def _velocity(self, data: mujoco.MjData, bodies: Ids, places: Floats) -> Floats:
        """Return the velocity [n, 3] m/s of the point of each body that is at `places` [n, 3]."""
        spatial = data.cvel[bodies]
        arm = places - data.subtree_com[self._model.body_rootid[bodies]]
        return np.asarray(spatial[:, 3:] + cross(spatial[:, :3], arm))
