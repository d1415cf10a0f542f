"""The one file that configures a rig: read, extended, validated, handed out as frozen models.

It is a genuine ROS 2 parameter file, so `--params-file` and launch take it as it is. A rig for a
real robot has only `sync:`; reading that needs no simulator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from rig_common import paramfile
from rig_common.errors import RigError
from rig_common.paths import find_shared, shared_names
from rig_common.times import seconds_to_ns
from rig_common.validation import Strict, hint, unknown_key, validated
from sensor_rig.rigsync import add_imu_rotations, merged_inputs, simulated_inputs
from sync_engine.config import SyncConfig

if TYPE_CHECKING:
    from sensor_rig.degrade.config import StreamConfig
    from sim_sensors.config import SensorConfig, Simulation, WorldConfig
    from sim_sensors.sensors.base import Sensor
    from sim_sensors.timing_config import LinkConfig

SENSOR_NAME = re.compile(r'[a-z][a-z0-9_]*\Z')
RESERVED_NAMES = frozenset({'clock', 'diagnostics', 'odom', 'sync', 'synced', 'tf', 'tf_static',
                            'time', 'truth', 'world'})
"""Topics of the rig itself; `odom` and `time` because of `truth/odom` and `truth/time`."""


class SeedConfig(Strict):
    """What a rig file says outside its sections."""

    seed: int = Field(default=0, ge=0, le=2**63 - 1)
    """Seed of everything random: same seed, same file, same samples."""


@dataclass(frozen=True)
class RigConfig:
    """A whole rig."""

    seed: int = 0
    world: WorldConfig | None = None
    """The simulated world; absent in a rig for a real robot."""
    sensors: Mapping[str, SensorConfig] = field(default_factory=dict)
    """Sensors by name."""
    links: Mapping[str, LinkConfig] = field(default_factory=dict)
    """Lines that sensors share, by name."""
    streams: Mapping[str, StreamConfig] = field(default_factory=dict)
    """Recorded or live streams to degrade, by name."""
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

    @property
    def simulation(self) -> Simulation:
        """The part of the rig that is simulated."""
        from sim_sensors.config import Simulation
        return Simulation(self.simulated_world, self.sensors, self.seed, self.links,
                          self.path.parent)

    @property
    def num_envs(self) -> int:
        """Copies of the simulated world; 1 for a real robot."""
        return 1 if self.world is None else self.world.num_envs

    @property
    def runs_sync(self) -> bool:
        """Whether running this rig runs its sync engine, which knows one environment only."""
        return self.sync is not None and self.num_envs == 1

    @property
    def sync_left_out(self) -> str:
        """Say why `sync:` is there and is not run; empty where it is."""
        if self.sync is None or self.runs_sync:
            return ''
        return (f'sync: is left out, because world.num_envs is {self.num_envs} and the sync '
                f'engine runs with one environment only')

    def with_world(self, **changes: Any) -> RigConfig:
        """Return this rig with other values for keys of `world:`, which are checked."""
        from sim_sensors.config import WorldConfig
        values = {**self.simulated_world.model_dump(), **changes}
        return replace(self, world=validated(WorldConfig, values, 'world'))

    def make_sensors(self) -> dict[str, Sensor[Any]]:
        """Return the sensor objects by name."""
        return self.simulation.make_sensors() if self.sensors else {}

    def published_topics(self) -> set[str]:
        """Return the relative topics that the rig's own sensors publish."""
        return {topic.of(name) for name, sensor in self.make_sensors().items()
                for topic in sensor.topics()}

    def as_json(self) -> dict[str, Any]:
        """Return the rig with every default filled in, as `rig check --json` prints it."""
        parts = {'world': self.world, 'sync': self.sync}
        return {
            'seed': self.seed,
            'sensors': {name: each.model_dump(mode='json') for name, each in self.sensors.items()},
            'streams': {name: each.model_dump(mode='json') for name, each in self.streams.items()},
            'links': {name: each.model_dump(mode='json') for name, each in self.links.items()},
            'path': str(self.path),
            **{key: part and part.model_dump(mode='json') for key, part in parts.items()},
        }


def load_rig(path: str | Path) -> RigConfig:
    """Read and validate a rig file; a name such as `demo` means the shipped config/demo.yaml."""
    file = resolve_rig(path)
    return rig_from_parameters(read_parameters(file), file)


