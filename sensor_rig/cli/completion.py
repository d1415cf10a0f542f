"""Print a tab completion for bash (and zsh, through bashcompinit).

Use it in the running shell, or put the line into ~/.bashrc:

    eval "$(./rig completion)"
"""

from __future__ import annotations

import argparse

from sensor_rig.cli import registry

NAME = 'completion'
HELP = 'print the tab completion for bash and zsh'

SCRIPT = """\
[ -z "$ZSH_VERSION" ] || {{ autoload -U +X bashcompinit && bashcompinit; }}
_sensor_rig_complete() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="{commands} --help --version --traceback"
  else
    case "${{COMP_WORDS[1]}}" in
{cases}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _sensor_rig_complete rig ./rig sensor-rig
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing."""


def run(args: argparse.Namespace) -> int:
    """Print the script; the commands are written into it, so that completing is instant."""
    print(script(), end='')
    return 0


def script() -> str:
    """Return the shell script for the commands there are now."""
    commands = {command.NAME: words_of(registry.parser_of(command))
                for command in registry.commands()}
    cases = '\n'.join(f'      {name}) words="{" ".join(words)}" ;;'
                      for name, words in commands.items())
    return SCRIPT.format(commands=' '.join(commands), cases=cases)


def words_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the long options of a parser and the choices of its positionals."""
    words: list[str] = []
    for action in parser._actions:
        words += [option for option in action.option_strings if option.startswith('--')]
        if not action.option_strings and action.choices:
            words += [str(choice) for choice in action.choices]
    return words
