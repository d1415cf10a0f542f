"""A token for the live page, checked before anything of it is served.

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
from urllib.parse import parse_qs, urlsplit

import websockets.asyncio.server
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from rig_common.errors import RigError
from sensor_rig.page.access import require_token

Check = Callable[[Any, Request], Response | None]
"""What `websockets` asks about a request: None lets it pass, a response answers it."""


class Gate:
    """Lets in who shows the token: once in the address (`?token=`), from then on by a cookie."""

    def __init__(self, token: str) -> None:
        require_token(token)
        self._token = token.encode()
        # Made from the token: a page left open finds a restarted rig again, and nobody reads the
        # token itself from the browser's cookies. A name of its own, because a browser shares
        # cookies between all ports of a machine.
        self._pass = hmac.new(self._token, b'live page', hashlib.sha256).hexdigest()
        self._cookie = f'sensor_rig_{self._pass[:8]}'

    def check(self, request: Request) -> Response | None:
        """Return None for a request that may pass, else its answer."""
        headers = request.headers
        if not _from_own_page(headers):
            return _answer(HTTPStatus.FORBIDDEN, 'Another page asks for this one.')
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
                'for a token; run without one, or with viser 1.1'
            )


def _from_own_page(headers: Headers) -> bool:
    """Whether no other page is behind a request: browsers say where a websocket comes from."""
    origin = headers.get('Origin')
    return origin is None or urlsplit(origin).netloc == headers.get('Host')


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
