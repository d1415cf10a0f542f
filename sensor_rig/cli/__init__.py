"""The command line: every module here that has a `NAME` is a command, found by listing them.

A command module has

    NAME: str                                   as typed
    GROUP: str                                  its part of the overview, one of main.GROUPS
    HELP: str                                   one line for the overview
    add_arguments(parser) -> None               its options; heavy imports do not belong here
    run(args: argparse.Namespace) -> int        the exit code; imports what it needs

and may have `EPILOG: str`, shown below its options, and `PASSES_ON = True`, with which arguments
it does not know arrive in `args.passed_on`, and `TAKES_SIGNALS = True`, if nothing is to be closed
before it installs handlers of its own. Its docstring is the text of its `--help`. Results go
to stdout (with `--json`: one JSON document and nothing else), progress and remarks to stderr.
"""

from rig_common.early import end_quietly_on_interrupt, end_with_parent

end_quietly_on_interrupt()
end_with_parent()
