"""A compiled model back into a spec, so that sensors can be mounted in it.

Somebody else's environment has an MjModel; the file that it came from may be edited, generated or
gone. Bodies, joints, geoms, tendons and all that is needed to simulate them are written into a
new spec under the same names and in the same order. Numbers that do not shape the model (gains,
solver parameters, inertias) are copied into the compiled twin afterwards, see `constants.py`.
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np

from rig_common.errors import RigError
from sim_sensors.world.foreign import assets
from sim_sensors.world.foreign.assets import same
from sim_sensors.world.foreign.names import NAME_LISTS, Names

Obj = mujoco.mjtObj
JOINT_KINDS = tuple(mujoco.mjtJoint.__members__.values())
TARGETS = {
    mujoco.mjtTrn.mjTRN_JOINT: Obj.mjOBJ_JOINT,
    mujoco.mjtTrn.mjTRN_JOINTINPARENT: Obj.mjOBJ_JOINT,
    mujoco.mjtTrn.mjTRN_TENDON: Obj.mjOBJ_TENDON,
    mujoco.mjtTrn.mjTRN_SITE: Obj.mjOBJ_SITE,
    mujoco.mjtTrn.mjTRN_SLIDERCRANK: Obj.mjOBJ_SITE,
    mujoco.mjtTrn.mjTRN_BODY: Obj.mjOBJ_BODY,
}


ACTUATOR_FIELDS = (
    'gear dyntype gaintype biastype dynprm gainprm biasprm ctrllimited forcelimited actlimited '
    'ctrlrange actrange forcerange lengthrange cranklength actearly'
)


def spec_of(model: mujoco.MjModel, names: Names) -> mujoco.MjSpec:
    """Return a spec that compiles to the structure of `model`, without its sensors."""
    _require_known(model)
    spec = mujoco.MjSpec()
    compiler = spec.compiler
    compiler.degree = compiler.autolimits = compiler.balanceinertia = False
    compiler.fusestatic = compiler.alignfree = compiler.discardvisual = False
    compiler.boundmass = compiler.boundinertia = 0.0
    compiler.inertiafromgeom = mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
    spec.nuserdata = model.nuserdata
    assets.add(spec, model, names)
    bodies = _add_bodies(spec, model, names)
    for add in (_add_joints, _add_geoms, _add_sites, _add_cameras, _add_lights):
        add(bodies, model, names)
    for rest in (_add_tendons, _add_actuators, _add_equalities, _add_contacts, _add_custom):
        rest(spec, model, names)
    return spec


def _require_known(model: mujoco.MjModel) -> None:
    for is_there, what in (
        (model.nflex, 'flexes (cloth, soft bodies)'),
        (model.nplugin, 'plugins'),
    ):
        if is_there:
            raise RigError(
                f'the model has {what}, which cannot be rebuilt from the compiled '
                f'model; name its file as world.model of the rig'
            )


def _add_bodies(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> list[Any]:
    bodies: list[Any] = [spec.worldbody]
    for index in range(1, model.nbody):
        body = bodies[int(model.body_parentid[index])].add_body(
            name=names(Obj.mjOBJ_BODY, index),
            mocap=bool(model.body_mocapid[index] >= 0),
            explicitinertial=True,
            **same(model, 'body', index, 'pos quat mass ipos iquat inertia gravcomp'),
        )
        bodies.append(body)
    return bodies


def _add_joints(bodies: list[Any], model: mujoco.MjModel, names: Names) -> None:
    for index in range(model.njnt):
        kind = JOINT_KINDS[int(model.jnt_type[index])]
        start, dof = int(model.jnt_qposadr[index]), int(model.jnt_dofadr[index])
        joint = bodies[int(model.jnt_bodyid[index])].add_joint(
            name=names(Obj.mjOBJ_JOINT, index),
            type=kind,
            armature=float(model.dof_armature[dof]),
            align=0,
            **same(model, 'jnt', index, 'pos axis range limited'),
        )
        if kind in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            joint.ref, joint.springref = float(model.qpos0[start]), float(model.qpos_spring[start])


def _add_geoms(bodies: list[Any], model: mujoco.MjModel, names: Names) -> None:
    for index in range(model.ngeom):
        kind = mujoco.mjtGeom(int(model.geom_type[index]))
        data = int(model.geom_dataid[index])
        geom = bodies[int(model.geom_bodyid[index])].add_geom(
            name=names(Obj.mjOBJ_GEOM, index),
            type=kind,
            mass=0.0,
            material=names(Obj.mjOBJ_MATERIAL, int(model.geom_matid[index])),
            **same(model, 'geom', index, 'pos quat size contype conaffinity condim group rgba'),
        )
        if kind == mujoco.mjtGeom.mjGEOM_HFIELD:
            geom.hfieldname = names(Obj.mjOBJ_HFIELD, data)
        elif data >= 0:
            geom.meshname = names(Obj.mjOBJ_MESH, data)


def _add_sites(bodies: list[Any], model: mujoco.MjModel, names: Names) -> None:
    for index in range(model.nsite):
        kind = mujoco.mjtGeom(int(model.site_type[index]))
        bodies[int(model.site_bodyid[index])].add_site(
            name=names(Obj.mjOBJ_SITE, index),
            type=kind if kind != mujoco.mjtGeom.mjGEOM_MESH else mujoco.mjtGeom.mjGEOM_SPHERE,
            **same(model, 'site', index, 'pos quat size group rgba'),
        )


def _add_cameras(bodies: list[Any], model: mujoco.MjModel, names: Names) -> None:
    for index in range(model.ncam):
        bodies[int(model.cam_bodyid[index])].add_camera(
            name=names(Obj.mjOBJ_CAMERA, index),
            **same(model, 'cam', index, 'pos quat fovy mode'),
            targetbody=names(Obj.mjOBJ_BODY, int(model.cam_targetbodyid[index])),
        )


def _add_lights(bodies: list[Any], model: mujoco.MjModel, names: Names) -> None:
    for index in range(model.nlight):
        bodies[int(model.light_bodyid[index])].add_light(
            **same(model, 'light', index, 'pos dir type mode castshadow active'),
            targetbody=names(Obj.mjOBJ_BODY, int(model.light_targetbodyid[index])),
        )


def _add_tendons(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> None:
    wraps = mujoco.mjtWrap
    for index in range(model.ntendon):
        tendon = spec.add_tendon(
            name=names(Obj.mjOBJ_TENDON, index),
            **same(model, 'tendon', index, 'limited range'),
        )
        first = int(model.tendon_adr[index])
        for wrap in range(first, first + int(model.tendon_num[index])):
            kind = model.wrap_type[wrap]
            place, number = int(model.wrap_objid[wrap]), float(model.wrap_prm[wrap])
            if kind == wraps.mjWRAP_JOINT:
                tendon.wrap_joint(names(Obj.mjOBJ_JOINT, place), number)
            elif kind == wraps.mjWRAP_PULLEY:
                tendon.wrap_pulley(number)
            elif kind == wraps.mjWRAP_SITE:
                tendon.wrap_site(names(Obj.mjOBJ_SITE, place))
            else:
                tendon.wrap_geom(names(Obj.mjOBJ_GEOM, place), names(Obj.mjOBJ_SITE, int(number)))


def _add_actuators(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> None:
    for index, name in enumerate(names.all(Obj.mjOBJ_ACTUATOR)):
        transmission = mujoco.mjtTrn(int(model.actuator_trntype[index]))
        target, second = model.actuator_trnid[index].tolist()
        actuator = spec.add_actuator(
            name=name,
            trntype=transmission,
            target=names(TARGETS[transmission], target),
            inheritrange=0.0,
            **same(model, 'actuator', index, ACTUATOR_FIELDS),
        )
        states = int(model.actuator_actnum[index])
        if states > 1:
            actuator.actdim = states
        if transmission == mujoco.mjtTrn.mjTRN_SITE and second >= 0:
            actuator.refsite = names(Obj.mjOBJ_SITE, second)
        if transmission == mujoco.mjtTrn.mjTRN_SLIDERCRANK:
            actuator.slidersite = names(Obj.mjOBJ_SITE, second)
        samples, interpolation = model.actuator_history[index].tolist()
        if samples:
            actuator.nsample, actuator.interp = samples, interpolation
            actuator.delay = float(model.actuator_delay[index])


def _add_equalities(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> None:
    kinds = mujoco.mjtEq
    between = {kinds.mjEQ_JOINT: Obj.mjOBJ_JOINT, kinds.mjEQ_TENDON: Obj.mjOBJ_TENDON}
    for index in range(model.neq):
        kind = kinds(int(model.eq_type[index]))
        of = between.get(kind, Obj(int(model.eq_objtype[index])))
        spec.add_equality(
            name=names(Obj.mjOBJ_EQUALITY, index),
            type=kind,
            objtype=of,
            name1=names(of, int(model.eq_obj1id[index])),
            name2=names(of, int(model.eq_obj2id[index])),
            data=model.eq_data[index],
            active=bool(model.eq_active0[index]),
        )


def _add_contacts(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> None:
    for signature in model.exclude_signature.tolist():
        spec.add_exclude(
            bodyname1=names(Obj.mjOBJ_BODY, signature >> 16),
            bodyname2=names(Obj.mjOBJ_BODY, signature & 0xFFFF),
        )
    for index in range(model.npair):
        spec.add_pair(
            geomname1=names(Obj.mjOBJ_GEOM, int(model.pair_geom1[index])),
            geomname2=names(Obj.mjOBJ_GEOM, int(model.pair_geom2[index])),
            condim=int(model.pair_dim[index]),
        )


def _add_custom(spec: mujoco.MjSpec, model: mujoco.MjModel, names: Names) -> None:
    """Add the numbers and tuples that sensors look up (reflectivities, drive geometry)."""
    for index in range(model.nnumeric):
        start, size = int(model.numeric_adr[index]), int(model.numeric_size[index])
        spec.add_numeric(
            name=model.numeric(index).name,
            size=size,
            data=model.numeric_data[start : start + size].tolist(),
        )
    for index in range(model.ntuple):
        start, size = int(model.tuple_adr[index]), int(model.tuple_size[index])
        entries = range(start, start + size)
        kinds = [mujoco.mjtObj(int(model.tuple_objtype[entry])) for entry in entries]
        if all(kind in NAME_LISTS for kind in kinds):
            spec.add_tuple(
                name=model.tuple(index).name,
                objtype=kinds,
                objname=[
                    names(kind, int(model.tuple_objid[entry]))
                    for kind, entry in zip(kinds, entries, strict=True)
                ],
                objprm=[float(model.tuple_objprm[entry]) for entry in entries],
            )


def same_structure(model: mujoco.MjModel, twin: mujoco.MjModel) -> str:
    """Return what of the structure of a `twin` with sensors differs; empty for a true one."""
    for size in ('nq', 'nv', 'nu', 'na', 'nbody', 'njnt', 'ntendon', 'neq', 'nmocap', 'nwrap'):
        mine, theirs = getattr(twin, size), getattr(model, size)
        if mine != theirs:
            return f'{size} is {mine} and not {theirs}'
    for array in ('body_parentid', 'jnt_type', 'jnt_bodyid', 'actuator_trntype', 'eq_type'):
        if not np.array_equal(getattr(model, array), getattr(twin, array)):
            return f'{array} differs'
    return ''
