"""A node that only watches: what the others report, what the clocks truly are, what time it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.lockstep import TICK_TOPIC, Tick
from rig_common.msgs import Level, Status, read_diagnostic_array, read_time_reference
from rig_common.ros import qos
from rig_common.times import NS_PER_S
from sensor_rig.rigfile import RigConfig
from sim_sensors.naming import env_prefix, truth_time_topic

LEDGER = ('received', 'bundled', 'collected', 'consumed', 'unmatched', 'expired', 'overflow',
          'duplicate', 'late', 'invalid', 'flushed', 'buffered')
"""Where an input's messages went, as the sync node reports it."""


class Monitor(Node):
    """Collects, for a summary, the last word of every part of a running rig."""

    def __init__(self, rig: RigConfig, name: str = 'monitor', *,
                 now_ns: Callable[[], int] | None = None, **node_options: Any) -> None:
        """Watch `rig`; `now_ns` tells the simulated time where the world is in this process."""
        super().__init__(name, **node_options)
        self._sync = rig.sync
        self._expected = {'world: time', *(f'emulator: {sensor}' for sensor in rig.sensors)}
        if rig.runs_sync:
            self._expected.add('sync: engine')
        self.statuses: dict[str, Status] = {}
        """Latest status by name, from /diagnostics."""
        self._tick = b''
        self._times: dict[str, bytes] = {}
        self.create_subscription(DiagnosticArray, '/diagnostics', self._on_diagnostics,
                                 qos.internal(100), raw=True)
        self._now_ns = now_ns
        if now_ns is None:
            self.create_subscription(TimeReference, TICK_TOPIC, self._on_tick, qos.internal(),
                                     raw=True)
        hidden = rig.world is not None and rig.world.hide_truth
        for sensor in rig.sensors:
            # The first of several environments stands for all; its reader wakes the sensor.
            topic = env_prefix(0, rig.num_envs) + truth_time_topic(sensor, hidden=hidden)
            self.create_subscription(TimeReference, topic, partial(self._on_time, sensor),
                                     qos.internal(10), raw=True)

    def _on_diagnostics(self, buf: bytes) -> None:
        with suppress(CdrError):  # whoever sent it; this node only watches
            for status in read_diagnostic_array(buf)[1]:
                self.statuses[status.name] = status

    def _on_tick(self, buf: bytes) -> None:
        self._tick = buf  # many come, few are looked at

    def _on_time(self, sensor: str, buf: bytes) -> None:
        self._times[sensor] = buf

    @property
    def has_heard_all(self) -> bool:
        """Whether every part of the rig has reported, so that its last word will be heard too."""
        return self._expected <= self.statuses.keys()

    @property
    def now_ns(self) -> int:
        """Simulated time, ns; negative before the world runs."""
        if self._now_ns is not None:
            return self._now_ns()
        with suppress(CdrError):
            return Tick.decode(self._tick).time_ns if self._tick else -1
        return -1

    @property
    def clock_errors_s(self) -> dict[str, float]:
        """Latest true error of every sensor's stamp (stamp minus capture), s."""
        errors = {}
        for sensor, buf in self._times.items():
            with suppress(CdrError):
                capture_ns, _, stamp_ns, _ = read_time_reference(buf)
                errors[sensor] = (stamp_ns - capture_ns) / NS_PER_S
        return errors

    def forget(self) -> None:
        """Start afresh, for another run."""
        self.statuses.clear()
        self._tick = b''
        self._times.clear()

    # ---- the summary --------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """Return plain facts: time, sensors, sync inputs with estimated and true offsets."""
        world = self.values('world: time')
        engine = self.values('sync: engine')
        return {
            'simulated_s': max(self.now_ns, 0) / NS_PER_S,
            'real_time_factor': _number(world.get('real-time factor achieved')),
            'slowed_s': _number(world.get('clock slowed by (s)')),
            'resets': int(world.get('resets', 0)),
            'sensors': {name.partition(': ')[2]: _sensor(status.values)
                        for name, status in sorted(self.statuses.items())
                        if 'configured rate (Hz)' in status.values},
            'bundles': int(engine['bundles']) if 'bundles' in engine else None,
            'inputs': {name.partition(': ')[2]: self._input(name.partition(': ')[2], status.values)
                       for name, status in sorted(self.statuses.items())
                       if name.startswith('sync: ') and 'offset state' in status.values},
            'warnings': [f'{status.name}: {status.message}' for status in self.statuses.values()
                         if status.level != Level.OK],
        }

    def values(self, name: str) -> Mapping[str, str]:
        """Return the values of a status, empty before it was heard."""
        status = self.statuses.get(name)
        return {} if status is None else status.values

    def _input(self, name: str, values: Mapping[str, str]) -> dict[str, Any]:
        return {'offset_ms': _number(values.get('offset to reference (ms)')),
                'sigma_ms': _number(values.get('sigma to reference (ms)')),
                'true_offset_ms': self._true_offset_ms(name),
                'state': values.get('offset state', ''),
                'ledger': {key: int(values[key]) for key in LEDGER if key in values}}

    def _true_offset_ms(self, name: str) -> float | None:
        """Return the true offset of an input's clock to the reference's, as last seen."""
        if self._sync is None or name not in self._sync.inputs:
            return None
        inputs, errors = self._sync.inputs, self.clock_errors_s
        mine = inputs[name].clock_of or name
        reference = self._sync.reference_sensor_id
        if mine not in errors or reference not in errors:
            return None
        return (errors[mine] - errors[reference]) * 1e3


def _sensor(values: Mapping[str, str]) -> dict[str, Any]:
    captured, lost = int(values['captured']), int(values['lost'])
    return {'rate_hz': _number(values['configured rate (Hz)']),
            'achieved_hz': _number(values['achieved rate (Hz)']),
            'latency_p50_ms': _number(values['latency p50 (ms)']),
            'latency_p99_ms': _number(values['latency p99 (ms)']),
            'published': int(values['published']), 'lost': lost,
            'lost_fraction': lost / captured if captured else None}


def _number(text: str | None) -> float | None:
    try:
        value = float(text or 'nan')
    except ValueError:
        return None
    return value if value == value else None
