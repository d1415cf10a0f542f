"""The page's panels: timeline and offsets on the left, controls and streams on the right.

viser calls back in threads of its own. A control therefore only puts a `Command` into `commands`;
the node takes it out in its own thread. Nothing else is shared.
"""

from __future__ import annotations

import io
import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensor_rig.page import svg
from sensor_rig.page.access import DEFAULT_PORT, LOCAL
from sensor_rig.page.controls import Command, Controls, Setting
from sensor_rig.page.gate import Gate
from sensor_rig.page.history import History
from sensor_rig.page.serving import start_server

SHADES = ('time', 'intensity')
"""What the points of a LiDAR can be coloured by."""
PICTURE_WIDTH = 320
LEFT_WIDTH, RIGHT_WIDTH = 560, 320


class Page:
    """One viser server and what stands on it."""

    def __init__(self, settings: Mapping[str, Setting], *, host: str = LOCAL,
                 port: int = DEFAULT_PORT, title: str = 'sensor_rig', token: str | None = None,
                 may_move: bool = False, speed: float = 1.0) -> None:
        """Serve on `host`:`port`, on this machine only unless told otherwise.

        With a `token` only to those who show it. Where the port is taken, and the page
        `may_move`, it takes the next free one. `settings` is what the sensors are set to, by
        name, and `speed` how fast time is meant to run.
        """
        self._needs_token = token is not None
        with _quietly(), nullcontext() if token is None else Gate(token).installed():
            self.server = start_server(host, port, title, may_move=may_move)
        self.commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(26, 156, 91))
        gui.set_panel_label(title)
        self._status = gui.add_markdown('Waiting for the world ...')
        self.controls = Controls(gui, settings, self.commands.put, speed)
        self._streams = gui.add_html('')
        with gui.add_folder('Camera') as folder:
            self._camera_folder = folder
            self._picture = gui.add_image(np.zeros((2, 2, 3), np.uint8), format='jpeg')
        folder.visible = False
        self._add_story(gui)
        self.server.initial_camera.position = (-4.5, -6.5, 5.5)
        self.server.initial_camera.look_at = (0.8, 0.5, 0.0)

    @property
    def address(self) -> str:
        """Where the page is; a token is not spelled out."""
        host = self.server.get_host()
        token = '/?token=...' if self._needs_token else ''
        return f'http://{"localhost" if host == LOCAL else host}:{self.server.get_port()}{token}'

    @property
    def is_watched(self) -> bool:
        """Whether a browser has it open."""
        return bool(self.server.get_clients())

    def close(self) -> None:
        """Stop serving."""
        with _quietly():
            self.server.stop()

    # ---- the view -----------------------------------------------------------------------------

    @property
    def shade(self) -> str:
        """What points are coloured by: one of `SHADES`."""
        return str(self._shade.value)

    def follow(self, position_m: NDArray[np.float64]) -> None:
        """Keep the robot at `position_m` in the middle of every view, if that is wanted."""
        if not self._follow.value:
            return
        for client in self.server.get_clients().values():
            camera = client.camera
            seen_from = camera.position - camera.look_at  # how the person has turned the view
            camera.position = position_m + seen_from
            camera.look_at = position_m

    # ---- what is shown --------------------------------------------------------------------------

    def _add_story(self, gui: Any) -> None:
        panel = gui.add_panel()
        with panel.add_tab('Timeline'):
            self._timeline = gui.add_html('')
            self._offsets = gui.add_html('')
            self._window = gui.add_html('')
        with panel.add_tab('Drops'):
            self._drops = gui.add_html('')
        with panel.add_tab('View'):
            self._shade = gui.add_dropdown('points by', SHADES,
                                           hint='what the points of the LiDAR are coloured by')
            self._follow = gui.add_checkbox('follow the robot', False)
        panel.dock_left()
        panel.set_width(LEFT_WIDTH)
        gui.main_panel.dock_right()
        gui.main_panel.set_width(RIGHT_WIDTH)

    def show_status(self, text: str) -> None:
        """Say in a line how things are."""
        if self._status.content != text:
            self._status.content = text

    def show_history(self, history: History, max_window_ms: float) -> None:
        """Draw the timeline, the offsets and the window."""
        now_s = history.now_ns / 1e9
        span_s = min(history.long_s, max(now_s, 10.0))
        self._timeline.content = svg.timeline(history)
        if history.offsets:
            self._offsets.content = svg.offsets(
                {name: list(line) for name, line in history.offsets.items()}, now_s, span_s)
        if history.windows:
            self._window.content = svg.window(list(history.windows), now_s, span_s,
                                              max_window_ms)

    def show_streams(self, rows: Sequence[Sequence[str]]) -> None:
        """Show a table of the streams: name, rate, latency, lost."""
        self._streams.content = table(('sensor', 'Hz', 'latency ms', 'lost'), rows)

    def show_drops(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show where every message went."""
        self._drops.content = table(header, rows, upright=True)

    def show_picture(self, pixels: NDArray[np.uint8]) -> None:
        """Show a camera's picture [h, w, 3] or [h, w]."""
        step = max(1, pixels.shape[1] // PICTURE_WIDTH)
        small = np.ascontiguousarray(pixels[::step, ::step])
        self._picture.image = small if small.ndim == 3 else np.repeat(small[..., None], 3, -1)
        self._camera_folder.visible = True


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep viser's own banner away from stdout, where a command's JSON may go."""
    with redirect_stdout(io.StringIO()):
        yield


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, upright: bool = False) -> str:
    """Return a small HTML table, numbers to the right; `upright` headers keep columns narrow."""
    turn = 'writing-mode:vertical-rl;transform:rotate(180deg);display:inline-block'

    def cells(tag: str, values: Sequence[str]) -> str:
        found = []
        for index, value in enumerate(values):
            text = _escaped(value)
            if upright and tag == 'th' and index:
                text = f'<span style="{turn}">{text}</span>'
            found.append(f'<{tag} style="padding:2px 6px;vertical-align:bottom;'
                         f'text-align:{"right" if index else "left"}">{text}</{tag}>')
        return ''.join(found)
    body = ''.join(f'<tr>{cells("td", row)}</tr>' for row in rows)
    return ('<div style="overflow-x:auto;padding:0 6px"><table style="width:100%;'
            'border-collapse:collapse;font:12px system-ui,sans-serif;font-variant-numeric:'
            f'tabular-nums"><tr style="opacity:0.65">{cells("th", header)}</tr>{body}'
            '</table></div>')


def _escaped(text: str) -> str:
    return text.replace('&', '&amp;').replace('<', '&lt;')
