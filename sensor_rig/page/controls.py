"""The page's controls: they begin with, and follow, what the chosen sensor is set to.

viser calls back in threads of its own. A control therefore only puts a `Command` into a queue;
the node takes it out in its own thread. Nothing else is shared.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sim_sensors.timing.faults import KINDS

FAULT_SECONDS = 5.0


FAULTS = {name: kind.in_words(**kind.example) for name, kind in KINDS.items()}
"""The faults of the page in words: 30 ms slower, the clock 53 ms ahead, ..."""


class Limits(NamedTuple):
    """What a slider offers; what is set already is offered, too."""

    low: float
    high: float
    step: float


DELAY_MS = Limits(0.0, 500.0, 0.1)
CLOCK_MS = Limits(-250.0, 250.0, 0.1)
SPEED = Limits(0.1, 10.0, 0.1)
MOST_STEPS = 100_000
SETTLED_S = 0.3
"""Wall time after which a slider counts as released."""
SLID = ('delay', 'clock', 'speed')
"""Actions of sliders: of many in a row, the last one counts."""


@dataclass(frozen=True)
class Command:
    """What a person asked for."""

    action: str
    """pause, resume, step, reset, speed, delay, clock or fault."""
    sensor: str = ''
    value: float = 0.0
    kind: str = ''
    arguments: Mapping[str, float] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """Say in words what is done once it is taken."""
        match self.action:
            case 'delay':
                return f'{self.sensor}: every sample is now {1e3 * self.value:.6g} ms late'
            case 'clock':
                return f'{self.sensor}: its clock is now {1e3 * self.value:+.6g} ms off'
            case 'speed':
                return f'time is to run at {self.value:g} x real time'
            case 'fault':
                return f'{self.sensor}: {FAULTS[self.kind]} for {self.value:g} s'
        return self.action


@dataclass(frozen=True)
class Setting:
    """What can be changed of a sensor, as it is now."""

    delay_range_s: tuple[float, float] = (0.0, 0.0)
    jitter_s: float = 0.0
    clock_offset_s: float = 0.0

    @property
    def sentence(self) -> str:
        """Say it in a line."""
        delay = self.change_in_words('delay_range_s', self.delay_range_s)
        jitter = f' and up to {1e3 * self.jitter_s:.4g} ms more' if self.jitter_s else ''
        return f'now: {delay}{jitter}, clock {1e3 * self.clock_offset_s:+.6g} ms'

    @staticmethod
    def change_in_words(key: str, value: Any) -> str | None:
        """Return what a changed parameter of a sensor means; None for a delay's second half."""
        match key:
            case 'delay_range_s':
                low, high = (f'{1e3 * float(each):.4g}' for each in value)
                return f'delay {low} ms' if low == high else f'delay {low} to {high} ms'
            case 'jitter_s':
                return f'jitter {1e3 * float(value):.4g} ms' if value else None
            case 'clock.offset_s':
                return f'clock {1e3 * float(value):+.6g} ms'
        return f'{key} {value}'

    def changed(self, key: str, value: Any) -> Setting:
        """Return it with a parameter of the sensor changed; the page shows three of them."""
        match key:
            case 'delay_range_s':
                return replace(self, delay_range_s=(float(value[0]), float(value[1])))
            case 'jitter_s':
                return replace(self, jitter_s=float(value))
            case 'clock.offset_s':
                return replace(self, clock_offset_s=float(value))
        return self


class Controls:
    """Time, and one sensor at a time."""

    def __init__(self, gui: Any, settings: Mapping[str, Setting], speed: float = 1.0) -> None:
        """Put them on a viser `gui`; `speed` is how fast time is meant to run."""
        self._settings = dict(settings)
        self._asked: queue.SimpleQueue[Command] = queue.SimpleQueue()
        self._held: dict[tuple[str, str], tuple[float, Command]] = {}
        """By action and sensor: when a slider was last moved, and to what."""
        with gui.add_folder('Time'):
            self._add_time(gui, speed or 1.0)
        with gui.add_folder('Change a sensor'):
            self._add_sensor(gui)

    def _add_time(self, gui: Any, speed: float) -> None:
        buttons = gui.add_button_group('', ('pause', 'resume', 'step', 'reset'))
        steps = gui.add_number(
            'steps',
            100,
            min=1,
            max=MOST_STEPS,
            step=1,
            hint='physics steps that "step" takes, then the rig pauses',
        )
        buttons.on_click(
            lambda event: self._asked.put(Command(event.target.value, value=steps.value))
        )
        pace = gui.add_slider('speed', *SPEED, 1.0, hint='simulated seconds per second')
        _show(pace, SPEED, speed)
        self._on_move(pace, lambda value: Command('speed', value=value))

    def _add_sensor(self, gui: Any) -> None:
        sensor = self._sensor = gui.add_dropdown('sensor', list(self._settings))
        self._now = gui.add_markdown('')
        self._delay = gui.add_slider('delay, ms', *DELAY_MS, 0.0)
        self._clock = gui.add_slider('clock, ms', *CLOCK_MS, 0.0)
        fault = gui.add_dropdown('fault', list(FAULTS.values()))
        inject = gui.add_button(f'inject for {FAULT_SECONDS:.0f} s', color='red')
        sensor.on_update(lambda _: self.show())
        self._on_move(self._delay, lambda ms: Command('delay', sensor.value, ms / 1e3))
        self._on_move(self._clock, lambda ms: Command('clock', sensor.value, ms / 1e3))
        inject.on_click(lambda _: self._inject(fault.value))
        self.show()

    def _on_move(self, slider: Any, command: Callable[[float], Command]) -> None:
        """Ask for what a person moves a slider to; `show` moves sliders, too, without a client."""

        def moved(event: Any) -> None:
            if event.client is not None:
                self._asked.put(command(float(slider.value)))

        slider.on_update(moved)

    def _inject(self, words: str) -> None:
        kind = next(kind for kind, said in FAULTS.items() if said == words)
        self._asked.put(
            Command('fault', self._sensor.value, FAULT_SECONDS, kind, KINDS[kind].example)
        )

    def take(self, now_s: float) -> Iterator[Command]:
        """Yield what was asked for, at wall time `now_s`: a slider's value once it rests."""
        while not self._asked.empty():
            command = self._asked.get()
            if command.action in SLID:
                self._held[command.action, command.sensor] = (now_s, command)
            else:
                yield command
        for key, (since_s, command) in list(self._held.items()):
            if now_s - since_s >= SETTLED_S:
                del self._held[key]
                yield command

    def note(self, sensor: str, key: str, value: object) -> None:
        """Take over a changed parameter of a sensor, from here or from another program."""
        before = self._settings.get(sensor)
        if before is None:
            return
        self._settings[sensor] = after = before.changed(key, value)
        if after != before and sensor == self._sensor.value:
            self.show()

    def changed_from(self, settings: Mapping[str, Setting]) -> Iterator[str]:
        """Yield the sensors that are not set to `settings`."""
        for name, setting in self._settings.items():
            if setting != settings[name]:
                yield name

    def show(self) -> None:
        """Show what the chosen sensor is set to; 0.037 s are 37 ms, not 37.00000000000001."""
        setting = self._settings.get(self._sensor.value, Setting())
        self._now.content = setting.sentence
        _show(self._delay, DELAY_MS, round(1e3 * sum(setting.delay_range_s) / 2.0, 6))
        _show(self._clock, CLOCK_MS, round(1e3 * setting.clock_offset_s, 6))


def _show(slider: Any, limits: Limits, value: float) -> None:
    slider.min, slider.max = min(limits.low, value), max(limits.high, value)
    slider.value = value
