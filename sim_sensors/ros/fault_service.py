"""Faults at run time: parameters say which, a Trigger makes it happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.node import Node

from rig_common.errors import RigError
from rig_common.field_docs import fields_of
from rig_common.ros.parameters import describe
from rig_common.ros.services import offer
from rig_common.validation import validated
from sim_sensors.timing.faults import FaultConfig


class FaultService:
    """`~/inject_fault`: starts the fault that the parameters `fault.*` describe."""

    def __init__(
        self,
        node: Node,
        sensors: Sequence[str],
        inject: Callable[[str, FaultConfig], None],
        now_s: Callable[[], float],
    ) -> None:
        """Offer the service; `inject(sensor, fault)` carries it out, `now_s` is simulated time."""
        self._node = node
        self._sensors = tuple(sensors)
        self._inject = inject
        self._now_s = now_s
        for key, info in fields_of(FaultConfig).items():
            if key != 'at_s':
                value = 'dead' if key == 'kind' else info.default
                node.declare_parameter(
                    f'fault.{key}', value, describe(info, value, read_only=False)
                )
        node.declare_parameter('fault.sensor', self._sensors[0] if self._sensors else '')
        offer(node, inject_fault=self._on_inject)

    def _on_inject(self) -> str:
        parameters = self._node.get_parameters_by_prefix('fault')
        given = {name: parameter.value for name, parameter in parameters.items()}
        sensor = given.pop('sensor')
        if sensor not in self._sensors:
            raise RigError(
                f'fault.sensor is {sensor!r}; this node serves {", ".join(self._sensors)}'
            )
        fault = validated(FaultConfig, {**given, 'at_s': self._now_s()}, 'fault')
        self._inject(sensor, fault)
        return f'{sensor}: {fault.kind} from {fault.at_s:.3f} s on'
