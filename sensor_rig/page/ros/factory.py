"""The live page as one more node of a rig, where viser is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.util import find_spec

from rclpy.node import Node

from sensor_rig.page.access import PagePlace
from sensor_rig.rigfile import RigConfig


def page_factory(rig: RigConfig, place: PagePlace) -> list[Callable[[], Node]]:
    """Return what makes the page's node; where viser is missing, say so and return nothing."""
    if find_spec('viser') is None:
        print(
            'The live page needs viser, which is not installed; running without.', file=sys.stderr
        )
        return []

    def make() -> Node:
        node: Node = importlib.import_module('sensor_rig.page.ros.page_node').PageNode(
            rig, place.port, place.host, place.token, may_move=place.may_move
        )
        return node

    return [make]
