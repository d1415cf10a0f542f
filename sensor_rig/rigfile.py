"""The one file that configures a rig: read, extended, validated, handed out as frozen models.

It is a genuine ROS 2 parameter file, so `--params-file` and launch take it as it is. A rig for a
real robot has only `sync:`; reading that needs no simulator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, SerializeAsAny

from sensor_rig import paramfile
from sensor_rig.errors import RigError
from sensor_rig.paths import find_shared
from sensor_rig.quaternions import conjugate, product
from sensor_rig.validation import unknown_key, validated
from sim_sensors.config import SensorConfig, Strict, WorldConfig
from sync_engine.config import SyncConfig

if TYPE_CHECKING:
    from sim_sensors.sensors.base import Sensor

SENSOR_NAME = re.compile(r'[a-z][a-z0-9_]*\Z')
RESERVED_NAMES = frozenset({'clock', 'diagnostics', 'odom', 'sync', 'synced', 'tf', 'tf_static',
                            'time', 'truth', 'world'})
"""Topics of the rig itself; `odom` and `time` because of `truth/odom` and `truth/time`."""
CUES = {
    'nav_msgs/msg/Odometry': 'odometry',
    'sensor_msgs/msg/Image': 'image',
    'sensor_msgs/msg/LaserScan': 'scan',
    'sensor_msgs/msg/PointCloud2': 'cloud',
}
"""What a message type tells the sync engine about rotation."""
IMAGE_CUE_BIAS_S = 0.002
"""What parallax adds to an image's rotation in the yard of the demo (seen: 1 to 3 ms)."""


class RigConfig(Strict):
    """A whole rig."""

    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Seed of everything random: same seed, same file, same samples."""
    world: WorldConfig | None = None
    """The simulated world; absent in a rig for a real robot."""
    sensors: dict[str, SerializeAsAny[SensorConfig]] = {}
    """Sensors by name."""
    sync: SyncConfig | None = None
    """The sync engine; absent when nothing is synchronised."""
    path: Path = Path()
    """The file it came from; models and data files are looked up beside it."""

    @property
    def simulated_world(self) -> WorldConfig:
        """Return `world`, or say that this rig has none."""
        if self.world is None:
            raise RigError(f'{self.path} has no world: section, so there is nothing to simulate')
        return self.world

    def make_sensors(self) -> dict[str, Sensor[Any]]:
        """Return the sensor objects by name."""
        from sim_sensors.registry import sensor_class
        return {name: sensor_class(config.type)(name, config)
                for name, config in self.sensors.items()}


def load_rig(path: str | Path) -> RigConfig:
    """Read and validate a rig file; a name such as `demo` means the shipped config/demo.yaml."""
    file = resolve_rig(path)
    return rig_from_parameters(_read_extended(file, ()), file)


def resolve_rig(path: str | Path) -> Path:
    """Return the rig file that `path` names: a file, or a shipped one by its bare name."""
    given = Path(path)
    if not given.exists() and given.parent == Path() and given.suffix in ('', '.yaml'):
        shipped = find_shared('config', given.with_suffix('.yaml').name)
        if shipped is not None:
            return shipped
    return given.absolute()


def rig_from_parameters(values: Mapping[str, Any], file: Path = Path('rig')) -> RigConfig:
    """Return the rig of nested parameter `values`, as the ROS-free way and tests build it."""
    allowed = [key for key in RigConfig.model_fields if key != 'path']
    for key in values:
        if key not in allowed and key != 'use_sim_time':
            raise RigError(unknown_key(file.name, key, allowed))
    world = (validated(WorldConfig, _section(values, 'world', file), f'{file.name}: world')
             if 'world' in values else None)
    raw_sensors = _section(values, 'sensors', file)
    if raw_sensors and world is None:
        raise RigError(f'{file.name} has sensors: but no world: to carry them')
    sensors = {name: _sensor_config(name, raw, file) for name, raw in raw_sensors.items()}
    _check_triggers(sensors, file)
    rig = validated(RigConfig, {'seed': values.get('seed', 0), 'world': world,
                                'sensors': sensors, 'path': file}, f'{file.name}:')
    inputs = _simulated_inputs(rig, file)
    if 'sync' not in values:
        return rig
    raw_sync = dict(_section(values, 'sync', file))
    _add_imu_rotations(inputs, rig, raw_sync.get('imu_sensor_id', ''))
    raw_sync['inputs'] = _merged_inputs(raw_sync, inputs, file)
    sync = validated(SyncConfig, raw_sync, f'{file.name}: sync')
    return rig.model_copy(update={'sync': sync})


def rig_schema() -> dict[str, Any]:
    """Return the JSON Schema of a rig file, with one alternative per sensor type."""
    from sim_sensors.registry import sensor_class, type_names
    schema = RigConfig.model_json_schema(ref_template='#/$defs/{model}')
    schema['properties'].pop('path', None)
    definitions = schema.setdefault('$defs', {})
    alternatives = []
    for type_name in type_names():
        model = sensor_class(type_name).config_class
        own = model.model_json_schema(ref_template='#/$defs/{model}')
        definitions.update(own.pop('$defs', {}))
        own['properties']['type'] = {'const': type_name}
        definitions[model.__name__ + '_' + type_name] = own
        alternatives.append({'$ref': f'#/$defs/{model.__name__}_{type_name}'})
    schema['properties']['sensors'] = {'type': 'object',
                                       'additionalProperties': {'oneOf': alternatives}}
    return schema


# ---- reading -------------------------------------------------------------------------------


def _read_extended(file: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the parameters of `file` on top of those of the file it `extends`."""
    if file in seen:
        chain = ' -> '.join(each.name for each in (*seen[seen.index(file):], file))
        raise RigError(f'{file.name}: extends goes round in a circle: {chain}')
    values = paramfile.read(file)
    base = values.pop('extends', None)
    sensors = values.get('sensors')
    if isinstance(sensors, dict):
        for name, sensor in sensors.items():
            if isinstance(sensor, dict) and 'extends' in sensor:
                where = f'{file.name}: sensors.{name}.extends'
                parent = _extended_file(sensor.pop('extends'), file, where)
                sensors[name] = _merged(_read_extended(parent, (*seen, file)), sensor)
    if base is None:
        return values
    parent = _extended_file(base, file, f'{file.name}: extends')
    return _merged(_read_extended(parent, (*seen, file)), values)


