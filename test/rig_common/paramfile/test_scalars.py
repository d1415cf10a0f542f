"""Unquoted scalars against the C functions that rcl calls."""

from __future__ import annotations

import ctypes
import ctypes.util
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig_common.paramfile.scalars import scalar

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.strtoll.restype = ctypes.c_longlong
LIBC.strtoll.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.c_int]
LIBC.strtod.restype = ctypes.c_double
LIBC.strtod.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)]


def c_number(text: str) -> int | float | str:
    """Return what strtoll, then strtod make of the whole text, in the order rcl tries them."""
    source = ctypes.create_string_buffer(text.encode())
    end = ctypes.c_char_p()
    for function, rest in ((LIBC.strtoll, (0,)), (LIBC.strtod, ())):
        ctypes.set_errno(0)
        number = function(ctypes.cast(source, ctypes.c_char_p), ctypes.byref(end), *rest)
        if ctypes.get_errno() == 0 and text and end.value == b'':
            return number
    return text


def same(one: object, other: object) -> bool:
    """Compare with type, and NaN equal to NaN."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and one == other


EDGES = [
    '0',
    '-0',
    '+5',
    '08',
    '010',
    '-010',
    '0x10',
    '-0XfF',
    '0x',
    '0xg',
    '1_000',
    '0o17',
    '1e',
    'e1',
    '5.',
    '.5',
    '.',
    '+.',
    '1e-4',
    '1E+4',
    '1e999',
    '-1e999',
    '1e-310',
    '1e-400',
    '0e-999',
    '0.0e9999',
    '9223372036854775807',
    '9223372036854775808',
    '-9223372036854775808',
    '-9223372036854775809',
    '0x1p3',
    '0x.8p1',
    '0x1.8',
    '0x1p9999',
    '0x0p-9999',
    'inf',
    '-Infinity',
    'INF',
    'nan',
    '-nan',
    'nan(12)',
    'nan(',
    'infinit',
    '--1',
    '+-1',
    '1 2',
    'x',
    '٣',
    '1' * 400,
]


@pytest.mark.parametrize('text', EDGES)
def test_edges_are_read_as_c_reads_them(text: str) -> None:
    assert same(scalar(text), c_number(text))


@given(
    st.one_of(
        st.integers(-(2**70), 2**70).map(str),
        st.floats(allow_nan=False).map(repr),
        st.floats(allow_nan=False).map(float.hex),
        st.text('0123456789+-.eExXpPabf_', min_size=1, max_size=12),
    )
)
def test_numbers_are_read_as_c_reads_them(text: str) -> None:
    assert same(scalar(text), c_number(text))


@pytest.mark.parametrize(
    ('text', 'value'),
    [
        ('on', True),
        ('Yes', True),
        ('y', True),
        ('TRUE', True),
        ('off', False),
        ('N', False),
        ('no', False),
        ('oN', 'oN'),
        ('tRue', 'tRue'),
        ('.inf', math.inf),
        ('-.INF', -math.inf),
        ('+.Inf', math.inf),
        ('.nan', math.nan),
        ('-.nan', '-.nan'),
        ('.iNf', '.iNf'),
        ('2020-01-01', '2020-01-01'),
        ('1:30', '1:30'),
    ],
)
def test_words(text: str, value: object) -> None:
    assert same(scalar(text), value)
