"""The JSON Schema of a rig file, for editors and other tools."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from sensor_rig.rigfile import SeedConfig
from sim_sensors.config import WorldConfig
from sim_sensors.registry import sensor_class, type_names
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
    alternatives = []
    for type_name in type_names():
        model = sensor_class(type_name).config_class
        own = _defined(model, definitions)
        own['properties']['type'] = {'const': type_name}
        definitions[model.__name__ + '_' + type_name] = own
        alternatives.append({'$ref': f'#/$defs/{model.__name__}_{type_name}'})
    schema['properties']['sensors'] = {'type': 'object',
                                       'additionalProperties': {'oneOf': alternatives}}
    return {**schema, '$defs': definitions}


def _defined(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of `model`; what it refers to goes to `definitions`."""
    own = model.model_json_schema(ref_template='#/$defs/{model}')
    definitions.update(own.pop('$defs', {}))
    return own
