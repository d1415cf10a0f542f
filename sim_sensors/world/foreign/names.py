"""Names of the elements of a model that is rebuilt."""

from __future__ import annotations

from collections.abc import Iterable

import mujoco

Obj = mujoco.mjtObj
NAME_LISTS = {
    Obj.mjOBJ_BODY: 'nbody',
    Obj.mjOBJ_JOINT: 'njnt',
    Obj.mjOBJ_GEOM: 'ngeom',
    Obj.mjOBJ_SITE: 'nsite',
    Obj.mjOBJ_CAMERA: 'ncam',
    Obj.mjOBJ_TENDON: 'ntendon',
    Obj.mjOBJ_MESH: 'nmesh',
    Obj.mjOBJ_HFIELD: 'nhfield',
    Obj.mjOBJ_TEXTURE: 'ntex',
    Obj.mjOBJ_MATERIAL: 'nmat',
    Obj.mjOBJ_ACTUATOR: 'nactuator',
    Obj.mjOBJ_EQUALITY: 'neq',
}
MOUNTED = (Obj.mjOBJ_SITE, Obj.mjOBJ_CAMERA)
"""What sensors add to a model, under their own names."""


class Names:
    """The name of every element; what has none gets one that is not taken.

    Sites and cameras called as one of `avoided` get another name, as sensors take theirs.
    """

    def __init__(self, model: mujoco.MjModel, avoided: Iterable[str] = ()) -> None:
        self._names: dict[int, list[str]] = {}
        for kind, size in NAME_LISTS.items():
            count = getattr(model, size, None)
            count = model.nu if count is None else count  # MuJoCo 3: an actuator has one control
            given = [mujoco.mj_id2name(model, kind, index) or '' for index in range(count)]
            kept_free = set(avoided) if kind in MOUNTED else set()
            taken = kept_free.union(given)
            self._names[int(kind)] = [
                name
                if name and name not in kept_free
                else _free(name or f'{size[1:]}_{index}', taken)
                for index, name in enumerate(given)
            ]

    def __call__(self, kind: mujoco.mjtObj, index: int) -> str:
        """Return the name of element `index`, '' for a negative one."""
        return self._names[int(kind)][index] if index >= 0 else ''

    def all(self, kind: mujoco.mjtObj) -> list[str]:
        """Return the names in order."""
        return self._names[int(kind)]


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += '_'
    taken.add(name)
    return name
