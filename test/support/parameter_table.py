"""The parameter table of a sensor's page, made from its config class.

`./rig python test/support/parameter_table.py` writes the tables of all pages again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from rig_common.field_docs import fields_of
from sim_sensors.interface.config import SensorConfig
from sim_sensors.registry import sensor_class
from sim_sensors.sensors.common.axes import OrOne

SIGNS = {Ge: '>=', Gt: '>', Le: '<=', Lt: '<'}
LIKE = {'lidar3d': 'lidar2d', 'depth_camera': 'camera', 'segmentation': 'camera'}
"""Type -> the type on whose page the keys stand that both have."""
SAME = 'The same as of'
HEAD = '| key | default | allowed | meaning |\n|---|---|---|---|\n'


def parameter_table(
    config_class: type[BaseModel],
    *,
    with_common: bool = False,
    apart_from: Collection[str] = (),
    apart: Collection[type[BaseModel]] = (),
) -> str:
    """Return the Markdown table of the keys that `config_class` adds or changes.

    The keys of classes in `apart` have a table of their own, those of `apart_from` none.
    """
    common = {} if with_common else fields_of(SensorConfig)
    own = {
        key: field
        for key, field in fields_of(config_class).items()
        if key not in apart_from and (key not in common or field.default != common[key].default)
    }
    return HEAD + '\n'.join(_rows('', own, apart)) + '\n'


def _rows(
    prefix: str, fields: Mapping[str, FieldInfo], apart: Collection[type[BaseModel]]
) -> Iterator[str]:
    for key, field in fields.items():
        meaning = ' '.join((field.description or '').split()).replace('|', '\\|')
        inner = _optional(field.annotation)
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            yield f'| `{prefix}{key}` | | map | {meaning} |'
            yield from _rows(f'{prefix}{key}.', fields_of(inner), apart)
        elif (each := _model_of_map(inner)) is not None:
            yield f'| `{prefix}{key}` | `{{}}` | map of maps | {meaning} |'
            if each not in apart:
                yield from _rows(f'{prefix}{key}.<label>.', fields_of(each), apart)
        else:
            yield f'| `{prefix}{key}` | {_default(field)} | {_allowed(field)} | {meaning} |'


def _optional(kind: Any) -> Any:
    """Return the model of `Model | None`; other kinds as they are."""
    parts = [part for part in get_args(kind) if part is not type(None)]
    is_optional = get_origin(kind) in (Union, UnionType) and len(parts) < len(get_args(kind))
    return parts[0] if is_optional and len(parts) == 1 else kind


def _model_of_map(kind: Any) -> type[BaseModel] | None:
    """Return the model of the values of a `dict[str, Model]`."""
    value = get_args(kind)[1] if get_origin(kind) is dict else None
    return value if isinstance(value, type) and issubclass(value, BaseModel) else None


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return 'required'
    default = field.default
    if isinstance(default, tuple):
        return f'`[{", ".join(map(_plain, default))}]`' if default else 'none'
    return f'`{_plain(default)}`'


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "''" if value == '' else str(value)


def _allowed(field: FieldInfo) -> str:
    bounds = _bounds(field.metadata)
    if any(isinstance(each, MinLen) for each in field.metadata):
        bounds = 'at least one'
    kind = field.annotation
    if get_origin(kind) is Literal:
        return ', '.join(f'`{each}`' for each in get_args(kind))
    if kind is bool:
        return 'boolean'
    if get_origin(kind) is tuple:
        text = _of_tuple(get_args(kind), bounds)
        is_spread = any(isinstance(each, OrOne) for each in field.metadata)
        return f'1 or {text}' if is_spread else text
    if get_origin(kind) in (Union, UnionType):
        maps = any(
            isinstance(part, type) and issubclass(part, BaseModel) for part in get_args(kind)
        )
        return 'text or map' if maps else 'text or whole number'
    if get_origin(kind) is dict and get_origin(get_args(kind)[1]) is dict:
        return 'map of maps'
    if get_origin(kind) is dict and not isinstance(get_args(kind)[1], type):
        return 'map of numbers'
    names = {float: 'number', int: 'whole number', str: 'text'}
    return bounds or names.get(kind, 'map of maps')  # type: ignore[call-overload, no-any-return]


def _of_tuple(parts: tuple[Any, ...], bounds: str) -> str:
    element = parts[0]
    rules = [
        each
        for meta in getattr(element, '__metadata__', ())
        for each in getattr(meta, 'metadata', ())
    ]
    inner = _bounds(rules)
    base = get_args(element)[0] if hasattr(element, '__metadata__') else element
    name = {float: 'numbers', bool: 'booleans', str: 'names'}.get(base, 'values')
    count = '' if len(parts) == 2 and parts[1] is Ellipsis else f'{len(parts)} '
    return ', '.join(filter(None, (f'{count}{name}', inner, bounds)))


def _bounds(rules: Iterable[Any]) -> str:
    found = {
        type(rule): f'{getattr(rule, type(rule).__name__.lower()):g}'
        for rule in rules
        if type(rule) in SIGNS
    }
    if found.keys() == {Ge, Le}:
        return f'{found[Ge]} to {found[Le]}'
    return ', '.join(f'{SIGNS[kind]} {bound}' for kind, bound in found.items())


def table_of_page(page: Path) -> str:
    """Return the table that belongs on a page of docs/sensors/, by the page's name, and what it
    shares with another type."""
    own = sensor_class(page.stem).config_class
    if page.stem not in LIKE:
        return parameter_table(own)
    like = LIKE[page.stem]
    fields, others = fields_of(own), fields_of(sensor_class(like).config_class)
    common = fields_of(SensorConfig)
    same = [
        key
        for key, field in fields.items()
        if key in others
        and (field.default, field.description) == (others[key].default, others[key].description)
        and (key not in common or field.default != common[key].default)
    ]
    table = parameter_table(own, apart_from=same)
    return f'{table}\n{SAME} [{like}]({like}.md#parameters): `{"`, `".join(same)}`.\n'


def main() -> None:
    """Replace the table of every page that has one of ours."""
    for page in (Path(__file__).resolve().parents[2] / 'docs' / 'sensors').glob('*.md'):
        before, head, rest = page.read_text().partition(HEAD)
        if head:
            after = re.sub(rf'\A(\|.*\n)*(\n{SAME}.*\n)?', '', rest)
            page.write_text(before + table_of_page(page) + after)


if __name__ == '__main__':
    main()
