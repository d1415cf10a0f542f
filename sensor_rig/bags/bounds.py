"""What a recording may ask of this machine before anything of it is believed."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any, BinaryIO, Literal

import yaml
from rosbags.rosbag2 import reader, storage_mcap

from rig_common.errors import RigError
from rig_common.paramfile.events import MAX_DEPTH
from sensor_rig.bags.salvage import unpacked, zstd

SMALLEST_LIMIT = 1 << 30
"""Bytes that anything packed may unpack to, however small it is."""
LARGEST_RATIO = 100
"""Beyond that limit it may unpack to this many times its size; images of one colour reach more,
but not by the gigabyte. zstd itself can reach 30,000."""

_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


def require_modest_metadata(path: Path) -> None:
    """Raise RigError where a metadata.yaml takes far longer to read than its size suggests.

    rosbags reads nested lists in quadratic time, and reads a file as often as it is named. What
    is wrong otherwise is left to it.
    """
    try:
        text = path.read_text(encoding='utf-8')
        depth = 0
        for event in yaml.parse(text, Loader=_LOADER):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise RigError(f'{path} is nested more than {MAX_DEPTH} deep')
        values: Any = _LOADER(text).get_single_data()
        named = [
            Path(name).name
            for name in values['rosbag2_bagfile_information']['relative_file_paths']
        ]
    except (yaml.YAMLError, KeyError, TypeError, OSError, UnicodeDecodeError):
        return
    for name, count in Counter(named).most_common(1):
        if count > 1:
            raise RigError(f'{path} names the file {name} {count} times')


def _most(packed_bytes: int) -> int:
    return max(SMALLEST_LIMIT, LARGEST_RATIO * packed_bytes)


class BoundedZstd:
    """In the place of the module `zstd` in rosbags, which unpacks whatever it is given."""

    class open(zstd.ZstdFile):  # noqa: N801 - rosbags calls it as a function
        """A packed file, read up to its limit."""

        def __init__(self, file: BinaryIO, mode: Literal['rb']) -> None:
            """Read `file`, which is on the disk."""
            super().__init__(file, mode)
            self._left = self._limit = _most(os.fstat(file.fileno()).st_size)

        def read(self, size: int | None = -1) -> bytes:
            """Return the next bytes; raise RigError beyond the limit."""
            data: bytes = super().read(size)
            self._left -= len(data)
            if self._left < 0:
                raise RigError(f'a packed file of it holds more than {self._limit >> 20} MiB')
            return data

    @staticmethod
    def decompress(data: bytes) -> bytes:
        """Return a packed message; raise RigError beyond its limit."""
        limit = _most(len(data))
        decompressor = zstd.ZstdDecompressor()
        plain: bytes = decompressor.decompress(data, limit)
        if decompressor.eof:
            return plain
        raise RigError(
            'a packed message breaks off'
            if decompressor.needs_input
            else f'a packed message holds more than {limit >> 20} MiB'
        )


def bound_rosbags() -> None:
    """Put our limits in the place of rosbags' own unpacking, which has none."""
    setattr(reader, 'zstd', BoundedZstd)  # noqa: B010 - to mypy it is a module
    # A chunk is unpacked whole before its size is looked at: 300 kB can be 8 GiB of zeros.
    for kind in ('zstd', 'lz4'):
        storage_mcap.DECOMPRESSORS[kind] = lambda data, size, kind=kind: unpacked(
            data, kind, size + 1
        )  # type: ignore[misc]
