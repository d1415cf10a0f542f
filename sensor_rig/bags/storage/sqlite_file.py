"""An sqlite file of rosbag2: as sqlite reads it where it is sound, else page by page.

The format has no checksums: sqlite checks how its pages hang together, not what is in a row.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, suppress
from itertools import pairwise
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

from rosbags.interfaces import (
    Connection,
    ConnectionExtRosbag2,
    MessageDefinition,
    MessageDefinitionFormat,
)

from rig_common.errors import RigError
from sensor_rig.bags.metadata import Metadata, parsed
from sensor_rig.bags.profiles import profiles_of
from sensor_rig.bags.storage.base import (
    BLOCK_BYTES,
    BrokenError,
    Damage,
    FileBytes,
    Message,
    Miss,
)
from sensor_rig.bags.storage.sqlite_pages import message_rows

SIDE_FILES = ('-wal', '-journal')
"""What sqlite keeps beside a file whose last changes are not in it yet, or not undone."""
FIRST_BYTES = 1 << 24
"""Of a file that is cut: here the topics are described."""
TABLES = """
CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT, type TEXT, serialization_format TEXT,
  offered_qos_profiles TEXT, type_description_hash TEXT);
CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT, encoding TEXT,
  encoded_message_definition TEXT, type_description_hash TEXT);
CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER, timestamp INTEGER, data BLOB);
CREATE INDEX timestamp_idx ON messages(timestamp ASC);
"""
_ABOUT_TOPICS = 'id name type serialization_format offered_qos_profiles type_description_hash'
_ABOUT_TYPES = 'id topic_type encoding encoded_message_definition type_description_hash'
COLUMNS = {'topics': _ABOUT_TOPICS.split(), 'message_definitions': _ABOUT_TYPES.split()}
FORMATS = {'ros2msg': MessageDefinitionFormat.MSG, 'ros2idl': MessageDefinitionFormat.IDL}
UNREADABLE = (sqlite3.Error, UnicodeDecodeError)
"""What Python raises about a damaged file; the second for a sentence of sqlite about it."""
IS_MESSAGE = "typeof(timestamp) = 'integer' AND typeof(data) = 'blob'"
USUAL_GAP = 10
"""Times the rows that are there: a larger step from one row's number to the next is no count."""


