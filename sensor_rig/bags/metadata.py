"""metadata.yaml of a rosbag2 recording: read with care, and believed only as far as it fits."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import yaml
from rosbags.interfaces import Qos

from rig_common.errors import RigError
from rig_common.paramfile.events import MAX_DEPTH
from sensor_rig.bags.profiles import LOADER, profiles_of

METADATA = 'metadata.yaml'
NEWEST = 9
"""The last version of the format that is known."""
LARGEST = 1 << 24
"""Bytes of a metadata.yaml; a thousand topics have less than one mebibyte."""


class Metadata(NamedTuple):
    """What a recording is said to be."""

    files: list[str]
    """Names of its storage files, in order."""
    counts: dict[tuple[str, str], int]
    """How many messages each topic of a type has."""
    profiles: dict[tuple[str, str], list[Qos]]
    digests: dict[tuple[str, str], str]
    note: dict[str, str]
    """What its maker wrote beside it (`custom_data`)."""


def read(path: Path) -> Metadata | str:
    """Return what a metadata.yaml says, or why it makes no sense.

    Raises RigError for one that is made to harm: it would take far longer to read than its size
    suggests, or names a file many times.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise RigError(f'{path} has more than {LARGEST >> 20} MiB')
        text = path.read_text(encoding='utf-8')
        found = parsed(text, str(path))
    except UnicodeDecodeError:
        return 'it is no UTF-8'
    if isinstance(found, Metadata):
        for name, count in Counter(found.files).most_common(1):
            if count > 1:
                raise RigError(f'{path} names the file {name} {count} times')
    return found


def _require_modest(text: str, where: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise RigError(
                f'{where} uses a YAML alias (*{event.anchor}), which can stand for millions of '
                f'values; write the value itself'
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise RigError(f'{where} is nested more than {MAX_DEPTH} deep')


def parsed(text: str, where: str = METADATA) -> Metadata | str:
    """Return what the text of a metadata.yaml says, or why it makes no sense.

    Raises RigError for one that is made to harm.
    """
    try:
        _require_modest(text, where)
        information = LOADER(text).get_single_data()
        information = information.get('rosbag2_bagfile_information', information)
        version = information['version']
        if not isinstance(version, int) or version > NEWEST:
            return f'its version is {version!r}, and {NEWEST} is the newest that is known'
        files = [Path(name).name for name in information['relative_file_paths']]
        counts: dict[tuple[str, str], int] = {}
        profiles, digests = {}, {}
        for topic in information['topics_with_message_count']:
            about, count = topic['topic_metadata'], topic['message_count']
            key = about['name'], about['type']
            if not all(isinstance(part, str) for part in key):
                return f'it lists a topic {about["name"]!r} of the type {about["type"]!r}'
            if not isinstance(count, int):
                return f'{key[0]} is said to have {count!r} messages'
            counts[key] = counts.get(key, 0) + count
            profiles[key] = profiles_of(about.get('offered_qos_profiles', []))
            digests[key] = str(about.get('type_description_hash') or '')
        return Metadata(files, counts, profiles, digests, _note(information.get('custom_data')))
    except yaml.YAMLError as error:
        return f'it is no YAML ({" ".join(str(error).split())})'
    except KeyError as error:
        return f'it lacks {error}'
    except (TypeError, AttributeError, ValueError, RecursionError):
        return 'it is not what rosbag2 writes'


def _note(custom: object) -> dict[str, str]:
    if not isinstance(custom, dict):
        return {}
    return {
        str(key): str(value)
        for key, value in custom.items()
        if isinstance(value, (str, int, float))
    }
