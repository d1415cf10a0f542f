"""The controls show what the chosen sensor is set to, in the rig file and since."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, get_args

import pytest

pytest.importorskip('viser', reason='the live page needs viser')

from sensor_rig.page.app import Page
from sensor_rig.page.controls import (
    FAULTS,
    Command,
    Controls,
    Setting,
)
from sim_sensors.timing.faults import FaultConfig

SETTINGS = {
    'imu': Setting((0.002, 0.003), 0.001, 0.012),
    'camera': Setting((0.025, 0.035), 0.004, 0.037),
}


@pytest.fixture
def page() -> Iterator[Page]:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = int(probe.getsockname()[1])
    page = Page(SETTINGS, port=port, speed=2.0)
    yield page
    page.close()


@pytest.fixture
def controls(page: Page) -> Controls:
    return page.controls


def shown(controls: Controls) -> tuple[float, float, str]:
    """Return what stands on the page: delay ms, clock ms, the sentence."""
    return controls._delay.value, controls._clock.value, controls._now.content


def test_the_first_sensor_is_shown_as_it_is(controls: Controls) -> None:
    assert shown(controls) == (2.5, 12.0, 'now: delay 2 to 3 ms and up to 1 ms more, clock +12 ms')


def test_another_sensor_brings_its_own_values(controls: Controls) -> None:
    controls._sensor.value = 'camera'
    assert shown(controls)[:2] == (30.0, 37.0)
    controls._sensor.value = 'imu'
    assert shown(controls)[:2] == (2.5, 12.0)


def test_what_was_set_is_shown_and_kept(controls: Controls) -> None:
    controls.note('camera', 'clock.offset_s', 0.05)
    controls.note('imu', 'jitter_s', 0.0)
    controls.note('imu', 'delay_range_s', [0.02, 0.02])
    controls.note('imu', 'rate_hz', 3.0)
    controls.note('unknown', 'jitter_s', 3.0)
    assert shown(controls) == (20.0, 12.0, 'now: delay 20 ms, clock +12 ms')
    controls._sensor.value = 'camera'
    assert shown(controls)[:2] == (30.0, 50.0)


def moved(slider: Any, value: float) -> None:
    """Move a slider as a person does: viser then names the browser."""
    slider.value = value
    for callback in slider._impl.update_cb:
        callback(SimpleNamespace(client=object(), target=slider))


def test_of_a_slider_that_is_dragged_the_last_value_counts(controls: Controls) -> None:
    assert list(controls.take(0.0)) == [], 'what the page shows itself is no command'
    for value in (20.0, 30.0):
        moved(controls._delay, value)
    assert list(controls.take(1.0)) == []
    moved(controls._delay, 40.0)
    moved(controls._clock, -5.0)
    assert list(controls.take(1.2)) == []
    assert list(controls.take(1.4)) == []
    assert list(controls.take(1.6)) == [
        Command('delay', 'imu', 0.04),
        Command('clock', 'imu', -0.005),
    ]
    assert list(controls.take(9.0)) == []


def test_a_refused_value_goes_back(controls: Controls) -> None:
    controls._delay.value = 300.0
    controls.show()
    assert shown(controls)[0] == 2.5


def test_a_slider_reaches_what_is_set(controls: Controls) -> None:
    controls.note('imu', 'clock.offset_s', -3.0)
    assert (controls._clock.min, controls._clock.value) == (-3000.0, -3000.0)
    controls.note('imu', 'clock.offset_s', 0.0)
    assert (controls._clock.min, controls._clock.max) == (-250.0, 250.0)


def test_a_reset_knows_what_was_changed(controls: Controls) -> None:
    assert list(controls.changed_from(SETTINGS)) == []
    controls.note('camera', 'clock.offset_s', 0.05)
    assert list(controls.changed_from(SETTINGS)) == ['camera']


def test_what_is_said_is_plain_text(page: Page) -> None:
    page.say('front_lidar: *now*')
    assert page._said.content == r'front\_lidar: \*now\*'


@pytest.mark.parametrize(
    ('key', 'value', 'words'),
    [
        ('clock.offset_s', 0.065, 'clock +65 ms'),
        ('delay_range_s', [0.02, 0.02], 'delay 20 ms'),
        ('delay_range_s', [0.02, 0.03], 'delay 20 to 30 ms'),
        ('jitter_s', 0.0, None),
        ('jitter_s', 0.001, 'jitter 1 ms'),
        ('noise', 0.5, 'noise 0.5'),
    ],
)
def test_changes_are_told_in_words(key: str, value: Any, words: str | None) -> None:
    assert Setting.change_in_words(key, value) == words


def test_every_fault_of_a_sensor_is_told_in_words() -> None:
    assert set(FAULTS) == set(get_args(FaultConfig.model_fields['kind'].annotation))
    assert len(set(FAULTS.values())) == len(FAULTS)
    assert FAULTS['clock_step'] == 'clock step +53 ms'
