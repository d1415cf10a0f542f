"""What the page can ask of the other nodes: services and parameters, without waiting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rcl_interfaces.srv import SetParameters
from rclpy.client import Client
from rclpy.node import Node
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger

from sensor_rig.page.controls import Command, Setting

Say = Callable[[str], None]


class Remote:
    """Carries out commands; what came of them is said in a line."""

    def __init__(
        self, node: Node, say: Say, refused: Say, begun: Callable[[Command], None]
    ) -> None:
        """Ask in the name of `node`.

        `say` gets the answers, `refused` those that refuse, `begun` every fault that begins.
        """
        self._node = node
        self._say, self._refused, self._begun = say, refused, begun
        self._clients: dict[str, Client] = {}

    def do(self, command: Command) -> None:
        """Send `command` to the node that it concerns."""
        sensor = f'sensors.{command.sensor}'
        match command.action:
            case 'pause' | 'resume' | 'reset':
                self._trigger(f'world/{command.action}', self._say)
            case 'step':
                self._set(
                    'world',
                    {'step_count': round(command.value)},
                    lambda: self._trigger('world/step', self._say),
                )
            case 'speed':
                self._set(
                    'world',
                    {'world.real_time_factor': command.value},
                    lambda: self._say(command.sentence),
                )
            case 'delay':
                self._set(
                    self._emulator(command.sensor),
                    {
                        f'{sensor}.jitter_s': 0.0,
                        f'{sensor}.delay_range_s': [command.value, command.value],
                    },
                    lambda: self._say(command.sentence),
                )
            case 'clock':
                self._set(
                    self._emulator(command.sensor),
                    {f'{sensor}.clock.offset_s': command.value},
                    lambda: self._say(command.sentence),
                )
            case 'fault':
                self._inject(command)

    def restore(self, sensor: str, setting: Setting) -> None:
        """Set what the page can change of a sensor to `setting`; jitter is never above a delay."""
        emulator, key = self._emulator(sensor), f'sensors.{sensor}'
        self._set(
            emulator,
            {
                f'{key}.jitter_s': 0.0,
                f'{key}.delay_range_s': list(setting.delay_range_s),
                f'{key}.clock.offset_s': setting.clock_offset_s,
            },
            lambda: self._set(emulator, {f'{key}.jitter_s': setting.jitter_s}, lambda: None),
        )

    def _inject(self, command: Command) -> None:
        emulator = self._emulator(command.sensor)
        arguments = {'offset': 0.0, 'scale': 1.0, **command.arguments}

        def done(_: str) -> None:
            self._say(command.sentence)
            self._begun(command)

        self._set(
            emulator,
            {
                'fault.sensor': command.sensor,
                'fault.kind': command.kind,
                'fault.duration_s': command.value,
                **{f'fault.{key}': value for key, value in arguments.items()},
            },
            lambda: self._trigger(f'{emulator}/inject_fault', done),
        )

    def _emulator(self, sensor: str) -> str:
        """Return the node that serves `sensor`: its own emulator, or the one for all."""
        own = f'emulator_{sensor}'
        return own if own in self._node.get_node_names() else 'emulator'

    def _trigger(self, service: str, then: Say) -> None:
        """Call a service; `then` gets what it says if it did what it was asked."""
        client = self._client(Trigger, service)
        if client is None:
            return

        def answered(done: Any) -> None:
            answer = done.result()
            if answer is None:
                self._say(f'no answer from {service}')
            elif answer.success:
                then(answer.message)
            else:
                self._refused(f'refused: {answer.message}')

        client.call_async(Trigger.Request()).add_done_callback(answered)

    def _set(self, node: str, values: Mapping[str, Any], then: Callable[[], None]) -> None:
        """Set parameters of a node; `then` is called once all are taken."""
        client = self._client(SetParameters, f'{node}/set_parameters')
        if client is None:
            return

        def answered(done: Any) -> None:
            refused = [each.reason for each in done.result().results if not each.successful]
            if refused:
                self._refused(f'refused: {refused[0]}')
            else:
                then()

        client.call_async(
            SetParameters.Request(
                parameters=[
                    Parameter(key, value=value).to_parameter_msg() for key, value in values.items()
                ]
            )
        ).add_done_callback(answered)

    def _client(self, kind: Any, service: str) -> Client | None:
        client = self._clients.get(service)
        if client is None:
            client = self._clients[service] = self._node.create_client(kind, service)
        if not client.service_is_ready() and not client.wait_for_service(timeout_sec=0.5):
            self._say(f'no node answers {service}')
            return None
        return client
