"""Where the live page may answer, and to whom: what can be told before anything is started."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from rig_common.errors import RigError

SHORTEST_TOKEN = 8
DEFAULT_PORT = 8080
LOCAL = '127.0.0.1'


@dataclass(frozen=True)
class PagePlace:
    """Where a live page is wanted, and who may see it."""

    port: int = DEFAULT_PORT
    """0 is any free one."""
    host: str = LOCAL
    token: str | None = None
    """None: anyone who reaches it sees it."""
    may_move: bool = True
    """Whether the next free port does as well where this one is taken."""

    def require(self) -> None:
        """Raise RigError where no page can be served so."""
        if self.token is not None:
            require_token(self.token)
        require_address(self.host, self.port, may_move=self.may_move)


def require_token(token: str) -> None:
    """Raise RigError for a token that is too short or cannot be printed."""
    if len(token) < SHORTEST_TOKEN or not token.isprintable():
        raise RigError(
            f'the token of the live page has {len(token)} characters; it needs at '
            f'least {SHORTEST_TOKEN}, all printable'
        )


def require_address(host: str, port: int, *, may_move: bool) -> None:
    """Raise RigError where nothing can answer on `host`:`port`.

    A port that is taken is allowed where the page `may_move` to another one.
    """
    import socket

    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise RigError(
            f'the live page cannot answer on {host!r}; it should be a name or an '
            f'address of this machine'
        ) from None
    for family, kind, protocol, _, address in places:
        with socket.socket(family, kind, protocol) as probe:
            # As asyncio does: a connection that has just ended does not keep the port.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(address)
            except OSError as error:
                if may_move and error.errno == errno.EADDRINUSE:
                    return
                raise RigError(_refusal(host, port, error)) from None


def taken(host: str, port: int) -> str:
    """Return the sentence about a port that another program has."""
    return (
        f'the live page cannot answer on port {port} of {host}: another program does; choose '
        f'another port, or 0 for any free one'
    )


def _refusal(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return taken(host, port)
    if error.errno == errno.EADDRNOTAVAIL:
        return f'the live page cannot answer on {host}: it is not an address of this machine'
    if error.errno == errno.EACCES:
        return (
            f'the live page may not answer on port {port} of {host}: this user has no right '
            f'to it; choose one from 1024 on'
        )
    return f'the live page cannot answer on port {port} of {host}: {error.strerror}'
