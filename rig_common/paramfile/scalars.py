"""What rcl makes of an unquoted scalar in a parameter file: bool, int64, double or text.

rcl tries a fixed list of words, then C's strtoll with base 0, then strtod; what neither takes
whole is a text. So `010` is 8, `08` is 8.0, `0x10` is 16, `1e-4` is a number and `1e999` a text.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str

_TRUE = frozenset({'Y', 'y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON'})
_FALSE = frozenset({'N', 'n', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF'})
_INTEGER = re.compile(r'[+-]?(?:0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)\Z')
_DECIMAL = re.compile(r'[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z')
_HEX_FLOAT = re.compile(
    r'[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?\Z'
)
_NOT_FINITE = re.compile(r'(?:[+-]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z')
_NOT_FINITE_C = re.compile(r'[+-]?(?:inf|infinity|nan(?:\([0-9a-z_]*\))?)\Z', re.IGNORECASE)
_SMALLEST_NORMAL = 2.2250738585072014e-308
_INT64 = range(-(2**63), 2**63)


def scalar(text: str) -> Scalar:
    """Return the value that rcl gives an unquoted scalar."""
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INTEGER.match(text):
        number = _c_integer(text)
        if number in _INT64:
            return number
    return _c_double(text)


def _c_integer(text: str) -> int:
    """Return what strtoll with base 0 reads: 0x is hexadecimal, a leading 0 is octal."""
    digits = text.lstrip('+-')
    if digits[:2] in ('0x', '0X'):
        base = 16
    else:
        base = 8 if digits[0] == '0' else 10
    # Python refuses to read thousands of decimal digits; so many are out of range anyway.
    magnitude = int(digits, base) if len(digits) <= 100 else 2**64
    return -magnitude if text[0] == '-' else magnitude


def _c_double(text: str) -> float | str:
    """Return what strtod reads, or the text itself where it is no number or out of range."""
    if _NOT_FINITE.match(text):
        return float(text.replace('.', ''))
    if _NOT_FINITE_C.match(text):
        return float(text.partition('(')[0])
    hexadecimal = _HEX_FLOAT.match(text)
    if not hexadecimal and not _DECIMAL.match(text):
        return text
    try:
        number = float.fromhex(text) if hexadecimal else float(text)
    except OverflowError:
        return text
    # strtod reports overflow and inexact underflow, and rcl then takes the text as a string.
    if _SMALLEST_NORMAL <= abs(number) < float('inf'):
        return number
    if hexadecimal:
        return number if _hexadecimal_is(text, number) else text
    is_zero = not re.split('[eE]', text)[0].strip('+-.0')
    return number if is_zero else text


def _hexadecimal_is(text: str, number: float) -> bool:
    """Say whether `text` is exactly `number`, which is below the normal range or zero."""
    digits, _, exponent = text.lower().lstrip('+-')[2:].partition('p')
    whole, _, fraction = digits.partition('.')
    mantissa = int(whole + fraction, 16)
    if number == 0.0 or mantissa == 0:
        return mantissa == 0
    exact = Fraction(mantissa) * Fraction(2) ** (int(exponent or 0) - 4 * len(fraction))
    return exact == abs(Fraction(number))
