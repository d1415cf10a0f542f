"""The live page as one more node of a rig, where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable

from rclpy.node import Node

from sensor_rig.page.access import PagePlace
from sensor_rig.rigfile import RigConfig

MODULE = 'sensor_rig.page.ros.page_node'


def page_factory(rig: RigConfig, place: PagePlace) -> list[Callable[[], Node]]:
    """Return what makes the page's node; where viser is missing, say so and return nothing."""
    try:
        missing = (
            importlib.util.find_spec(MODULE) is None or importlib.util.find_spec('viser') is None
        )
    except ModuleNotFoundError:
        missing = True
    if missing:
        print(
            'The live page is not installed here (it needs viser); running without it.',
            file=sys.stderr,
        )
        return []

    def make() -> Node:
        node: Node = importlib.import_module(MODULE).PageNode(
            rig, place.port, place.host, place.token, may_move=place.may_move
        )
        return node

    return [make]
