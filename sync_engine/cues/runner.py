"""Runs the cues after the bundles are out, and hands what they find to the clocks.

Matching two scans takes a millisecond; a bundle must not wait for it. So `offer` only remembers,
and `run` does one piece of work at a time. What is offered faster than it is run is let go, oldest
first: a cue that skips frames still tells the truth about those it sees.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from rig_common.arrays import Floats
from rig_common.quaternions import matrix_from_wxyz
from sync_engine.config import CueAxes, InputConfig, SyncConfig
from sync_engine.cues.base import XYZ_AXES, Cue, GyroLookup
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.image import ImageCue
from sync_engine.cues.image_status import CameraStatus, camera_status, picture_doubt
from sync_engine.cues.inertial import OdometryCue, RateCue
from sync_engine.cues.motion import Axis, CueTraits, Rotation, RotationFit
from sync_engine.cues.mounting import Mounting, MountingStatus
from sync_engine.cues.scan import CloudCue, ScanCue
from sync_engine.cues.speed import SPEED_TRAITS, SpeedCue, Travel, speed_doubt
from sync_engine.streams.buffer import Packet
from sync_engine.streams.payload import Payload, PayloadReader
from sync_engine.streams.relative_clocks import relative_offset
from sync_engine.streams.stream import Stream

"""Decodes a payload into the named arrays that the sensor's cue wants."""

_QUEUE = 8
"""Inputs that may wait for their cue; they are references to payloads, so few."""

_TRAITS = {
    'image': CueTraits(scale_sigma=0.1, scale_walk=0.03, first_honesty=4.0),
    'speed': SPEED_TRAITS,
}
"""A camera ahead of the axle moves sideways in step with the turn, which looks like more of a turn
until its way is known: by up to 16 % in the yard; squared errors of the fixes before 6 s were 3.5
times what was claimed (eight drives)."""

CUES: dict[str, Callable[[], Cue]] = {
    'scan': ScanCue,
    'cloud': CloudCue,
    'image': ImageCue,
    'odometry': OdometryCue,
    'rate': RateCue,
    'joints': OdometryCue,
    'speed': SpeedCue,
}


