"""The one file that configures a rig: read, extended, validated, handed out as frozen models.

It is a genuine ROS 2 parameter file, so `--params-file` and launch take it as it is. A rig for a
real robot has only `sync:`; reading that needs no simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import Field

from rig_common.errors import RigError
from rig_common.paramfile.events import MOST_MISTAKES, Parameters
from rig_common.paths import find_shared, shared_names
from rig_common.validation import Strict, hint, unknown_key, validated
from sensor_rig.rigfile.rig_parts import (
    check_periods,
    check_stamps,
    check_triggers,
    link_configs,
    parse_stream,
    section,
    sensor_config,
    world_config,
)
from sensor_rig.rigfile.rig_reading import Mistakes, Places, read_rig
from sensor_rig.rigfile.site_rotations import site_rotations
from sensor_rig.rigfile.sync_inputs import add_imu_rotations, merged_inputs, simulated_inputs
from sync_engine.config import SyncConfig

if TYPE_CHECKING:
    from sensor_rig.rigfile.stream_keys import StreamConfig
    from sim_sensors.interface import AnySensor, SensorConfig
    from sim_sensors.simulation import Simulation
    from sim_sensors.timing.config import LinkConfig
    from sim_sensors.world.config.world import WorldConfig

PartT = TypeVar('PartT')


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
    places: Places = field(default_factory=dict, repr=False, compare=False)
    """Where each key stands, for sentences about it."""

    def __repr__(self) -> str:
        """Return one line: what the file has."""
        parts = {
            'sensors': self.sensors,
            'streams': self.streams,
            'links': self.links,
            'sync inputs': self.sync.inputs if self.sync else {},
        }
        said = [f'{key}: {", ".join(part)}' for key, part in parts.items() if part]
        model = [f'world: {self.world.model}'] if self.world else []
        return f'RigConfig({self.path.name}; {"; ".join([*model, *said])})'

    @property
    def simulated_world(self) -> WorldConfig:
        """Return `world`, or say that this rig has none."""
        if self.world is None:
            raise RigError(f'{self.path} has no world: section, so there is nothing to simulate')
        return self.world

    @property
    def required_sync(self) -> SyncConfig:
        """Return `sync`, or say that this rig has none."""
        if self.sync is None:
            raise RigError(f'{self.path} has no sync: section, so there is nothing to sync')
        return self.sync

    @property
    def simulation(self) -> Simulation:
        """The part of the rig that is simulated."""
        from sim_sensors.simulation import Simulation

        return Simulation(
            self.simulated_world, self.sensors, self.seed, self.links, self.path.parent
        )

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
        return (
            f'sync: is left out, because world.num_envs is {self.num_envs} and the sync '
            f'engine runs with one environment only'
        )

    def with_world(self, **changes: object) -> RigConfig:
        """Return this rig with other values for keys of `world:`, which are checked."""
        from sim_sensors.world.config.world import WorldConfig

        values = {**self.simulated_world.model_dump(), **changes}
        return replace(self, world=validated(WorldConfig, values, 'world'))

    def make_sensors(self) -> dict[str, AnySensor]:
        """Return the sensor objects by name."""
        return self.simulation.in_namespace('').make_sensors() if self.sensors else {}

    def published_topics(self) -> set[str]:
        """Return the relative topics that the rig's own sensors publish."""
        return {
            topic.of(name)
            for name, sensor in self.make_sensors().items()
            for topic in sensor.topics()
        }

    def as_json(self) -> Parameters:
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
    parameters = read_rig(file)
    return rig_from_parameters(parameters.values, file, parameters.places)


def read_parameters(file: Path) -> Parameters:
    """Return the nested parameters of a rig file, with those of the files it extends."""
    return read_rig(file).values


def load_attached(rig: str | Path | Mapping[str, object], timestep_s: float) -> RigConfig:
    """Return a rig file, or parameters like one, for a simulation that somebody else steps.

    It needs no `world:`. Where there is one, its model is that of the simulation, and what moves
    the robot or paces the run does not count.
    """
    from sim_sensors.world.foreign.attached_world import ATTACHED

    file = Path('rig') if isinstance(rig, Mapping) else resolve_rig(rig)
    values = dict(rig) if isinstance(rig, Mapping) else read_parameters(file)
    world = {
        'model': ATTACHED,
        **section(values, 'world'),
        'driver': 'none',
        'timestep_s': round(timestep_s, 9),
        'num_envs': 1,
        'keyframe': '',
    }
    for key in ('drive', 'actuators', 'poses', 'ground', 'control_delay_s', 'control_delays_s'):
        world.pop(key, None)
    if not section(values, 'sensors'):
        raise RigError(f'{file.name} has no sensors:, so there is nothing to attach')
    return rig_from_parameters({**values, 'world': world}, file)


