"""A node of a test's own: calls services, sets parameters, listens."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter

from support.ros_rigs import LockstepRun


class Client(Node):
    """Does what a user at a terminal would do."""

    def __init__(self) -> None:
        super().__init__('client')
        self.seen: dict[str, list[Any]] = {}

    def call(self, run: LockstepRun, kind: Any, name: str, request: Any = None) -> Any:
        client = self.create_client(kind, name)
        run.until(client.service_is_ready)
        future = client.call_async(request or kind.Request())
        run.until(future.done)
        self.destroy_client(client)
        return future.result()

    def set(self, run: LockstepRun, node: str, **values: Any) -> Any:
        request = SetParameters.Request(
            parameters=[
                Parameter(key.replace('__', '.'), value=value).to_parameter_msg()
                for key, value in values.items()
            ]
        )
        return self.call(run, SetParameters, f'/{node}/set_parameters', request).results

    def listen(self, kind: Any, topic: str, profile: Any = 10) -> list[Any]:
        seen = self.seen.setdefault(topic, [])
        self.create_subscription(kind, topic, seen.append, profile)
        return seen
