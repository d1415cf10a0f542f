"""What the rig file adds to a model besides sensors: a ground, actuators, a start."""

from __future__ import annotations

from fnmatch import fnmatchcase

import mujoco

from rig_common.errors import RigError
from sim_sensors.interface.mounts import unknown_name
from sim_sensors.world.config.additions import ActuatorConfig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model.poses import keyframe_names, posed

GROUND = 'rig_ground'
ONE_DOF = (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE)


def add(spec: mujoco.MjSpec, config: WorldConfig) -> None:
    """Add the ground and the actuators of `config`."""
    if config.ground:
        _add_ground(spec)
    for name, actuator in config.actuators.items():
        if actuator.joint:
            _add_actuators(spec, name, actuator)


def add_start(spec: mujoco.MjSpec, model: mujoco.MjModel, config: WorldConfig) -> bool:
    """Add a keyframe for a start that is one of `config.poses`; return whether there is one."""
    name = str(config.keyframe)
    if name not in config.poses or name in keyframe_names(model):
        return False
    spec.add_key(name=name, qpos=posed(model, name, config.poses[name], model.qpos0))
    return True


def _add_ground(spec: mujoco.MjSpec) -> None:
    spec.add_texture(
        name=GROUND,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        width=256,
        height=256,
        builtin=mujoco.mjtBuiltin.mjBUILTIN_CHECKER,
        rgb1=[0.42, 0.45, 0.47],
        rgb2=[0.36, 0.39, 0.41],
    )
    material = spec.add_material(name=GROUND, texrepeat=[2, 2], texuniform=True)
    material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = GROUND
    spec.worldbody.add_geom(
        name=GROUND,
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[0, 0, 1],
        material=GROUND,
        contype=1,  # whatever the model's own default class says
        conaffinity=1,
        group=0,
    )
    if not spec.lights:
        spec.worldbody.add_light(pos=[0, 0, 4], dir=[0, 0, -1], castshadow=False)


def _add_actuators(spec: mujoco.MjSpec, name: str, config: ActuatorConfig) -> None:
    where = f'world.actuators.{name}'
    fitting = [
        joint
        for joint in spec.joints
        if joint.name and fnmatchcase(joint.name, config.joint) and joint.type in ONE_DOF
    ]
    if not fitting:
        if any(joint.name == config.joint for joint in spec.joints):
            raise RigError(
                f'{where}.joint is {config.joint!r}, a free or ball joint; an actuator '
                f'drives a hinge or a slide'
            )
        raise RigError(
            unknown_name(
                f'{where}.joint', 'joint', config.joint, (joint.name for joint in spec.joints)
            )
        )
    is_single = fitting[0].name == config.joint
    for joint in fitting:
        own = name if is_single else joint.name
        if any(each.name == own for each in spec.actuators):
            raise RigError(
                f'{where}: the model has an actuator {own!r} already; choose another name'
            )
        joint.armature += config.armature
        _add_one(spec, own, joint.name, config)


def _add_one(spec: mujoco.MjSpec, name: str, joint: str, config: ActuatorConfig) -> None:
    actuator = spec.add_actuator(name=name, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    actuator.gear[0] = config.gear
    if config.type == 'motor':
        actuator.set_to_motor()
    elif config.type == 'position':
        if config.kd:
            actuator.set_to_position(kp=config.kp, kv=config.kd)
        else:
            actuator.set_to_position(kp=config.kp, dampratio=1.0)
    else:
        actuator.set_to_velocity(kv=config.kd)
    for limited, limits, key in (
        ('ctrllimited', 'ctrlrange', config.ctrl_range),
        ('forcelimited', 'forcerange', config.force_range),
    ):
        if key != (0.0, 0.0):
            setattr(actuator, limits, list(key))
            setattr(actuator, limited, mujoco.mjtLimited.mjLIMITED_TRUE)
