"""Where things stand on the page, in a real browser: on a large screen, a small one, a phone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.browser import browser_page, free_port, picture, said
from support.places import SMALL_RIG
from support.processes import Processes
from support.waiting import wait_until

pytest.importorskip('rclpy', reason='the live page listens to ROS')
pytest.importorskip('viser', reason='the live page needs viser')

PATIENCE_S = 90.0
STORY = ('.rig-timeline', '.rig-offsets', '.rig-window')
LEAST_TEXT_PX = 11.0
ROVER_RGB = (200, 165, 45)
"""Its paint in the light of the page."""


class Box(NamedTuple):
    """Where an element stands, px."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def bottom(self) -> float:
        return self.y + self.height


def box(page: Any, selector: str) -> Box:
    # A drawing is replaced ten times a second: it may be gone between two looks.
    found = wait_until(page.locator(selector).first.bounding_box, PATIENCE_S, selector)
    return Box(found['x'], found['y'], found['width'], found['height'])


def open_at(page: Any, address: str, width: int, height: int) -> None:
    """Show the page again on a screen of a size, with everything on it."""
    page.set_viewport_size({'width': width, 'height': height})
    page.goto(address, wait_until='domcontentloaded')
    for selector in STORY:
        page.wait_for_selector(selector)
    for button in page.locator('.mantine-Notification-closeButton').all():
        button.click()  # "Software WebGL rendering detected"


def text_px(page: Any) -> float:
    """Return how large the text of the timeline is on the screen."""
    return float(
        page.evaluate("""() => {
        const text = document.querySelector('.rig-timeline text')
        return parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a }""")
    )


def assert_story(page: Any, left: float, right: float) -> list[Box]:
    """The drawings stand below each other between two edges, the timeline first."""
    boxes = [box(page, selector) for selector in STORY]
    for above, below in pairwise(boxes):
        assert above.bottom <= below.y + 1
    assert all(left <= each.x and each.right <= right for each in boxes)
    assert text_px(page) >= LEAST_TEXT_PX
    return boxes


def assert_robot_in_the_middle(page: Any) -> None:
    """The rover, which drives, is in the middle third of the world."""
    world = box(page, 'canvas')
    third = {
        'x': world.x + world.width / 3,
        'y': world.y + world.height / 3,
        'width': world.width / 3,
        'height': world.height / 3,
    }

    def painted() -> bool:
        away = np.abs(picture(page, **third) - np.array(ROVER_RGB)).max(-1)
        return bool((away < 40).sum() > 100)

    wait_until(painted, PATIENCE_S, 'the rover in the middle')


def assert_wide(page: Any, address: str, width: int, height: int) -> None:
    """What happens on the left, in less than a third; the world; the controls on the right."""
    open_at(page, address, width, height)
    world, controls = box(page, 'canvas'), box(page, 'text=Change a sensor')
    assert world.x < width / 3, 'the left panel'
    boxes = assert_story(page, 0.0, world.x)
    assert world.right <= controls.x <= width
    assert world.width > 0.4 * width
    assert boxes[0].y < 0.2 * height
    assert boxes[-1].bottom > 0.6 * height, 'the lower part of the panel is not empty'
    assert_robot_in_the_middle(page)


def assert_phone(page: Any, address: str) -> None:
    """The world above, then the timeline over the whole width; controls one tap away."""
    width, height = 390, 844
    open_at(page, address, width, height)
    world = box(page, 'canvas')
    boxes = assert_story(page, 0.0, width)
    assert world.bottom <= boxes[0].y < 0.6 * height
    assert boxes[0].bottom < height, 'the whole timeline without scrolling'
    assert boxes[0].width > 0.9 * width
    assert page.evaluate('document.documentElement.scrollWidth') <= width
    assert_robot_in_the_middle(page)
    page.get_by_role('button', name='Expand panel Control').click()
    page.get_by_role('button', name='pause', exact=True).scroll_into_view_if_needed()
    assert box(page, 'button:has-text("pause")').right <= width


def assert_changes(page: Any) -> None:
    """What the slider does not offer is clipped to what it does; a change is said and marked."""
    value = page.locator('input[type=text][value="12"]').first
    value.fill('99999')
    page.keyboard.press('Tab')
    said(page, r'(imu: its clock is now \+250 ms off)')
    page.locator('input[type=text][value="250"]').first.fill('65')
    page.keyboard.press('Enter')
    said(page, r'(imu: its clock is now \+65 ms off)')
    page.wait_for_selector('.rig-offsets .rig-event', state='attached')
    page.wait_for_selector('.rig-offsets >> text=clock +65 ms', state='attached')


def assert_set_is_seen(page: Any) -> None:
    """The last bundle lies on the world, below the robot."""
    page.wait_for_selector('.rig-synced-set')
    world, shown = box(page, 'canvas'), box(page, '.rig-synced-set')
    assert world.x <= shown.x and shown.right <= world.right
    assert shown.bottom <= world.bottom and shown.y > world.y + world.height / 2


def assert_dark(page: Any) -> None:
    """The switch under View makes the page dark."""
    page.get_by_label('dark', exact=True).check(force=True)
    page.wait_for_selector('html[data-mantine-color-scheme="dark"]')
    page.get_by_label('dark', exact=True).uncheck(force=True)
    page.wait_for_selector('html[data-mantine-color-scheme="light"]')


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_boxes_of_the_page(processes: Processes) -> None:
    port = free_port()
    address = f'http://localhost:{port}'
    with browser_page(1920, 1080) as page:
        rig = processes.rig('demo', '--rig', str(SMALL_RIG), '--page-port', str(port))
        rig.wait_for_output(address)
        assert_wide(page, address, 1920, 1080)
        assert_set_is_seen(page)
        assert_changes(page)
        assert_dark(page)
        assert_wide(page, address, 1280, 720)
        assert_set_is_seen(page)
        assert_phone(page, address)
        assert page.complaints == []
    rig.interrupt()
    assert rig.wait() == 0, rig.output
