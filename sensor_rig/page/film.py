"""Films the live page in a browser while a clock steps: what is seen is the page itself."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

from rig_common.errors import RigError, UnavailableError, why

FORMATS = ('.webp', '.gif')
BROWSERS = ('chromium', 'chromium-browser', 'google-chrome')
# Software WebGL, because a machine that makes pictures often has no other.
ARGUMENTS = ('--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader')
SCREEN: Any = {'width': 760, 'height': 690}
SHOWN = {'x': 0, 'y': 86, 'width': 416, 'height': 604}
"""Of the screen: the drawings, without the line that says "paused", px."""
SCALE = 1.5
"""Pixels of the film for one of the screen: its text stays sharp."""
FRAME_S = 0.2
"""Simulated time between two frames, by steps: a machine that is slow to draw films the same."""
PATIENCE_MS = 120_000
LAST_FRAME_S = 2.5


class Frame(NamedTuple):
    """One picture of the page and the simulated time that it shows."""

    time_s: float
    picture: Image.Image


def require_browser() -> str:
    """Return the browser of this machine; raise where the page cannot be filmed."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        raise UnavailableError('filming the page needs playwright; "pip install sensor_rig[film]" '
                               'brings it') from None
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise UnavailableError(f'filming the page needs a browser, one of {", ".join(BROWSERS)}; '
                               f'on Debian, "apt install chromium" brings it')
    return browser


def film_clock_step(rig_file: str, sensor: str, step_ms: float, *, lead_s: float, seconds: float,
                    timestep_s: float, advance: Callable[[float], None] = lambda _: None
                    ) -> list[Frame]:
    """Run a rig with its page; set a sensor's clock ahead after `lead_s`, film `seconds`.

    All times are simulated ones. A quarter of the film is before the step.
    """
    browser = require_browser()
    with _demo(rig_file) as address, _page(browser, address) as page:
        _wait_until(page, address, lead_s, advance)
        for button in page.locator('.mantine-Notification-closeButton').all():
            button.click()  # "Software WebGL rendering detected"
        _press(page, 'pause')
        page.get_by_label('steps', exact=True).first.fill(str(max(round(FRAME_S / timestep_s), 1)))
        page.keyboard.press('Enter')
        frames = [_frame(page)]
        start_s, is_set = frames[0].time_s, False
        while frames[-1].time_s < start_s + seconds:
            if not is_set and frames[-1].time_s > start_s + seconds / 4:
                _step_clock(page, sensor, step_ms)
                is_set = True
            _go_on(page, frames[-1].time_s)
            frames.append(_frame(page))
            advance(frames[-1].time_s - frames[-2].time_s)
    return frames


def save(frames: list[Frame], out: Path) -> None:
    """Write the film, as fast as simulated time went; the suffix of `out` says the format."""
    shown = [frame for frame, later in zip(frames, [*frames[1:], None], strict=True)
             if later is None or later.time_s > frame.time_s]
    lasts_ms = [round(1e3 * (after.time_s - frame.time_s)) for frame, after in pairwise(shown)]
    pictures = [frame.picture for frame in shown]
    if out.suffix.lower() == '.gif':
        pictures = [each.quantize(128, dither=Image.Dither.NONE) for each in pictures]
    options: dict[str, Any] = {'quality': 70, 'method': 6} if out.suffix.lower() == '.webp' else {}
    try:
        pictures[0].save(out, save_all=True, append_images=pictures[1:], loop=0,
                         duration=[*lasts_ms, round(1e3 * LAST_FRAME_S)], **options)
    except OSError as error:
        raise RigError(f'{out} cannot be written: {why(error)}') from None


@contextmanager
def _demo(rig_file: str) -> Iterator[str]:
    """Run a rig in a process of its own; give the address of its page."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, '-m', 'sensor_rig', 'demo', '--rig', rig_file, '--page-port',
               str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True, env=os.environ | {'PYTHONUNBUFFERED': '1'})
    assert process.stderr is not None
    try:
        said = []
        for line in process.stderr:  # ends with the process, should it fail
            said.append(line)
            if str(port) in line:
                yield f'http://localhost:{port}'
                return
        raise RigError(f'the rig ended before its page was there: {"".join(said[-3:]).strip()}')
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@contextmanager
def _page(browser: str, address: str) -> Iterator[Any]:
    from playwright.sync_api import Error, sync_playwright
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=list(ARGUMENTS))
        try:
            page: Any = started.new_page(viewport=SCREEN, device_scale_factor=SCALE)
            page.set_default_timeout(PATIENCE_MS)
            _open(page, address)
            yield page
        except Error as error:
            raise RigError(f'the browser did not do what the film needs: '
                           f'{str(error).splitlines()[0]}') from None
        finally:
            started.close()


def _time_s(page: Any) -> float:
    """Return the simulated time that the page shows."""
    shown = page.locator('.rig-status').first.get_attribute('data-simulated-s')
    return float(shown or 0.0)


def _wait_until(page: Any, address: str, time_s: float, advance: Callable[[float], None]) -> None:
    """Look now and then only: a page that nobody looks at costs the rig nothing."""
    now_s = _time_s(page)
    while now_s < time_s:
        page.goto('about:blank')
        page.wait_for_timeout(1e3 * max(time_s - now_s, 2.0))
        before_s = now_s
        _open(page, address)
        now_s = _time_s(page)
        advance(now_s - before_s)


def _open(page: Any, address: str) -> None:
    page.goto(address, wait_until='domcontentloaded')
    page.wait_for_selector('.rig-timeline')


def _press(page: Any, button: str) -> None:
    page.get_by_role('button', name=button, exact=True).click()


def _go_on(page: Any, since_s: float) -> None:
    """Take the steps of one frame and wait until the page shows their end."""
    _press(page, 'step')
    page.wait_for_function("""until => until <= parseFloat(
        document.querySelector('.rig-status').dataset.simulatedS)""", arg=since_s + 0.9 * FRAME_S)
    page.wait_for_timeout(150)  # the last messages of these steps


def _frame(page: Any) -> Frame:
    shot = page.screenshot(clip=SHOWN, timeout=PATIENCE_MS)
    return Frame(_time_s(page), Image.open(io.BytesIO(shot)).convert('RGB'))


def _step_clock(page: Any, sensor: str, step_ms: float) -> None:
    """Do what a person does: choose the sensor, type a clock offset, press the button."""
    page.get_by_label('sensor', exact=True).first.click()
    page.get_by_role('option', name=sensor, exact=True).click()
    page.wait_for_timeout(300)
    clock = page.get_by_label('clock, ms', exact=True).first
    clock.fill(f'{float(clock.input_value()) + step_ms:g}')
    page.keyboard.press('Enter')
    _press(page, "set the clock's offset")
