"""ROS parameters out of pydantic models: one per key, with description, range, read-only flag."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException
from rclpy.node import Node
from rclpy.parameter import Parameter

from rig_common.errors import RigError
from rig_common.field_docs import fields_of
from rig_common.validation import validated

ModelT = TypeVar('ModelT', bound=BaseModel)

HUGE = 1.0e308


def leaves(model: BaseModel, prefix: str = '') -> Iterator[tuple[str, object, FieldInfo]]:
    """Yield (dotted key, value, field) of everything in `model` that a parameter can hold."""
    for name, info in fields_of(type(model)).items():
        value = getattr(model, name)
        key = f'{prefix}{name}'
        if isinstance(value, BaseModel):
            yield from leaves(value, f'{key}.')
        elif isinstance(value, Mapping):
            for inner, item in value.items():
                if isinstance(item, BaseModel):
                    yield from leaves(item, f'{key}.{inner}.')
        elif value is not None:
            yield key, value, info


class ConfigParameters(Generic[ModelT]):
    """The parameters of one config model, kept in step with it.

    A change is validated by the model as a whole, handed to `on_change`, and refused with the
    reason when either raises RigError.
    """

    def __init__(
        self,
        node: Node,
        prefix: str,
        config: ModelT,
        *,
        changeable: Callable[[str], bool] = lambda key: False,
        on_change: Callable[[ModelT], None] | None = None,
        fixed: Callable[[str], bool] = lambda key: False,
    ) -> None:
        """Declare every key of `config` under `prefix` (`world.`).

        `changeable` keys can be set at run time; `fixed` keys cannot even be overridden when the
        node starts, because other nodes derive the same thing from the same file.
        """
        self._node = node
        self._prefix = prefix
        self._changeable = changeable
        self._on_change = on_change
        self.config = config
        values: dict[str, Any] = {}
        for key, value, info in leaves(config):
            found = self._declare(key, value, describe(info, value, read_only=not changeable(key)))
            if found != _plain(value):
                if fixed(key):
                    raise RigError(
                        f'{prefix}{key} is {_shown(found)} here and {_shown(value)} in '
                        f'the rig file; all nodes must agree on it, so change the rig '
                        f'file'
                    )
                values[key] = found
        if values:
            self.config = self._changed(values)
        node.add_on_set_parameters_callback(self._on_set)

    def _declare(self, key: str, value: object, descriptor: ParameterDescriptor) -> Any:
        """Return the value that the node starts with: the config's, or one that overrules it."""
        name, node = self._prefix + key, self._node
        try:
            return node.declare_parameter(name, _plain(value), descriptor).value
        except (InvalidParameterTypeException, InvalidParameterValueException) as error:
            anything = ParameterDescriptor(dynamic_typing=True)
            given = node.declare_parameter(name, _plain(value), anything).value
            if self._changed({key: given}) == self.config:  # null, as a text
                return _plain(value)
            raise RigError(f'{name}: {error}') from None  # only rclpy objects to it

    def _changed(self, values: Mapping[str, object]) -> ModelT:
        nested = self.config.model_dump()
        for key, value in values.items():
            *path, last = key.split('.')
            place = nested
            for part in path:
                place = place[part]
            place[last] = value
        return validated(type(self.config), nested, self._prefix.rstrip('.'))

    def _known(self, key: str) -> Any:
        """Return the present value of a dotted key."""
        known: Any = self.config
        for part in key.split('.'):
            known = known[part] if isinstance(known, Mapping) else getattr(known, part)
        return known

    def _require_double(self, key: str, value: Any) -> None:
        """Refuse an integer for a double, as rcl does in files, but say what to write."""
        given = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        if _is_double(self._known(key)) and any(type(item) is int for item in given):
            doubles = [float(item) for item in given]
            one = given is not value
            raise RigError(
                f'{self._prefix}{key} is {value if one else list(given)}, which ROS '
                f'takes for integers; it holds doubles, so write '
                f'{doubles[0] if one else doubles}'
            )

    def _on_set(self, parameters: Sequence[Parameter]) -> SetParametersResult:
        mine = {
            p.name[len(self._prefix) :]: p.value
            for p in parameters
            if p.name.startswith(self._prefix)
        }
        mine = {key: value for key, value in mine.items() if self._changeable(key)}
        if not mine:
            return SetParametersResult(successful=True)
        try:
            for key, value in mine.items():
                self._require_double(key, value)
            config = self._changed(mine)
            if self._on_change is not None:
                self._on_change(config)
        except RigError as error:
            for p in parameters:  # rclpy has taken the type of what is refused for the parameter's
                kept = self._node.get_parameter(p.name)
                self._node.describe_parameter(p.name).type = kept.type_.value
            return SetParametersResult(successful=False, reason=str(error))
        self.config = config
        return SetParametersResult(successful=True)


def fix_sim_time(node: Node) -> None:
    """Refuse to change `use_sim_time` from now on: the node has settled what its time is."""
    fixed = node.get_parameter('use_sim_time').value

    def refuse(parameters: Sequence[Parameter]) -> SetParametersResult:
        changed = any(p.name == 'use_sim_time' and p.value != fixed for p in parameters)
        reason = (
            (
                f'use_sim_time is {_shown(fixed)} here, and {node.get_name()} cannot '
                f'change its time while it runs'
            )
            if changed
            else ''
        )
        return SetParametersResult(successful=not changed, reason=reason)

    node.add_on_set_parameters_callback(refuse)


def describe(info: FieldInfo, value: object, *, read_only: bool) -> ParameterDescriptor:
    """Return the descriptor of a field: its docstring, its choices, its range."""
    descriptor = ParameterDescriptor(
        description=' '.join((info.description or '').split()), read_only=read_only
    )
    choices = get_args(info.annotation) if get_origin(info.annotation) is not None else ()
    if choices and all(isinstance(choice, str) for choice in choices):
        descriptor.additional_constraints = f'one of {", ".join(choices)}'
    # rclpy takes an empty list for bytes, and has no words for a user who sets a double to 0.
    descriptor.dynamic_typing = value in ((), []) or _is_double(value)
    low, high = _bounds(info)
    if (low, high) != (None, None):
        if isinstance(value, float):
            descriptor.floating_point_range = [
                FloatingPointRange(
                    from_value=-HUGE if low is None else float(low),
                    to_value=HUGE if high is None else float(high),
                )
            ]
        elif isinstance(value, int) and not isinstance(value, bool):
            descriptor.integer_range = [
                IntegerRange(
                    from_value=-(2**63) if low is None else int(low),
                    to_value=2**63 - 1 if high is None else int(high),
                    step=1,
                )
            ]
    return descriptor


def _is_double(value: object) -> bool:
    """Whether a parameter holds doubles: one, or a list of them."""
    if isinstance(value, tuple | list) and value:
        return all(isinstance(item, float) for item in value)
    return isinstance(value, float)


def _bounds(info: FieldInfo) -> tuple[Any, Any]:
    """Return the inclusive bounds of a field; open ones are left to the model's own check."""
    low = high = None
    for rule in info.metadata:
        low = next(
            (v for v in (getattr(rule, 'ge', None), getattr(rule, 'gt', None)) if v is not None),
            low,
        )
        high = next(
            (v for v in (getattr(rule, 'le', None), getattr(rule, 'lt', None)) if v is not None),
            high,
        )
    return low, high


def _shown(value: object) -> str:
    """Return a value as it would be written in a rig file."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _plain(value: object) -> Any:
    """Return a value as ROS parameters know it."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value if isinstance(value, (bool, int, float, str)) else str(value)
