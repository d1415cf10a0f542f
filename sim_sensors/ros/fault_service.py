"""Faults at run time: parameters say which, a Trigger makes it happen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from rig_common.errors import RigError
from rig_common.field_docs import fields_of
from rig_common.ros.parameters import describe
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
        node.create_service(Trigger, '~/inject_fault', self._on_inject)

    def _on_inject(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        given = {p.name: p.value for p in self._parameters()}
        sensor = given.pop('sensor')
        try:
            if sensor not in self._sensors:
                raise RigError(
                    f'fault.sensor is {sensor!r}; this node serves {", ".join(self._sensors)}'
                )
            fault = validated(FaultConfig, {**given, 'at_s': self._now_s()}, 'fault')
            self._inject(sensor, fault)
            response.success = True
            response.message = f'{sensor}: {fault.kind} from {fault.at_s:.3f} s on'
        except RigError as error:
            response.success = False
            response.message = str(error)
        return response

    def _parameters(self) -> list[Parameter]:
        found = self._node.get_parameters_by_prefix('fault')
        return [Parameter(name, value=parameter.value) for name, parameter in found.items()]
