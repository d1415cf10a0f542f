"""The one exception a user's mistake raises."""

from __future__ import annotations

from dataclasses import dataclass

from rig_common.text import printable, shortened

LONGEST = 2000
"""Characters of a sentence; a recording can hold a topic whose name has a million."""


@dataclass(frozen=True)
class Mistake:
    """One thing that the user can mend."""

    sentence: str
    """What is wrong, where, which value was met and what is allowed."""
    key: str = ''
    """The dotted key that it is about, below the part that was looked at; empty for all of it."""
    missing: bool = False
    """Whether a key is not there, which another part of a file may still give."""


class RigError(Exception):
    """One or more mistakes the user can mend.

    The message is one sentence about the first, and how many more there are. The command line and
    the nodes print it alone and exit with `EXIT_CODE`; `rig check` prints all.
    """

    EXIT_CODE = 2

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """Everything that is wrong; a plain text is a mistake that names no key."""
        return tuple(
            each if isinstance(each, Mistake) else Mistake(str(each)) for each in self.args
        )

    def __str__(self) -> str:
        """Return the sentence; what it quotes from a file cannot break its line."""
        first, *more = (each.sentence for each in self.mistakes)
        first = shortened(first, LONGEST)
        if more:
            first += f' (and {len(more)} more problem{"s" if len(more) > 1 else ""})'
        return printable(first)


def why(error: Exception) -> str:
    """Return why a file cannot be opened or written, without the number and the path."""
    text = (getattr(error, 'strerror', None) or str(error)).rstrip('.')
    return text[:1].lower() + text[1:]


def in_words(error: Exception) -> str:
    """Return the sentence that a program ends with."""
    return f'too little memory: {error}' if isinstance(error, MemoryError) else str(error)


class UnavailableError(RigError):
    """Something that this machine cannot do (no renderer, no library); the rest of a rig can run.

    `world.skip_unavailable: true` leaves out the sensors that raise it.
    """
