"""The JSON Schema of a rig file, for editors and other tools.

A schema sees one file and no model: keys, types and ranges are in it; what two keys, a model or a
file that is extended have to say about each other is left to `rig check`. Every definition is
there twice: whole, and as a `.part` in which nothing is required, as another file may give it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from pydantic import BaseModel

from rig_common.field_docs import DescribedSchema
from rig_common.paramfile.events import ALL_NODES, PARAMETERS
from sensor_rig.rigfile import SeedConfig
from sensor_rig.rigfile.rig_parts import RESERVED_NAMES, SENSOR_NAME
from sensor_rig.rigfile.stream_keys import TYPES, StreamConfig, typed_config
from sim_sensors.registry import sensor_class, type_names
from sim_sensors.timing.config import LinkConfig
from sim_sensors.world.config.world import WorldConfig
from sync_engine.config import SyncConfig

Schema: TypeAlias = dict[str, Any]

PART = '.part'
EXTENDS: Schema = {
    'type': 'string',
    'description': (
        'A file whose keys are taken where this one has none: one beside this file, or a shipped '
        'one such as datasheets/imu_bosch_bmi088.yaml.'
    ),
}


def rig_schema() -> Schema:
    """Return the schema of a rig file or a datasheet, with the two levels around its keys."""
    definitions: dict[str, Schema] = {}
    for model in (WorldConfig, SyncConfig, LinkConfig):
        definitions[model.__name__] = _defined(model, definitions)
    sensors = {
        name: _typed('Sensor', name, sensor_class(name).config_class, definitions)
        for name in type_names()
    }
    streams = {name: _typed('Stream', name, typed_config(name), definitions) for name in TYPES}
    definitions['Stream_'] = _extensible(_defined(StreamConfig, definitions))
    definitions |= {f'{name}{PART}': _as_part(each) for name, each in definitions.items()}
    definitions['SyncConfig.simulated'] = _filled_from_sensors(definitions)
    for suffix in ('', PART):
        definitions[f'Sensor{suffix}'] = _by_type(sensors, '', suffix)
        definitions[f'Stream{suffix}'] = _by_type(streams, 'Stream_', suffix)
    for suffix in ('', PART):
        definitions[f'Rig{suffix}'] = _rig(suffix)
    keys = {key for name in sensors.values() for key in definitions[name]['properties']}
    return {**_document(_chosen(sorted(keys))), '$defs': definitions}


def _document(parameters: Schema) -> Schema:
    """Return the schema of a file: `/**: ros__parameters: ...`, as every ROS 2 node reads it."""
    level = {'type': 'object', 'additionalProperties': False}
    nodes = {
        **level,
        'required': [PARAMETERS],
        'properties': {PARAMETERS: parameters},
        'description': 'Parameters for all nodes.',
    }
    return {
        '$schema': 'https://json-schema.org/draft/2020-12/schema',
        'title': 'sensor_rig rig file',
        'description': 'A rig file or a datasheet of sensor_rig, a genuine ROS 2 parameter file.',
        **level,
        'required': [ALL_NODES],
        'properties': {ALL_NODES: nodes},
    }


def _chosen(sensor_keys: list[str]) -> Schema:
    """Return: a file of nothing but a sensor's keys is a datasheet, any other is a rig."""
    return {
        'type': 'object',
        'if': {'minProperties': 1, 'propertyNames': {'enum': sensor_keys}},
        'then': _ref('Sensor', PART),
        'else': {'if': {'required': ['extends']}, 'then': _ref('Rig', PART), 'else': _ref('Rig')},
    }


