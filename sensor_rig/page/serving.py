"""Starts viser's server so that a failed start is an error instead of an endless wait.

viser binds its port in a thread of its own and waits for it for ever: should that thread fail,
neither an exception nor a signal would end the wait.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import viser

from rig_common.errors import RigError
from sensor_rig.page.access import require_address, taken

START_S = 30.0
"""Wall time after which a server that has not started has failed."""


def start_server(
    host: str, port: int, title: str, *, may_move: bool, patience_s: float = START_S
) -> viser.ViserServer:
    """Return a server on `host`:`port`, or on a port above it where it `may_move`."""
    require_address(host, port, may_move=may_move)
    server = _Start(host, port, title).wait(patience_s)
    if not may_move and port not in (0, server.get_port()):
        server.stop()
        raise RigError(taken(host, port))
    return server


class _Start:
    """One attempt, in a thread that ends with the process."""

    def __init__(self, host: str, port: int, title: str) -> None:
        self._where = f'port {port} of {host}'
        self._server: viser.ViserServer | None = None
        self._error: BaseException | None = None
        self._over = threading.Event()
        self._options: dict[str, Any] = {'host': host, 'port': port, 'label': title}

    def wait(self, patience_s: float) -> viser.ViserServer:
        """Start, and return the server or raise RigError."""
        before = threading.excepthook
        threading.excepthook = self._on_failure  # hears of viser's own thread, too
        try:
            threading.Thread(target=self._run, daemon=True).start()
            heard = self._over.wait(patience_s)
        finally:
            threading.excepthook = before
        if self._server is not None:
            return self._server
        why = f'{self._error}' if heard else f'no answer for {patience_s:g} s'
        raise RigError(f'the live page did not start on {self._where}: {why}')

    def _run(self) -> None:
        self._server = viser.ViserServer(**self._options, verbose=False)
        self._over.set()

    def _on_failure(self, failure: Any) -> None:
        with suppress(Exception):
            self._error = failure.exc_value
        self._over.set()
