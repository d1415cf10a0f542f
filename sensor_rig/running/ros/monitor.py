"""A node that only watches: what the others report, what the clocks truly are, what time it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from sensor_msgs.msg import TimeReference

from rig_common.cdr import CdrError
from rig_common.diagnostic_fields import from_values
from rig_common.lockstep.messages import TICK_TOPIC, Tick
from rig_common.msgs import Level, Status, read_diagnostic_array, read_time_reference
from rig_common.ros import qos
from rig_common.times import NS_PER_S, TimeBase
from rig_common.topics import truth_time_topic
from sensor_rig.measures.bundles import HeardBundles
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.run_summary import (
    InputSummary,
    SensorSummary,
    Summary,
    run_measures,
    summarised,
)
from sim_sensors.diagnostic_values import SensorFacts, WorldFacts
from sim_sensors.interface.topics import diagnostics_topic, env_prefix
from sync_engine.wire.facts import BUNDLE_TOPIC
from sync_engine.wire.statuses import EngineFacts, InputFacts

FactsT = TypeVar('FactsT')
MOST_STATUSES = 10_000
"""Names on /diagnostics that are kept; more come from nobody who means well."""
LARGEST_STATUS = 1 << 16
"""Characters of a status with its values; ours have less than four thousand."""
LARGEST_TOTAL = 1 << 24
"""Characters of all statuses that are kept."""


class Monitor(Node):
    """Collects, for a summary, the latest report of every part of a running rig."""

    def __init__(
        self,
        rig: RigConfig,
        name: str = 'monitor',
        *,
        now_ns: Callable[[], int] | None = None,
        **node_options: Any,
    ) -> None:
        """Watch `rig`; `now_ns` returns the time of the run where the world is in this process."""
        super().__init__(name, **node_options)
        namespace = self.get_namespace().strip('/')
        prefix = re.escape(namespace and namespace + '/')
        self._ours = re.compile(rf'\A{prefix}(world|sync|emulator)\w*(?=: )')
        self._sync = rig.sync
        self._base = TimeBase() if rig.world is None else rig.world.time_base
        self._sensor_reports = {f'emulator: {sensor}' for sensor in rig.sensors}
        self._expected = {'world: time', *self._sensor_reports}
        if rig.runs_sync:
            self._expected.add('sync: engine')
        self.statuses: dict[str, Status] = {}
        """Latest status by name, from /diagnostics."""
        self._kept = 0
        """Characters of these."""
        self._tick = b''
        self._times: dict[str, bytes] = {}
        self._heard = HeardBundles(exact=False)
        hidden = rig.world is not None and rig.world.hide_truth
        # With hidden truth, the figures of the sensors are beside it.
        for topic in {'/diagnostics', diagnostics_topic(hidden=hidden)}:
            self.create_subscription(
                DiagnosticArray, topic, self._on_diagnostics, qos.internal(100), raw=True
            )
        self._now_ns = now_ns
        if now_ns is None:
            self.create_subscription(
                TimeReference, TICK_TOPIC, self._on_tick, qos.internal(), raw=True
            )
        if rig.runs_sync:
            self.create_subscription(
                DiagnosticArray, BUNDLE_TOPIC, self._heard_bundle, qos.internal(100), raw=True
            )
        for sensor in rig.sensors:
            # The first of several environments stands for all; its reader wakes the sensor.
            topic = env_prefix(0, rig.num_envs) + truth_time_topic(sensor, hidden=hidden)
            self.create_subscription(
                TimeReference, topic, partial(self._on_time, sensor), qos.internal(10), raw=True
            )

    def _on_diagnostics(self, buf: bytes) -> None:
        with suppress(CdrError):  # whoever sent it; this node only watches
            for found in read_diagnostic_array(buf)[1]:
                name, matches = self._ours.subn(r'\1', found.name, count=1)
                if not matches:
                    continue  # another robot's
                status = found._replace(name=name)
                if status.values or status.name not in self._sensor_reports:
                    self._keep_status(status)

    def _keep_status(self, status: Status) -> None:
        """Keep the latest status of a name, as far as their number and their size allow."""
        before = self.statuses.get(status.name)
        if before is None and len(self.statuses) >= MOST_STATUSES:
            return
        size = _size_of(status)
        total = self._kept + size - (0 if before is None else _size_of(before))
        if size <= LARGEST_STATUS and total <= LARGEST_TOTAL:
            self.statuses[status.name] = status
            self._kept = total

    def _on_tick(self, buf: bytes) -> None:
        self._tick = buf  # many come, few are looked at

    def _heard_bundle(self, buf: bytes) -> None:
        self._heard.bundle(buf)

    def _on_time(self, sensor: str, buf: bytes) -> None:
        self._times[sensor] = buf
        with suppress(CdrError):
            capture_ns, _, stamp_ns, _ = read_time_reference(buf)
            self._heard.truth(sensor, stamp_ns, capture_ns)

    @property
    def has_heard_all(self) -> bool:
        """Whether every part of the rig has reported, and its final report will be heard."""
        return self._expected <= self.statuses.keys()

    @property
    def now_ns(self) -> int:
        """Time since the start of the run, ns; negative before the world runs."""
        if self._now_ns is not None:
            return self._now_ns()
        with suppress(CdrError):
            return self._base.run_ns(Tick.decode(self._tick).time_ns) if self._tick else -1
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
        self._kept = 0
        self._tick = b''
        self._times.clear()
        self._heard = HeardBundles(exact=False)

    # ---- the summary --------------------------------------------------------------------------

    def summary(self) -> Summary:
        """Return what the parts of the rig have reported, with the true offsets beside it."""
        world, engine = self.world_facts(), self.engine_facts()
        sensors = {
            name: summarised(
                SensorSummary,
                facts,
                lost_fraction=facts.lost / facts.captured if facts.captured else None,
            )
            for name, facts in self._all('emulator', SensorFacts)
        }
        inputs = {
            name: summarised(
                InputSummary,
                facts,
                true_offset_ms=self._true_offset_ms(name),
                ledger=facts.ledger(),
            )
            for name, facts in self._all('sync', InputFacts)
        }
        return Summary(
            simulated_s=max(self.now_ns, 0) / NS_PER_S,
            real_time_factor=world.factor_achieved if world else None,
            slowed_s=world.slowed_s if world else None,
            resets=world.resets if world else 0,
            sensors=sensors,
            bundles=engine.bundles if engine else None,
            inputs=inputs,
            measures=run_measures(sensors, inputs, self._heard.measures({})),
            warnings=[
                f'{status.name}: {status.message}'
                for status in self.statuses.values()
                if status.level != Level.OK
            ],
        )

    def world_facts(self) -> WorldFacts | None:
        """Return what the world has reported; None before it was heard."""
        return self._facts('world: time', WorldFacts)

    def engine_facts(self) -> EngineFacts | None:
        """Return what the sync engine has reported; None before it was heard."""
        return self._facts('sync: engine', EngineFacts)

    def _facts(self, name: str, kind: type[FactsT]) -> FactsT | None:
        status = self.statuses.get(name)
        return None if status is None else from_values(kind, status.values)

    def _all(self, part: str, kind: type[FactsT]) -> Iterator[tuple[str, FactsT]]:
        """Yield (sensor, facts) for every status `<part>: <sensor>` that holds such facts."""
        for status in sorted(self.statuses):
            facts = self._facts(status, kind) if status.startswith(f'{part}: ') else None
            if facts is not None:
                yield status.removeprefix(f'{part}: '), facts

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


def _size_of(status: Status) -> int:
    """Return how many characters a status has."""
    texts = (status.name, status.message, status.hardware_id, *status.values)
    return sum(map(len, texts)) + sum(map(len, status.values.values()))
