"""A headless browser for tests: Chromium where there is one, a skip that says so elsewhere."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
# Software WebGL, and nothing that the browser would fetch for itself.
ARGUMENTS = ('--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
             '--disable-quic', '--no-first-run', '--disable-background-networking',
             '--disable-component-update', '--disable-sync')
OWN = ('http://localhost', 'ws://localhost', 'data:', 'blob:')
PATIENCE_MS = 90_000
"""Wall time after which a page counts as broken."""


@contextmanager
def browser_page(width: int, height: int) -> Iterator[Any]:
    """Give a page of a browser; its `foreign_requests` are those that left this machine."""
    api = pytest.importorskip('playwright.sync_api', reason='playwright is not installed')
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f'there is no browser here (one of {", ".join(BROWSERS)})')
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=list(ARGUMENTS))
        try:
            page = started.new_page(viewport={'width': width, 'height': height})
            page.set_default_timeout(PATIENCE_MS)
            page.foreign_requests = []
            page.on('request', lambda request: None if request.url.startswith(OWN)
                    else page.foreign_requests.append(request.url))
            yield page
        finally:
            started.close()


def picture(page: Any, **clip: float) -> NDArray[np.int16]:
    """Return what a page shows within `clip` (x, y, width, height), [height, width, 3]."""
    shot = page.screenshot(clip=clip, timeout=PATIENCE_MS)
    return np.asarray(Image.open(io.BytesIO(shot)).convert('RGB'), np.int16)