def _extended_file(name: Any, file: Path, where: str) -> Path:
    if not isinstance(name, str):
        raise RigError(f'{where} is {name!r}; it should be the name of a file')
    beside = (file.parent / name).absolute()
    if beside.exists():
        return beside.resolve()
    shipped = find_shared(*Path(name).parts)
    if shipped is None:
        raise RigError(f'{where} is {name!r}; there is no such file beside the rig file or among '
                       f'the shipped ones')
    return shipped


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `over` on top of `base`, map by map."""
    result = dict(base)
    for key, value in over.items():
        below = result.get(key)
        result[key] = _merged(below, value) if isinstance(below, dict) and isinstance(
            value, dict) else value
    return result


def _section(values: Mapping[str, Any], key: str, file: Path) -> dict[str, Any]:
    section = values.get(key, {})
    if not isinstance(section, dict):
        raise RigError(f'{file.name}: {key} is {section!r}; it should be a map')
    return section


# ---- sensors -------------------------------------------------------------------------------


def _sensor_config(name: str, raw: Any, file: Path) -> SensorConfig:
    from sim_sensors.registry import sensor_class, type_names
    where = f'{file.name}: sensors.{name}'
    if not SENSOR_NAME.match(name):
        raise RigError(f'{where}: the name {name!r} should be lower-case letters, digits and '
                       f'underscores, a letter first')
    if name in RESERVED_NAMES:
        raise RigError(f'{where}: the name {name!r} belongs to the rig itself; choose another')
    if not isinstance(raw, dict):
        raise RigError(f'{where} is {raw!r}; it should be a map')
    if not isinstance(raw.get('type'), str):
        given = repr(raw['type']) if 'type' in raw else 'missing'
        raise RigError(f'{where}.type is {given}; it should be one of '
                       f'{", ".join(type_names())}')
    try:
        model = sensor_class(raw['type']).config_class
    except RigError as error:
        raise RigError(f'{where}.type: {error}') from None
    return validated(model, raw, where)


def _check_triggers(sensors: Mapping[str, SensorConfig], file: Path) -> None:
    for name, config in sensors.items():
        chain = [name]
        while config.trigger:
            if config.trigger not in sensors:
                raise RigError(f'{file.name}: sensors.{chain[-1]}.trigger is {config.trigger!r}; '
                               f'it should be one of {", ".join(sorted(sensors))}')
            if config.trigger in chain:
                raise RigError(f'{file.name}: sensors.{name}.trigger goes round in a circle: '
                               f'{" -> ".join([*chain, config.trigger])}')
            chain.append(config.trigger)
            config = sensors[config.trigger]


# ---- what the sync engine can know of simulated sensors -----------------------------------------


def _simulated_inputs(rig: RigConfig, file: Path) -> dict[str, dict[str, Any]]:
    """Return sync inputs by sensor, and refuse two sensors on one topic."""
    owners: dict[str, str] = {}
    inputs: dict[str, dict[str, Any]] = {}
    for name, sensor in rig.make_sensors().items():
        topics = {topic_name(name, topic.suffix): topic.type_name for topic in sensor.topics()}
        for topic in topics:
            if topic in owners:
                raise RigError(f'{file.name}: sensors.{name} and sensors.{owners[topic]} both '
                               f'publish {topic}; give one of them another name')
            owners[topic] = name
        inputs.update(_inputs_of(sensor, topics))
    return inputs


def _inputs_of(sensor: Sensor[Any], topics: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return an input for each topic: the first by the sensor's name, the others on its clock.

    `camera/camera_info` becomes `camera_camera_info`; it is used only where the file names it.
    """
    config = sensor.config
    low, high = config.delay_range_s
    facts = {
        'stamp_source': 'host' if config.clock.stamp_at == 'arrival' else 'device',
        'latency_s': sensor.duration_ns / 1e9 + (low + high) / 2,
        'latency_sigma_s': max((high - low) / 12**0.5, 1e-3),
    }
    inputs: dict[str, dict[str, Any]] = {}
    for topic, type_name in topics.items():
        given = {'topic': topic, 'type': type_name, **facts}
        if not inputs:
            cue = CUES.get(type_name, 'none')
            bias_s = IMAGE_CUE_BIAS_S if cue == 'image' else 0.0
            inputs[sensor.name] = {**given, 'cue': cue, 'cue_bias_s': bias_s,
                                   **sensor.sync_facts()}
        else:
            inputs[topic.replace('/', '_')] = {**given, 'clock_of': sensor.name}
    return inputs


