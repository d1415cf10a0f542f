"""The page's panels: what happens on the left, what can be done on the right.

The left one is viser's main panel, because that comes first on a phone.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from html import escape
from typing import Any

from sensor_rig.page.access import DEFAULT_PORT, LOCAL
from sensor_rig.page.body import Body, contacts, joints
from sensor_rig.page.controls import Controls, Setting
from sensor_rig.page.gate import Gate
from sensor_rig.page.history import History
from sensor_rig.page.offsets import offsets, window
from sensor_rig.page.serving import start_server
from sensor_rig.page.timeline_lanes import timeline

SHADES = ('time', 'intensity')
"""What the points of a LiDAR can be coloured by."""
LEFT_WIDTH, RIGHT_WIDTH = 416, 300
"""Of the panels, px: the left one is less than a third of 1280."""
SET_WIDTH, SET_HEIGHT, SET_GAP = 544, 246, 10
"""Of the panel with the last bundle, px: it lies on the world, between the others at 1280."""
HINT = 'Change a sensor, or inject a fault, and see the sync engine follow.'
GREEN = (26, 156, 91)
PHONE_STYLE = """<style>
.rig-status { font: 13px system-ui, sans-serif; padding: 2px 8px 0;
  font-variant-numeric: tabular-nums; }
.rig-drawing { padding: 4px 6px 6px; }
@media (max-width: 36em) {
  /* viser's sheet is 20em wide and covers the middle of the view. Let it have the whole width,
     and the world what is above it, until the sheet is closed. */
  .mantine-Paper-root:has(.rig-timeline),
  .mantine-Paper-root:has(.rig-timeline) .mantine-ScrollArea-content > div {
    width: 100vw !important; }
  body:not(:has([style*="display: none"] .rig-timeline)) div:has(> div > canvas) {
    height: 40vh !important; }
}
</style>"""


class Page:
    """One viser server and what stands on it."""

    def __init__(
        self,
        settings: Mapping[str, Setting],
        *,
        host: str = LOCAL,
        port: int = DEFAULT_PORT,
        title: str = 'sensor_rig',
        token: str | None = None,
        may_move: bool = False,
        speed: float = 1.0,
    ) -> None:
        """Serve on `host`:`port`, on this machine only unless told otherwise.

        With a `token` the address must contain it. A page that `may_move` takes the next free
        port where its own is taken. `settings` is what the sensors are set to, by
        name, and `speed` how fast time is meant to run.
        """
        self._needs_token = token is not None
        with _quietly(), Gate(token, host).installed():
            self.server = start_server(host, port, title, may_move=may_move)
        gui = self.server.gui
        gui.set_panel_label(title)
        self._add_story(gui)
        self._add_panel(gui, settings, speed)
        self._add_set(gui)
        self._set_theme(dark=False)

    def _set_theme(self, *, dark: bool) -> None:
        self.server.gui.configure_theme(
            show_logo=False, show_share_button=False, brand_color=GREEN, dark_mode=dark
        )

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

    @property
    def follows(self) -> bool:
        """Whether the robot is to stay in the middle of the view."""
        return bool(self._follow.value)

    # ---- what is shown --------------------------------------------------------------------------

    def _add_story(self, gui: Any) -> None:
        """Put what happens on the main panel, the timeline first."""
        gui.add_html(PHONE_STYLE)
        self._status = gui.add_html(_status('Waiting for the world ...'))
        self._timeline, self._joints, self._contacts, self._offsets, self._window = (
            gui.add_html('') for _ in range(5)
        )
        with gui.add_folder('Where every message went') as folder:
            self._drops_folder = folder
            self._drops = gui.add_html('')
        folder.visible = False
        gui.main_panel.dock_left()
        gui.main_panel.set_width(LEFT_WIDTH)

    def _add_panel(self, gui: Any, settings: Mapping[str, Setting], speed: float) -> None:
        """Put what can be done on a panel of its own, then the streams."""
        panel = gui.add_panel()
        with panel.add_tab('Control'):
            self._said = gui.add_markdown(HINT)
            self.controls = Controls(gui, settings, speed)
            with gui.add_folder('View'):
                self._follow = gui.add_checkbox('follow robot', True)
                self._shade = gui.add_dropdown(
                    'points by', SHADES, hint='what the points of the LiDAR are coloured by'
                )
                dark = gui.add_checkbox('dark', False)
                dark.on_update(lambda event: self._set_theme(dark=event.target.value))
            self._streams = gui.add_html('')
        panel.dock_right()
        panel.set_width(RIGHT_WIDTH)

    def _add_set(self, gui: Any) -> None:
        """Put the last bundle below the robot; the panel appears with the first one."""
        self._set_panel = gui.add_panel(visible=False)
        with self._set_panel.add_tab('Last bundle'):
            self._set = gui.add_html('')
        self._set_panel.float(x=SET_GAP, y=-SET_GAP, width=SET_WIDTH, height=SET_HEIGHT)

    def say(self, text: str) -> None:
        """Answer a person, at the top of the controls."""
        self._said.content = _plain(text)

    def show_status(self, text: str, simulated_s: float) -> None:
        """Say in a line how things are."""
        self._status.content = _status(text, simulated_s)

    def show_history(self, history: History, reference: str, max_window_ms: float) -> None:
        """Draw the timeline, the offsets to `reference` and the window."""
        now_s, events = history.now_s, history.events()
        span_s = min(history.long_s, max(now_s, 10.0))
        _draw(self._timeline, timeline(history))
        if history.offsets:
            lines = {name: list(line) for name, line in history.offsets.items()}
            _draw(self._offsets, offsets(lines, reference, now_s, span_s, events))
        if history.windows:
            _draw(
                self._window, window(list(history.windows), now_s, span_s, max_window_ms, events)
            )

    def show_body(self, body: Body, history: History) -> None:
        """Draw joints and contacts, as far as the robot has any."""
        if body.joints:
            _draw(self._joints, joints(body.joints, history.now_s))
        if body.contacts:
            _draw(self._contacts, contacts(body, history.now_s, history.events()))

    def show_streams(self, rows: Sequence[Sequence[str]]) -> None:
        """Show a table of the streams: name, rate, latency, lost."""
        self._streams.content = table(('sensor', 'Hz', 'late, ms', 'lost'), rows)

    def show_drops(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Show where every message went."""
        self._drops.content = table(header, rows)
        self._drops_folder.visible = bool(rows)

    def show_set(self, drawing: str) -> None:
        """Show the members of the last bundle side by side."""
        if drawing:
            _draw(self._set, drawing)
            if not self._set_panel.visible:
                self._set_panel.visible = True


