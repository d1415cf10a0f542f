"""Which topics carry joints and contacts, and how each is taken into the page's `Body`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rig_common.cdr import CdrError
from rig_common.msgs.decode import read_force, read_joint_positions, read_range
from rig_common.times import NS_PER_S, TimeBase
from rig_common.topics import truth_topic
from sensor_rig.page.body import Body, Trace
from sim_sensors.interface import AnySensor

JOINTS, WRENCH = 'sensor_msgs/msg/JointState', 'geometry_msgs/msg/WrenchStamped'
SWITCH = 'contact'
"""The type of a sensor that is open or closed, as a Range."""
FORCES = ('contact_force', 'force_torque')
MOST_TRACES = 1000
"""Joints, or contacts, that are kept: a bound for hostile messages."""


class Heard(NamedTuple):
    """A topic to listen to."""

    topic: str
    type_name: str
    take: Callable[[bytes], None]
    rate_hz: float


class Limbs:
    """Keeps `body` up to date with what the sensors of joints and contacts send."""

    def __init__(
        self,
        sensors: Mapping[str, AnySensor],
        base: TimeBase,
        now_s: Callable[[], float],
        *,
        hidden: bool,
    ) -> None:
        self._sensors = {
            name: sensor
            for name, sensor in sensors.items()
            if sensor.config.type in (SWITCH, *FORCES, 'joint_state')
        }
        self._base, self._now_s, self._hidden = base, now_s, hidden
        self.body = Body(
            switches=frozenset(
                name for name, sensor in self._sensors.items() if sensor.config.type == SWITCH
            )
        )
        for name, sensor in self._sensors.items():
            if sensor.config.type != 'joint_state':
                self.body.contacts[name] = Trace()

    def topics(self) -> Iterator[Heard]:
        """Yield what to listen to: of every sensor what it sends, and its truth."""
        for name, sensor in self._sensors.items():
            rate_hz = sensor.config.rate_hz or 1000.0
            topic = next(iter(sensor.topics()))
            kind = topic.type_name
            yield Heard(topic.of(name), kind, self._take(name, kind), rate_hz)
            kind = sensor.truth_template()[0]
            yield Heard(
                truth_topic(name, hidden=self._hidden),
                kind,
                self._take(name, kind, is_true=True),
                rate_hz,
            )

    def _take(self, name: str, kind: str, *, is_true: bool = False) -> Callable[[bytes], None]:
        line = 'true' if is_true else 'measured'

        def take(buf: bytes) -> None:
            with suppress(CdrError):  # of any sender; the page only watches
                stamp_ns, values = _values(name, kind, buf)
                time_s = self._base.run_ns(stamp_ns) / NS_PER_S if is_true else self._now_s()
                traces = self.body.joints if kind == JOINTS else self.body.contacts
                for key, value in values:
                    if key not in traces and len(traces) >= MOST_TRACES:
                        continue
                    traces.setdefault(key, Trace()).add(
                        line, time_s, value, switches=name in self.body.switches
                    )

        return take


def _values(name: str, kind: str, buf: bytes) -> tuple[int, Iterable[tuple[str, float]]]:
    """Return (stamp, values by joint or sensor) of a message; a switch is 1 where it is closed."""
    if kind == JOINTS:
        stamp_ns, positions = read_joint_positions(buf)
        return stamp_ns, positions.items()
    if kind == WRENCH:
        stamp_ns, force_n = read_force(buf)
        return stamp_ns, [(name, float(np.linalg.norm(force_n)))]
    stamp_ns, reading = read_range(buf)
    return stamp_ns, [(name, float(reading < 0.0))]
