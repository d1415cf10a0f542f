"""Numbers in a command line: what each may be, in one wording for all commands."""

from __future__ import annotations

import argparse
import re

LAST_PORT = 65_535


def positive(text: str) -> float:
    """Return the number in an argument, which must be more than zero."""
    value = _number(text)
    if value is None or not 0.0 < value < float('inf'):
        raise _wrong(text, 'a number more than zero')
    return value


def not_negative(text: str) -> float:
    """Return the number in an argument, which must be zero or more."""
    value = _number(text)
    if value is None or not 0.0 <= value < float('inf'):
        raise _wrong(text, 'a number, zero or more')
    return value


def port(text: str) -> int:
    """Return the port in an argument; 0 is any free one."""
    if not re.fullmatch('[0-9]{1,6}', text) or int(text) > LAST_PORT:
        raise _wrong(text, f'a whole number from 1 to {LAST_PORT}, or 0 for any free port')
    return int(text)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _wrong(text: str, rule: str) -> argparse.ArgumentTypeError:
    # `registry.Parser` puts the option's name in front of "is".
    return argparse.ArgumentTypeError(f'is {text!r}; it should be {rule}')