class SqliteFile:
    """The messages of a .db3."""

    def __init__(self, path: Path, miss: Miss, scratch: Callable[[], Path]) -> None:
        """Open `path`; a copy of what is whole is made in the folder that `scratch` returns."""
        self.path = path
        self.connections: list[Connection] = []
        self.said = Counter[int]()
        self.start_ns = self.end_ns = 0
        self._damage = Damage(path, miss)
        self._scratch = scratch
        self._is_copy = False
        """Whether what is read is what was whole of the file."""
        with path.open('rb') as file:
            head = file.read(100)
        if not head:
            raise BrokenError('it is empty')
        if len(head) < 100 or head[:16] != b'SQLite format 3\0':
            raise BrokenError('it does not begin as an sqlite file')
        try:
            self._database = self._sound()
            self._describe()
        except UNREADABLE as error:
            raise BrokenError(_why(error)) from None
        if not any(each.msgcount for each in self.connections) and self._damage.found:
            raise BrokenError('it has no whole message')

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def blocks(self, wanted: Collection[int]) -> Iterator[list[Message]]:
        """Yield the messages of some topics in order of receive time.

        Where a page turns out to be damaged, it goes on in a copy of what is whole.
        """
        numbers = ','.join(str(int(number)) for number in wanted)
        count = sum(each.msgcount for each in self.connections)
        some = max(1, BLOCK_BYTES * count // self.path.stat().st_size)
        given = 0
        while True:
            try:
                rows = self._database.execute(
                    f'SELECT timestamp, topic_id, data, 0 FROM messages WHERE topic_id IN '
                    f'({numbers}) AND {IS_MESSAGE} ORDER BY timestamp, id LIMIT -1 OFFSET {given}'
                )
                while block := rows.fetchmany(some):
                    yield block
                    given += len(block)
                return
            except UNREADABLE as error:
                if self._is_copy:
                    raise
                self._database.close()
                self._database = self._salvaged(self._source, _why(error))

    # ---- sound or not ---------------------------------------------------------------------------

    def _sound(self) -> sqlite3.Connection:
        """Return the file, or a copy with the changes beside it, or with what is whole."""
        path = self.path
        if any(_has_content(path.with_name(path.name + end)) for end in SIDE_FILES):
            path = self._merged()
        self._source = path
        try:
            database = _open(path)
            try:
                if _is_sound(database):
                    return database
                what = 'its pages do not hang together'
            except UNREADABLE as error:
                what = _why(error)
            database.close()
        except UNREADABLE as error:
            what = _why(error)
        return self._salvaged(path, what)

    def _merged(self) -> Path:
        """Copy the file and what sqlite has put beside it, and let sqlite put them together."""
        copy = self._scratch() / f'{self.path.stem}.merged'
        for end in ('', *SIDE_FILES):
            source = self.path.with_name(self.path.name + end)
            if _has_content(source):
                shutil.copyfile(source, copy.with_name(copy.name + end))
        try:
            with closing(sqlite3.connect(copy)) as database:
                database.execute('PRAGMA wal_checkpoint(TRUNCATE)')
                database.execute('PRAGMA journal_mode=DELETE')
        except sqlite3.Error as error:
            _raise_where_full(error)
        return copy

    def _salvaged(self, path: Path, what: str) -> sqlite3.Connection:
        """Return a copy with every message that is whole."""
        with path.open('rb') as file:
            head = file.read(100)
        page = int.from_bytes(head[16:18], 'big')
        page = 65536 if page == 1 else page
        if page < 512 or page & (page - 1):
            raise BrokenError(f'its pages are said to have {page} bytes')
        size, meant = path.stat().st_size, int.from_bytes(head[28:32], 'big') * page
        if size < meant:
            what = f'it ends at byte {size} of {meant}'
        target = self._scratch() / f'{self.path.stem}.salvaged'
        out = sqlite3.connect(target)
        try:
            out.executescript(TABLES)
            self._copy_descriptions(path, out, meant if size < meant else 0)
            known = {row[0] for row in out.execute('SELECT id FROM topics')}
            file_bytes = FileBytes(path)
            with path.open('rb') as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
                rows = message_rows(data, page, file_bytes.next_data)
                out.executemany(
                    'INSERT OR IGNORE INTO messages VALUES(?, ?, ?, ?)',
                    (row for row in rows if row[1] in known),
                )
            file_bytes.close()
            out.commit()
        except sqlite3.Error as error:
            out.close()
            _raise_where_full(error)
            raise
        self._tell(out, what)
        self._is_copy = True
        return out

    def _tell(self, out: sqlite3.Connection, what: str) -> None:
        """Say what is wrong, and how many rows are missing between those that are there."""
        numbers = [row[0] for row in out.execute('SELECT id FROM messages ORDER BY id')]
        steps = [later - before - 1 for before, later in pairwise(numbers)]
        usual = max(1000, USUAL_GAP * len(numbers))
        missing = sum(step for step in steps if step < usual)
        if numbers and numbers[0] < usual:
            missing += max(numbers[0] - 1, 0)
        between = f', and by their numbers at least {missing} between them are missing'
        self._damage.say(
            f'it is damaged ({what}); {len(numbers)} messages are read{between if missing else ""}'
        )

    def _copy_descriptions(self, path: Path, out: sqlite3.Connection, meant: int) -> None:
        """Copy the topics and their types; of a file that is cut from its start."""
        if meant:
            source = self._scratch() / f'{self.path.stem}.start'
            with path.open('rb') as file, source.open('wb') as start:
                start.write(file.read(FIRST_BYTES))
                start.truncate(meant)  # sqlite refuses a file that is shorter than it says
            path = source
        with closing(_open(path)) as database:
            for table, columns in COLUMNS.items():
                _require_table(database, table)
                there = {row[1] for row in database.execute(f'PRAGMA table_info({table})')}
                if there:
                    names = [name if name in there else "''" for name in columns]
                    out.executemany(
                        f'INSERT INTO {table} VALUES({", ".join("?" * len(names))})',
                        database.execute(f'SELECT {", ".join(names)} FROM {table}'),
                    )
            about = _metadata(database)
            if about is not None:
                out.execute('CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata TEXT)')
                out.execute('INSERT INTO metadata(metadata) VALUES(?)', (about,))

    # ---- what it holds --------------------------------------------------------------------------

    def _describe(self) -> None:
        """Read the topics, and count their messages."""
        database = self._database
        counts = {}
        for number, count, first, last in database.execute(
            'SELECT topic_id, count(*), min(timestamp), max(timestamp) FROM messages '
            f'WHERE {IS_MESSAGE} GROUP BY topic_id'
        ).fetchall():
            counts[number] = (count, first, last)
        rows = database.execute('SELECT count(*) FROM messages').fetchone()[0]
        types = self._types()
        there = {row[1] for row in database.execute('PRAGMA table_info(topics)')}
        names = [name if name in there else "''" for name in COLUMNS['topics']]
        for number, topic, kind, encoding, qos, digest in database.execute(
            f'SELECT {", ".join(names)} FROM topics ORDER BY id'
        ):
            if not isinstance(topic, str) or not isinstance(kind, str):
                raise BrokenError(f'it lists a topic {topic!r} of the type {kind!r}')
            count = counts.pop(number, (0, 0, 0))
            if encoding != 'cdr':
                if count[0]:
                    self._damage.say(
                        f'{topic} is encoded as {encoding!r} and not as cdr, so its {count[0]} '
                        f'messages are left out'
                    )
                rows -= count[0]
                continue
            self.connections.append(
                Connection(
                    number,
                    topic,
                    kind,
                    types.get(kind, MessageDefinition(MessageDefinitionFormat.NONE, '')),
                    digest if isinstance(digest, str) else '',
                    count[0],
                    ConnectionExtRosbag2('cdr', profiles_of(qos)),
                    self,
                )
            )
            if count[0]:
                first, last = count[1:]
                self.start_ns = min(self.start_ns, first) if self.end_ns else first
                self.end_ns = max(self.end_ns, last)
        strays = sum(count for count, _, _ in counts.values())
        if strays:
            self._damage.say(f'{strays} messages belong to no topic and are left out')
        no_messages = rows - strays - sum(each.msgcount for each in self.connections)
        if no_messages > 0:
            self._damage.say(f'{no_messages} rows are no messages and are left out')
        self._take_metadata()

    def _types(self) -> dict[str, MessageDefinition]:
        if not _is_table(self._database, 'message_definitions'):
            return {}
        return {
            str(name): MessageDefinition(FORMATS[encoding], str(text))
            for name, encoding, text in self._database.execute(
                'SELECT topic_type, encoding, encoded_message_definition FROM message_definitions'
            )
            if encoding in FORMATS
        }

    def _take_metadata(self) -> None:
        """Read how many messages its writer counted."""
        text = _metadata(self._database)
        about = None
        with suppress(RigError):  # it is made to harm: the rows count
            about = None if text is None else parsed(text)
        if isinstance(about, Metadata):
            for each in self.connections:
                self.said[each.id] = about.counts.get((each.topic, each.msgtype), 0)


def _why(error: Exception) -> str:
    return 'its tables make no sense' if isinstance(error, UnicodeDecodeError) else str(error)


def _has_content(path: Path) -> bool:
    return path.is_file() and path.stat().st_size > 0


def _open(path: Path) -> sqlite3.Connection:
    """Open a file that is not written to; signs of a URI in its name are part of the name."""
    database = sqlite3.connect(
        f'{path.absolute().as_uri()}?mode=ro&immutable=1', uri=True, check_same_thread=False
    )
    database.text_factory = lambda raw: raw.decode('utf-8', 'replace')
    database.execute('PRAGMA trusted_schema=OFF')
    return database


def _is_table(database: sqlite3.Connection, name: str) -> bool:
    found = database.execute(
        'SELECT type FROM sqlite_master WHERE name = ? AND rootpage > 0', (name,)
    ).fetchone()
    return bool(found == ('table',))


def _require_table(database: sqlite3.Connection, name: str) -> None:
    there = database.execute('SELECT 1 FROM sqlite_master WHERE name = ?', (name,)).fetchone()
    if there and not _is_table(database, name):  # a view can be without end
        raise BrokenError(f'its {name} are no table')


def _is_sound(database: sqlite3.Connection) -> bool:
    for name in ('messages', 'topics'):
        if not _is_table(database, name):  # a view can be without end
            raise BrokenError(f'it has no table of {name}')
    # Rows that are numbered without a gap, in the table as in its index, are all there: this reads
    # no payloads, while sqlite's own check reads the whole file.
    counted = 'SELECT count(*), sum(id) FROM messages'
    count, total = database.execute(f'{counted} NOT INDEXED').fetchone()
    low, high = (database.execute(f'SELECT {end}(id) FROM messages').fetchone()[0] or 0
                 for end in ('min', 'max'))  # fmt: skip
    indexed = database.execute(f'{counted} WHERE timestamp >= {-(2**63)}').fetchone()
    between = high - low + 1
    if indexed == (count, total) == (between, (low + high) * between // 2):
        return True
    result: Any = database.execute('PRAGMA integrity_check(1)').fetchone()
    return bool(result == ('ok',))


def _metadata(database: sqlite3.Connection) -> str | None:
    """Return what its writer noted last, as in metadata.yaml."""
    if not _is_table(database, 'metadata'):
        return None
    try:
        row = database.execute('SELECT metadata FROM metadata ORDER BY id DESC LIMIT 1').fetchone()
    except sqlite3.Error:
        return None
    return row[0] if row and isinstance(row[0], str) else None


def _raise_where_full(error: sqlite3.Error) -> None:
    if 'full' in str(error):
        raise OSError(28, 'No space left on device') from None
