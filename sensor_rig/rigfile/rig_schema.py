"""The JSON Schema of a rig file, for editors and other tools.

A schema sees one file and no model: keys, types and ranges are in it. What is missing may be in a
file that is extended; that, and what two keys or a model have to say about each other, is left to
`rig check`.
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
    definitions['Sensor'] = _by_type(sensors)
    definitions['Stream'] = _by_type(streams, 'Stream_')
    definitions['Rig'] = _rig()
    keys = {key for name in sensors.values() for key in definitions[name]['properties']}
    chosen = {
        'type': 'object',
        'description': 'A file of nothing but keys of a sensor is a datasheet, any other a rig.',
        'if': {'minProperties': 1, 'propertyNames': {'enum': sorted(keys)}},
        'then': _ref('Sensor'),
        'else': _ref('Rig'),
    }
    return {**_document(chosen), '$defs': definitions}


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


def _rig() -> Schema:
    """Return the sections of a rig."""
    named = {
        key: {
            'type': 'object',
            'description': text,
            'additionalProperties': False,
            'patternProperties': {_PATTERN: _ref(name)},
        }
        for key, name, text in (
            ('sensors', 'Sensor', 'Simulated sensors by name; the name is also the topic.'),
            ('streams', 'Stream', 'Streams to degrade, by name.'),
            ('links', 'LinkConfig', 'Lines that several sensors share, by name.'),
        )
    }
    properties = {
        **_defined(SeedConfig, {})['properties'],
        'extends': EXTENDS,
        'use_sim_time': {'type': 'boolean'},
        'world': _ref('WorldConfig'),
        'sync': _ref('SyncConfig'),
        **named,
    }
    return {'type': 'object', 'properties': properties, 'additionalProperties': False}


def _by_type(names: dict[str, str], untyped: str = '') -> Schema:
    """Return the keys of a sensor or a stream as its `type` says.

    Without a `type`, which a datasheet may give, they are those of any type.
    """
    cases = [
        {
            'if': {'required': ['type'], 'properties': {'type': {'const': name}}},
            'then': _ref(definition),
        }
        for name, definition in names.items()
    ]
    any_type = {'anyOf': [_ref(each) for each in (*names.values(), untyped) if each]}
    return {
        'type': 'object',
        'properties': {'type': {'enum': list(names), 'description': 'Which sensor it is.'}},
        'allOf': [*cases, {'if': {'not': {'required': ['type']}}, 'then': any_type}],
    }


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
    for each in (own, *definitions.values()):
        each.pop('required', None)
    return own


def _ref(name: str) -> Schema:
    return {'$ref': f'#/$defs/{name}'}


_PATTERN = f'^(?!({"|".join(sorted(RESERVED_NAMES))})$){SENSOR_NAME.pattern[:-2]}$'
