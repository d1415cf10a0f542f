"""Whatever the bytes are: a value, or the one exception that says what is wrong with them."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rig_common import msgs
from rig_common.cdr import CdrError, Reader, read_stamp_ns
from rig_common.errors import RigError
from rig_common.lockstep.messages import Ack, Tick
from rig_common.msgs import Level, Status, decode
from rig_common.paramfile import reader as paramfile
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.rigfile import load_rig, rig_from_parameters

RIGS = Path(__file__).with_name('rigs')
GOOD = (RIGS / 'good.yaml').read_text()
TOKENS = [
    '.nan',
    '-1',
    '1e999',
    '[]',
    '{}',
    'null',
    '*a',
    '&a',
    '!!str',
    '"',
    "'",
    ': ',
    '\n',
    '\t',
    '{',
    '}',
    '[',
    ']',
    ',',
    '#',
    '\0',
    'ÿ',
    '0x10',
    'off',
    '<<',
    '---\n',
    '/**:',
    'extends: good.yaml\n    ',
    '9' * 30,
]

bounded = settings(max_examples=150, deadline=None)


@contextmanager
def a_value_or_a_sentence(kind: type[Exception]) -> Iterator[None]:
    """Allow the one exception a user is shown, if it is one line; nothing else may come out."""
    said = ''
    try:
        yield
    except kind as error:
        said = str(error)
        if not said:
            raise
    assert '\n' not in said


# ---- rig files --------------------------------------------------------------------------------


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Return the valid rig file with a few pieces cut out, doubled or replaced."""
    text = GOOD
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(start + 40, len(text))))
        piece = draw(st.sampled_from([*TOKENS, text[start:end] * 2, '']))
        text = text[:start] + piece + text[end:]
    return text


@bounded
@given(mutated())
def test_a_mutated_rig_file_is_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / 'rig.yaml'
        file.write_text(text, encoding='utf-8', errors='surrogateescape')
        (Path(folder) / 'good.yaml').write_text(GOOD)
        with a_value_or_a_sentence(RigError):
            load_rig(file)


scalars = st.one_of(st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
values = st.recursive(
    st.one_of(scalars, st.lists(scalars, max_size=4)),
    lambda inner: st.dictionaries(
        st.sampled_from(
            ['imu', 'mag', 'type', 'rate_hz', 'mount', 'clock', 'inputs', 'topic', 'x']
        ),
        inner,
        max_size=4,
    ),
    max_leaves=8,
)


def _paths(tree: Any, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(tree, dict):
        return [prefix]
    return [prefix, *(path for key in tree for path in _paths(tree[key], (*prefix, key)))]


@bounded
@given(st.data())
def test_a_wrong_value_anywhere_is_taken_or_refused(data: st.DataObject) -> None:
    tree = paramfile.parse(GOOD).values
    path = data.draw(st.sampled_from(_paths(tree)[1:]))
    at = tree
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = data.draw(values)
    with a_value_or_a_sentence(RigError):
        rig_from_parameters(tree, RIGS / 'fuzzed.yaml')


# ---- serialised messages ------------------------------------------------------------------------

SCAN = msgs.laser_scan(
    'lidar',
    16,
    angle_min_rad=0,
    angle_max_rad=1,
    angle_increment_rad=0.1,
    range_min_m=0,
    range_max_m=9,
)
STATUSES = [Status(Level.WARN, 'sync: imu', 'late', {'received': '3', 'lost': '1'})]
REAL: list[bytes] = [
    SCAN.fill(10**9),
    msgs.image('cam', 4, 4, 'mono8').fill(5),
    msgs.imu('imu').fill(1),
    msgs.time_reference('a', 'b').fill(3),
    msgs.diagnostic_array(7, STATUSES),
    Tick(5, 6, sent={'imu': 3}, run='a.0').encode(),
    Ack('/emulator', 7, serves=('imu',)).encode(),
]
DECODERS: dict[str, Callable[[bytes], Any]] = {
    'stamp': read_stamp_ns,
    'template': SCAN.read,
    'tick': Tick.decode,
    'ack': Ack.decode,
    'diagnostics': msgs.read_diagnostic_array,
    'time reference': msgs.read_time_reference,
    **{name: getattr(decode, name) for name in dir(decode) if name.startswith('read_')},
}


@st.composite
def broken(draw: st.DrawFn) -> bytes:
    """Return a real message cut, extended, with bytes changed or a length blown up; or noise."""
    if draw(st.booleans()) and draw(st.booleans()):
        return draw(st.binary(max_size=200))
    buf = bytearray(draw(st.sampled_from(REAL)))
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, max(len(buf) - 4, 0)))
        buf[place : place + 4] = draw(
            st.sampled_from(
                [
                    struct.pack('<I', 2**32 - 1),
                    struct.pack('<I', 0),
                    b'\xff\xfe\x80\0',
                    struct.pack('<I', 2**31),
                    struct.pack('<f', float('nan')),
                ]
            )
        )
    cut = draw(st.integers(0, len(buf)))
    return bytes(buf[:cut]) if draw(st.booleans()) else bytes(buf) + draw(st.binary(max_size=40))


