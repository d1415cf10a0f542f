"""The page's controls: they begin with, and follow, what the chosen sensor is set to.

viser calls back in threads of its own. A control therefore only hands a `Command` on; whoever
takes commands is in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

FAULTS = ('dead', 'stuck', 'slow', 'clock_step', 'noisy', 'loss_burst', 'wrong')
FAULT_ARGUMENTS: dict[str, dict[str, float]] = {
    'slow': {'offset': 0.03}, 'clock_step': {'offset': 0.05}, 'noisy': {'scale': 10.0},
    'loss_burst': {'scale': 0.5}, 'wrong': {'scale': 1.1},
}
"""What a fault from the page does: 30 ms slower, the clock 50 ms ahead, ten times the noise ..."""
FAULT_SECONDS = 5.0
REACH_MS = 200.0
"""How far the sliders go; further where a sensor is set further."""
SPEEDS = (0.1, 4.0)


@dataclass(frozen=True)
class Command:
    """What a person asked for."""

    action: str
    """pause, resume, step, reset, speed, delay, clock or fault."""
    sensor: str = ''
    value: float = 0.0
    kind: str = ''
    arguments: Mapping[str, float] = field(default_factory=dict)


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
    """Time and one sensor at a time."""

    def __init__(self, gui: Any, settings: Mapping[str, Setting],
                 ask: Callable[[Command], None], speed: float = 1.0) -> None:
        """Put them on a viser `gui`; `ask` gets what a person wants."""
        self._settings = dict(settings)
        self._ask = ask
        with gui.add_folder('Time'):
            self._add_time(gui, speed)
        with gui.add_folder('Change a sensor'):
            self._add_sensor(gui)

    def _add_time(self, gui: Any, speed: float) -> None:
        buttons = gui.add_button_group('', ('pause', 'resume', 'step', 'reset'))
        steps = gui.add_number('steps', 100, min=1, max=100_000, step=1,
                               hint='physics steps that "step" takes, then the rig pauses')
        buttons.on_click(lambda event: self._ask(Command(
            event.target.value, value=float(steps.value))))
        low, high = SPEEDS
        slider = gui.add_slider('speed', low, high, 0.1, min(max(speed, low), high),
                                hint='simulated seconds per second')
        slider.on_update(lambda event: self._ask(Command('speed', value=event.target.value)))

    def _add_sensor(self, gui: Any) -> None:
        sensor = self._sensor = gui.add_dropdown('sensor', list(self._settings))
        self._now = gui.add_markdown('')
        delay = self._delay = gui.add_slider('delay, ms', 0.0, REACH_MS, 0.1, 0.0)
        set_delay = gui.add_button('set the delay')
        clock = self._clock = gui.add_slider('clock, ms', -REACH_MS, REACH_MS, 0.1, 0.0)
        set_clock = gui.add_button("set the clock's offset")
        fault = gui.add_dropdown('fault', FAULTS)
        inject = gui.add_button(f'inject for {FAULT_SECONDS:.0f} s', color='red')
        sensor.on_update(lambda _: self._load())
        set_delay.on_click(lambda _: self._ask(Command('delay', sensor.value, delay.value / 1e3)))
        set_clock.on_click(lambda _: self._ask(Command('clock', sensor.value, clock.value / 1e3)))
        inject.on_click(lambda _: self._ask(Command(
            'fault', sensor.value, FAULT_SECONDS, fault.value,
            FAULT_ARGUMENTS.get(fault.value, {}))))
        self._load()

    def note(self, sensor: str, key: str, value: Any) -> None:
        """Take it that a parameter of a sensor was changed, by whomever."""
        before = self._settings.get(sensor)
        if before is None:
            return
        self._settings[sensor] = after = before.changed(key, value)
        if after != before and sensor == self._sensor.value:
            self._load()

    def _load(self) -> None:
        """Show what the chosen sensor is set to."""
        setting = self._settings.get(self._sensor.value, Setting())
        self._now.content = setting.sentence
        _show(self._delay, 1e3 * sum(setting.delay_range_s) / 2.0)
        _show(self._clock, 1e3 * setting.clock_offset_s)


def _show(slider: Any, value: float) -> None:
    """Set a slider, and its ends where `value` lies beyond them."""
    value = round(value, 6)  # 0.037 s are 37 ms, not 37.00000000000001
    slider.max = max(REACH_MS, value)
    if slider.min < 0.0:
        slider.min = min(-REACH_MS, value)
    slider.value = value
