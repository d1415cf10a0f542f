"""Opens a recording with rosbags; what cannot be read as it is, as copies up to the break."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from rosbags.highlevel import AnyReader
from rosbags.typesys import Stores, get_typestore

from rig_common.errors import RigError
from sensor_rig.bags.bounds import bound_rosbags, require_modest_metadata
from sensor_rig.bags.lenient import LenientReader
from sensor_rig.bags.salvage import has_side_file, repair

METADATA = 'metadata.yaml'
STORAGES = ('.mcap', '.db3')
ROS1 = '.bag'
URI_SIGNS = frozenset('?#%')
"""rosbags gives sqlite the path as a URI, where these have a meaning."""

bound_rosbags()


class Opening:
    """A recording as rosbags reads it, with the scratch folder that this may take."""

    def __init__(self, path: Path, miss: Callable[[str], None]) -> None:
        """Open `path`, or raise RigError; `miss` gets a sentence for all that is left out."""
        self._path, self._miss = path, miss
        self._scratch: TemporaryDirectory[str] | None = None
        try:
            self.reader = self._opened()
            self._look_for_strays()
        except BaseException:
            self._clean()
            raise

    def close(self) -> None:
        """Close the files."""
        self.reader.close()
        self._clean()

    def _clean(self) -> None:
        if self._scratch is not None:
            self._scratch.cleanup()

    def _folder(self) -> Path:
        if self._scratch is None:
            self._scratch = TemporaryDirectory(prefix='sensor_rig_')
        return Path(self._scratch.name)

    def _opened(self) -> AnyReader:
        path = self._path
        _require_recording(path)
        if path.suffix == ROS1:
            try:
                return _open(path)
            except Exception as error:
                raise RigError(f'{path} is not a readable ROS 1 bag: {sentence(error)}') from None
        try:
            reader = _open(self._plain_path())
        except Exception as error:
            # a broken file surfaces as whatever its storage raises: sqlite3, zstd, struct, yaml
            return self._repaired(f'{path} is not a readable rosbag2 recording: {sentence(error)}')
        if any(map(has_side_file, _storage_files(path))) or not _has_index(reader):
            reader.close()
            return self._repaired(f'{path} is not a readable rosbag2 recording')
        return reader

    def _plain_path(self) -> Path:
        """Return the path, or a link to it where sqlite would take it for something else."""
        if not URI_SIGNS & set(str(self._path)):
            return self._path
        link = self._folder() / f'recording{self._path.suffix}'
        link.symlink_to(self._path.resolve())
        return link

    def _repaired(self, unreadable: str) -> AnyReader:
        """Return a reader of copies: broken storage files up to their break, the others whole.

        Raises `unreadable` where that does not help.
        """
        folder = self._folder() / 'copies'
        folder.mkdir()
        found = 0
        for file in _storage_files(self._path):
            try:
                repaired = repair(file, folder / _plain(file.name))
            except RigError as error:
                self._miss(str(error))
                continue
            found += repaired.messages
            if repaired.broken:
                self._miss(
                    f'{file} is broken: {repaired.broken}; the {repaired.messages} '
                    f'messages before that are read'
                )
        copies = [path for path in sorted(folder.iterdir()) if path.suffix in STORAGES]
        if not found or not copies:
            raise RigError(unreadable)
        try:
            if self._path.is_dir():
                _write_metadata(self._path / METADATA, folder)
                return _open(folder)
            return _open(copies[0])
        except Exception as error:
            raise RigError(
                f'{unreadable}; nor is what could be saved of it: {sentence(error)}'
            ) from None

    def _look_for_strays(self) -> None:
        """Say which messages belong to no topic that rosbags lists."""
        reader: Any = self.reader.readers[0]
        listed = {(each.topic, each.msgtype) for each in self.reader.connections}
        storage = getattr(reader, 'storage', None)
        counts: Counter[str] = Counter()
        for part in getattr(storage, 'storages', ()):
            for each in part.connections:
                if (each.topic, each.msgtype) not in listed:
                    counts[str(each.topic)] += each.msgcount
        for topic, count in sorted(counts.items()):
            if count:
                self._miss(
                    f'{METADATA} of {self._path} does not name {topic}, so its {count} '
                    f'messages are left out'
                )
        missing = self.reader.message_count - sum(e.msgcount for e in self.reader.connections)
        missing -= sum(counts.values())
        if missing > 0:
            self._miss(f'{missing} messages of {self._path} belong to no topic and are left out')


def sentence(error: BaseException) -> str:
    """Return what the storage says, on one line."""
    if isinstance(error, OverflowError):  # a size that no file can have
        return 'its bytes make no sense'
    return ' '.join(str(error).split()).rstrip('.') or type(error).__name__


def _require_recording(path: Path) -> None:
    if not path.exists():
        raise RigError(f'there is no recording at {path}')
    if not (path.is_file() or path.is_dir()):
        raise RigError(f'{path} is neither a file nor a folder, so it is no recording')
    if path.is_dir():
        _require_files(path)
        if not (path / METADATA).exists():
            files = sorted(each.name for each in path.iterdir() if each.suffix in STORAGES)
            instead = f'; give its file {files[0]} instead' if files else ''
            raise RigError(
                f'{path} is not a rosbag2 recording: there is no {METADATA} in it{instead}'
            )
        require_modest_metadata(path / METADATA)
    if path.is_file() and path.suffix not in (*STORAGES, ROS1):
        raise RigError(
            f'{path} is not a readable recording: its name should end in '
            f'{", ".join(STORAGES)} or {ROS1}'
        )


def _require_files(folder: Path) -> None:
    """Refuse pipes and devices, from which could be read for ever."""
    for each in sorted(folder.iterdir()):
        if each.exists() and not (each.is_file() or each.is_dir()):
            raise RigError(
                f'{folder} is not a rosbag2 recording: {each.name} in it is neither a '
                f'file nor a folder'
            )


def _open(path: Path) -> AnyReader:
    kind = AnyReader if path.suffix == ROS1 else LenientReader
    reader = kind([path], default_typestore=get_typestore(Stores.ROS2_KILTED))
    reader.open()
    listed: list[Any] = reader.connections  # sqlite and YAML hold what they like
    for each in listed:
        if not (
            isinstance(each.topic, str)
            and isinstance(each.msgtype, str)
            and isinstance(each.msgcount, int)
        ):
            reader.close()
            raise RigError(
                f'it lists a topic {each.topic!r} of the type {each.msgtype!r} with '
                f'{each.msgcount!r} messages'
            )
    count: Any = reader.message_count
    if not isinstance(count, int):
        reader.close()
        raise RigError(f'it is said to hold {count!r} messages')
    return reader


def _plain(name: str) -> str:
    return ''.join('_' if sign in URI_SIGNS else sign for sign in name)


def _storage_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(each for each in path.iterdir() if each.suffix in STORAGES and each.is_file())


def _has_index(reader: AnyReader) -> bool:
    """Whether rosbags finds all messages, in order of time.

    Of an MCAP without a summary they come as written; of chunks without an index of their
    messages none come at all.
    """
    first: Any = reader.readers[0]
    storage = first.storage
    return all(
        _indexed(each) >= each.metadata.message_count
        for each in getattr(storage, 'storages', [storage])
        if hasattr(each, 'chunks')
    )


def _indexed(storage: Any) -> int:
    return sum(sum(chunk.channel_count.values()) for chunk in storage.chunks)


def _write_metadata(source: Path, folder: Path) -> None:
    """Write the metadata of a recording for the copies of its files that there are."""
    counts: Counter[tuple[str, str]] = Counter()
    for copy in _storage_files(folder):
        reader = _open(copy)
        for connection in reader.connections:
            counts[connection.topic, connection.msgtype] += connection.msgcount
        reader.close()
    try:
        values = yaml.safe_load(source.read_text(encoding='utf-8'))
        information = values['rosbag2_bagfile_information']
        names = [_plain(Path(name).name) for name in information['relative_file_paths']]
        information['relative_file_paths'] = [name for name in names if (folder / name).exists()]
        information.pop('files', None)
        information['message_count'] = sum(counts.values())
        for topic in information['topics_with_message_count']:
            about = topic['topic_metadata']
            topic['message_count'] = counts.pop((about['name'], about['type']), 0)
    except (yaml.YAMLError, KeyError, TypeError, OSError, UnicodeDecodeError) as error:
        raise RigError(f'{source} is not readable: {sentence(error)}') from None
    (folder / METADATA).write_text(yaml.safe_dump(values), encoding='utf-8')
