"""Every request to the live page is checked before anything is served: its origin, path, token.

viser serves its files and its websocket through one call of `websockets`' `serve`, which asks a
function about every request. viser has no setting for that function, so while it starts, its own
one is wrapped. Should a viser to come start otherwise, the page is refused, never served open.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from rig_common.errors import RigError
from rig_common.requirements import require
from sensor_rig.page.access import require_token

require('websockets')

import websockets.asyncio.server  # noqa: E402
from websockets.datastructures import Headers  # noqa: E402
from websockets.http11 import Request, Response  # noqa: E402

Check = Callable[[Any, Request], Response | None]
"""What `websockets` asks about a request: None lets it pass, a response answers it."""


LOOPBACK = ('localhost', '127.0.0.1', '::1')
MOST_PATH, LONGEST_NAME = 4096, 200
"""Characters of an address and of a part of it; no file of the page has longer ones."""


class Gate:
    """Lets in requests that no other page makes, and with a token only those that show it.

    The token is shown once in the address (`?token=`), from then on by a cookie.
    """

    def __init__(self, token: str | None, host: str = '') -> None:
        """Guard the page on `host`.

        Without a token, a page on this machine's own address answers to its local names only: a
        foreign name that was made to lead here would make any website the page's own.
        """
        self._local_only = token is None and host in LOOPBACK
        self._open = token is None
        if token is not None:
            require_token(token)
        self._token = (token or '').encode()
        # Made from the token: a page left open finds a restarted rig again, and the
        # token itself cannot be read from the browser's cookies. The name is its own, because a
        # browser shares cookies between all ports of a machine.
        self._pass = hmac.new(self._token, b'live page', hashlib.sha256).hexdigest()
        self._cookie = f'sensor_rig_{self._pass[:8]}'

    def check(self, request: Request) -> Response | None:
        """Return None for a request that may pass, else its answer."""
        headers = request.headers
        if not _is_path(request.path):
            return _answer(HTTPStatus.NOT_FOUND, 'There is no such page.')
        if not _from_own_page(headers) or (self._local_only and not _names_loopback(headers)):
            return _answer(HTTPStatus.FORBIDDEN, 'Another page asks for this one.')
        if self._open:
            return None
        if hmac.compare_digest(_cookie(headers, self._cookie).encode(), self._pass.encode()):
            return None
        shown = parse_qs(urlsplit(request.path).query).get('token', [''])[-1]
        if hmac.compare_digest(shown.encode(), self._token):
            # The token leaves the address, so that no screenshot shows it.
            return _answer(
                HTTPStatus.SEE_OTHER,
                '',
                {
                    'Location': './',
                    'Cache-Control': 'no-store',
                    'Set-Cookie': f'{self._cookie}={self._pass}; Path=/; HttpOnly; SameSite=Lax',
                },
            )
        return _answer(
            HTTPStatus.UNAUTHORIZED, 'This page needs its token: add ?token=... to the address.'
        )

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Guard the server that is started within; refuse it if it started past the gate."""
        serve = websockets.asyncio.server.serve
        guarded = []

        def serve_guarded(
            *args: Any, process_request: Check | None = None, **options: Any
        ) -> object:
            def process(connection: object, request: Request) -> Response | None:
                answer = self.check(request)
                if answer is None and process_request is not None:
                    answer = process_request(connection, request)
                return answer

            guarded.append(True)
            return serve(*args, process_request=process, **options)

        websockets.asyncio.server.serve = serve_guarded  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            websockets.asyncio.server.serve = serve  # type: ignore[misc]
        if not guarded:
            raise RigError(
                'the installed viser starts its server in a way that leaves no place '
                'for the checks of its requests; install viser 1.1'
            )


def _is_path(path: str) -> bool:
    """Whether a path is text that a file can be looked up by."""
    if len(path) > MOST_PATH:
        return False
    try:
        shown = unquote(path.partition('?')[0], errors='strict')
    except UnicodeDecodeError:
        return False
    return shown.isprintable() and max(map(len, shown.split('/'))) < LONGEST_NAME


def _names_loopback(headers: Headers) -> bool:
    host = _host(f'//{headers.get("Host", "")}')
    return host.rpartition(':')[0].strip('[]') in LOOPBACK or host.strip('[]') in LOOPBACK


def _from_own_page(headers: Headers) -> bool:
    """Whether no other page is behind a request: browsers say where a websocket comes from."""
    origin = headers.get('Origin')
    return origin is None or _host(origin) == headers.get('Host')


def _host(address: str) -> str:
    """Return the host and port of an address; '' where it is none."""
    try:
        return urlsplit(address).netloc
    except ValueError:
        return ''


def _cookie(headers: Headers, name: str) -> str:
    jar: SimpleCookie = SimpleCookie()
    for line in headers.get_all('Cookie'):
        try:
            jar.load(line)
        except CookieError:
            return ''
    return jar[name].value if name in jar else ''


def _answer(status: HTTPStatus, text: str, more: dict[str, str] | None = None) -> Response:
    body = text.encode()
    return Response(
        status,
        status.phrase,
        Headers(
            {
                'Content-Type': 'text/plain; charset=utf-8',
                'Content-Length': str(len(body)),
                'Connection': 'close',
                **(more or {}),
            }
        ),
        body,
    )
