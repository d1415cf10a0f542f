"""The page's panels: timeline and offsets on the left, controls and streams on the right.

viser calls back in threads of its own. A control therefore only puts a `Command` into `commands`;
the node takes it out in its own thread. Nothing else is shared.
"""

from __future__ import annotations

import io
import queue
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sensor_rig.page import svg
from sensor_rig.page.access import DEFAULT_PORT, LOCAL
from sensor_rig.page.gate import Gate
from sensor_rig.page.history import History
from sensor_rig.page.serving import start_server

FAULTS = ('dead', 'stuck', 'slow', 'clock_step', 'noisy', 'loss_burst', 'wrong')
FAULT_ARGUMENTS: dict[str, dict[str, float]] = {
    'slow': {'offset': 0.03}, 'clock_step': {'offset': 0.05}, 'noisy': {'scale': 10.0},
    'loss_burst': {'scale': 0.5}, 'wrong': {'scale': 1.1},
}
"""What a fault from the page does: 30 ms slower, the clock 50 ms ahead, ten times the noise ..."""
FAULT_SECONDS = 5.0
SHADES = ('time', 'intensity')
"""What the points of a LiDAR can be coloured by."""
PICTURE_WIDTH = 320
LEFT_WIDTH, RIGHT_WIDTH = 560, 320


@dataclass(frozen=True)
class Command:
    """What a person asked for."""

    action: str
    """pause, resume, step, reset, speed, delay, clock or fault."""
    sensor: str = ''
    value: float = 0.0
    kind: str = ''
    arguments: Mapping[str, float] = field(default_factory=dict)


class Page:
    """One viser server and what stands on it."""

    def __init__(self, sensors: Sequence[str], *, host: str = LOCAL, port: int = DEFAULT_PORT,
                 title: str = 'sensor_rig', token: str | None = None,
                 may_move: bool = False) -> None:
        """Serve on `host`:`port`, on this machine only unless told otherwise.

        With a `token` only to those who show it. Where the port is taken, and the page
        `may_move`, it takes the next free one.
        """
        self._needs_token = token is not None
        with _quietly(), nullcontext() if token is None else Gate(token).installed():
            self.server = start_server(host, port, title, may_move=may_move)
        self.commands: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._sensors = list(sensors)
        gui = self.server.gui
        gui.configure_theme(show_logo=False, show_share_button=False, brand_color=(26, 156, 91))
        gui.set_panel_label(title)
        self._status = gui.add_markdown('Waiting for the world ...')
        self._add_controls(gui)
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

    # ---- controls -----------------------------------------------------------------------------

    def _add_controls(self, gui: Any) -> None:
        with gui.add_folder('Time'):
            buttons = gui.add_button_group('', ('pause', 'resume', 'step', 'reset'))
            steps = gui.add_number('steps', 100, min=1, max=100_000, step=1,
                                   hint='physics steps that "step" takes, then the rig pauses')
            buttons.on_click(lambda event: self._ask(Command(
                event.target.value, value=float(steps.value))))
            speed = gui.add_slider('speed', 0.1, 4.0, 0.1, 1.0,
                                   hint='simulated seconds per second')
            speed.on_update(lambda event: self._ask(Command('speed', value=event.target.value)))
        with gui.add_folder('Change a sensor'):
            sensor = gui.add_dropdown('sensor', self._sensors)
            delay = gui.add_slider('delay, ms', 0.0, 200.0, 1.0, 20.0)
            set_delay = gui.add_button('set the delay')
            clock = gui.add_slider('clock, ms', -200.0, 200.0, 1.0, 0.0)
            set_clock = gui.add_button("set the clock's offset")
            fault = gui.add_dropdown('fault', FAULTS)
            inject = gui.add_button(f'inject for {FAULT_SECONDS:.0f} s', color='red')
            set_delay.on_click(lambda _: self._ask(Command(
                'delay', sensor.value, delay.value / 1e3)))
            set_clock.on_click(lambda _: self._ask(Command(
                'clock', sensor.value, clock.value / 1e3)))
            inject.on_click(lambda _: self._ask(Command(
                'fault', sensor.value, FAULT_SECONDS, fault.value,
                FAULT_ARGUMENTS.get(fault.value, {}))))

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

    def _ask(self, command: Command) -> None:
        self.commands.put(command)

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
        self._drops.content = table(header, rows)

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


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a small HTML table, numbers to the right."""
    def cells(tag: str, values: Sequence[str]) -> str:
        return ''.join(
            f'<{tag} style="padding:2px 6px;text-align:{"right" if index else "left"}">'
            f'{_escaped(value)}</{tag}>' for index, value in enumerate(values))
    body = ''.join(f'<tr>{cells("td", row)}</tr>' for row in rows)
    return ('<table style="width:100%;border-collapse:collapse;font:12px system-ui,sans-serif;'
            f'font-variant-numeric:tabular-nums"><tr style="opacity:0.65">{cells("th", header)}'
            f'</tr>{body}</table>')


def _escaped(text: str) -> str:
    return text.replace('&', '&amp;').replace('<', '&lt;')