def read_parameters(file: Path) -> dict[str, Any]:
    """Return the nested parameters of a rig file, with those of the files it extends."""
    return _read_extended(file, ())


def resolve_rig(path: str | Path) -> Path:
    """Return the rig file that `path` names: a file, or a shipped one by its bare name."""
    given = Path(path)
    if not given.exists() and given.parent == Path() and given.suffix in ('', '.yaml'):
        shipped = find_shared('config', given.with_suffix('.yaml').name)
        if shipped is not None:
            return shipped
        raise RigError(f'there is no rig file {str(path)!r} here, and no shipped one; '
                       f'{hint(given.stem, shared_names("config", ".yaml"), "shipped are")}')
    return given.absolute()


def rig_from_parameters(values: Mapping[str, Any], file: Path = Path('rig')) -> RigConfig:
    """Return the rig of nested parameter `values`, as the ROS-free way and tests build it."""
    allowed = [each.name for each in fields(RigConfig) if each.name != 'path']
    for key in values:
        if key not in allowed and key != 'use_sim_time':
            # `extends` was taken out when the file was read; here it is known to files only.
            raise RigError(unknown_key(file.name, key, [k for k in (*allowed, 'extends')
                                                        if k != key]))
    world = _world_config(values, file) if 'world' in values else None
    raw_sensors = _section(values, 'sensors', file)
    if raw_sensors and world is None:
        raise RigError(f'{file.name} has sensors: but no world: to carry them')
    sensors = {name: _sensor_config(name, raw, file) for name, raw in raw_sensors.items()}
    _check_triggers(sensors, file)
    if world is not None:
        _check_periods(sensors, world, file)
        _check_stamps(sensors, world, file)
    seed = validated(SeedConfig, {'seed': values.get('seed', 0)}, f'{file.name}:').seed
    streams = _stream_configs(_section(values, 'streams', file), file)
    rig = RigConfig(seed, world, sensors, _links(values, sensors, file), streams, path=file)
    made = rig.make_sensors()
    inputs = simulated_inputs(made, file)
    if 'sync' not in values:
        return rig
    raw_sync = dict(_section(values, 'sync', file))
    add_imu_rotations(inputs, made, raw_sync.get('imu_sensor_id', ''))
    raw_sync['inputs'] = merged_inputs(raw_sync, inputs, file)
    sync = validated(SyncConfig, raw_sync, f'{file.name}: sync')
    return replace(rig, sync=sync)


# ---- reading -------------------------------------------------------------------------------