class CueRunner:
    """The gyro's track, every sensor's rotations, and the work that waits."""

    def __init__(
        self, config: SyncConfig, streams: dict[str, Stream], readers: dict[str, PayloadReader]
    ) -> None:
        self._streams = streams
        self._imu = streams.get(config.turn_reference)
        """What turns are compared with: the IMU, or without one another stream's turns."""
        self._speed = streams.get(config.speed_reference)
        """What ways are compared with."""
        self._way = Travel()
        self._readers = readers
        self._cues = {
            name: CUES[given.cue]() for name, given in config.inputs.items() if given.cue != 'none'
        }
        self._axes_used = {name: given.cue_axes for name, given in config.inputs.items()}
        self._facts = {
            name: {'fx': given.focal_px, 'fy': given.focal_px, 'readout_s': given.readout_s}
            for name, given in config.inputs.items()
        }
        """What an input declares of a camera."""
        self._fits = {
            name: RotationFit(config.motion, Mounting(_declared(given)), _TRAITS.get(given.cue))
            for name, given in config.inputs.items()
        }
        motion = config.motion
        span_s = motion.max_span_s + 2.0 * motion.grid_s + 4.0
        self.gyro = GyroTrack(span_s)
        self.velocities = GyroTrack(span_s * SPEED_TRAITS.pace)
        """Of `_speed`, in the frame of its way."""
        self._waiting: deque[tuple[str, int, Payload]] = deque(maxlen=_QUEUE)
        self._touched: set[str] = set()
        self.on_rotation: Callable[[str, Rotation], None] | None = None
        """Told of every turn, and every way, that will be compared."""
        self.skipped = 0
        self.failed: dict[str, str] = {}
        """Sensor -> what its reader or cue said when it last failed."""

    def offer(self, stream: Stream, packet: Packet) -> None:
        """Remember one accepted packet of a sensor with a cue."""
        if stream.sensor_id not in self._readers:
            return
        if len(self._waiting) == _QUEUE:
            self._skip()
        self._waiting.append((stream.sensor_id, packet.stamp_ns, packet.payload))

    def _skip(self) -> None:
        """Make room: the oldest input goes, and of a camera all that wait.

        So the pictures that are looked at come in runs of neighbours. With every second one gone
        less would be found between two, at the same cost.
        """
        oldest = self._waiting[0][0]
        if isinstance(self._cues[oldest], ImageCue):
            gone = [item for item in self._waiting if item[0] == oldest]
        else:
            gone = [self._waiting[0]]
        self.skipped += len(gone)
        kept = (item for item in self._waiting if not any(item is each for each in gone))
        self._waiting = deque(kept, maxlen=_QUEUE)
        missed = getattr(self._readers[oldest], 'missed', None)
        if missed is not None:
            missed()

    def forget(self, sensor_id: str) -> None:
        """The sensor's clock jumped: what was queued on the old one is void."""
        self._waiting = deque(
            (item for item in self._waiting if item[0] != sensor_id), maxlen=_QUEUE
        )
        if sensor_id in self._cues:
            self._cues[sensor_id].reset()
        self._fits[sensor_id].clear()
        for track in self._tracks_of(sensor_id):
            track.clear()
            for name, fit in self._fits.items():
                if self._against(name)[1] is track:
                    fit.clear()

    def _against(self, sensor_id: str) -> tuple[Stream | None, GyroTrack]:
        """Return what a sensor is compared with, and its track."""
        if isinstance(self._cues.get(sensor_id), SpeedCue):
            return self._speed, self.velocities
        return self._imu, self.gyro

    def _tracks_of(self, sensor_id: str) -> list[GyroTrack]:
        """Return the tracks that a sensor makes for the others."""
        made = (self._imu, self.gyro), (self._speed, self.velocities)
        return [track for stream, track in made if stream and stream.sensor_id == sensor_id]

    def reset(self) -> None:
        """Forget everything that is queued."""
        for sensor_id in self._fits:
            self.forget(sensor_id)
        self._waiting.clear()

    def add_rotation(self, sensor_id: str, rotation: Rotation) -> None:
        """Queue a rotation whose axes are in the sensor's frame."""
        used = used_part(rotation, self._axes_used[sensor_id])
        if used is None:
            return
        if self.on_rotation is not None:
            self.on_rotation(sensor_id, used)
        if self.gyro in self._tracks_of(sensor_id):
            self._follow(sensor_id, used, self.gyro)
            return
        self._fits[sensor_id].add(used)
        self._touched.add(sensor_id)

    def _follow(self, reference: str, moved: Rotation, track: GyroTrack) -> None:
        """Take a turn, or a way, of a reference as its mean rate, as an IMU's would be."""
        if moved.is_way and self.on_rotation is not None:
            self.on_rotation(reference, moved)
        mean = moved.mean_rate()
        if mean is None:
            return
        track.add(mean[0], *mean[1])
        self._touched.update(
            name for name in self._readers if name != reference and self._against(name)[1] is track
        )

    def run(self, max_jobs: int) -> int:
        """Do up to `max_jobs` pieces of work; return how many are left."""
        for _ in range(max_jobs):
            if self._waiting:
                self._feed(*self._waiting.popleft())
            elif self._touched:
                self._compare(self._touched.pop())
            else:
                break
        return len(self._waiting) + len(self._touched)

    def _feed(self, sensor_id: str, stamp_ns: int, payload: Payload) -> None:
        """Decode and feed one input. A payload that cannot be read must not stop the engine."""
        try:
            values = {**self._facts[sensor_id], **self._readers[sensor_id](payload)}
            if self.velocities in self._tracks_of(sensor_id):
                moved = self._way.moved(stamp_ns, values)
                if moved is not None:
                    self._follow(sensor_id, moved, self.velocities)
                if isinstance(self._cues[sensor_id], SpeedCue):
                    return
            values['straight'] = not self._way.has_heading
            rotation = self._cues[sensor_id].feed(stamp_ns, values, self._lookup(sensor_id))
        except Exception as error:
            self.failed[sensor_id] = f'{type(error).__name__}: {error}'
            return
        if rotation is not None:
            self.add_rotation(sensor_id, rotation)

    def _lookup(self, sensor_id: str) -> GyroLookup | None:
        """Return how the gyro is looked up on the sensor's clock, as far as that is known."""
        clock, fit = self._streams[sensor_id].clock, self._fits[sensor_id]
        if self._imu is None or clock.filter is None or self._imu.clock.filter is None:
            return None
        if sensor_id == self._imu.sensor_id:
            return None
        if not fit.fits and not fit.mounting.is_known:
            return None  # after a fit, what is still open is what no motion has asked for
        imu, to_imu = self._imu.clock, fit.mounting.matrix
        now_ns = self._streams[sensor_id].arrivals.last_ns or 0

        def look(stamp_ns: int, times_s: Floats, axis: Axis) -> Floats | None:
            offset_ns, _ = relative_offset(clock, imu, now_ns)
            return self.gyro.angle(stamp_ns - offset_ns, times_s, to_imu @ axis)

        return look

    def _compare(self, sensor_id: str) -> None:
        """Lay the sensor's rotations over the gyro and tell its clock."""
        clock, (reference, track) = self._streams[sensor_id].clock, self._against(sensor_id)
        if reference is None or clock.filter is None or reference.clock.filter is None:
            return
        imu = reference.clock
        if clock.steps.in_doubt or imu.steps.in_doubt:
            return  # a turn from before a step to after it would be wrong by the step
        clock.follow_anchor(imu)
        self._fits[sensor_id].solve(track, clock, imu)

    def rests_on(self, sensor_id: str) -> str:
        """Return what of its motion the offset rests on, `rotation` or `speed`; else ''."""
        made = self._tracks_of(sensor_id)
        for name, fit in self._fits.items():
            track = self._against(name)[1]
            if fit.fits and (track in made or name == sensor_id):
                return 'speed' if track is self.velocities else 'rotation'
        return ''

    def mounting_of(self, sensor_id: str) -> MountingStatus | None:
        """Return how the sensor is turned against the IMU; None where it gives no rotations."""
        fit, cue = self._fits[sensor_id], self._cues.get(sensor_id)
        has_any = not isinstance(cue, SpeedCue) and (cue is not None or fit.has_rotations)
        return fit.mounting_status(sensor_id) if has_any else None

    def refusal_of(self, sensor_id: str) -> str:
        """Say in one sentence why a sensor's turns gave no offset; empty where they did."""
        fit, cue = self._fits[sensor_id], self._cues.get(sensor_id)
        if fit.is_found or self._tracks_of(sensor_id):
            return ''
        reference, track = self._against(sensor_id)
        if reference is None and isinstance(cue, SpeedCue):
            return 'there is no second stream that tells speed'
        if reference is None:
            return 'there is neither an IMU nor a second stream that tells turns' if cue else ''
        of = reference.sensor_id if reference.sensor_id in self._cues else 'the gyro'
        if isinstance(cue, SpeedCue):
            return speed_doubt(track, fit, of)
        if isinstance(cue, ImageCue):
            return picture_doubt(cue.counts, self.gyro.turning_rad_s(), fit.refusal(of), of)
        return fit.refusal(of)

    def camera_of(self, sensor_id: str) -> CameraStatus | None:
        """Return what is known of a camera's lens and shutter; None for other sensors."""
        cue, fit = self._cues.get(sensor_id), self._fits[sensor_id]
        if not isinstance(cue, ImageCue):
            return None
        return camera_status(sensor_id, cue, fit.scale, fit.scale_sigma, self._lookup(sensor_id))

    def fit_of(self, sensor_id: str) -> RotationFit:
        """Return the sensor's fit, for its figures."""
        return self._fits[sensor_id]


