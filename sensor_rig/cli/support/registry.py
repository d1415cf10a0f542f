"""Finds the commands: modules of `sensor_rig.cli` with a `NAME`, imported only when needed."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import sensor_rig.cli
from rig_common.errors import RigError
from rig_common.paths import find_shared
from rig_common.text import near


def program_name() -> str:
    """Return how the user calls this program; the `rig` script hands its own name down."""
    return os.environ.get('RIG_PROGRAM') or 'sensor-rig'


def find(name: str) -> ModuleType | None:
    """Return the command called `name`, importing no other command in the usual case."""
    modules = _module_names()
    stem = name.replace('-', '_')
    if stem in modules:
        module = _load(stem)
        if getattr(module, 'NAME', None) == name:
            return module
    return next((module for module in commands() if name == module.NAME), None)


def commands() -> Iterator[ModuleType]:
    """Yield every command in the order of its name."""
    modules = (_load(stem) for stem in _module_names())
    yield from sorted((m for m in modules if hasattr(m, 'NAME')), key=lambda module: module.NAME)


def parser_of(command: ModuleType) -> argparse.ArgumentParser:
    """Return the argument parser of one command."""
    parser = Parser(
        prog=f'{program_name()} {command.NAME}',
        description=(command.__doc__ or command.HELP).strip(),
        epilog=getattr(command, 'EPILOG', None),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    command.add_arguments(parser)
    return parser


def parse(command: ModuleType, arguments: list[str]) -> argparse.Namespace:
    """Return the parsed arguments; a command with PASSES_ON gets unknown ones in `passed_on`."""
    parser = parser_of(command)
    parsed, unknown = parser.parse_known_args(arguments)
    if getattr(command, 'PASSES_ON', False):
        parsed.passed_on = unknown
    elif unknown:
        raise RigError(_unknown_argument(parser, command.NAME, unknown[0]))
    return parsed


def inputs_of(command: ModuleType, parsed: argparse.Namespace) -> Iterator[tuple[str, Path]]:
    """Yield (what it is, path) of every file or folder that a command line names as input."""
    for action in parser_of(command)._actions:
        value = getattr(parsed, action.dest, None)
        if action.type is Path and not action.option_strings and action.dest != 'output' and value:
            yield str(action.metavar), value
    rig = Path(getattr(parsed, 'rig', None) or '')
    if rig.suffix and not (rig.parent == Path() and find_shared('config', rig.name)):
        yield 'rig file', rig


def _unknown_argument(parser: argparse.ArgumentParser, name: str, given: str) -> str:
    option = given.partition('=')[0]
    if not option.startswith('-'):
        return f'{name} takes no argument {given!r} there (see {parser.prog} --help)'
    known = [each for action in parser._actions for each in action.option_strings]
    return f'{name} has no option {option!r}; {near(option, known)}see {parser.prog} --help'


class Parser(argparse.ArgumentParser):
    """An argparse parser that says one sentence about a mistake, not the whole usage."""

    def error(self, message: str) -> NoReturn:
        """Raise the mistake as RigError, with where to look."""
        said = re.sub(r'^argument (\S+): is ', r'\1 is ', message)
        said = re.sub(r'^argument (.+): not allowed with argument', r'\1 does not go with', said)
        said = re.sub(
            r'^argument (\S+): invalid choice: (.+) \(choose from (.+)\)',
            r'\1 is \2; it should be one of \3',
            said,
        )
        raise RigError(f'{said} (see {self.prog} --help)')


def _module_names() -> list[str]:
    return [m.name for m in pkgutil.iter_modules(sensor_rig.cli.__path__) if m.name[0] != '_']


def _load(stem: str) -> ModuleType:
    return importlib.import_module(f'sensor_rig.cli.{stem}')
