"""The controls show what the chosen sensor is set to, in the rig file and since."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

pytest.importorskip('viser', reason='the live page needs viser')

from sensor_rig.page.app import Page
from sensor_rig.page.controls import REACH_MS, Controls, Setting

SETTINGS = {'imu': Setting((0.002, 0.003), 0.001, 0.012),
            'camera': Setting((0.025, 0.035), 0.004, 0.037),
            'scanner': Setting((0.5, 0.5), 0.0, -1000.0)}


@pytest.fixture
def controls() -> Iterator[Controls]:
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        port = int(probe.getsockname()[1])
    page = Page(SETTINGS, port=port, speed=2.0)
    yield page.controls
    page.close()


def shown(controls: Controls) -> tuple[float, float, str]:
    """Return what stands on the page: delay ms, clock ms, the sentence."""
    return controls._delay.value, controls._clock.value, controls._now.content


def test_the_first_sensor_is_shown_as_it_is(controls: Controls) -> None:
    assert shown(controls) == (
        2.5, 12.0, 'now: delay 2 to 3 ms and up to 1 ms more, clock +12 ms')


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


def test_sliders_reach_what_is_set(controls: Controls) -> None:
    controls._sensor.value = 'scanner'
    assert shown(controls)[:2] == (500.0, -1e6)
    assert (controls._delay.max, controls._clock.min) == (500.0, -1e6)
    controls._sensor.value = 'imu'
    assert (controls._delay.max, controls._clock.min) == (REACH_MS, -REACH_MS)
