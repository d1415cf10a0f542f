"""A headless browser for tests: Chromium where there is one, a skip that says so elsewhere."""

from __future__ import annotations

import io
import re
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from support.waiting import wait_until

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
# Software WebGL, and nothing that the browser would fetch for itself.
ARGUMENTS = (
    '--no-sandbox',
    '--use-angle=swiftshader',
    '--enable-unsafe-swiftshader',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
)
OWN = ('http://localhost', 'ws://localhost', 'data:', 'blob:')
PATIENCE_MS = 90_000
"""Wall time after which a page counts as broken."""


@contextmanager
def browser_page(width: int, height: int) -> Iterator[Any]:
    """Give a page of a browser; its `foreign_requests` are those that left this machine, its
    `complaints` the errors of its console.
    """
    api = pytest.importorskip('playwright.sync_api', reason='playwright is not installed')
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f'there is no browser here (one of {", ".join(BROWSERS)})')
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=list(ARGUMENTS))
        try:
            page = started.new_page(viewport={'width': width, 'height': height})
            page.set_default_timeout(PATIENCE_MS)
            page.foreign_requests, page.complaints = [], []
            page.on('pageerror', lambda error: page.complaints.append(str(error)))
            page.on(
                'console',
                lambda line: page.complaints.append(line.text) if line.type == 'error' else None,
            )
            page.on(
                'request',
                lambda request: (
                    None
                    if request.url.startswith(OWN)
                    else page.foreign_requests.append(request.url)
                ),
            )
            yield page
        finally:
            started.close()


def picture(page: Any, **clip: float) -> NDArray[np.int16]:
    """Return what a page shows within `clip` (x, y, width, height), [height, width, 3]."""
    shot = page.screenshot(clip=clip, timeout=PATIENCE_MS)
    return np.asarray(Image.open(io.BytesIO(shot)).convert('RGB'), np.int16)


def said(page: Any, pattern: str, patience_s: float = PATIENCE_MS / 1e3) -> str:
    """Wait until a page says something that fits `pattern`; return its first group."""

    def look() -> re.Match[str] | None:
        return re.search(pattern, page.inner_text('body'))

    return wait_until(look, patience_s, f'{pattern!r} on the page').group(1)


def press(page: Any, name: str) -> None:
    """Click a button by its whole name."""
    page.get_by_role('button', name=name, exact=True).click()


def free_port() -> int:
    """Return a port of this machine that nobody has."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return int(probe.getsockname()[1])
