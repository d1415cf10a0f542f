"""Facts that travel as text: a dataclass on either side of a DiagnosticStatus.

/diagnostics carries pairs of texts. What they are called and how they are written stands once, at
the field of the dataclass; `to_values` writes them and `from_values` reads them back.

    @dataclass
    class Speed:
        wheel_hz: float = fact('wheel rate (Hz)', '.2f')

    to_values(Speed(1.5)) == {'wheel rate (Hz)': '1.50'}
    from_values(Speed, {'wheel rate (Hz)': '1.50'}) == Speed(1.5)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, field, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

FactsT = TypeVar('FactsT')


def fact(label: str, form: str = '', *, none: str = 'unknown', default: object = MISSING) -> Any:
    """Return a field that is shown as `label`, formatted with `form`; None is shown as `none`."""
    return field(default=default, metadata={'label': label, 'form': form, 'none': none})


def to_values(facts: Any) -> dict[str, str]:
    """Return the facts as texts by label, in the order of the fields."""
    values: dict[str, str] = {}
    for each in fields(facts):
        value = getattr(facts, each.name)
        if is_dataclass(value):
            values.update(to_values(value))
        elif value is None:
            values[_label(each)] = each.metadata['none']
        elif isinstance(value, bool):
            values[_label(each)] = str(value).lower()
        else:
            values[_label(each)] = format(value, each.metadata.get('form', ''))
    return values


def from_values(kind: type[FactsT], values: Mapping[str, str]) -> FactsT | None:
    """Return the facts of type `kind` that `values` hold, or None where they hold others."""
    hints = get_type_hints(kind)
    read: dict[str, Any] = {}
    for each in fields(kind):  # type: ignore[arg-type]
        hint = hints[each.name]
        if is_dataclass(hint):
            nested = from_values(hint, values)  # type: ignore[arg-type]
            if nested is None:
                return None
            read[each.name] = nested
        elif _label(each) in values:
            try:
                read[each.name] = _read(values[_label(each)], hint, each)
            except ValueError:
                return None
        else:
            return None
    return kind(**read)


def _label(each: Field[Any]) -> str:
    label: str = each.metadata.get('label', each.name)
    return label


def _read(text: str, hint: object, each: Field[Any]) -> object:
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not type(None)]
    if len(kinds) < len(get_args(hint)) and text == each.metadata['none']:
        return None
    kind = kinds[0]
    return text == 'true' if kind is bool else kind(text)
