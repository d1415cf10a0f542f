"""The page as a node: listens while somebody looks, draws ten times a second."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

import mujoco
from rcl_interfaces.msg import ParameterEvent
from rclpy.parameter import parameter_value_to_python
from rclpy.qos import qos_profile_parameter_events
from rclpy.subscription import Subscription

from rig_common.cdr import CdrError, read_stamp_ns
from rig_common.msgs import read_diagnostic_array, read_time_reference
from rig_common.msgs.decode import read_marker_poses, read_odometry
from rig_common.ros import qos
from rig_common.ros.clock import steady_clock
from rig_common.ros.types import message_class
from rig_common.text import shortened
from rig_common.times import NS_PER_S
from rig_common.topics import truth_topic
from sensor_rig.drawing.scan_points import SCAN_TYPES, Mount, Placer, mount_of
from sensor_rig.page.access import LOCAL
from sensor_rig.page.app import Page
from sensor_rig.page.controls import FAULTS, Command, Setting
from sensor_rig.page.history import History, Mark, Occurrence, OffsetPoint, WindowPoint
from sensor_rig.page.ros.limbs import Limbs
from sensor_rig.page.ros.remote import Remote
from sensor_rig.page.scene import PageScene
from sensor_rig.page.synced_set import IMAGE, IMU, SyncedSet, View
from sensor_rig.rigfile import RigConfig
from sensor_rig.running.ros.monitor import Monitor
from sim_sensors.interface import AnySensor, SensorConfig
from sim_sensors.interface.topics import parameter_events_topic
from sim_sensors.sensors.cameras.camera import Camera
from sim_sensors.world.scene.pose_messages import base_of
from sim_sensors.world.world import World
from sync_engine.wire.session import synced_topic

UNREADABLE = (CdrError, KeyError, ValueError, OverflowError)
"""What reading a message raises that anybody may have sent; the page only watches."""
LONGEST = 80
"""Characters of a change on the page."""
PERIOD_S = 0.1
"""Wall time between two drawings."""
REST = 2.0
"""Pause after a drawing, in durations of it: on a slow machine the rig has priority."""
MEMBERS_HZ = 400.0
"""Rate for which the queues of a bundle's members are made: an IMU's is the highest."""
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
        self._settings = {name: _setting(config) for name, config in rig.sensors.items()}
        self.page = Page(
            self._settings,
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
        self._remote = Remote(self, self._say, self._refused, self._on_fault)
        self._bundles_before = 0
        """At the last reset."""
        self._captures: deque[tuple[int, int]] = deque(maxlen=KEPT_SCANS)  # (stamp, capture) ns
        topics = {
            topic.of(name): (name, topic.type_name)
            for name, sensor in sensors.items()
            for topic in sensor.topics()
        }
        self._scan = next(((t, n, k) for t, (n, k) in topics.items() if k in SCAN_TYPES), None)
        self._mounts = _mounts(world, sensors)
        self._placer = None
        if self._scan is not None and self._scan[1] in self._mounts:
            self._placer = Placer(self._mounts[self._scan[1]])
        self._members = self._choose_members(topics)
        self._set = SyncedSet(self._view(sensors), is_synced=rig.runs_sync)
        self._is_watched = False
        self._rest_until_s = 0.0
        self._is_reported = False
        self._fresh: dict[str, bytes] = {}
        self._listening: list[Subscription] = []
        self.create_timer(PERIOD_S, self._draw, clock=steady_clock())
        print(f'The live page is at {self.page.address}', file=sys.stderr, flush=True)

    def _choose_members(self, topics: Mapping[str, tuple[str, str]]) -> dict[str, str]:
        """Return the topic of the first picture, the first scan and the IMU, by its type.

        Where the rig syncs, these are the synced ones.
        """
        sync, found = self._rig.sync if self._rig.runs_sync else None, {}
        for topic, (name, kind) in topics.items():
            is_picture = kind == IMAGE and self._rig.sensors[name].type == 'camera'
            if kind in found or not (is_picture or kind in (*SCAN_TYPES, IMU)):
                continue
            if sync is None:
                found[kind] = topic
            elif any(each.topic == topic and each.member for each in sync.inputs.values()):
                found[kind] = synced_topic(topic)
        return found

    def _view(self, sensors: Mapping[str, AnySensor]) -> View | None:
        """Return how the first camera without distortion sees what the LiDAR measures."""
        if self._scan is None or self._scan[1] not in self._mounts:
            return None
        lidar = self._mounts[self._scan[1]]
        for name, sensor in sensors.items():
            if isinstance(sensor, Camera) and name in self._mounts:
                bends = any(sensor.config.distortion.model_dump().values())
                mount, picture = self._mounts[name], sensor.picture
                if bends or sensor.config.lens == 'equidistant':
                    return None
                if mount.is_fixed == lidar.is_fixed:
                    return View(mount, lidar, picture.focal_px, (picture.width, picture.height))
        return None

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
        """Subscribe to what only the page needs while a browser has it open; else unsubscribe."""
        if self._is_watched and not self._listening:
            self._hear('sync/bundle', 'diagnostic_msgs/msg/DiagnosticArray', self._on_bundle)
            hidden = self._rig.simulated_world.hide_truth
            self._hear(
                truth_topic('odom', hidden=hidden), 'nav_msgs/msg/Odometry', self._on_pose, 50.0
            )
            self._keep(self._markers, 'visualization_msgs/msg/MarkerArray')
            if self._scan is not None and self._placer is not None:
                self._keep(self._scan[0], self._scan[2])
            for kind, topic in self._members.items():
                self._hear(topic, kind, partial(self._set.take, kind), MEMBERS_HZ)
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
        for command in self.page.controls.take(time.monotonic()):
            self._do(command)
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
            if facts.true_offset_ms is not None and name not in self._not_drawn:
                self._history.add_offset(
                    name, OffsetPoint(now_s, facts.offset_ms, facts.sigma_ms, facts.true_offset_ms)
                )
        engine = self.engine_facts()
        if engine is not None:
            self._history.add_window(WindowPoint(now_s, engine.window_ms, engine.motion_intensity))

    def _note_steps(self) -> None:
        """Draw a clock's step when it happens, not with the next report of the sync node."""
        for name in self._history.offsets:
            true_ms = self._true_offset_ms(name)
            if true_ms is not None:
                self._history.add_truth(name, self._history.now_s, true_ms)

    @cached_property
    def _reference(self) -> str:
        return self._rig.sync.reference_sensor_id if self._rig.sync is not None else ''

    @cached_property
    def _not_drawn(self) -> set[str]:
        """The reference, and inputs that share the clock of another one."""
        inputs = {} if self._rig.sync is None else self._rig.sync.inputs
        return {self._reference, *(name for name, each in inputs.items() if each.clock_of)}

    def _show_world(self) -> None:
        fresh, self._fresh = self._fresh, {}
        self._scene.follows = self.page.follows
        if self._markers in fresh:
            with suppress(*UNREADABLE):
                self._scene.move(read_marker_poses(fresh[self._markers]))
        with suppress(*UNREADABLE):
            self.page.show_set(self._set.drawing(self._history.last_spread_ms()))
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
        if summary.bundles is not None:
            line += f', <b>{max(summary.bundles - self._bundles_before, 0)}</b> bundles'
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
        inputs = summary.inputs
        self.page.show_drops(
            ('', *inputs),
            [
                (key.replace('_', ' '), *(str(each.ledger[key]) for each in inputs.values()))
                for key in summary.ledger_keys()
            ],
        )

    def _do(self, command: Command) -> None:
        """Carry out what was asked for; a reset brings back the file's settings, too."""
        if command.action == 'reset':
            engine = self.engine_facts()
            self._bundles_before = engine.bundles if engine is not None else 0
            for sensor in self.page.controls.changed_from(self._settings):
                self._remote.restore(sensor, self._settings[sensor])
        self._remote.do(command)

    def _refused(self, text: str) -> None:
        self._say(text)
        self.page.controls.show()

    def _say(self, text: str) -> None:
        self.page.say(text)
        self.get_logger().info(text)


def _mounts(world: World, sensors: Iterable[str]) -> dict[str, Mount]:
    """Return the mounts of the sensors that sit on the base of the robot or on the world."""
    data = world.data()
    mujoco.mj_forward(world.model, data)
    sites = {world.model.site(index).name for index in range(world.model.nsite)}
    found = {
        name: mount_of(world.model, data, name, base_of(world).body)
        for name in sensors
        if name in sites
    }
    return {name: mount for name, mount in found.items() if mount is not None}


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