def resolve_rig(path: str | Path) -> Path:
    """Return the rig file that `path` names: a file, or a shipped one by its bare name."""
    given = Path(path)
    if not given.exists() and given.parent == Path() and given.suffix in ('', '.yaml'):
        shipped = find_shared('config', given.with_suffix('.yaml').name)
        if shipped is not None:
            return shipped
        raise RigError(
            f'there is no rig file {str(path)!r} here, and no shipped one; '
            f'{hint(given.stem, shared_names("config", ".yaml"), "shipped are")}'
        )
    return given.absolute()


def rig_from_parameters(
    values: Mapping[str, object], file: Path = Path('rig'), places: Places | None = None
) -> RigConfig:
    """Return the rig of nested parameter `values`, as the ROS-free way and tests build it.

    RigError holds all mistakes; with `places`, each with its line.
    """
    mistakes = Mistakes(file, places or {})
    _refuse_unknown_keys(values, mistakes)
    seed, world = 0, None
    with mistakes.below(''):
        seed = validated(SeedConfig, {'seed': values.get('seed', 0)}, '').seed
    with mistakes.below('world'):
        world = world_config(values) if 'world' in values else None
    sensors = _parts(values, 'sensors', sensor_config, mistakes)
    streams = _parts(values, 'streams', parse_stream, mistakes)
    if sensors and 'world' not in values:
        mistakes.add('sensors', 'there are sensors: but no world: to carry them')
    if mistakes.found:
        _add_plain_mistakes_of_sync(values, mistakes)
        mistakes.refuse()
    rig = RigConfig(seed, world, sensors, streams=streams, path=file, places=mistakes.places)
    _check_together(rig, mistakes)
    with mistakes.below('links'):
        rig = replace(rig, links=link_configs(values, sensors, mistakes))
    mistakes.refuse()
    with mistakes.below('sync'):
        rig = replace(rig, sync=_sync_config(rig, values))
    mistakes.refuse()
    return rig


def _refuse_unknown_keys(values: Mapping[str, object], mistakes: Mistakes) -> None:
    allowed = [each.name for each in fields(RigConfig) if each.name not in ('path', 'places')]
    # `extends` was taken out when the file was read; here it is known to files only.
    unknown = (key for key in values if key not in (*allowed, 'use_sim_time'))
    for key in islice(unknown, MOST_MISTAKES):
        known = [each for each in (*allowed, 'extends') if each != key]
        mistakes.add(key, unknown_key('', key, known))


def _parts(
    values: Mapping[str, object],
    name: str,
    validate: Callable[[str, Any, Path], PartT],
    mistakes: Mistakes,
) -> dict[str, PartT]:
    """Return the valid parts of a section by name; what is wrong with the others is collected."""
    parts: dict[str, PartT] = {}
    with mistakes.below(name):
        for part, raw in section(values, name).items():
            with mistakes.below(f'{name}.{part}'):
                parts[part] = validate(part, raw, mistakes.file)
    return parts


def _add_plain_mistakes_of_sync(values: Mapping[str, object], mistakes: Mistakes) -> None:
    """Say what is wrong in `sync:` whatever the sensors are: unknown keys, types and ranges."""
    looked_at = Mistakes(mistakes.file)
    with looked_at.below('sync'):
        validated(SyncConfig, section(values, 'sync'), 'sync')
    mistakes.found += [each for each in looked_at.found if each.key != 'sync' and not each.missing]


def _check_together(rig: RigConfig, mistakes: Mistakes) -> None:
    """Check what several sensors or streams have to agree on."""
    if rig.streams:
        from sensor_rig.rigfile.stream_keys import check_clocks
        from sensor_rig.rigfile.stream_topics import refuse_shared

        with mistakes.below('streams'):
            check_clocks(rig.streams, 'streams')
            refuse_shared(rig.streams, 'streams')
    check_triggers(rig.sensors, mistakes)
    if rig.world is not None and not mistakes.found:
        check_periods(rig.sensors, rig.world, mistakes)
        check_stamps(rig.sensors, rig.world, mistakes)
    if not mistakes.found:
        with mistakes.below('sensors'):
            simulated_inputs(rig.make_sensors())


def _sync_config(rig: RigConfig, values: Mapping[str, object]) -> SyncConfig | None:
    if 'sync' not in values:
        return None
    made = rig.make_sensors()
    inputs = simulated_inputs(made)
    raw = dict(section(values, 'sync'))
    sites = site_rotations(rig.world.model, rig.path.parent) if rig.world is not None else {}
    add_imu_rotations(inputs, made, raw.get('imu_sensor_id', ''), sites)
    raw['inputs'] = merged_inputs(raw, inputs)
    return validated(SyncConfig, raw, 'sync')
