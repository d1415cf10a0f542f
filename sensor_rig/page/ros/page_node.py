"""The page as a node: listens while somebody looks, draws ten times a second."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import mujoco
from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events
from rclpy.subscription import Subscription

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.msgs import read_diagnostic_array, read_time_reference
from rig_common.msgs.decode import read_image, read_marker_poses, read_odometry
from rig_common.ros import qos
from rig_common.ros.clock import steady_clock
from rig_common.ros.types import message_class
from rig_common.text import shortened
from rig_common.times import NS_PER_S
from sensor_rig.drawing.scan_points import SCAN_TYPES, Placer, mount_of
from sensor_rig.page.access import LOCAL
from sensor_rig.page.app import Page
from sensor_rig.page.controls import FAULTS, Command, Setting
from sensor_rig.page.history import History, Mark, Occurrence, OffsetPoint, WindowPoint
from sensor_rig.page.ros.limbs import Limbs
from sensor_rig.page.ros.remote import Remote
from sensor_rig.page.scene import PageScene
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.ros.monitor import Monitor
from sim_sensors.interface.config import SensorConfig
from sim_sensors.interface.topics import parameter_events_topic, truth_topic
from sim_sensors.world.scene.pose_messages import base_body
from sim_sensors.world.world import World

UNREADABLE = (CdrError, KeyError, ValueError, OverflowError)
"""What reading a message raises that anybody may have sent; the page only watches."""
LONGEST = 80
"""Characters of a change on the page."""
PERIOD_S = 0.1
"""Wall time between two drawings."""
REST = 2.0
"""Wall time after a drawing, in drawings: where the machine is slow, the rig goes first."""
PICTURES = ('rgb8', 'mono8')
KEPT_SCANS = 8
"""Scans on their way whose capture times are remembered."""


class PageNode(Monitor):
    """Shows a rig on a page; hears pictures and scans only while a browser has it open."""

    def __init__(
        self,
        rig: RigConfig,
        port: int,
        host: str = LOCAL,
        token: str | None = None,
        *,
        may_move: bool = False,
        **node_options: Any,
    ) -> None:
        super().__init__(rig, name='page', **node_options)
        self._rig = rig
        sensors = rig.make_sensors()
        world = World(rig.simulated_world, list(sensors.values()), rig.path.parent)
        self.page = Page(
            {name: _setting(config) for name, config in rig.sensors.items()},
            host=host,
            port=port,
            title=f'{rig.path.stem} rig',
            token=token,
            may_move=may_move,
            speed=rig.simulated_world.real_time_factor,
        )
        hidden = rig.simulated_world.hide_truth
        self.create_subscription(
            ParameterEvent,
            parameter_events_topic(hidden=hidden),
            self._on_parameters,
            qos_profile_parameter_events,
        )
        self._markers = truth_topic('markers', hidden=True) if hidden else 'world/markers'
        self._scene = PageScene(self.page.server, world)
        self._history = History(sensors, planned=_planned(rig.sensors))
        self._limbs = Limbs(
            sensors, self._base, lambda: max(self.now_ns, 0) / NS_PER_S, hidden=hidden
        )
        self._remote = Remote(self, self._say, self._on_fault)
        self._captures: deque[tuple[int, int]] = deque(maxlen=KEPT_SCANS)  # (stamp, capture) ns
        topics = {
            topic.of(name): (name, topic.type_name)
            for name, sensor in sensors.items()
            for topic in sensor.topics()
        }
        self._scan = next(((t, n, k) for t, (n, k) in topics.items() if k in SCAN_TYPES), None)
        self._picture = next(
            (
                t
                for t, (n, k) in topics.items()
                if k == 'sensor_msgs/msg/Image' and rig.sensors[n].type == 'camera'
            ),
            None,
        )
        self._placer = self._make_placer(world)
        self._is_watched = False
        self._rest_until_s = 0.0
        self._is_reported = False
        self._fresh: dict[str, bytes] = {}
        self._listening: list[Subscription] = []
        self.create_timer(PERIOD_S, self._draw, clock=steady_clock())
        print(f'The live page is at {self.page.address}', file=sys.stderr, flush=True)

    def _make_placer(self, world: World) -> Placer | None:
        if self._scan is None:
            return None
        mujoco.mj_forward(world.model, world.data())
        mount = mount_of(world.model, world.data(), self._scan[1], base_body(world))
        return None if mount is None else Placer(mount)

    def close(self) -> None:
        """Stop serving the page."""
        self.page.close()

    # ---- what comes in --------------------------------------------------------------------------

    def _on_time(self, sensor: str, buf: bytes) -> None:
        super()._on_time(sensor, buf)
        if not self._is_watched:
            return
        with suppress(*UNREADABLE):
            capture_ns, _, stamp_ns, _ = read_time_reference(buf)
            run_ns = self._base.run_ns(capture_ns)
            self._history.add_mark(
                sensor, Mark(run_ns, self._base.run_ns(stamp_ns), max(self.now_ns, run_ns))
            )
            if self._scan is not None and sensor == self._scan[1]:
                self._captures.append((stamp_ns, capture_ns))

    def _on_parameters(self, event: ParameterEvent) -> None:
        """Take what was set of a sensor of this rig: from here, or by anybody else."""
        space, _, node = event.node.rpartition('/')
        if space != self.get_namespace().rstrip('/') or not node.startswith('emulator'):
            return
        for parameter in event.changed_parameters:
            kind, _, rest = parameter.name.partition('.')
            sensor, _, key = rest.partition('.')
            if kind == 'sensors' and sensor in self._rig.sensors:
                with suppress(TypeError, ValueError):  # of a value that no emulator takes
                    self._note_change(sensor, key, parameter_value_to_python(parameter.value))

    def _note_change(self, sensor: str, key: str, value: object) -> None:
        words = Setting.change_in_words(key, value)
        self.page.controls.note(sensor, key, value)
        if words is not None:
            now_s = max(self.now_ns, 0) / NS_PER_S
            self._history.add_event(Occurrence(now_s, shortened(words, LONGEST), sensor))

    def _on_fault(self, command: Command) -> None:
        now_s = max(self.now_ns, 0) / NS_PER_S
        self._history.add_event(
            Occurrence(now_s, FAULTS[command.kind], command.sensor, now_s + command.value)
        )

    def _on_diagnostics(self, buf: bytes) -> None:
        super()._on_diagnostics(buf)
        self._is_reported = True

    def _on_bundle(self, buf: bytes) -> None:
        _, statuses = read_diagnostic_array(buf)
        self._history.add_bundle(
            {
                status.name: self._base.run_ns(int(status.values['stamp_ns']))
                for status in statuses[1:]
                if status.values.get('missing') == 'false' and 'collected' not in status.values
            }
        )

    def _on_pose(self, buf: bytes) -> None:
        if self._placer is not None:
            self._placer.add_pose(read_odometry(buf))

    def _listen(self) -> None:
        """Begin or end to hear what only a looker needs."""
        if self._is_watched and not self._listening:
            self._hear('sync/bundle', 'diagnostic_msgs/msg/DiagnosticArray', self._on_bundle)
            hidden = self._rig.simulated_world.hide_truth
            self._hear(
                truth_topic('odom', hidden=hidden), 'nav_msgs/msg/Odometry', self._on_pose, 50.0
            )
            self._keep(self._markers, 'visualization_msgs/msg/MarkerArray')
            if self._scan is not None and self._placer is not None:
                self._keep(self._scan[0], self._scan[2])
            if self._picture is not None:
                self._keep(self._picture, 'sensor_msgs/msg/Image')
            for heard in self._limbs.topics():
                self._hear(heard.topic, heard.type_name, heard.take, heard.rate_hz)
        elif not self._is_watched and self._listening:
            for subscription in self._listening:
                self.destroy_subscription(subscription)
            self._listening.clear()

    def _hear(
        self, topic: str, kind: str, take: Callable[[bytes], None], rate_hz: float = 20.0
    ) -> None:
        def hear(buf: bytes) -> None:
            with suppress(*UNREADABLE):
                take(buf)

        profile = qos.latched(10) if topic == self._markers else qos.sensor_in(rate_hz)
        self._listening.append(
            self.create_subscription(message_class(kind), topic, hear, profile, raw=True)
        )

    def _keep(self, topic: str, kind: str) -> None:
        """Keep the latest message of a topic for the next drawing."""
        self._hear(topic, kind, lambda buf: self._fresh.__setitem__(topic, buf))

    # ---- what goes out --------------------------------------------------------------------------

    def _draw(self) -> None:
        self._is_watched = self.page.is_watched
        self._listen()
        while not self.page.commands.empty():
            self._remote.do(self.page.commands.get())
        self._history.advance(max(self.now_ns, 0))
        if self._is_reported:
            self._is_reported = False
            self._note_offsets()
        self._note_steps()
        if not self._is_watched or time.monotonic() < self._rest_until_s:
            return
        began_s = time.monotonic()
        with self.page.server.atomic():
            self._show_world()
            self._show_facts()
        self.page.server.flush()
        now_s = time.monotonic()
        self._rest_until_s = now_s + REST * (now_s - began_s)

    def _note_offsets(self) -> None:
        now_s = self._history.now_s
        for name, facts in self.summary().inputs.items():
            if facts.true_offset_ms is not None and name != self._reference:
                self._history.add_offset(
                    name, OffsetPoint(now_s, facts.offset_ms, facts.sigma_ms, facts.true_offset_ms)
                )
        engine = self.engine_facts()
        if engine is not None:
            self._history.add_window(WindowPoint(now_s, engine.window_ms, engine.motion_intensity))

    def _note_steps(self) -> None:
        """See a clock's step when it happens, not when the sync node reports next."""
        for name in self._history.offsets:
            true_ms = self._true_offset_ms(name)
            if true_ms is not None:
                self._history.add_truth(name, self._history.now_s, true_ms)

    @property
    def _reference(self) -> str:
        return self._rig.sync.reference_sensor_id if self._rig.sync is not None else ''

    def _show_world(self) -> None:
        fresh, self._fresh = self._fresh, {}
        self._scene.follows = self.page.follows
        if self._markers in fresh:
            with suppress(*UNREADABLE):
                self._scene.move(read_marker_poses(fresh[self._markers]))
        if self._picture in fresh:
            with suppress(*UNREADABLE):
                image = read_image(fresh[self._picture])
                if image.encoding in PICTURES:
                    self.page.show_picture(image.pixels)
        if self._scan is not None and self._scan[0] in fresh:
            with suppress(*UNREADABLE):
                self._show_scan(fresh[self._scan[0]], self._scan[2])

    def _show_scan(self, message: bytes, kind: str) -> None:
        """Draw a scan, or keep it until its capture time and the poses of its sweep are known."""
        capture_ns = dict(self._captures).get(read_stamp_ns(message))
        placed = None
        if capture_ns is not None and self._placer is not None:
            placed = self._placer.place(kind, message, capture_ns)
        if placed is not None:
            self._scene.show_points(placed.points_m, getattr(placed, self.page.shade))
        elif self._scan is not None:
            self._fresh.setdefault(self._scan[0], message)

    def _show_facts(self) -> None:
        summary = self.summary()
        factor = summary.real_time_factor
        line = f'<b>{summary.simulated_s:.1f} s</b> simulated'
        world = self.statuses.get('world: time')
        if world is not None and world.message == 'paused':
            line += ', paused'
        elif factor:
            line += f', {factor:.2f} x real time'
        line += f', <b>{summary.bundles}</b> bundles' if summary.bundles is not None else ''
        self.page.show_status(line, summary.simulated_s)
        maximum = self._rig.sync.window.max_ms if self._rig.sync is not None else 100.0
        self.page.show_history(self._history, self._reference, maximum)
        self.page.show_body(self._limbs.body, self._history)
        self.page.show_streams(
            [
                (
                    name,
                    f'{s.achieved_hz:.1f} / {s.rate_hz:g}',
                    f'{s.latency_p50_ms:.1f}',
                    str(s.lost),
                )
                for name, s in summary.sensors.items()
            ]
        )
        keys = summary.ledger_keys()
        self.page.show_drops(
            ('input', *keys),
            [(name, *(str(i.ledger[key]) for key in keys)) for name, i in summary.inputs.items()],
        )

    def _say(self, text: str) -> None:
        self.page.say(text)
        self.get_logger().info(text)


def _setting(config: SensorConfig) -> Setting:
    return Setting(config.delay_range_s, config.jitter_s, config.clock.offset_s)


def _planned(sensors: Mapping[str, SensorConfig]) -> list[Occurrence]:
    """Return the faults that the rig file plans."""
    return [
        Occurrence(
            fault.at_s,
            fault.what.in_words(fault.offset, fault.scale),
            name,
            fault.at_s + fault.duration_s if fault.duration_s else None,
        )
        for name, config in sensors.items()
        for fault in config.faults.values()
    ]
