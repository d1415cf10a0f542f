"""The numbers of somebody else's model, copied into its twin, which has more sites and sensors."""

from __future__ import annotations

import re
from typing import Any

import mujoco
import numpy as np

from rig_common.arrays import AnyArray, Ids

STRUCTURE = re.compile(r'(adr|num|id|type|adrs|nnz|colind|pathadr)$')
"""Arrays that say how the model is put together; the twin's own are right."""
COPIED = re.compile(
    r'(body|jnt|dof|geom|site|cam|light|tendon|actuator|eq|mat|hfield|pair|wrap|'
    r'qpos|tex)(_|0$)'
)
DERIVED = frozenset(
    {
        'geom_aabb',
        'geom_rbound',
        'geom_sameframe',
        'body_sameframe',
        'site_sameframe',
        'body_simple',
        'dof_simplenum',
        'dof_Madr',
        'actuator_history',
    }
)
MAGNETIC = 'magnetic'
"""The field that a magnetometer of the rig brings; nothing moves by it."""


class Constants:
    """Copies what an environment may change in its model while it runs: masses, gains, places."""

    def __init__(self, model: mujoco.MjModel, twin: mujoco.MjModel, names: object) -> None:
        """Find the arrays that both have; `names` are those of `model`."""
        self._model, self._twin = model, twin
        rows = {
            'geom': _places(twin, mujoco.mjtObj.mjOBJ_GEOM, names),
            'site': _places(twin, mujoco.mjtObj.mjOBJ_SITE, names),
            'cam': _places(twin, mujoco.mjtObj.mjOBJ_CAMERA, names),
        }
        meshes = model.geom_type == mujoco.mjtGeom.mjGEOM_MESH
        self._pairs: list[tuple[AnyArray, AnyArray, Ids | None, Ids | None]] = []
        for name in dir(model):
            if not COPIED.match(name) or STRUCTURE.search(name) or name in DERIVED:
                continue
            theirs, mine = getattr(model, name), getattr(twin, name, None)
            if not isinstance(theirs, np.ndarray) or mine is None or not theirs.size:
                continue
            places = rows.get(name.partition('_')[0])
            chosen = None
            if name in ('geom_pos', 'geom_quat', 'geom_size'):
                # A mesh is moved into its own axes when it is compiled, and its geom with it.
                chosen = np.flatnonzero(~meshes)
            if places is not None or theirs.shape == mine.shape:
                self._pairs.append((theirs, mine, places, chosen))
        self.copy()

    def copy(self) -> None:
        """Take over what the model says now."""
        for theirs, mine, places, chosen in self._pairs:
            if chosen is not None and places is not None:
                mine[places[chosen]] = theirs[chosen]
            elif places is not None:
                mine[places] = theirs
            else:
                mine[...] = theirs
        for mine, theirs in ((self._twin.opt, self._model.opt), *self._looks()):
            _copy_fields(mine, theirs)
        self._twin.stat.extent = self._model.stat.extent
        self._twin.stat.center[:] = self._model.stat.center

    def _looks(self) -> list[tuple[object, object]]:
        """Return what shapes pictures, of the twin and of the model."""
        return [
            (getattr(self._twin.vis, part), getattr(self._model.vis, part))
            for part in ('global_', 'quality', 'headlight', 'map', 'rgba')
        ]


def _copy_fields(mine: object, theirs: object) -> None:
    """Copy every plain field of a structure of MuJoCo's."""
    for name in dir(theirs):
        value = getattr(theirs, name)
        if name.startswith('_') or name == MAGNETIC or callable(value):
            continue
        if isinstance(value, np.ndarray):
            getattr(mine, name)[...] = value
        else:
            setattr(mine, name, value)


def _places(twin: mujoco.MjModel, kind: mujoco.mjtObj, names: Any) -> Ids:
    """Return where the elements of a model are in its twin."""
    return np.array([mujoco.mj_name2id(twin, kind, name) for name in names.all(kind)], np.intp)
