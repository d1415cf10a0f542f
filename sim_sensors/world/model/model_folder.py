"""Which files a model may read: its own folder's, unless the rig file allows more.

Looked up in the XML before MuJoCo opens anything, because some elements (`include`, `model`,
`flexcomp`) are read while the model is parsed, and an attached model brings directories of its
own that the finished spec no longer shows.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path

from rig_common.errors import RigError

HINT = 'set world.allow_outside_files: true if that is meant'

Element = ElementTree.Element
Visit = Callable[[Path, str], None]
"""Called with every file that a model names, before it is read, and with what it is."""


def require_own_folder(file: Path) -> None:
    """Refuse a model whose XML names a file outside the folder of `file`."""
    folder = file.resolve().parent
    _visit_model(
        file.resolve(), lambda found, tag: require_inside(found.resolve(), folder, tag), set()
    )


def files_of_model(file: Path) -> set[Path]:
    """Return the files that MuJoCo reads for an MJCF model, itself included."""
    named = {file}
    _visit_model(file, lambda found, _: named.add(found), set())
    return {each for each in named if each.is_file()}


def require_inside(file: Path, folder: Path, kind: str) -> None:
    """Refuse the `kind` (mesh, include ...) in `file` unless it lies in `folder`."""
    if not file.is_relative_to(folder):
        raise RigError(
            f'the model reads the {kind} file {file}, which is outside its own folder '
            f'{folder}; {HINT}'
        )


def _visit_model(file: Path, visit: Visit, seen: set[Path]) -> None:
    """Visit what one model names, with all it includes, then the models it attaches."""
    if file in seen:
        return
    seen.add(file)
    parts = list(_parts(file, file.parent, visit, set()))
    directories = _directories(parts)
    for element, beside in parts:
        for name in _files_of(element):
            directory = directories.get(element.tag, directories['mesh'])
            for found in _places(name, {file.parent, beside}, directory):
                visit(found, element.tag)
                if element.tag == 'model' and found.is_file():
                    _visit_model(found.resolve(), visit, seen)


def _parts(
    file: Path, main: Path, visit: Visit, seen: set[Path]
) -> Iterator[tuple[Element, Path]]:
    """Yield every element of a file and of what it includes, with the folder it stands in."""
    if file in seen or not file.is_file():
        return
    seen.add(file)
    for element in well_formed(file).iter():
        yield element, file.parent
        if element.tag == 'include':
            for name in _files_of(element):
                for found in _places(name, {main, file.parent}, {''}):
                    visit(found, 'include')
                    yield from _parts(found.resolve(), main, visit, seen)


def well_formed(file: Path) -> Element:
    """Return the root of an XML file, or say that it cannot be read."""
    try:
        return ElementTree.parse(file).getroot()
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        # MuJoCo's parser takes some of what is not well formed; it must not see more than we did.
        raise RigError(
            f'{file.name} is not well-formed XML ({error}), so what it reads cannot be checked'
        ) from None


def _directories(parts: list[tuple[Element, Path]]) -> dict[str, set[str]]:
    """Return the directories that file names of each kind are looked up in."""
    compilers = [element for element, _ in parts if element.tag == 'compiler']
    chosen = {}
    for kind, key in (('mesh', 'meshdir'), ('texture', 'texturedir')):
        given = {element.get(name, '') for element in compilers for name in (key, 'assetdir')}
        chosen[kind] = (given - {''}) or {''}
    return {**chosen, 'include': {''}, 'model': {''}}


def _files_of(element: Element) -> list[str]:
    """Return the values of `file`, `fileup`, `filename` ..."""
    return [value for key, value in element.items() if key.startswith('file') and value]


def _places(name: str, folders: set[Path], directories: set[str]) -> set[Path]:
    """Return where MuJoCo may look: beside the model, or beside the file that names it.

    A place outside counts only if something is there to be read, or if there is no other.
    """
    places = {folder / directory / name for folder in folders for directory in directories}
    return {place for place in places if place.exists()} or places
