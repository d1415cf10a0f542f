"""Where a sensor sits: a site added to any model before it is compiled, its XML untouched."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from math import cos, sin
from typing import TYPE_CHECKING, Any

from rig_common.errors import RigError
from sim_sensors.interface.config import MountConfig, Vector3

if TYPE_CHECKING:
    import mujoco


def quat_wxyz_from_rpy(rpy_rad: Vector3) -> tuple[float, float, float, float]:
    """Return the quaternion (w, x, y, z) of fixed-axis roll, pitch, yaw (REP 103)."""
    (cr, sr), (cp, sp), (cy, sy) = ((cos(a / 2), sin(a / 2)) for a in rpy_rad)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def add_site(spec: mujoco.MjSpec, name: str, mount: MountConfig) -> mujoco.MjsSite:
    """Return the site `name` of a sensor, added at `mount`; no physical effect.

    On an existing site the sensor gets a twin of that site under its own name, so that a sensor
    refers to `<name>` whichever way it was mounted.
    """
    if mount.site:
        return _twin(spec, name, mount.site)
    body = find_body(spec, name, mount.body)
    if spec.site(name) is not None:
        raise RigError(
            f'sensor {name!r}: the model has a site {name!r} already; mount the sensor '
            f'with site: {name}, or give it another name'
        )
    return body.add_site(name=name, pos=mount.pos_m, quat=quat_wxyz_from_rpy(mount.rpy_rad))


def find_body(
    spec: mujoco.MjSpec, sensor: str, body: str, key: str = 'mount.body'
) -> mujoco.MjsBody:
    """Return the body that `key` of a sensor calls `body`, or say which ones there are."""
    found = spec.body(body)
    if found is None:
        raise RigError(
            unknown_name(
                f'sensor {sensor!r}: {key}', 'body', body, (each.name for each in spec.bodies)
            )
        )
    return found


def unknown_name(where: str, kind: str, wanted: str, names: Iterable[str]) -> str:
    """Return the sentence for a `kind` (body, site, actuator ...) that the model lacks."""
    known = sorted({name for name in names if name})
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5)
    if near:
        rest = f'did you mean {" or ".join(repr(each) for each in near)}?'
    elif known:
        more = f' and {len(known) - 12} more' if len(known) > 12 else ''
        rest = f'there are {", ".join(known[:12])}{more}'
    else:
        rest = f'it has no {kind} with a name'
    return f'{where} is {wanted!r}, which the model does not have; {rest}'


def _twin(spec: mujoco.MjSpec, name: str, site: str) -> mujoco.MjsSite:
    found: Any = spec.site(site)
    if found is None:
        raise RigError(
            unknown_name(
                f'sensor {name!r}: mount.site', 'site', site, (each.name for each in spec.sites)
            )
            + '; a new one is made by mount: {body: ..., pos_m: [x, y, z]}'
        )
    if site == name:
        return found
    if spec.site(name) is not None:
        raise RigError(
            f'sensor {name!r}: the model has another site of that name already; give '
            f'the sensor another name, or mount it with site: {name}'
        )
    twin = found.parent.add_site(
        name=name,
        pos=found.pos,
        quat=found.quat,
        type=found.type,
        size=found.size,
        fromto=found.fromto,
    )
    _copy_orientation(found, twin)
    twin.group, twin.rgba[3] = 5, 0.0
    if found.frame is not None:
        twin.set_frame(found.frame)
    return twin


def add_native(spec: mujoco.MjSpec, sensor: str, kind: str) -> None:
    """Add MuJoCo's own sensor `kind` ('gyro', 'framepos' ...), called `sensor/kind`, on a site."""
    from mujoco import mjtObj, mjtSensor

    native = getattr(mjtSensor, f'mjSENS_{kind.upper()}')
    spec.add_sensor(
        name=f'{sensor}/{kind}', type=native, objtype=mjtObj.mjOBJ_SITE, objname=sensor
    )


def add_frame(spec: mujoco.MjSpec, site: mujoco.MjsSite) -> mujoco.MjsFrame:
    """Return a frame at the pose of `site`, for elements that are turned against it."""
    frame = site.parent.add_frame(site.frame, pos=site.pos, quat=site.quat)
    _copy_orientation(site, frame)
    return frame


def _copy_orientation(source: Any, target: Any) -> None:
    """Copy an orientation that is written in another way than as a quaternion."""
    for key in ('euler', 'axisangle', 'xyaxes', 'zaxis', 'type'):
        setattr(target.alt, key, getattr(source.alt, key))
