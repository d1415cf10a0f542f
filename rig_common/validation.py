"""Sentences out of a pydantic error: where, which value, what is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args, get_origin

from rig_common.errors import Mistake, RigError
from rig_common.requirements import require
from rig_common.text import near

require('pydantic')

from pydantic import (  # noqa: E402
    BaseModel,
    ConfigDict,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError  # noqa: E402

RULES = {
    'bool_parsing': 'true or false',
    'bool_type': 'true or false',
    'dict_type': 'a map',
    'model_type': 'a map',
    'model_attributes_type': 'a map',
    'float_parsing': 'a number',
    'float_type': 'a number',
    'int_parsing': 'a whole number',
    'int_type': 'a whole number',
    'int_from_float': 'a whole number',
    'int_parsing_size': 'a whole number of at most 64 bits',
    'list_type': 'a list',
    'tuple_type': 'a list',
    'string_type': 'a text',
    'too_long': 'a list of at most {max_length}',
    'too_short': 'at least {min_length}',
}
"""What is allowed, by pydantic's kind of problem, where its own words say less."""

LISTED = 40
"""Names that a hint lists at most."""

ModelT = TypeVar('ModelT', bound=BaseModel)


_NO_NUMBER = 'no_number'
"""Kind of the problem that pydantic does not see: it takes true for 1."""


class PartError(ValueError):
    """A problem in a part that was validated on its own; its sentence begins with its key."""


class Strict(BaseModel):
    """A frozen model that refuses unknown keys, NaN, and true or false for a number."""

    model_config = ConfigDict(frozen=True, extra='forbid', allow_inf_nan=False)

    @model_validator(mode='before')
    @classmethod
    def _numbers_are_numbers(cls, values: Any) -> Any:
        for key, value in values.items() if isinstance(values, Mapping) else ():
            items = value if isinstance(value, list | tuple) else [value]
            if (
                any(isinstance(item, bool) for item in items)
                and key in cls.model_fields
                and (_is_number(cls.model_fields[key].annotation))
            ):
                raise PydanticCustomError(_NO_NUMBER, '', {'key': key, 'value': value})
        return values


def validated(
    model: type[ModelT], values: Mapping[str, object], where: str, *, also: Sequence[str] = ()
) -> ModelT:
    """Return `values` as a `model`, or raise RigError that names the key below `where`.

    `also` are keys that a user may write beside the model's own.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise RigError(
            *(
                Mistake(
                    _sentence(problem, model, where, also),
                    '.'.join(map(str, problem['loc'])),
                    problem['type'] == 'missing',
                )
                for problem in error.errors(include_url=False)
            )
        ) from None


def unknown_key(where: str, key: str, allowed: Sequence[str]) -> str:
    """Return the sentence for a key that does not exist, with the likely meant one first."""
    place = f'{where}: ' if where else ''
    return f'{place}unknown key {key!r}; {near(key, allowed)}allowed are {listed(allowed)}'


def listed(names: Iterable[str]) -> str:
    """Return the names in one line, sorted."""
    return ', '.join(sorted(names))


def hint(name: str, known: Sequence[str], all_of_them: str = 'there are') -> str:
    """Return what may be meant by an unknown `name`: the nearest of the known ones, or all."""
    found = near(name, known)
    if found:
        return found.strip()
    more = f' and {len(known) - LISTED} more' if len(known) > LISTED else ''
    return f'{all_of_them} {", ".join(known[:LISTED]) or "none"}{more}'


def shown(value: object) -> str:
    """Return a value as a user wrote it, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '...'


def _sentence(problem: Any, model: type[BaseModel], where: str, also: Sequence[str]) -> str:
    location = problem['loc']
    path = _path(where, location)
    kind, message = problem['type'], problem['msg']
    if kind == 'extra_forbidden':
        parent = _path(where, location[:-1])
        known = [*_keys_at(model, location[:-1]), *(also if len(location) == 1 else ())]
        return unknown_key(parent, str(location[-1]), known)
    if kind == 'missing':
        if isinstance(location[-1], int):
            path, values = _path(where, location[:-1]), shown(problem['input'])
            return f'{path} is {values}; it should have {_length_at(model, location)} values'
        return f'{path} is missing; it must be given'
    if kind == _NO_NUMBER:
        key, value = problem['ctx']['key'], problem['ctx']['value']
        return f'{_path(where, (*location, key))} is {shown(value).lower()}; it should be a number'
    if kind == 'value_error':
        if isinstance(problem['ctx']['error'], PartError):
            return _path(where, (*location[:-1], problem['ctx']['error']))
        return f'{path}: {message.removeprefix("Value error, ")}'.replace(': it is ', ' is ', 1)
    rule = RULES.get(kind) or message.removeprefix('Input should be ').removeprefix('Input ')
    if kind == 'tuple_type' and (length := _length_at(model, (*location, 0))):
        rule = f'a list of {length} values'
    limits = problem.get('ctx', {})
    meant = near(problem['input'], _choices_at(model, location)) if kind == 'literal_error' else ''
    return f'{path} is {shown(problem["input"])}; {meant}it should be {rule.format(**limits)}'


def _is_number(annotation: object) -> bool:
    """Return whether a key holds numbers, and neither true nor false."""
    parts = set(_parts(annotation))
    return bool(parts & {int, float}) and bool not in parts


def _parts(annotation: object) -> Iterable[object]:
    """Yield the types that an annotation is made of."""
    arguments = get_args(annotation)
    if not arguments or get_origin(annotation) is Literal:
        yield annotation
    else:
        for each in arguments:
            yield from _parts(each)


def _path(where: str, location: Sequence[object]) -> str:
    """Return the key at `location` below `where`."""
    return '.'.join(filter(None, (where, *map(str, location))))


def _choices_at(model: type[BaseModel], location: Sequence[object]) -> list[str]:
    """Return the texts that the key at `location` may be."""
    owner = _model_at(model, location[:-1])
    field = getattr(owner, 'model_fields', {}).get(location[-1])
    return _literals(field.annotation) if field else []


def _length_at(model: type[BaseModel], location: Sequence[object]) -> int:
    """Return how many values the list has that the one at `location` belongs to; 0 is any."""
    kind = _model_at(model, location[:-2]).model_fields[location[-2]].annotation
    kinds = (kind, *get_args(kind))  # a tuple, or one or none
    parts = get_args(next(each for each in kinds if get_origin(each) is tuple))
    return 0 if ... in parts else len(parts)


def _literals(annotation: object) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(each) for each in get_args(annotation)]
    return [each for part in get_args(annotation) for each in _literals(part)]


def _keys_at(model: type[BaseModel], location: Sequence[object]) -> list[str]:
    """Return the keys of the model that `location` leads to."""
    return list(getattr(_model_at(model, location), 'model_fields', {}))


def _model_at(model: type[BaseModel], location: Sequence[object]) -> Any:
    """Return the model that `location` leads to, through nested models and maps."""
    current: Any = model
    for part in location:
        annotation = (
            current.model_fields[part].annotation
            if part in getattr(current, 'model_fields', {})
            else current
        )
        current = _model_inside(annotation) or current
    return current


def _model_inside(annotation: object) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, '__args__', ()):
        found = _model_inside(argument)
        if found is not None:
            return found
    return None