def _add_imu_rotations(inputs: dict[str, dict[str, Any]], rig: RigConfig, imu: Any) -> None:
    """Tell each input how its frame is turned against the IMU's, where both mounts say so.

    A mount on a site of the model counts as lying along its body's axes.
    """
    from sim_sensors.mounts import quat_wxyz_from_rpy
    sensors = rig.make_sensors()
    if not isinstance(imu, str) or imu not in sensors:
        return
    to_imu = conjugate(quat_wxyz_from_rpy(sensors[imu].config.mount.rpy_rad))
    for name, sensor in sensors.items():
        if name in inputs and name != imu:
            turned = product(quat_wxyz_from_rpy(sensor.config.mount.rpy_rad),
                             sensor.frame_quat_wxyz)
            inputs[name]['imu_quat_wxyz'] = list(product(to_imu, turned))


def topic_name(sensor: str, suffix: str) -> str:
    """Return the relative topic of a sensor's `suffix`; a leading `/` makes it stand alone."""
    return suffix[1:] if suffix.startswith('/') else f'{sensor}/{suffix}'


def _merged_inputs(raw_sync: Mapping[str, Any], simulated: Mapping[str, dict[str, Any]],
                   file: Path) -> dict[str, Any]:
    """Return the inputs the file names, completed from the sensors where they are simulated."""
    named = raw_sync.get('inputs', {})
    if not isinstance(named, dict):
        raise RigError(f'{file.name}: sync.inputs is {named!r}; it should be a map')
    wanted = dict(named)
    required = raw_sync.get('required_sensors')
    mentioned = [raw_sync.get('reference_sensor_id'), raw_sync.get('imu_sensor_id'),
                 *(required if isinstance(required, list) else [])]
    for name in mentioned:
        if isinstance(name, str) and name in simulated:
            wanted.setdefault(name, {})
    return {name: _merged(simulated.get(name, {}), given) if isinstance(given, dict) else given
            for name, given in wanted.items()}