def used_part(rotation: Rotation, axes: CueAxes) -> Rotation | None:
    """Return what `cue_axes` says is used of a rotation; None where nothing is left."""
    if rotation.axes is None or axes in ('', 'vector'):
        return rotation
    if axes == 'size':
        turn = np.array(rotation.values_rad)
        size = float(np.sqrt(turn @ turn))
        along = turn / size if size > 0.0 else np.full(len(turn), len(turn) ** -0.5)
        variance = float(along**2 @ np.array(rotation.variances))
        return Rotation(rotation.stamp_from_ns, rotation.stamp_to_ns, (size,), None, (variance,))
    for axis, value, variance in zip(
        rotation.axes, rotation.values_rad, rotation.variances, strict=True
    ):
        if abs(axis[2]) > 1.0 - 1e-9:
            return Rotation(
                rotation.stamp_from_ns, rotation.stamp_to_ns, (value,), (axis,), (variance,)
            )
    return None


def _declared(given: InputConfig) -> Floats | None:
    """Return the declared rotation from the sensor's frame to the IMU's, None for unknown."""
    return matrix_from_wxyz(given.imu_quat_wxyz) if any(given.imu_quat_wxyz) else None


def rotation_of(
    stamp_from_ns: int,
    stamp_to_ns: int,
    turn_rad: float | Sequence[float],
    axis: Sequence[float] | None,
    variance: float | Sequence[float],
) -> Rotation:
    """Build a `Rotation` from what a shell has: an angle about an axis, a vector, or a size."""
    axes: tuple[tuple[float, float, float], ...] | None = XYZ_AXES
    if isinstance(turn_rad, (int, float)):
        axes = None if axis is None else ((float(axis[0]), float(axis[1]), float(axis[2])),)
        values: tuple[float, ...] = (float(turn_rad),)
    else:
        values = tuple(float(value) for value in turn_rad)
    if isinstance(variance, (int, float)):
        variances = (float(variance),) * len(values)
    else:
        variances = tuple(float(value) for value in variance)
    return Rotation(stamp_from_ns, stamp_to_ns, values, axes, variances)
