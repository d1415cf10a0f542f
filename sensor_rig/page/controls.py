"""The page's controls: they begin with, and follow, what the chosen sensor is set to.

viser calls back in threads of its own. A control therefore only hands a `Command` on; whoever
takes commands is in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from sim_sensors.timing.faults import KINDS

FAULT_SECONDS = 5.0


FAULTS = {name: kind.in_words(**kind.example) for name, kind in KINDS.items()}
"""The faults of the page in words: 30 ms slower, the clock 53 ms ahead, ..."""


class Limit(NamedTuple):
    """What a control takes."""

    name: str
    low: float
    high: float
    unit: str

    def refusal(self, value: float, now: float | None = None) -> str | None:
        """Return why `value` is not taken; None where it is. What is set `now` always is."""
        low, high = (
            (self.low, self.high) if now is None else (min(self.low, now), max(self.high, now))
        )
        if low <= value <= high:
            return None
        unit = f' {self.unit}' if self.unit else ''
        return (
            f'{self.name} {value:.10g}{unit} is refused: it goes from {low:.10g} to '
            f'{high:.10g}{unit}'
        )


DELAY = Limit('A delay of', 0.0, 2000.0, 'ms')
CLOCK = Limit('A clock offset of', -10_000.0, 10_000.0, 'ms')
STEPS = Limit('A step count of', 1.0, 100_000.0, '')
SPEED = Limit('A speed of', 0.1, 10.0, 'x real time')


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
        low, high = (f'{1e3 * each:.4g}' for each in self.delay_range_s)
        delay = f'{low} ms' if low == high else f'{low} to {high} ms'
        jitter = f' and up to {1e3 * self.jitter_s:.4g} ms more' if self.jitter_s else ''
        return f'now: delay {delay}{jitter}, clock {1e3 * self.clock_offset_s:+.6g} ms'

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
        """Return it with a parameter of the sensor (`clock.offset_s`) changed; others are none
        of ours.
        """
        match key:
            case 'delay_range_s':
                return replace(self, delay_range_s=(float(value[0]), float(value[1])))
            case 'jitter_s':
                return replace(self, jitter_s=float(value))
            case 'clock.offset_s':
                return replace(self, clock_offset_s=float(value))
        return self


class Controls:
    """Time and one sensor at a time. What a person asks is checked here, and refused in words."""

    def __init__(
        self,
        gui: Any,
        settings: Mapping[str, Setting],
        ask: Callable[[Command], None],
        say: Callable[[str], None],
        speed: float = 1.0,
    ) -> None:
        """Put them on a viser `gui`; `ask` gets what a person wants, `say` why not."""
        self._settings = dict(settings)
        self._ask, self._say = ask, say
        with gui.add_folder('Time'):
            self._add_time(gui, speed)
        with gui.add_folder('Change a sensor'):
            self._add_sensor(gui)

    def _add_time(self, gui: Any, speed: float) -> None:
        buttons = gui.add_button_group('', ('pause', 'resume', 'step', 'reset'))
        # No limits on the numbers themselves: a browser would clip what lies outside in silence.
        steps = gui.add_number(
            'steps', 100, step=1, hint='physics steps that "step" takes, then the rig pauses'
        )
        buttons.on_click(lambda event: self._press(event.target.value, steps.value))
        pace = gui.add_number('speed', speed or 1.0, step=0.1, hint='simulated seconds per second')
        gui.add_button('set the speed').on_click(
            lambda _: self._try(SPEED, pace.value, Command('speed', value=float(pace.value)))
        )

    def _press(self, action: str, steps: float) -> None:
        command = Command(action, value=float(steps))
        if action == 'step':
            self._try(STEPS, steps, command)
        else:
            self._ask(command)

    def _try(self, limit: Limit, value: float, command: Command, now: float | None = None) -> None:
        """Ask for `command` where `value` is within its limit, else say the limit."""
        refusal = limit.refusal(value, now)
        if refusal is None:
            self._ask(command)
        else:
            self._say(refusal)

    def _add_sensor(self, gui: Any) -> None:
        sensor = self._sensor = gui.add_dropdown('sensor', list(self._settings))
        self._now = gui.add_markdown('')
        delay = self._delay = gui.add_number('delay, ms', 0.0, step=0.1)
        set_delay = gui.add_button('set the delay')
        clock = self._clock = gui.add_number('clock, ms', 0.0, step=0.1)
        set_clock = gui.add_button("set the clock's offset")
        fault = gui.add_dropdown('fault', list(FAULTS.values()))
        inject = gui.add_button(f'inject for {FAULT_SECONDS:.0f} s', color='red')
        sensor.on_update(lambda _: self._load())
        set_delay.on_click(
            lambda _: self._try(
                DELAY,
                delay.value,
                Command('delay', sensor.value, delay.value / 1e3),
                1e3 * self._setting.delay_range_s[1],
            )
        )
        set_clock.on_click(
            lambda _: self._try(
                CLOCK,
                clock.value,
                Command('clock', sensor.value, clock.value / 1e3),
                1e3 * self._setting.clock_offset_s,
            )
        )
        inject.on_click(lambda _: self._inject(fault.value))
        self._load()

    @property
    def _setting(self) -> Setting:
        return self._settings.get(self._sensor.value, Setting())

    def _inject(self, words: str) -> None:
        kind = next(kind for kind, said in FAULTS.items() if said == words)
        self._ask(Command('fault', self._sensor.value, FAULT_SECONDS, kind, KINDS[kind].example))

    def note(self, sensor: str, key: str, value: object) -> None:
        """Take it that a parameter of a sensor was changed, by whomever."""
        before = self._settings.get(sensor)
        if before is None:
            return
        self._settings[sensor] = after = before.changed(key, value)
        if after != before and sensor == self._sensor.value:
            self._load()

    def _load(self) -> None:
        """Show what the chosen sensor is set to; 0.037 s are 37 ms, not 37.00000000000001."""
        setting = self._setting
        self._now.content = setting.sentence
        self._delay.value = round(1e3 * sum(setting.delay_range_s) / 2.0, 6)
        self._clock.value = round(1e3 * setting.clock_offset_s, 6)
