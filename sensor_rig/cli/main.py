"""The command line: picks the command, runs it, turns a mistake into one sentence."""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import ModuleType
from typing import TypeAlias

import sensor_rig
from rig_common.early import interrupt_as_usual
from rig_common.errors import RigError, in_words, why
from rig_common.text import near
from sensor_rig.cli.support import registry

INTERRUPTED = 128 + signal.SIGINT
BROKEN_PIPE = 128 + signal.SIGPIPE
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
GO_ON = 64
"""Tells the script `rig` to install what the command needs; no command ends with it."""

Runner: TypeAlias = Callable[[ModuleType, argparse.Namespace], int]

HEADER = """usage: {program} COMMAND [OPTIONS]

Sensor streams of a simulated robot with known timing and known truth, and the engine that puts
them back together."""
GROUPS = {
    'run': 'run a rig',
    'find out': 'find out what is wrong',
    'repair': 'repair a recording',
    'stress': 'stress a system',
    'look': 'look at results',
    'set up': 'set up',
    'maintain': 'maintain this project',
}
"""The parts of the overview in their order, by the GROUP of a command."""
FOOTER = """
  -h, --help       this text; "{program} COMMAND --help" explains a command
  --version        print the version
  --traceback      before a command: show where an error came from

exit codes: 0 done; 1 a check did not pass; 2 a mistake in the command line or a file, or a node
that failed, told in one sentence; 130 interrupted.

First steps:
  {program} demo                  run the demo rig and open its live page
  {program} check FILE            validate a rig file
  {program} doctor                see what this machine can do
"""


def before_installation() -> int:
    """Answer a command line that needs no installed package, for the script `rig`.

    Returns `GO_ON` where the command has to run; else its help or its mistake has been printed.
    """
    return main(sys.argv[1:], run=_go_on)


def _go_on(command: ModuleType, parsed: argparse.Namespace) -> int:
    for what, path in registry.inputs_of(command, parsed):
        if not path.exists():
            raise RigError(f'there is no {what} {path}')
    check_inputs = getattr(command, 'check_inputs', None)
    if check_inputs is not None:
        with suppress(ImportError):  # what it takes to look inside is not installed yet
            check_inputs(parsed)
    return GO_ON


def main(argv: Sequence[str] | None = None, run: Runner | None = None) -> int:
    """Run one command line and return the exit code; `run` does what a valid one asks for."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    want_traceback = arguments[:1] == ['--traceback']
    if want_traceback:
        del arguments[0]
    try:
        code = _dispatch(arguments, run or _run)
        sys.stdout.flush()
        return code
    except (RigError, MemoryError) as error:
        if want_traceback:
            traceback.print_exc()
        print(f'error: {in_words(error)}', file=sys.stderr)
        return RigError.EXIT_CODE
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a pipe (`| head`) left
        _give_up_stdout()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _give_up_stdout()
        where = error.filename or 'to the standard output'
        print(f'error: cannot write {where}: {why(error)}', file=sys.stderr)
        return RigError.EXIT_CODE
    finally:
        if argv is None:
            # All is done: a Ctrl-C that comes while Python ends must not change the exit code.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _give_up_stdout() -> None:
    """Drop what is still to be printed; Python would complain once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str], run: Runner) -> int:
    if not arguments or arguments[0] in ('-h', '--help', 'help'):
        if len(arguments) > 1 and arguments[0] == 'help':
            return _dispatch([arguments[1], '--help'], run)
        print(overview(), end='')
        return 0
    if arguments[0] == '--version':
        print(f'sensor_rig {sensor_rig.__version__}')
        return 0
    name = arguments[0]
    command = None if name.startswith('-') else registry.find(name)
    if command is None:
        raise RigError(_unknown(name))
    try:
        parsed = registry.parse(command, arguments[1:])
    except SystemExit as leave:  # argparse leaves this way after --help
        return int(leave.code or 0)
    return run(command, parsed)


def _run(command: ModuleType, parsed: argparse.Namespace) -> int:
    if not getattr(command, 'TAKES_SIGNALS', False):
        interrupt_as_usual()
    return int(command.run(parsed))


def overview() -> str:
    """Return the text of `--help`: the commands in groups by purpose, one line each."""
    program = registry.program_name()
    found = list(registry.commands())
    width = max(16, *(len(command.NAME) for command in found))
    lines = []
    for group, title in GROUPS.items():
        members = [each for each in found if getattr(each, 'GROUP', '') == group]
        lines += [f'\n{title}:', *(f'  {each.NAME:<{width}} {each.HELP}' for each in members)]
    return '\n'.join([HEADER.format(program=program), *lines, FOOTER.format(program=program)])


def _unknown(name: str) -> str:
    if name.startswith('-'):
        return f'unknown option {name!r} before the command (see {registry.program_name()} --help)'
    names = [command.NAME for command in registry.commands()]
    hint = near(name, names) or f'there are {", ".join(names)}'
    return f'there is no command {name!r}; {hint.strip()}'


if __name__ == '__main__':
    sys.exit(main())
