"""The grammar of a parameter file: YAML events in, nested parameters and mistakes out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml

from rig_common.errors import Mistake, RigError
from rig_common.paramfile.scalars import Scalar, scalar

Parameters: TypeAlias = dict[str, Any]
"""Nested parameters as they stand in a file: maps, and leaves that are bool, int, float, str or a
list of one of these. `Any`, because only the configuration that takes them knows their types."""
Event: TypeAlias = Any
"""A YAML event. PyYAML has no type that says which attributes each of them has."""

MAX_DEPTH = 32
MOST_MISTAKES = 100
"""After so many a file is given up."""
ALL_NODES = '/**'
PARAMETERS = 'ros__parameters'

NULL = frozenset({'~', 'null', 'Null', 'NULL'})
"""What YAML reads as nothing, and rcl as a text."""
MAY_BE_NULL = 'delay_range_s'
"""The key whose text null is understood: no delay."""
_UNCLOSED = {
    "did not find expected ',' or ']'": 'the list',
    "did not find expected ',' or '}'": 'the map',
    'found unexpected end of stream': 'the quote',
}
_PLAIN = {
    "could not find expected ':'": 'this line, or the one before, has a key without a colon',
    'did not find expected key': 'the indentation differs from that of the lines above',
    "did not find expected '-' indicator": 'the list above ends with another indentation',
    'mapping values are not allowed in this context': 'a second colon; quote the text',
    'found character that cannot start any token': 'a value begins with @, ` or %; quote it',
}
"""What to look for, by what the parser says."""
_STRING_TAG = 'tag:yaml.org,2002:str'

# The C loader is libyaml, the very parser rcl uses; the Python one stands in where it is missing.
_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


@dataclass
class EventReader:
    """Walks the YAML events of one text; `self._event` is always the one to be read next."""

    path: Path
    text: str
    lines: dict[str, int] = field(default_factory=dict)
    _event: Event = None
    _flow: list[bool] = field(default_factory=list)
    _mistakes: list[Mistake] = field(default_factory=list)

    def parameters(self) -> Parameters:
        """Return the nested parameters for all nodes; `lines` then holds where each one stands."""
        try:
            self._events: Iterator[Event] = iter(yaml.parse(self.text, Loader=_LOADER))
            self._next()
            values = self._document()
        except yaml.YAMLError as error:
            raise RigError(*self._mistakes, not_yaml(self.path, self.text, error)) from None
        if self._mistakes:
            raise RigError(*self._mistakes)
        return values

    def _document(self) -> Parameters:
        self._next()  # stream start
        if isinstance(self._event, yaml.StreamEndEvent):
            raise RigError(f'{self.path} is empty; it should start with "{ALL_NODES}:"')
        self._next()  # document start
        values = self._sections()
        self._next()  # document end
        if not isinstance(self._event, yaml.StreamEndEvent):
            self._refuse('a second YAML document starts here; a rig file has one')
        return values

    def _sections(self) -> Parameters:
        """Read `/**: {ros__parameters: {...}}`, the two levels around the parameters."""
        expected = f'it should start with "{ALL_NODES}:" and below it "{PARAMETERS}:"'
        for level in (ALL_NODES, PARAMETERS):
            if not isinstance(self._event, yaml.MappingStartEvent):
                self._refuse(f'this is no ROS 2 parameter file; {expected}')
            self._next()
            if isinstance(self._event, yaml.MappingEndEvent):
                self._refuse(f'this is no ROS 2 parameter file; {expected}')
            if self._key() != level:
                self._refuse(f'{self._key()!r} stands where "{level}:" should be; {expected}')
            self._next()
        if isinstance(self._event, yaml.ScalarEvent) and not self._event.value:
            self._refuse(f'"{PARAMETERS}:" is empty; it should hold the parameters')
        if not isinstance(self._event, yaml.MappingStartEvent):
            self._refuse(f'"{PARAMETERS}:" should hold a map of parameters')
        values = self._map('', 0)
        for level in (PARAMETERS, ALL_NODES):
            if not isinstance(self._event, yaml.MappingEndEvent):
                self._refuse(
                    f'{self._key()!r} stands beside "{level}:"; a rig file has one '
                    f'section for all its nodes'
                )
            self._next()
        return values

    def _map(self, prefix: str, depth: int) -> Parameters:
        """Read one map whose keys have the dotted `prefix`."""
        if depth > MAX_DEPTH:
            self._refuse(f'maps are nested more than {MAX_DEPTH} deep')
        start = self._event
        self._next()
        values: Parameters = {}
        while not isinstance(self._event, yaml.MappingEndEvent):
            key = self._key()
            key_event = self._event
            name = f'{prefix}{key}'
            self._next()
            if '.' in key and isinstance(self._event, yaml.MappingStartEvent):
                self._refuse(
                    f'{name} holds a map and has a dot in its name, which rcl loses '
                    f'track of; write it as nested maps',
                    key_event,
                )
            self._insert(values, key, self._value(name, depth), name, prefix, key_event)
        if not values:
            self._refuse(
                f'{prefix[:-1] or PARAMETERS} is an empty map, which ROS parameters '
                f'cannot hold; leave it out',
                start,
            )
        self._next()
        return values

    def _insert(
        self, values: Parameters, key: str, value: object, name: str, prefix: str, event: Event
    ) -> None:
        """Put `value` at `key`, which may be dotted, and refuse to overwrite anything."""
        *groups, leaf = key.split('.')
        at = prefix
        for group in groups:
            at += group
            self.lines.setdefault(at, event.start_mark.line + 1)
            values = values.setdefault(group, {})
            if not isinstance(values, dict):
                self._refuse(
                    f'{name}: {at} was given a value on line {self.lines[at]} and cannot '
                    f'be a group too',
                    event,
                )
            at += '.'
        if leaf in values:
            self._refuse(f'{name} was given before, on line {self.lines[name]}', event)
        values[leaf] = value
        self.lines[name] = event.start_mark.line + 1

    def _key(self) -> str:
        """Return the key at hand, without going on."""
        event = self._event
        if isinstance(event, yaml.AliasEvent):
            self._refuse('YAML aliases (*name) are not known to ROS parameter files')
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse('a key should be a plain name')
        if event.value == '<<' and event.implicit[0]:
            self._refuse('YAML merge keys (<<) are not known to ROS parameter files')
        key = str(event.value)
        if not all(key.split('.')):
            self._refuse(f'{key!r} cannot be a parameter name: part of it is empty')
        return key

    def _value(self, name: str, depth: int) -> Parameters | list[Scalar] | Scalar | None:
        """Read the value of parameter `name` and go on behind it."""
        if isinstance(self._event, yaml.CollectionStartEvent):
            self._refuse_tag(name)
        if isinstance(self._event, yaml.MappingStartEvent):
            return self._map(f'{name}.', depth + 1)
        return self._leaf(name)

    def _leaf(self, name: str) -> list[Scalar] | Scalar | None:
        """Read a scalar or a list; a mistake in it is noted, and reading goes on behind it."""
        is_list = isinstance(self._event, yaml.SequenceStartEvent)
        around = len(self._flow) - is_list
        value: list[Scalar] | Scalar | None
        try:
            value = self._list(name) if is_list else self._scalar(name)
        except RigError as error:
            self._mistakes += error.mistakes
            if len(self._mistakes) >= MOST_MISTAKES:
                raise RigError(*self._mistakes) from None
            value = None
        while len(self._flow) > around:
            if len(self._flow) > around + MAX_DEPTH:  # libyaml's time is quadratic in the depth
                raise RigError(*self._mistakes)
            self._next()
        self._next()
        return value

    def _list(self, name: str) -> list[Scalar]:
        """Read a list of scalars of one type, the only list a ROS parameter can be, to its end."""
        start = self._event
        self._next()
        items: list[Scalar] = []
        while not isinstance(self._event, yaml.SequenceEndEvent):
            if isinstance(self._event, yaml.SequenceStartEvent):
                self._refuse(f'{name} is a list of lists; ROS parameters have flat lists only')
            if isinstance(self._event, yaml.MappingStartEvent):
                self._refuse(
                    f'{name} is a list of maps; ROS parameters have none, so give each map a name'
                )
            items.append(self._scalar(name))
            if type(items[-1]) is not type(items[0]):
                self._refuse(
                    f'{name} mixes {_kind(items[0])} and {_kind(items[-1])} '
                    f'({items[0]!r} and {items[-1]!r}); a list has one type' + _write_floats(items)
                )
            self._next()
        if not items:
            self._refuse(
                f'{name} is an empty list, which ROS parameters cannot hold; leave it out', start
            )
        return items

    def _scalar(self, name: str) -> Scalar:
        """Return the scalar at hand, without going on."""
        event = self._event
        if isinstance(event, yaml.AliasEvent):
            self._refuse(
                f'{name} is a YAML alias (*{event.anchor}), which ROS parameter files do not know'
            )
        if event.tag == _STRING_TAG or (event.tag == '!' and event.style):
            return self._without_nul(event.value, name)
        self._refuse_tag(name)
        text = str(event.value)
        if event.style in ("'", '"'):
            return self._without_nul(text, name)
        if not text:
            self._refuse(f'{name} has no value')
        if text in NULL and name.rpartition('.')[2] != MAY_BE_NULL:
            self._refuse(
                f'{name} is {text}, which ROS reads as a text; leave the key out, or '
                f'quote it if the text is meant'
            )
        return scalar(self._without_nul(text, name))

    def _refuse_tag(self, name: str) -> None:
        if self._event.tag is not None:
            self._refuse(
                f'{name} has the YAML tag {self._event.tag}, which ROS parameter files '
                f'ignore; leave it out'
            )

    def _without_nul(self, text: str, name: str) -> str:
        if '\0' in text:
            self._refuse(f'{name} contains a NUL character, where ROS would cut it off')
        return text

    def _next(self) -> None:
        """Go to the next event; `self._flow` knows which collections around it are in brackets."""
        event = self._event = next(self._events, None)
        if isinstance(event, yaml.CollectionStartEvent):
            self._flow.append(bool(event.flow_style))
        elif isinstance(event, yaml.CollectionEndEvent):
            self._flow.pop()
        elif isinstance(event, yaml.ScalarEvent):
            self._refuse_colon(event)

    def _refuse_colon(self, event: Event) -> None:
        # The libyaml inside ROS may be older than ours: it takes `a:b` outside of brackets only.
        in_brackets = bool(self._flow) and self._flow[-1]
        if in_brackets and ':' in event.value and not event.style:
            self._refuse(
                f'{event.value!r} has a colon inside brackets, which rcl does not read; quote it'
            )

    def _refuse(self, problem: str, event: Event = None) -> NoReturn:
        line = (event or self._event).start_mark.line + 1
        raise RigError(f'{self.path}:{line}: {problem}')


def not_yaml(path: Path, text: str, error: Exception) -> str:
    """Return where a text is no YAML, and what to look for there."""
    problem: str = getattr(error, 'problem', '') or getattr(error, 'reason', 'it cannot be read')
    mark = getattr(error, 'problem_mark', None)
    begun = getattr(error, 'context_mark', None)
    indent = re.match(r'\s*', (text.split('\n')[mark.line :] or [''])[0]) if mark else None
    if indent and '\t' in indent[0]:
        problem = 'a tab stands where only spaces may'
    elif problem in _UNCLOSED and begun:
        mark, problem = begun, f'{_UNCLOSED[problem]} that opens here is not closed'
    where = f'{path}:{mark.line + 1}' if mark else f'{path}'
    return f'{where}: not valid YAML: {_PLAIN.get(problem, problem)}'


def _kind(item: Scalar) -> str:
    return {bool: 'booleans', int: 'whole numbers', float: 'decimals', str: 'texts'}[type(item)]


def _write_floats(items: list[Scalar]) -> str:
    kinds = {type(item) for item in items}
    return '; write 0.0 where a decimal is meant' if kinds == {int, float} else ''
