"""Print a tab completion for bash (and zsh, through bashcompinit).

Use it in the running shell, or put the line into ~/.bashrc:

    eval "$(./rig completion)"
"""

from __future__ import annotations

import argparse

from rig_common.paths import shared_names
from sensor_rig.cli.support import registry

NAME = 'completion'
GROUP = 'maintain'
HELP = 'print the tab completion for bash and zsh'

SCRIPT = """\
[ -z "$ZSH_VERSION" ] || {{ autoload -U +X bashcompinit && bashcompinit; }}
_sensor_rig_complete() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands} --help --version --traceback"
  else
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[COMP_CWORD - 1]}}" in
{values}
      *) case "${{COMP_WORDS[1]}}" in
{cases}
      esac ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _sensor_rig_complete rig ./rig sensor-rig
"""
RIGS = ('rig', 'file')
"""Arguments that take a rig file, or a shipped one by its name."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing."""


def run(args: argparse.Namespace) -> int:
    """Print the script; the commands are written into it, so that completing is instant."""
    print(script(), end='')
    return 0


def script() -> str:
    """Return the shell script for the commands there are now."""
    parsers = {command.NAME: registry.parser_of(command) for command in registry.commands()}
    cases = [
        f'        {name}) words="{" ".join(words_of(parser))}" ;;'
        for name, parser in parsers.items()
    ]
    values = [
        f'      "{name} {option}") words="{" ".join(words)}" ;;'
        for name, parser in parsers.items()
        for option, words in values_of(parser).items()
    ]
    return SCRIPT.format(
        commands=' '.join(parsers), cases='\n'.join(cases), values='\n'.join(values)
    )


def words_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the long options of a parser and what its positionals can be."""
    words: list[str] = []
    for action in parser._actions:
        words += [option for option in action.option_strings if option.startswith('--')]
        if not action.option_strings:
            words += _values(action)
    return words


def values_of(parser: argparse.ArgumentParser) -> dict[str, list[str]]:
    """Return what can follow each option that has something to choose from."""
    return {
        option: _values(action)
        for action in parser._actions
        for option in action.option_strings
        if _values(action)
    }


def _values(action: argparse.Action) -> list[str]:
    if action.choices:
        return [str(choice) for choice in action.choices]
    return shared_names('config', '.yaml') if action.dest in RIGS else []
