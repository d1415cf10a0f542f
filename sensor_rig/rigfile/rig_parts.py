"""The parts of a rig file: each validated alone, then what they have to agree on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rig_common.errors import Mistake, RigError
from rig_common.paramfile.events import Parameters
from rig_common.times import seconds_to_ns
from rig_common.validation import hint, validated
from sensor_rig.rigfile.rig_reading import Mistakes, extended_file

if TYPE_CHECKING:
    from sensor_rig.rigfile.stream_keys import StreamConfig
    from sim_sensors.interface import SensorConfig
    from sim_sensors.timing.config import LinkConfig
    from sim_sensors.world.config.world import WorldConfig

SENSOR_NAME = re.compile(r'[a-z][a-z0-9_]*\Z')
RESERVED_NAMES = frozenset(
    {'clock', 'diagnostics', 'odom', 'sync', 'synced', 'tf', 'tf_static', 'time', 'truth', 'world'}
)
"""Topics of the rig itself; `odom` and `time` because of `truth/odom` and `truth/time`."""


def section(values: Mapping[str, object], key: str) -> Parameters:
    """Return a section of the file, empty where it is not there."""
    found = values.get(key, {})
    if not isinstance(found, dict):
        raise RigError(f'{key} is {found!r}; it should be a map')
    return found


def world_config(values: Mapping[str, object]) -> WorldConfig:
    """Return the validated `world:`."""
    from sim_sensors.world.config.world import WorldConfig

    return validated(WorldConfig, section(values, 'world'), 'world')


def sensor_config(name: str, raw: Any, file: Path) -> SensorConfig:
    """Return one validated sensor; its `type` says which keys it has."""
    from sim_sensors.registry import sensor_class, type_names

    where = f'sensors.{name}'
    _require_part(name, raw, where)
    if not isinstance(raw.get('type'), str):
        given = repr(raw['type']) if 'type' in raw else 'missing'
        raise RigError(
            Mistake(
                f'{where}.type is {given}; it should be one of {", ".join(type_names())}', 'type'
            )
        )
    try:
        model = sensor_class(raw['type']).config_class
    except RigError as error:
        raise RigError(Mistake(f'{where}.type: {error}', 'type')) from None
    return validated(model, _with_file(raw, file, where), where, also=('extends',))


def parse_stream(name: str, raw: Any, file: Path) -> StreamConfig:
    """Return one validated stream to degrade."""
    from sensor_rig.rigfile.stream_keys import stream_config

    where = f'streams.{name}'
    _require_part(name, raw, where)
    return stream_config(_with_file(raw, file, where), where)


def _require_part(name: str, raw: object, where: str) -> None:
    """Refuse a sensor or stream whose name or value cannot be one."""
    if not SENSOR_NAME.match(name):
        raise RigError(
            f'{where}: the name {name!r} should be lower-case letters, digits and '
            f'underscores, a letter first'
        )
    if name in RESERVED_NAMES:
        raise RigError(f'{where}: the name {name!r} belongs to the rig itself; choose another')
    if not isinstance(raw, dict):
        raise RigError(f'{where} is {raw!r}; it should be a map')


def _with_file(raw: Mapping[str, Any], file: Path, where: str) -> Mapping[str, object]:
    """Return a sensor's keys with the path of its latency trace made absolute."""
    latency = raw.get('latency')
    name = latency.get('file') if isinstance(latency, dict) else None
    if not name or not isinstance(name, str) or latency is None:
        return raw
    found = extended_file(name, file, f'{where}.latency.file')
    return {**raw, 'latency': {**latency, 'file': str(found)}}


def link_configs(
    values: Mapping[str, object], sensors: Mapping[str, SensorConfig], mistakes: Mistakes
) -> dict[str, LinkConfig]:
    """Return the validated links of the sensors; every link is used and every used link exists."""
    raw = section(values, 'links')
    used = {config.link for config in sensors.values()}
    links: dict[str, LinkConfig] = {}
    if not raw and used <= {''}:
        return links
    from sim_sensors.timing.config import LinkConfig

    for name, config in sensors.items():
        if config.link and config.link not in raw:
            mistakes.add(
                f'sensors.{name}.link',
                f'sensors.{name}.link is {config.link!r}; '
                + (
                    hint(config.link, list(raw), 'the links are') if raw else 'there are no links:'
                ),
            )
    for name, keys in raw.items():
        with mistakes.below(f'links.{name}'):
            if not isinstance(keys, dict):
                raise RigError(f'links.{name} is {keys!r}; it should be a map')
            if name not in used:
                raise RigError(
                    f'links.{name} carries nothing; a sensor takes it with link: {name}'
                )
            links[name] = validated(LinkConfig, keys, f'links.{name}')
    return links


def check_triggers(sensors: Mapping[str, SensorConfig], mistakes: Mistakes) -> None:
    """Refuse a trigger that is not a sensor, and triggers in a circle."""
    for name, config in sensors.items():
        key = f'sensors.{name}.trigger'
        if config.trigger and config.trigger not in sensors:
            mistakes.add(
                key,
                f'{key} is {config.trigger!r}; '
                f'{hint(config.trigger, sorted(sensors), "it should be one of")}',
            )
    for name, config in sensors.items():
        chain = [name]
        while config.trigger in sensors:
            if config.trigger in chain:
                mistakes.add(
                    f'sensors.{name}.trigger',
                    f'sensors.{name}.trigger goes round in a '
                    f'circle: {" -> ".join([*chain, config.trigger])}',
                )
                return
            chain.append(config.trigger)
            config = sensors[config.trigger]


def check_periods(
    sensors: Mapping[str, SensorConfig], world: WorldConfig, mistakes: Mistakes
) -> None:
    """Refuse captures that last longer than the time between two, also of triggered sensors."""
    for name, config in sensors.items():
        root = config
        while root.trigger:
            root = sensors[root.trigger]
        period_s = 1.0 / root.rate_hz if root.rate_hz else world.timestep_s
        problem = config.too_long_for(period_s)
        if problem:
            mistakes.add(f'sensors.{name}', f'sensors.{name}: {problem}')


def check_stamps(
    sensors: Mapping[str, SensorConfig], world: WorldConfig, mistakes: Mistakes
) -> None:
    """Refuse clocks that are so far off that their stamps are no ROS time."""
    from sim_sensors.pipeline.assembly import schedules_of
    from sim_sensors.timing.stamp_limits import require_stamps

    odd = [
        name
        for name, config in sensors.items()
        if config.clock.offset_s or config.faults or config.clock.stamp_jitter_s
    ]
    if not odd:
        return
    with mistakes.below('sensors'):
        schedules = schedules_of(sensors, seconds_to_ns(world.timestep_s))
        for name in odd:
            with mistakes.below(f'sensors.{name}'):
                require_stamps(f'sensors.{name}', sensors[name], schedules[name], world.time_base)