def _rig(suffix: str) -> Schema:
    """Return the sections of a rig; `sync:` takes its inputs from `sensors:` if there are any."""
    seed = _defined(SeedConfig, {})
    named = {
        key: {
            'type': 'object',
            'description': text,
            'additionalProperties': False,
            'patternProperties': {_PATTERN: _ref(name, suffix)},
        }
        for key, name, text in (
            ('sensors', 'Sensor', 'Simulated sensors by name; the name is also the topic.'),
            ('streams', 'Stream', 'Streams to degrade, by name.'),
            ('links', 'LinkConfig', 'Lines that several sensors share, by name.'),
        )
    }
    properties = {
        **seed['properties'],
        'extends': EXTENDS,
        'use_sim_time': {'type': 'boolean'},
        'world': _ref('WorldConfig', suffix),
        'sync': _ref('SyncConfig', PART),
        **named,
    }
    rig: Schema = {'type': 'object', 'properties': properties, 'additionalProperties': False}
    if not suffix:
        rig['dependentRequired'] = {'sensors': ['world']}
        rig['if'] = {'required': ['sensors']}
        rig['then'] = {'properties': {'sync': _ref('SyncConfig', '.simulated')}}
        rig['else'] = {'properties': {'sync': _ref('SyncConfig')}}
    return rig


def _by_type(names: dict[str, str], untyped: str, suffix: str) -> Schema:
    """Return the keys of a sensor or a stream as its `type` says.

    One that extends a datasheet may leave out what that gives, `type` too; its keys are then
    those of any type.
    """

    def either(suffix: str) -> Schema:
        chosen: Schema = {'anyOf': [_ref(each, PART) for each in names.values()]}
        if untyped and not suffix:
            chosen = _ref(untyped, suffix)
        elif not suffix:
            chosen = {'required': ['type']}
        cases = [
            {
                'if': {'required': ['type'], 'properties': {'type': {'const': name}}},
                'then': _ref(definition, suffix),
            }
            for name, definition in names.items()
        ]
        return {'allOf': [*cases, {'if': {'not': {'required': ['type']}}, 'then': chosen}]}

    known = {'type': {'enum': list(names), 'description': 'Which sensor it is.'}}
    own = {'type': 'object', 'properties': known}
    if suffix:
        return {**own, **either(PART)}
    return {**own, 'if': {'required': ['extends']}, 'then': either(PART), 'else': either('')}


def _filled_from_sensors(definitions: dict[str, Schema]) -> Schema:
    """Return `sync:` of a simulated rig, whose sensors say what an input does not."""
    whole, part = definitions['SyncConfig'], definitions[f'SyncConfig{PART}']
    properties = {**whole['properties'], 'inputs': part['properties']['inputs']}
    required = [key for key in whole.get('required', []) if key != 'inputs']
    return {**whole, 'properties': properties, 'required': required}


def _typed(
    kind: str, type_name: str, model: type[BaseModel], definitions: dict[str, Schema]
) -> str:
    """Define the keys of one `type` and return the definition's name."""
    own = _extensible(_defined(model, definitions))
    own['properties']['type'] = {'const': type_name}
    name = f'{kind}_{type_name}'
    definitions[name] = own
    return name


def _extensible(schema: Schema) -> Schema:
    schema['properties']['extends'] = EXTENDS
    return schema


def _defined(model: type[BaseModel], definitions: dict[str, Schema]) -> Schema:
    """Return the schema of `model`; what it refers to goes to `definitions`."""
    own = model.model_json_schema(ref_template='#/$defs/{model}', schema_generator=DescribedSchema)
    definitions.update(own.pop('$defs', {}))
    return own


def _as_part(schema: object) -> Any:
    """Return a copy in which nothing is required, down to all that it refers to."""
    if isinstance(schema, list):
        return [_as_part(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: f'{value}{PART}' if key == '$ref' else _as_part(value)
        for key, value in schema.items()
        if not (key == 'required' and isinstance(value, list))
    }


def _ref(name: str, suffix: str = '') -> Schema:
    return {'$ref': f'#/$defs/{name}{suffix}'}


_PATTERN = f'^(?!({"|".join(sorted(RESERVED_NAMES))})$){SENSOR_NAME.pattern[:-2]}$'
