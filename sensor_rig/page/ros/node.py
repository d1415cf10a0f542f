"""The page as a node: listens while somebody looks, draws ten times a second."""

from __future__ import annotations

from typing import Any

import numpy as np
from nav_msgs.msg import Odometry
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from visualization_msgs.msg import MarkerArray

from sensor_rig.msgs import read_diagnostic_array, read_time_reference
from sensor_rig.msgs.decode import read_image
from sensor_rig.page.app import LOCAL, Page
from sensor_rig.page.history import History, Mark, OffsetPoint, WindowPoint
from sensor_rig.page.ros.points import Placer
from sensor_rig.page.ros.remote import Remote
from sensor_rig.page.scene import PageScene
from sensor_rig.rigfile import RigConfig
from sensor_rig.ros import qos
from sensor_rig.ros.clock import steady_clock
from sensor_rig.ros.monitor import LEDGER, Monitor
from sensor_rig.ros.types import message_class
from sim_sensors.world import World

PERIOD_S = 0.1
"""Wall time between two drawings."""
SCANS = {'sensor_msgs/msg/LaserScan': 'scan', 'sensor_msgs/msg/PointCloud2': 'cloud'}
PICTURES = ('rgb8', 'mono8')


class PageNode(Monitor):
    """Shows a rig on a page; hears pictures and scans only while a browser has it open."""

    def __init__(self, rig: RigConfig, port: int, host: str = LOCAL, **node_options: Any) -> None:
        super().__init__(rig, name='page', **node_options)
        self._rig = rig
        sensors = rig.make_sensors()
        world = World(rig.simulated_world, list(sensors.values()), rig.path.parent)
        self.page = Page(list(sensors), host=host, port=port, title=f'{rig.path.stem} rig')
        self._scene = PageScene(self.page.server, world)
        self._history = History(sensors)
        self._remote = Remote(self, self._say)
        self._said = ''
        self._capture_of: dict[str, dict[int, int]] = {name: {} for name in sensors}
        topics = {topic.of(name): (name, topic.type_name)
                  for name, sensor in sensors.items() for topic in sensor.topics()}
        self._scan = next(((t, n, k) for t, (n, k) in topics.items() if k in SCANS), None)
        self._picture = next((t for t, (n, k) in topics.items() if k == 'sensor_msgs/msg/Image'
                              and rig.sensors[n].type == 'camera'), None)
        self._placer = Placer(world.model, self._scan[1]) if self._scan else None
        self._fresh: dict[str, bytes] = {}
        self._listening: list[Subscription] = []
        self.create_subscription(message_class('diagnostic_msgs/msg/DiagnosticArray'),
                                 'sync/bundle', self._on_bundle, qos.sensor_in(20.0), raw=True)
        self.create_timer(PERIOD_S, self._draw, clock=steady_clock())
        print(f'The live page is at {self.page.address}', flush=True)

    def close(self) -> None:
        """Stop serving the page."""
        self.page.close()

    # ---- what comes in --------------------------------------------------------------------------

    def _on_time(self, sensor: str, buf: bytes) -> None:
        super()._on_time(sensor, buf)
        capture_ns, _, stamp_ns, _ = read_time_reference(buf)
        self._history.add_mark(sensor, Mark(capture_ns, stamp_ns, max(self.now_ns, capture_ns)))
        if self._scan is not None and sensor == self._scan[1]:
            self._capture_of[sensor] = {stamp_ns: capture_ns}

    def _on_bundle(self, buf: bytes) -> None:
        _, statuses = read_diagnostic_array(buf)
        self._history.add_bundle({status.name: int(status.values['stamp_ns'])
                                  for status in statuses[1:]
                                  if status.values.get('missing') == 'false'
                                  and 'collected' not in status.values})

    def _listen(self) -> None:
        """Begin or end to hear what only a looker needs."""
        if self.page.is_watched and not self._listening:
            wanted: dict[str, Any] = {'world/markers': (MarkerArray, qos.latched(10))}
            if self._scan is not None:
                wanted[self._scan[0]] = (message_class(self._scan[2]), qos.sensor_in(20.0))
            if self._picture is not None:
                wanted[self._picture] = (message_class('sensor_msgs/msg/Image'),
                                         qos.sensor_in(10.0))
            for topic, (kind, profile) in wanted.items():
                self._listening.append(self.create_subscription(
                    kind, topic, lambda buf, topic=topic: self._fresh.__setitem__(topic, buf),
                    profile, raw=True))
            if self._placer is not None:
                hidden = self._rig.simulated_world.hide_truth
                self._listening.append(self.create_subscription(
                    Odometry, f'{"_truth" if hidden else "truth"}/odom', self._placer.add_pose,
                    qos.sensor_in(50.0), raw=True))
        elif not self.page.is_watched and self._listening:
            for subscription in self._listening:
                self.destroy_subscription(subscription)
            self._listening.clear()

    # ---- what goes out --------------------------------------------------------------------------

    def _draw(self) -> None:
        self._listen()
        while not self.page.commands.empty():
            self._remote.do(self.page.commands.get())
        self._history.advance(max(self.now_ns, 0))
        self._note_offsets()
        if not self.page.is_watched:
            return
        with self.page.server.atomic():
            self._show_world()
            self._show_facts()
        self.page.server.flush()

    def _note_offsets(self) -> None:
        now_s = self._history.now_ns / 1e9
        for name, facts in self.summary()['inputs'].items():
            line = self._history.offsets.get(name)
            known = None not in (facts['offset_ms'], facts['sigma_ms'], facts['true_offset_ms'])
            if known and (not line or line[-1].time_s < now_s) and self._rig.sync is not None \
                    and name != self._rig.sync.reference_sensor_id:
                self._history.add_offset(name, OffsetPoint(
                    now_s, facts['offset_ms'], facts['sigma_ms'], facts['true_offset_ms']))
        engine = self.values('sync: engine')
        if 'window (ms)' in engine:
            self._history.add_window(WindowPoint(now_s, float(engine['window (ms)']),
                                                 float(engine['motion intensity'])))

    def _show_world(self) -> None:
        fresh, self._fresh = self._fresh, {}
        if 'world/markers' in fresh:
            self._scene.move({marker.id: _pose(marker) for marker in deserialize_message(
                fresh['world/markers'], MarkerArray).markers})
        if self._picture in fresh:
            image = read_image(fresh[self._picture])
            if image.encoding in PICTURES:
                self.page.show_picture(image.pixels)
        if self._scan is not None and self._placer is not None and self._scan[0] in fresh:
            topic, name, kind = self._scan
            captures = list(self._capture_of[name].values())
            if captures:
                placed = getattr(self._placer, SCANS[kind])(fresh[topic], captures[-1])
                if placed is not None:
                    self._scene.show_points(*placed)

    def _show_facts(self) -> None:
        summary = self.summary()
        factor = summary['real_time_factor']
        line = f'**{summary["simulated_s"]:.1f} s** simulated'
        line += f', {factor:.2f} x real time' if factor else ''
        line += f', **{summary["bundles"]}** bundles' if summary['bundles'] is not None else ''
        self.page.show_status(f'{line}\n\n{self._said}' if self._said else line)
        maximum = self._rig.sync.window.max_ms if self._rig.sync is not None else 100.0
        self.page.show_history(self._history, maximum)
        self.page.show_streams([
            (name, f'{_number(s["achieved_hz"]):.1f} / {s["rate_hz"]:g}',
             f'{_number(s["latency_p50_ms"]):.1f}', str(s['lost']))
            for name, s in summary['sensors'].items()])
        keys = [key for key in LEDGER if any(i['ledger'].get(key)
                                             for i in summary['inputs'].values())]
        self.page.show_drops(('input', *keys), [
            (name, *(str(i['ledger'].get(key, '')) for key in keys))
            for name, i in summary['inputs'].items()])

    def _say(self, text: str) -> None:
        self._said = text
        self.get_logger().info(text)


def _pose(marker: Any) -> tuple[Any, Any]:
    place, turn = marker.pose.position, marker.pose.orientation
    return (np.array([place.x, place.y, place.z]),
            np.array([turn.w, turn.x, turn.y, turn.z]))


def _number(value: float | None) -> float:
    return float('nan') if value is None else value
