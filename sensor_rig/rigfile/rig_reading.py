"""Reads a rig file with all that it extends, and knows the line that each key stands on."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from rig_common.errors import Mistake, RigError, UnavailableError
from rig_common.paramfile import reader as paramfile
from rig_common.paramfile.events import Parameters
from rig_common.paths import find_shared, share_dir

Places: TypeAlias = Mapping[str, tuple[str, int]]
"""Dotted key -> file name and line (from 1)."""
EXTENSIBLE = ('sensors', 'streams')
"""Sections whose parts may extend a datasheet."""


@dataclass(frozen=True)
class RigParameters:
    """The parameters of a rig file on top of those of the files that it extends."""

    values: Parameters
    places: Places


@dataclass
class Mistakes:
    """Collects what is wrong with a rig file, so that all of it is said at once."""

    file: Path
    places: Places = field(default_factory=dict)
    found: list[Mistake] = field(default_factory=list)

    @contextmanager
    def below(self, key: str) -> Iterator[None]:
        """Collect the mistakes that are raised inside, and go on behind it."""
        try:
            yield
        except UnavailableError:
            raise
        except RigError as error:
            self.found += [
                replace(each, key='.'.join(filter(None, (key, each.key))))
                for each in error.mistakes
            ]

    def add(self, key: str, sentence: str) -> None:
        """Note a mistake about the dotted `key`."""
        self.found.append(Mistake(sentence, key))

    def refuse(self) -> None:
        """Raise all that was found, in the order of the file; each with its line."""
        if not self.found:
            return
        located = sorted(
            ((self._place(each), each.sentence) for each in self.found),
            key=lambda each: (each[0][0] != self.file.name, each[0]),
        )
        raise RigError(
            *(
                f'{name}:{line}: {sentence}' if line else f'{name}: {sentence}'
                for (name, line), sentence in located
            )
        )

    def _place(self, mistake: Mistake) -> tuple[str, int]:
        """Return where its key stands, or one below that the sentence names, or one around it."""
        key, words = mistake.key, re.findall(r'\w[\w.]*', mistake.sentence)
        while found := [
            below
            for word in words
            if (below := f'{key}.{word.removeprefix(key + ".")}') in self.places
            and self.places[below][0] == self.places[key][0]
        ]:
            key = found[0]
        while key and key not in self.places:
            key = key.rpartition('.')[0]
        return self.places.get(key, (self.file.name, 0))


def read_rig(file: Path, seen: tuple[Path, ...] = ()) -> RigParameters:
    """Return the parameters of `file` on top of those of the file it `extends`."""
    if file in seen:
        chain = ' -> '.join(each.name for each in (*seen[seen.index(file) :], file))
        raise RigError(f'{file.name}: extends goes round in a circle: {chain}')
    loaded = paramfile.load(file)
    values = loaded.values
    places: dict[str, tuple[str, int]] = {
        key: (file.name, line) for key, line in loaded.lines.items()
    }
    seen = (*seen, file)
    mistakes = Mistakes(file, places)
    bases: dict[str, Path] = {}
    for section, name, part in _extending_parts(values):
        key = f'{section}.{name}'
        with mistakes.below(f'{key}.extends'):
            bases[key] = extended_file(part.pop('extends'), file, f'{key}.extends')
    if 'extends' in values:
        with mistakes.below('extends'):
            bases[''] = extended_file(values.pop('extends'), file, 'extends')
    mistakes.refuse()
    for key, base in bases.items():
        below = read_rig(base, seen)
        values = paramfile.merged(_at(key, below.values), values)
        places = {
            **{f'{key}.{inner}' if key else inner: place for inner, place in below.places.items()},
            **places,
        }
    return RigParameters(values, places)


def _at(key: str, values: Parameters) -> Parameters:
    """Return the values below a dotted key."""
    for part in reversed(key.split('.') if key else []):
        values = {part: values}
    return values


def _extending_parts(values: Mapping[str, Any]) -> list[tuple[str, str, Parameters]]:
    """Return (section, name, keys) of every sensor and stream that extends a file."""
    return [
        (section, name, part)
        for section in EXTENSIBLE
        if isinstance(values.get(section), dict)
        for name, part in values[section].items()
        if isinstance(part, dict) and 'extends' in part
    ]


def extended_file(name: object, file: Path, where: str) -> Path:
    """Return the file that `name` means in `file`: one beside it, or a shipped one."""
    if not isinstance(name, str):
        raise RigError(f'{where} is {name!r}; it should be the name of a file')
    beside = (file.parent / name).absolute()
    if beside.exists():
        return beside.resolve()
    shipped = find_shared(*Path(name).parts)
    if shipped is None:
        raise RigError(
            f'{where} is {name!r}; {_meant(name, file.parent)}there is no such file '
            f'beside the rig file or among the shipped ones'
        )
    return shipped


def _meant(name: str, beside: Path) -> str:
    """Return which file `name` could have meant, as one would write it."""
    suffix = Path(name).suffix or '.yaml'
    files = {
        path.stem: path.relative_to(root).as_posix()
        for root, folder in (
            (share_dir(), 'config'),
            (share_dir(), 'datasheets'),
            (beside, Path(name).parent),
        )
        for path in (root / folder).glob(f'*{suffix}')
    }
    found = difflib.get_close_matches(Path(name).stem, files, n=1)
    return f'did you mean {files[found[0]]!r}? ' if found else ''
