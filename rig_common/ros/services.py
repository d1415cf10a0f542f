"""Services without arguments: each is a function that says what it did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from std_srvs.srv import Trigger

from rig_common.errors import RigError


def offer(node: Node, **services: Callable[[], str]) -> None:
    """Offer `~/<name>` (std_srvs/Trigger) for each; a RigError is refused with its sentence."""
    for name, act in services.items():
        node.create_service(Trigger, f'~/{name}', _answering(act))


def _answering(act: Callable[[], str]) -> Callable[[object, Any], object]:
    def answer(request: object, response: Any) -> object:
        try:
            response.message, response.success = act(), True
        except RigError as error:
            response.message, response.success = str(error), False
        return response

    return answer