def _read_extended(file: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    """Return the parameters of `file` on top of those of the file it `extends`."""
    if file in seen:
        chain = ' -> '.join(each.name for each in (*seen[seen.index(file):], file))
        raise RigError(f'{file.name}: extends goes round in a circle: {chain}')
    values = paramfile.read(file)
    base = values.pop('extends', None)
    for section in ('sensors', 'streams'):
        parts = values.get(section)
        if not isinstance(parts, dict):
            continue
        for name, part in parts.items():
            if isinstance(part, dict) and 'extends' in part:
                where = f'{file.name}: {section}.{name}.extends'
                parent = _extended_file(part.pop('extends'), file, where)
                parts[name] = paramfile.merged(_read_extended(parent, (*seen, file)), part)
    if base is None:
        return values
    parent = _extended_file(base, file, f'{file.name}: extends')
    return paramfile.merged(_read_extended(parent, (*seen, file)), values)


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


def _section(values: Mapping[str, Any], key: str, file: Path) -> dict[str, Any]:
    section = values.get(key, {})
    if not isinstance(section, dict):
        raise RigError(f'{file.name}: {key} is {section!r}; it should be a map')
    return section


# ---- world and sensors ---------------------------------------------------------------------


def _world_config(values: Mapping[str, Any], file: Path) -> WorldConfig:
    from sim_sensors.config import WorldConfig
    return validated(WorldConfig, _section(values, 'world', file), f'{file.name}: world')


def _require_part(name: str, raw: Any, where: str) -> None:
    """Refuse a sensor or stream whose name or value cannot be one."""
    if not SENSOR_NAME.match(name):
        raise RigError(f'{where}: the name {name!r} should be lower-case letters, digits and '
                       f'underscores, a letter first')
    if name in RESERVED_NAMES:
        raise RigError(f'{where}: the name {name!r} belongs to the rig itself; choose another')
    if not isinstance(raw, dict):
        raise RigError(f'{where} is {raw!r}; it should be a map')


def _stream_configs(raw_streams: Mapping[str, Any], file: Path) -> dict[str, StreamConfig]:
    if not raw_streams:
        return {}
    from sensor_rig.degrade.config import check_clocks, stream_config
    from sensor_rig.degrade.topics import refuse_shared
    where = f'{file.name}: streams'
    streams = {}
    for name, raw in raw_streams.items():
        _require_part(name, raw, f'{where}.{name}')
        raw = _with_file(raw, file, f'{where}.{name}')
        streams[name] = stream_config(raw, f'{where}.{name}')
    check_clocks(streams, where)
    refuse_shared(streams, where)
    return streams


def _sensor_config(name: str, raw: Any, file: Path) -> SensorConfig:
    from sim_sensors.registry import sensor_class, type_names
    where = f'{file.name}: sensors.{name}'
    _require_part(name, raw, where)
    if not isinstance(raw.get('type'), str):
        given = repr(raw['type']) if 'type' in raw else 'missing'
        raise RigError(f'{where}.type is {given}; it should be one of '
                       f'{", ".join(type_names())}')
    try:
        model = sensor_class(raw['type']).config_class
    except RigError as error:
        raise RigError(f'{where}.type: {error}') from None
    return validated(model, _with_file(raw, file, where), where, also=('extends',))


def _with_file(raw: Mapping[str, Any], file: Path, where: str) -> Mapping[str, Any]:
    """Return a sensor's keys with the path of its latency trace made absolute."""
    latency = raw.get('latency')
    name = latency.get('file') if isinstance(latency, dict) else None
    if not name or not isinstance(name, str) or latency is None:
        return raw
    found = _extended_file(name, file, f'{where}.latency.file')
    return {**raw, 'latency': {**latency, 'file': str(found)}}


def _links(values: Mapping[str, Any], sensors: Mapping[str, SensorConfig],
           file: Path) -> dict[str, LinkConfig]:
    raw = _section(values, 'links', file)
    used = {config.link for config in sensors.values()}
    if not raw and used <= {''}:
        return {}
    from sim_sensors.timing_config import LinkConfig
    for name, config in sensors.items():
        if config.link and config.link not in raw:
            raise RigError(f'{file.name}: sensors.{name}.link is {config.link!r}; '
                           f'{hint(config.link, list(raw), "the links are")}')
    for name in raw:
        if not isinstance(raw[name], dict):
            raise RigError(f'{file.name}: links.{name} is {raw[name]!r}; it should be a map')
        if name not in used:
            raise RigError(f'{file.name}: links.{name} carries nothing; a sensor takes it with '
                           f'link: {name}')
    return {name: validated(LinkConfig, each, f'{file.name}: links.{name}')
            for name, each in raw.items()}


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


def _check_periods(sensors: Mapping[str, SensorConfig], world: WorldConfig, file: Path) -> None:
    """Refuse captures that last longer than the time between two, also of triggered sensors."""
    for name, config in sensors.items():
        root = config
        while root.trigger:
            root = sensors[root.trigger]
        period_s = 1.0 / root.rate_hz if root.rate_hz else world.timestep_s
        problem = config.too_long_for(period_s)
        if problem:
            raise RigError(f'{file.name}: sensors.{name}: {problem}')


def _check_stamps(sensors: Mapping[str, SensorConfig], world: WorldConfig, file: Path) -> None:
    """Refuse clocks that are so far off that their stamps are no ROS time."""
    from sim_sensors.timekeeping.schedule import schedules_of
    from sim_sensors.timekeeping.stamps import require_stamps
    odd = [name for name, config in sensors.items() if config.clock.offset_s or config.faults
           or config.clock.stamp_jitter_s]
    schedules = schedules_of(sensors, seconds_to_ns(world.timestep_s)) if odd else {}
    for name in odd:
        require_stamps(f'{file.name}: sensors.{name}', sensors[name], schedules[name],
                       world.time_base)