@pytest.mark.parametrize('name', DECODERS)
@settings(max_examples=120, deadline=None)
@given(buf=broken())
def test_a_decoder_reads_or_says_so(name: str, buf: bytes) -> None:
    with a_value_or_a_sentence(CdrError):
        DECODERS[name](buf)


READS = [
    'boolean',
    'u8',
    'i16',
    'u32',
    'f32',
    'f64',
    'i64',
    'string',
    'strings',
    'octets',
    'stamp',
    'header',
]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120), st.booleans(), st.lists(st.sampled_from(READS), max_size=12))
def test_the_reader_never_leaves_the_message(data: bytes, little: bool, reads: list[str]) -> None:
    with a_value_or_a_sentence(CdrError):
        reader = Reader(bytes([0, little, 0, 0]) + data)
        for name in reads:
            getattr(reader, name)()
            assert 0 <= reader.pos <= 4 + len(data)
        reader.sequence('f8')


# ---- recordings ---------------------------------------------------------------------------------


@lru_cache
def recording(storage: Any) -> dict[str, bytes]:
    """Return the files of a small recording by name."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'bag'
        with BagWriter(path, storage) as writer:
            writer.add_topic('/scan', SCAN.type_name)
            for k in range(20):
                writer.write('/scan', k * 10**8, SCAN.fill(k * 10**8))
        return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_corrupt_recording_is_read_or_refused(storage: str, data: st.DataObject) -> None:
    files = {name: bytearray(content) for name, content in recording(storage).items()}
    victim = files[data.draw(st.sampled_from(sorted(files)))]
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(victim) - 1))
        victim[place : place + 1] = data.draw(
            st.sampled_from([b'\0', b'\xff', b'\x7f', b'', b'\xff\xff\xff\xff'])
        )
        if not victim:
            break
    if data.draw(st.booleans()):
        del victim[data.draw(st.integers(0, len(victim))) :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'bag'
        path.mkdir()
        for name, content in files.items():
            (path / name).write_bytes(content)
        with a_value_or_a_sentence(RigError), BagReader(path) as reader:
            for message in reader.messages():
                assert isinstance(message.raw, bytes)


@pytest.mark.parametrize(
    ('storage', 'file', 'place', 'byte'),
    [('mcap', 'bag.mcap', 100, 0xFF), ('sqlite3', 'bag.db3', 28667, 0)],
)
def test_corruptions_that_were_found(
    storage: str, file: str, place: int, byte: int, tmp_path: Path
) -> None:
    for name, content in recording(storage).items():
        changed = bytearray(content)
        if name == file and place < len(changed):
            changed[place] = byte
        (tmp_path / name).write_bytes(changed)
    with a_value_or_a_sentence(RigError), BagReader(tmp_path) as reader:
        list(reader.messages())
