"""ROS 2 messages as bytes, without ROS: the CDR encoding (XCDR1) that every middleware speaks.

A serialised message is a 4-byte header (byte 1: 0 big endian, 1 little endian) and a body in
which every primitive sits at a multiple of its own size, counted from the start of the body.
A stamped type therefore always has its stamp at the same place: int32 sec at byte 4, uint32
nanosec at byte 8. That is all a sync node needs to know about a message it passes on.
"""

from rig_common.cdr.reader import Reader
from rig_common.cdr.stamp import (
    HEADER_BYTES,
    LITTLE_ENDIAN_HEADER,
    MIN_STAMP_NS,
    STAMP_END,
    Buffer,
    CdrError,
    endianness,
    read_stamp_ns,
    split_stamp,
    with_stamp_ns,
    write_stamp_ns,
)
from rig_common.cdr.template import Block, Template, TemplateBuilder
from rig_common.cdr.writer import Writer

__all__ = [
    'HEADER_BYTES',
    'LITTLE_ENDIAN_HEADER',
    'MIN_STAMP_NS',
    'STAMP_END',
    'Block',
    'Buffer',
    'CdrError',
    'Reader',
    'Template',
    'TemplateBuilder',
    'Writer',
    'endianness',
    'read_stamp_ns',
    'split_stamp',
    'with_stamp_ns',
    'write_stamp_ns',
]
