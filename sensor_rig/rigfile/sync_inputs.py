"""Keys of the sync engine that follow from the simulated sensors of a rig file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from rig_common.errors import RigError
from rig_common.msgs.catalogue import known
from rig_common.paramfile.events import Parameters
from rig_common.paramfile.reader import merged
from rig_common.quaternions import Quaternion, conjugate, product
from rig_common.validation import hint
from sync_engine.config import IMAGE_TYPES

if TYPE_CHECKING:
    from sim_sensors.interface import AnySensor, SensorConfig

CUE_WANDER = 0.02
"""Chance that the times of turns wander against the stamps. A simulated sensor has one clock for
both, so they never do; the rest allows for unknown faults."""


def simulated_inputs(sensors: Mapping[str, AnySensor]) -> dict[str, Parameters]:
    """Return sync inputs by sensor, and refuse two sensors on one topic."""
    owners: dict[str, str] = {}
    inputs: dict[str, Parameters] = {}
    for name, sensor in sensors.items():
        topics = {topic.of(name): topic.type_name for topic in sensor.topics()}
        for topic in topics:
            if topic in owners:
                raise RigError(
                    f'sensors.{name} and sensors.{owners[topic]} both '
                    f'publish {topic}; give one of them another name'
                )
            owners[topic] = name
        inputs.update(_inputs_of(sensor, topics))
    return inputs


def _inputs_of(sensor: AnySensor, topics: Mapping[str, str]) -> dict[str, Parameters]:
    """Return an input for each topic: the first by the sensor's name, the others on its clock.

    `camera/camera_info` becomes `camera_camera_info`; it is used only where the file names it.
    """
    config = sensor.config
    low, high = config.delay_range_s
    facts = {
        'stamp_source': 'host' if config.clock.stamp_at == 'arrival' else 'device',
        'latency_s': sensor.duration_ns / 1e9 + (low + high) / 2 + _least_s(config),
        'latency_sigma_s': max((high - low) / 12**0.5, 1e-3),
    }
    inputs: dict[str, Parameters] = {}
    for topic, type_name in topics.items():
        given = {'topic': topic, 'type': type_name, **facts, **_stamp_point(sensor, type_name)}
        if not inputs:
            row = known(type_name)
            inputs[sensor.name] = {
                **given,
                'cue': row.cue,
                'cue_bias_s': row.cue_bias_s,
                'cue_wander': CUE_WANDER,
                **sensor.sync_facts(),
            }
        else:
            inputs[topic.replace('/', '_')] = {**given, 'clock_of': sensor.name}
    return inputs


def _least_s(config: SensorConfig) -> float:
    """Return the latency that nine of ten samples of a latency model have at least, s."""
    if config.latency.model == 'delay':
        return 0.0
    from sim_sensors.timing.marginals import usual_least_s

    return usual_least_s(config.latency)


def _stamp_point(sensor: AnySensor, type_name: str) -> Parameters:
    """Return which instant the stamps mean where it is not the default one, and the shutter."""
    point = sensor.config.clock.stamp_point
    shift_s = abs(sensor.stamp_points_ns.get(point, 0)) / 1e9
    if type_name in IMAGE_TYPES:
        shutter = {
            key: getattr(sensor.config, key)
            for key in ('exposure_s', 'readout_s')
            if getattr(sensor.config, key, 0.0)
        }
        return {'stamp_point': point, **shutter} if shift_s else shutter
    if not shift_s:
        return {}
    return {'stamp_point': point, 'capture_s': shift_s if point == 'end' else 2.0 * shift_s}


def add_imu_rotations(
    inputs: dict[str, Parameters],
    sensors: Mapping[str, AnySensor],
    imu: object,
    sites: Mapping[str, Quaternion],
) -> None:
    """Set the rotation of each input's frame against the IMU's, where both mounts give it.

    `sites` are the rotations of the model's sites that are known; a sensor on another one is left
    undeclared, and the engine estimates its rotation from motion.
    """
    if not isinstance(imu, str) or imu not in sensors:
        return
    of_imu = _mounted(sensors[imu].config, sites)
    for name, sensor in sensors.items():
        own = _mounted(sensor.config, sites)
        if name in inputs and name != imu and of_imu is not None and own is not None:
            turned = product(own, sensor.frame_quat_wxyz)
            inputs[name]['imu_quat_wxyz'] = list(product(conjugate(of_imu), turned))


def _mounted(config: SensorConfig, sites: Mapping[str, Quaternion]) -> Quaternion | None:
    """Return how a mount is turned against its body; None where only the compiler knows."""
    from sim_sensors.interface.mounts import quat_wxyz_from_rpy

    if config.mount.site:
        return sites.get(config.mount.site)
    return quat_wxyz_from_rpy(config.mount.rpy_rad)


def merged_inputs(
    raw_sync: Mapping[str, object], simulated: Mapping[str, Parameters]
) -> Parameters:
    """Return the inputs the file names, completed from the sensors where they are simulated."""
    named = raw_sync.get('inputs', {})
    if not isinstance(named, dict):
        raise RigError(f'sync.inputs is {named!r}; it should be a map')
    wanted = dict(named)
    required = raw_sync.get('required_sensors')
    mentioned = {key: [raw_sync.get(key)] for key in ('reference_sensor_id', 'imu_sensor_id')}
    mentioned['required_sensors'] = required if isinstance(required, list) else []
    for key, name in ((key, name) for key, names in mentioned.items() for name in names):
        if isinstance(name, str) and name in simulated:
            wanted.setdefault(name, {})
        elif isinstance(name, str) and name and simulated and name not in wanted:
            raise RigError(
                f'sync.{key} names {name!r}, which is neither an input nor a sensor of this rig; '
                f'{hint(name, [*simulated, *(wanted.keys() - simulated)], "there are")}'
            )
    for name, given in wanted.items() if simulated else ():
        if name not in simulated and not (isinstance(given, dict) and 'topic' in given):
            raise RigError(
                f'sync.inputs.{name} has no topic and is no sensor of this rig; '
                f'{hint(name, list(simulated), "sensors are")}'
            )
    return {
        name: merged(simulated.get(name, {}), given) if isinstance(given, dict) else given
        for name, given in wanted.items()
    }