def _status(text: str, simulated_s: float = 0.0) -> str:
    """Return the line at the top; a program that looks on reads the time from its attribute."""
    return f'<div class="rig-status" data-simulated-s="{simulated_s:.3f}">{text}</div>'


def _draw(place: Any, drawing: str) -> None:
    place.content = f'<div class="rig-drawing">{drawing}</div>'


def _plain(text: str) -> str:
    """Return a text as Markdown that shows it as it is: names hold underscores."""
    return ''.join(f'\\{letter}' if letter in '\\`*_<>[]#|' else letter for letter in text)


@contextmanager
def _quietly() -> Iterator[None]:
    """Keep viser's own banner away from stdout, where a command's JSON may go."""
    with redirect_stdout(io.StringIO()):
        yield


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a small HTML table, numbers to the right."""

    def cells(tag: str, values: Sequence[str]) -> str:
        return ''.join(
            f'<{tag} style="padding:2px 4px;text-align:{"right" if index else "left"};'
            f'white-space:{"normal" if "_" in value else "nowrap"}">'  # names may break
            f'{escape(value).replace("_", "_<wbr>")}</{tag}>'
            for index, value in enumerate(values)
        )

    body = ''.join(f'<tr>{cells("td", row)}</tr>' for row in rows)
    return (
        '<div style="overflow-x:auto;padding:0 6px"><table style="width:100%;'
        'border-collapse:collapse;font:12px system-ui,sans-serif;font-variant-numeric:'
        f'tabular-nums"><tr style="opacity:0.65">{cells("th", header)}</tr>{body}'
        '</table></div>'
    )
