"""What the docstrings under the fields of a config model say, read where somebody asks.

pydantic would read them while it makes each class (`use_attribute_docstrings`): a fifth of the
start of every command, of which few show them.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import ModelSchema


@cache
def fields_of(model: type[BaseModel]) -> Mapping[str, FieldInfo]:
    """Return the fields of `model`, with the docstring under each as its description."""
    fields = dict(model.model_fields)
    for owner in reversed(model.__mro__):
        for name, text in _written(owner.__module__).get(owner.__qualname__, {}).items():
            if name in fields:
                fields[name].description = text
    return fields


@cache
def _written(module: str) -> Mapping[str, Mapping[str, str]]:
    """Return class -> field -> docstring of the classes at the top of a module's source."""
    try:
        tree = ast.parse(inspect.getsource(sys.modules[module]))
    except (OSError, TypeError):  # no source: a built-in module, or one made as the program runs
        return {}
    return {node.name: _docstrings(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _docstrings(owner: ast.ClassDef) -> dict[str, str]:
    found = {}
    for field, below in zip(owner.body, owner.body[1:], strict=False):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                found[name] = inspect.cleandoc(text)
    return found


class DescribedSchema(GenerateJsonSchema):
    """pydantic's JSON Schema, with the docstrings as descriptions."""

    def model_schema(self, schema: ModelSchema) -> JsonSchemaValue:
        """Return the schema of one model."""
        found = super().model_schema(schema)
        model: type[BaseModel] = schema['cls']
        for name, field in fields_of(model).items():
            key = field.alias or name
            if field.description and key in found.get('properties', {}):
                found['properties'][key].setdefault('description', field.description)
        return found
