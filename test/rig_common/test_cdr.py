"""CDR bytes: stamps in place, the aligned writer and reader, templates."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig_common import cdr
from rig_common.cdr import CdrError, Reader, TemplateBuilder, Writer
from rig_common.times import MAX_STAMP_NS

stamps = st.integers(cdr.MIN_STAMP_NS, MAX_STAMP_NS)


def big_endian_header_message(stamp_ns: int, frame_id: str, value: float) -> bytes:
    """Return header + float64 as a big-endian machine writes it, with struct alone."""
    raw = frame_id.encode() + b'\0'
    body = struct.pack('>iII', *divmod(stamp_ns, 10**9), len(raw)) + raw
    body += bytes(-len(body) % 8)
    return b'\0\0\0\0' + body + struct.pack('>d', value)


@given(stamps, st.booleans())
def test_a_stamp_written_is_the_stamp_read(stamp_ns, little):
    buf = bytearray(b'\0\1\0\0' if little else b'\0\0\0\0') + bytearray(8) + b'tail'
    cdr.write_stamp_ns(buf, stamp_ns)
    assert cdr.read_stamp_ns(buf) == stamp_ns
    assert struct.unpack_from('<iI' if little else '>iI', buf, 4) == divmod(stamp_ns, 10**9)
    assert buf.endswith(b'tail')
    assert cdr.with_stamp_ns(bytes(buf), -stamp_ns // 2)[12:] == b'tail'


@pytest.mark.parametrize(
    'buf',
    [
        b'',
        b'\0',
        b'\0\1\0\0',
        b'\0\1\0\0' + bytes(7),
        b'\0\3\0\0' + bytes(8),
        b'\1\1\0\0' + bytes(8),
    ],
)
def test_what_has_no_stamp_is_refused_with_a_sentence(buf):
    with pytest.raises(CdrError) as caught:
        cdr.read_stamp_ns(buf)
    assert '\n' not in str(caught.value)
    with pytest.raises(CdrError):
        cdr.write_stamp_ns(bytearray(buf), 0)
    with pytest.raises(CdrError):
        cdr.with_stamp_ns(buf, 0)


@pytest.mark.parametrize('stamp_ns', [MAX_STAMP_NS + 1, cdr.MIN_STAMP_NS - 1])
def test_a_stamp_beyond_int32_seconds_is_refused(stamp_ns):
    template = stamped_template()
    with pytest.raises(CdrError, match='does not fit'):
        template.fill(stamp_ns)
    with pytest.raises(CdrError, match='does not fit'):
        cdr.write_stamp_ns(bytearray(template.fill(0)), stamp_ns)


def test_a_big_endian_message_reads_the_same():
    reader = Reader(big_endian_header_message(-5, 'map', 2.5))
    assert reader.header() == (-5, 'map')
    assert reader.f64() == 2.5
    assert reader.remaining == 0


primitives = st.one_of(
    st.tuples(st.just('boolean'), st.booleans()),
    st.tuples(st.just('u8'), st.integers(0, 2**8 - 1)),
    st.tuples(st.just('i8'), st.integers(-(2**7), 2**7 - 1)),
    st.tuples(st.just('u16'), st.integers(0, 2**16 - 1)),
    st.tuples(st.just('i16'), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just('u32'), st.integers(0, 2**32 - 1)),
    st.tuples(st.just('i32'), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just('u64'), st.integers(0, 2**64 - 1)),
    st.tuples(st.just('i64'), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just('f32'), st.floats(width=32, allow_nan=False)),
    st.tuples(st.just('f64'), st.floats(allow_nan=False)),
    st.tuples(
        st.just('string'),
        st.text(st.characters(exclude_characters='\0', exclude_categories=('Cs',))),
    ),
    st.tuples(st.just('strings'), st.lists(st.text('abc', max_size=5), max_size=4)),
    st.tuples(st.just('stamp'), stamps),
)


@given(st.lists(primitives, max_size=12))
def test_what_is_written_is_read_back(fields):
    writer = Writer()
    for method, value in fields:
        getattr(writer, method)(value)
    reader = Reader(writer.finish())
    for method, value in fields:
        assert getattr(reader, method)() == value
    assert reader.remaining < 4  # what fills up the last word


@given(
    st.lists(st.sampled_from(['u1', 'i2', 'u4', 'f4', 'f8']), max_size=5),
    st.integers(0, 4),
    st.booleans(),
)
def test_arrays_keep_their_alignment(dtypes, count, sequence):
    writer = Writer()
    for dtype in dtypes:
        writer.u8(7)
        (writer.sequence if sequence else writer.array)(np.arange(count), dtype)
    reader = Reader(writer.finish())
    for dtype in dtypes:
        assert reader.u8() == 7
        got = reader.sequence(dtype) if sequence else reader.array(dtype, count)
        np.testing.assert_array_equal(got, np.arange(count))


@given(
    st.binary(max_size=64),
    st.booleans(),
    st.lists(
        st.sampled_from(
            [
                'boolean',
                'u8',
                'i16',
                'u32',
                'f64',
                'string',
                'strings',
                'octets',
                'stamp',
                'header',
            ]
        ),
        max_size=8,
    ),
)
def test_hostile_bytes_raise_nothing_but_cdr_errors(body, little, methods):
    reader = Reader((b'\0\1\0\0' if little else b'\0\0\0\0') + body)
    try:
        for method in methods:
            getattr(reader, method)()
        reader.sequence('f8')
    except CdrError:
        pass
    assert reader.pos <= len(body) + 4 + 8


def test_a_hostile_length_is_refused_before_anything_is_allocated():
    writer = Writer()
    writer.u32(2**32 - 1)
    for method in ('strings', 'string', 'octets'):
        with pytest.raises(CdrError):
            getattr(Reader(writer.finish()), method)()
    with pytest.raises(CdrError, match='does not fit'):
        Reader(writer.finish()).sequence('f8')


@pytest.mark.parametrize(
    ('method', 'value'),
    [('u8', 256), ('i8', -129), ('u32', -1), ('u64', 2**64), ('f32', 1e300), ('string', 'a\0b')],
)
def test_a_value_too_big_for_its_field_is_refused(method, value):
    with pytest.raises(CdrError):
        getattr(Writer(), method)(value)


def stamped_template():
    builder = TemplateBuilder('test_msgs/msg/Everything')
    builder.header(0, 'link')
    builder.u8(3)
    builder.block('vector', 'f8', (3,), [1, 2, 3])
    builder.block('flag', 'u1')
    builder.sequence_block('ranges', 'f4', (2, 2))
    builder.string('end')
    return builder.build()


def test_a_template_fills_and_reads_its_blocks():
    template = stamped_template()
    ranges = np.arange(4, dtype=np.float32).reshape(2, 2)
    message = template.fill(1_500_000_000, ranges=ranges, flag=True)
    assert len(message) % 4 == 0
    assert template.read(message.rstrip(b'\0') + b'\0')[0] == 1_500_000_000  # not filled up
    stamp_ns, blocks = template.read(message)
    assert stamp_ns == 1_500_000_000
    np.testing.assert_array_equal(blocks['vector'], [1, 2, 3])
    np.testing.assert_array_equal(blocks['ranges'], ranges)
    assert blocks['flag'] == 1
    reader = Reader(message)
    assert reader.header() == (1_500_000_000, 'link')
    assert reader.u8() == 3
    np.testing.assert_array_equal(reader.array('f8', 3), [1, 2, 3])
    assert reader.u8() == 1
    np.testing.assert_array_equal(reader.sequence('f4'), [0, 1, 2, 3])
    assert reader.string() == 'end'


def test_a_template_keeps_nothing_between_messages():
    template = stamped_template()
    before = template.fill(1)
    template.fill(2, vector=np.full(3, 9.0))
    assert template.fill(1) == before


def test_preset_blocks_stand_where_none_are_given():
    template = stamped_template()
    preset = template.preset(vector=[7, 8, 9])
    assert preset.fill(7) == template.fill(7, vector=[7, 8, 9]) != template.fill(7)
    assert preset.fill(7, vector=[4, 5, 6]) == template.fill(7, vector=[4, 5, 6])


def test_a_template_takes_arrays_of_any_layout_and_type():
    template = stamped_template()
    wide = np.arange(8, dtype=np.int64).reshape(2, 4)[:, ::2]
    _, blocks = template.read(template.fill(0, ranges=wide, vector=(4, 5, 6)))
    np.testing.assert_array_equal(blocks['ranges'], wide)
    np.testing.assert_array_equal(blocks['vector'], [4, 5, 6])


def test_a_template_says_what_is_wrong():
    template = stamped_template()
    with pytest.raises(CdrError, match=r"no block 'vecor', only vector, flag, ranges"):
        template.fill(0, vecor=1)
    with pytest.raises(CdrError, match=r"'vector' .* shape \(3,\), got \(2,\)"):
        template.fill(0, vector=[1, 2])
    with pytest.raises(CdrError, match='bytes'):
        template.read(template.fill(0) + b'four')
    assert template.read(template.fill(7) + b'pad')[0] == 7  # DDS pads to four bytes
    swapped = bytearray(template.fill(0))
    swapped[1] = 0
    with pytest.raises(CdrError, match='big endian'):
        template.read(swapped)
