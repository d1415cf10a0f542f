"""The one exception a user's mistake raises."""

from rig_common.text import printable


class RigError(Exception):
    """A mistake the user can mend.

    The message is one sentence that says what is wrong, where, which value was met and what is
    allowed. The command line and the nodes print it alone and exit with `EXIT_CODE`.
    """

    EXIT_CODE = 2

    def __str__(self) -> str:
        """Return the sentence; what it quotes from a file cannot break its line."""
        return printable(super().__str__())


def why(error: Exception) -> str:
    """Return why a file cannot be opened or written, without the number and the path."""
    text = (getattr(error, 'strerror', None) or str(error)).rstrip('.')
    return text[:1].lower() + text[1:]


class UnavailableError(RigError):
    """Something that this machine cannot do (no renderer, no library); the rest of a rig can run.

    `world.skip_unavailable: true` leaves out the sensors that raise it.
    """
