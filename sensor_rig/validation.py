"""One sentence out of a pydantic error: where, which value, what is allowed."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from sensor_rig.errors import RigError

ModelT = TypeVar('ModelT', bound=BaseModel)


def validated(model: type[ModelT], values: Mapping[str, Any], where: str) -> ModelT:
    """Return `values` as a `model`, or raise RigError that names the key below `where`."""
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise RigError(first_sentence(error, model, where)) from None


def first_sentence(error: ValidationError, model: type[BaseModel], where: str) -> str:
    """Return the first problem as a sentence, and how many more there are."""
    problems = error.errors(include_url=False)
    sentence = _sentence(problems[0], model, where)
    more = len(problems) - 1
    if more:
        sentence += f' (and {more} more problem{"s" if more > 1 else ""})'
    return sentence


def unknown_key(where: str, key: str, allowed: Sequence[str]) -> str:
    """Return the sentence for a key that does not exist, with the likely meant one first."""
    near = difflib.get_close_matches(key, allowed, n=1)
    hint = f'did you mean {near[0]!r}? ' if near else ''
    return f'{where}: unknown key {key!r}; {hint}allowed are {", ".join(sorted(allowed))}'


def shown(value: Any) -> str:
    """Return a value as a user wrote it, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _sentence(problem: Any, model: type[BaseModel], where: str) -> str:
    location = [str(part) for part in problem['loc']]
    path = '.'.join([where, *location]) if where else '.'.join(location)
    kind, message = problem['type'], problem['msg']
    if kind == 'extra_forbidden':
        parent = '.'.join([where, *location[:-1]]) if where else '.'.join(location[:-1])
        return unknown_key(parent or 'rig file', location[-1], _keys_at(model, problem['loc'][:-1]))
    if kind == 'missing':
        return f'{path} is missing; it must be given'
    if kind == 'value_error':
        return f'{path}: {message.removeprefix("Value error, ")}'
    rule = message.removeprefix('Input should be ').removeprefix('Input ')
    return f'{path} is {shown(problem["input"])}; it should be {rule}'


def _keys_at(model: type[BaseModel], location: Sequence[Any]) -> list[str]:
    """Return the keys of the model that `location` leads to, through nested models and maps."""
    current: Any = model
    for part in location:
        annotation = current.model_fields[part].annotation if part in getattr(
            current, 'model_fields', {}) else current
        current = _model_inside(annotation) or current
    return list(getattr(current, 'model_fields', {}))


def _model_inside(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, '__args__', ()):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None
