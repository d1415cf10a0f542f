"""The JSON Schema of a rig file, for editors and other tools."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from sensor_rig.degrade.config import TYPES, StreamConfig, typed_config
from sensor_rig.rigfile import SeedConfig
from sim_sensors.config import WorldConfig
from sim_sensors.registry import sensor_class, type_names
from sim_sensors.timing_config import LinkConfig
from sync_engine.config import SyncConfig


def rig_schema() -> dict[str, Any]:
    """Return the schema, with one alternative per sensor type."""
    definitions: dict[str, Any] = {}
    schema = _defined(SeedConfig, definitions)
    schema['title'] = 'RigConfig'
    sections: dict[str, type[BaseModel]] = {'world': WorldConfig, 'sync': SyncConfig}
    for key, section in sections.items():
        definitions[section.__name__] = _defined(section, definitions)
        schema['properties'][key] = {'$ref': f'#/$defs/{section.__name__}'}
    definitions['LinkConfig'] = _defined(LinkConfig, definitions)
    schema['properties']['links'] = {
        'type': 'object', 'additionalProperties': {'$ref': '#/$defs/LinkConfig'}}
    sensors: dict[str, type[BaseModel]] = {
        name: sensor_class(name).config_class for name in type_names()}
    streams: dict[str, type[BaseModel]] = {
        '': StreamConfig, **{name: typed_config(name) for name in TYPES}}
    for key, models in (('sensors', sensors), ('streams', streams)):
        schema['properties'][key] = {'type': 'object', 'additionalProperties': {
            'oneOf': [_alternative(name, model, definitions) for name, model in models.items()]}}
    return {**schema, '$defs': definitions}


def _alternative(type_name: str, model: type[BaseModel],
                 definitions: dict[str, Any]) -> dict[str, str]:
    """Return a reference to the keys of one `type`; without a type they have no such key."""
    own = _defined(model, definitions)
    if type_name:
        own['properties']['type'] = {'const': type_name}
    name = f'{model.__name__}_{type_name}' if type_name else model.__name__
    definitions[name] = own
    return {'$ref': f'#/$defs/{name}'}


def _defined(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `model`; what it refers to goes to `definitions`."""
    own = model.model_json_schema(ref_template='#/$defs/{model}')
    definitions.update(own.pop('$defs', {}))
    return own
