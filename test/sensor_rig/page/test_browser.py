"""The live page in a real browser: it loads from this machine alone, it moves, its buttons act."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from support.browser import browser_page, free_port, picture, press, said
from support.places import SMALL_RIG as RIG
from support.processes import Processes
from support.start import START_NS
from support.waiting import wait_until

pytest.importorskip('rclpy', reason='the live page listens to ROS')
pytest.importorskip('viser', reason='the live page needs viser')

from rig_common.msgs import read_time_reference
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.times import NS_PER_S
from sensor_rig.rigfile import load_rig
from sensor_rig.running.ros.monitor import Monitor

SCENE = {'x': 600, 'y': 100, 'width': 250, 'height': 280}
"""Where nothing but the world is seen, px."""
PATIENCE_S = 90.0


class Watch(Monitor):
    """Remembers when each sensor last captured something that it sent."""

    def __init__(self) -> None:
        super().__init__(load_rig(RIG), name='watch')
        self.captures_ns: dict[str, int] = {}

    def _on_time(self, sensor: str, buf: bytes) -> None:
        super()._on_time(sensor, buf)
        self.captures_ns[sensor] = read_time_reference(buf)[0]


@contextmanager
def watching() -> Iterator[tuple[Watch, Spinner]]:
    with ros_context([]) as context:
        spinner = Spinner(context)
        monitor = Watch()
        spinner.add(monitor)
        try:
            yield monitor, spinner
        finally:
            spinner.close()
            close_node(monitor)


def assert_scene_moves(page: Any) -> None:
    """The picture of the world has many colours, and changes: the rover drives."""
    wait_until(
        lambda: len(np.unique(picture(page, **SCENE).reshape(-1, 3), axis=0)) > 20,
        PATIENCE_S,
        'a picture of the world',
    )
    before = picture(page, **SCENE)
    wait_until(
        lambda: (np.abs(picture(page, **SCENE) - before).max(-1) > 30).sum() > 20,
        PATIENCE_S,
        'a moving world',
    )


def assert_time_stops(page: Any, monitor: Watch, spinner: Spinner) -> None:
    """After pause time stands still: a step begins where the pause was, and ends 0.1 s later."""
    press(page, 'pause')
    paused_s = said(page, r'paused at ([\d.]+) s')
    said(page, r's simulated, (paused)')
    press(page, 'step')
    assert said(page, r'takes 100 steps from ([\d.]+) s') == paused_s
    end_ns = round((float(paused_s) + 0.1) * NS_PER_S)

    def ended() -> bool:
        spinner.turn(0.05)
        return monitor.now_ns >= end_ns

    wait_until(ended, PATIENCE_S, 'the end of 100 steps')
    wait_until(
        lambda: abs(float(said(page, r'([\d.]+) s simulated')) - end_ns / NS_PER_S) < 0.06,
        PATIENCE_S,
        'the end on the page',
    )
    said(page, r's simulated, (paused)')
    press(page, 'resume')
    assert float(said(page, r'goes on from ([\d.]+) s')) == pytest.approx(end_ns / NS_PER_S)


def assert_clock_changes(page: Any, monitor: Watch, spinner: Spinner) -> None:
    """The control shows the configured clock, and the emulator stamps with what is set on it."""
    said(page, r'(now: delay 2 to 3 ms, clock \+12 ms)')
    box = page.locator('input[type=text]').and_(page.locator('[value="12"]')).first
    box.fill('77')
    page.keyboard.press('Enter')
    said(page, r'(imu: its clock is now \+77 ms off)')
    said(page, r'(now: delay 2 to 3 ms, clock \+77 ms)')

    def stamped() -> bool:
        spinner.turn(0.05)
        return abs(monitor.clock_errors_s.get('imu', 0.0) - 0.077) < 1e-3  # drift: -15 ppm

    wait_until(stamped, PATIENCE_S, 'stamps 77 ms ahead')


def assert_reset_restores(page: Any) -> None:
    """A reset brings back the clock of the rig file, and counts bundles anew."""
    before = int(said(page, r'(\d+) bundles'))
    press(page, 'reset')
    said(page, r'(now: delay 2 to 3 ms, clock \+12 ms)')
    wait_until(lambda: int(said(page, r'(\d+) bundles')) < before, PATIENCE_S, 'a count from zero')


def assert_fault_happens(page: Any, monitor: Watch, spinner: Spinner) -> None:
    """A dead IMU publishes nothing: time goes on without it."""
    press(page, 'inject for 5 s')
    said(page, r'(imu: dead for 5 s)')

    def dead() -> bool:
        spinner.turn(0.05)
        last_ns = monitor.captures_ns.get('imu', START_NS) - START_NS
        return monitor.now_ns - last_ns > NS_PER_S

    wait_until(dead, PATIENCE_S, 'silence of a dead IMU')


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_page_loads_moves_and_acts(processes: Processes) -> None:
    port = free_port()
    with browser_page(1240, 420) as page, watching() as (monitor, spinner):
        rig = processes.rig('demo', '--rig', str(RIG), '--page-port', str(port))
        rig.wait_for_output(f'http://localhost:{port}')
        page.goto(f'http://localhost:{port}', wait_until='domcontentloaded')
        assert float(said(page, r'([\d.]+) s simulated')) >= 0.0
        page.wait_for_selector('svg >> text=front_lidar')
        assert_scene_moves(page)
        assert_time_stops(page, monitor, spinner)
        assert_clock_changes(page, monitor, spinner)
        assert_fault_happens(page, monitor, spinner)
        assert_reset_restores(page)
        assert page.foreign_requests == []
        assert page.complaints == []
    rig.interrupt()
    assert rig.wait() == 0, rig.output
