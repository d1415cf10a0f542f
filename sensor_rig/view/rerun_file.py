"""A recording as a file for rerun: the same messages on three timelines.

`capture` is when a sample was truly taken (known of simulated ones), `stamp` what its header says,
`arrival` when it was there. The robot moves by its true poses, so on the timeline `stamp` its
scans lie where a consumer of the raw stamps would put them, and on `capture` where they belong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rig_common.arrays import Floats
from rig_common.cdr import CdrError, Reader
from rig_common.errors import UnavailableError
from rig_common.installing import install_extra
from rig_common.msgs import Transform
from rig_common.msgs.catalogue import known
from rig_common.msgs.decode import (
    Cloud,
    ImuMessage,
    Intrinsics,
    MotionMessage,
    Pixels,
    PoseMessage,
    Scan,
)
from sensor_rig.bags.reader import BagReader
from sensor_rig.drawing.colours import RAW, SYNCED, TRUTH

TRUE_POSE, TRUE_TIME = '/truth/odom', '/truth/time/'
OFFSET = '/sync/offset/'
ROBOT = 'world/robot'
MOST_POINTS = 20_000
"""Points of a cloud that are kept."""


class RerunFile:
    """Writes the messages of a recording into an .rrd file, in the order they came."""

    def __init__(self, out: Path) -> None:
        """Begin `out`; UnavailableError where rerun-sdk is missing."""
        try:
            import rerun
        except ImportError:
            raise UnavailableError(
                f'a file for rerun needs rerun-sdk; install it with: {install_extra("view")}'
            ) from None
        self._rr: Any = rerun
        self._stream: Any = rerun.RecordingStream('sensor_rig')
        try:
            self._stream.save(str(out))
        except RuntimeError as error:
            raise OSError(str(error)) from None
        self._captures: dict[tuple[str, int], int] = {}  # (frame, stamp) -> capture, ns
        self._paths: dict[str, str] = {}  # frame -> entity
        self._topics: set[str] = set()
        self._trails: dict[str, list[Any]] = defaultdict(list)
        self._errors_ms: dict[str, float] = {}  # frame -> newest stamp minus capture
        self._drawn: dict[str, list[str]] = defaultdict(list)  # kind of view -> entities
        self.counts: dict[str, int] = defaultdict(int)
        """Messages shown, by topic."""
        self._log('world', rerun.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)

    def _log(self, entity: str, what: object, *, static: bool = False) -> None:
        self._stream.log(entity, what, static=static)

    def _note(self, kind: str, entity: str) -> bool:
        """Remember that `kind` of view has `entity`; true the first time."""
        is_new = entity not in self._drawn[kind]
        if is_new:
            self._drawn[kind].append(entity)
        return is_new

    def write(self, bag: BagReader, advance: Callable[[float], None] = lambda _: None) -> None:
        """Write everything of a recording that can be shown."""
        showing: dict[str, Callable[[str, bytes, Any], None]] = {
            'scan': self._scan,
            'cloud': self._cloud,
            'image': self._image,
            'camera': self._camera,
            'imu': self._imu,
            'motion': self._odometry,
            'pose': self._pose,
            'joints': self._joints,
            'force': self._force,
            'time': self._time,
            'frames': self._frames,
        }
        shown = {
            name: (row.decode, showing[row.view])
            for name, topic in bag.topics.items()
            if (row := known(topic.type_name)).decode and row.view and name != '/tf'
        }
        self._topics = set(shown)
        for topic, receive_ns, raw, _ in bag.messages(list(shown)):
            try:
                self._place(raw, receive_ns)
                decode, show = shown[topic]
                show(topic, raw, decode(raw))
                self.counts[topic] += 1
            except CdrError:
                bag.problems.append(f'{topic}: a message that is none of its type is left out')
            advance(1)
        for entity, points in self._trails.items():
            colour = TRUTH if entity.startswith('world/truth') else RAW
            self._log(
                entity,
                self._rr.LineStrips3D(
                    [points], colors=[colour], radii=[self._rr.Radius.ui_points(1.5)]
                ),
                static=True,
            )
        self._stream.send_blueprint(self._blueprint())

    def _blueprint(self) -> Any:
        """Return what the viewer opens with: the world, beside it pictures, clocks and turns."""
        views = self._rr.blueprint

        def tabs(kind: str, view: Any) -> list[Any]:
            made = [
                view(origin=entity, name=entity.removeprefix(f'{ROBOT}/'))
                for entity in self._drawn[kind]
            ]
            return [views.Tabs(*made)] if made else []

        beside = (
            tabs('picture', views.Spatial2DView)
            + tabs('clock', views.TimeSeriesView)
            + tabs('turn', views.TimeSeriesView)
        )
        path = np.array(self._trails['world/truth/path'] or [(0.0, 0.0, 0.0)])
        centre, distance_m = path.mean(0), 8.0 + float(np.ptp(path, 0).max())
        world = views.Spatial3DView(
            origin='world',
            name='world',
            eye_controls=views.EyeControls3D(
                look_target=centre, position=centre + distance_m * np.array([-0.6, -0.6, 0.7])
            ),
        )
        return views.Blueprint(
            views.Horizontal(world, views.Vertical(*beside), column_shares=[3, 2])
            if beside
            else world,
            views.TimePanel(timeline='capture'),
            views.SelectionPanel(state='collapsed'),
        )

    def close(self) -> None:
        """End the file."""
        self._stream.disconnect()

    def _place(self, raw: bytes, receive_ns: int) -> None:
        """Set the three times of what is logged next."""
        stamp_ns, frame = Reader(raw).header()
        capture_ns = self._captures.get((frame, stamp_ns), stamp_ns)
        for name, time_ns in (
            ('capture', capture_ns),
            ('stamp', stamp_ns),
            ('arrival', receive_ns),
        ):
            self._stream.set_time(name, duration=np.timedelta64(time_ns, 'ns'))

    def _entity(self, topic: str, raw: bytes) -> str:
        """Return where a stream hangs: below its frame on the robot, where that is known."""
        frame = Reader(raw).header()[1]
        return f'{self._paths.get(frame, "world")}{topic}'

    # ---- one method per type ------------------------------------------------------------------

    def _frames(self, topic: str, raw: bytes, transforms: list[Transform]) -> None:
        """Hang every sensor on the robot; only /tf_static comes here."""
        rr = self._rr
        for each in transforms:
            above = self._paths.get(each.frame_id, 'world' if each.frame_id == 'world' else ROBOT)
            self._paths[each.child_frame_id] = path = f'{above}/{each.child_frame_id}'
            turn = rr.Quaternion(xyzw=each.rotation_xyzw)
            self._log(
                path, rr.Transform3D(translation=each.translation_m, quaternion=turn), static=True
            )

    def _time(self, topic: str, raw: bytes, reference: tuple[int, str, int, str]) -> None:
        """Keep when samples were captured; draw what clocks are off by, true and estimated, ms."""
        since_ns, frame, stamp_ns, sensor = reference
        off_ms = (stamp_ns - since_ns) / 1e6
        if topic.startswith(TRUE_TIME):
            self._captures[frame, stamp_ns] = since_ns
            self._errors_ms[frame] = self._errors_ms[sensor] = off_ms
            self._scalar(f'clock_error_ms/{sensor}', off_ms)
        elif topic.startswith(OFFSET):
            clock = f'clock/{sensor}'
            if self._note('clock', clock):
                for line, colour in (('estimate_ms', SYNCED), ('truth_ms', TRUTH)):
                    self._log(
                        f'{clock}/{line}', self._rr.SeriesLines(colors=[colour]), static=True
                    )
            self._scalar(f'{clock}/estimate_ms', off_ms)
            if {sensor, frame} <= self._errors_ms.keys():
                self._scalar(f'{clock}/truth_ms', self._errors_ms[sensor] - self._errors_ms[frame])

    def _scalar(self, entity: str, *values: float) -> None:
        self._log(entity, self._rr.Scalars(values))

    def _odometry(self, topic: str, raw: bytes, motion: MotionMessage) -> None:
        rr = self._rr
        if topic == TRUE_POSE:
            self._log(
                ROBOT,
                rr.Transform3D(
                    translation=motion.position_m,
                    quaternion=rr.Quaternion(xyzw=motion.orientation_xyzw),
                ),
            )
        self._pose(topic, raw, motion)
        self._scalar(f'motion{topic}', float(motion.linear_m_s[0]), float(motion.angular_rad_s[2]))

    def _pose(self, topic: str, raw: bytes, pose: MotionMessage | PoseMessage) -> None:
        trail = 'world/truth/path' if topic == TRUE_POSE else f'world/measured{topic}'
        self._trails[trail].append(pose.position_m)

    def _scan(self, topic: str, raw: bytes, scan: Scan) -> None:
        rays = np.flatnonzero(np.isfinite(scan.ranges))
        angles = scan.angle_min_rad + rays * scan.angle_increment_rad
        reach = scan.ranges[rays]
        self._points(
            topic,
            raw,
            np.stack([np.cos(angles) * reach, np.sin(angles) * reach, np.zeros(len(rays))], 1),
        )

    def _cloud(self, topic: str, raw: bytes, cloud: Cloud) -> None:
        points = cloud.points
        if not {'x', 'y', 'z'} <= set(points.dtype.names or ()):
            return  # what was collected for a bundle is a cloud without places
        points = points[:: max(1, len(points) // MOST_POINTS)]
        self._points(topic, raw, np.stack([points[axis] for axis in 'xyz'], 1))

    def _points(self, topic: str, raw: bytes, points: object) -> None:
        colour = SYNCED if topic.startswith('/synced/') else RAW
        self._log(
            self._entity(topic, raw),
            self._rr.Points3D(points, colors=[colour], radii=[self._rr.Radius.ui_points(2.0)]),
        )

    def _camera(self, topic: str, raw: bytes, info: Intrinsics) -> None:
        image = topic.rpartition('/')[0] + '/image_raw'
        for shown in {image, f'/synced{image}'} & self._topics:  # mostly one camera_info for both
            self._log(
                self._entity(shown, raw),
                self._rr.Pinhole(image_from_camera=info.k, width=info.width, height=info.height),
                static=True,
            )

    def _image(self, topic: str, raw: bytes, image: Pixels) -> None:
        entity = self._entity(topic, raw)
        if image.encoding == '32FC1':
            self._log(entity, self._rr.DepthImage(image.pixels, meter=1.0))
        elif image.encoding in ('rgb8', 'mono8'):
            self._log(entity, self._rr.Image(image.pixels).compress(jpeg_quality=80))
        else:
            return
        self._note('picture', entity)

    def _imu(self, topic: str, raw: bytes, imu: ImuMessage) -> None:
        self._note('turn', f'imu{topic}/angular_velocity')
        self._scalar(f'imu{topic}/angular_velocity', *imu.angular_rad_s)
        self._scalar(f'imu{topic}/linear_acceleration', *imu.linear_m_s2)

    def _joints(self, topic: str, raw: bytes, joints: tuple[int, dict[str, float]]) -> None:
        self._scalar(f'joints{topic}', *joints[1].values())

    def _force(self, topic: str, raw: bytes, force: tuple[int, Floats]) -> None:
        self._scalar(f'force{topic}', *force[1].tolist())
