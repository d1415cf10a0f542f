"""What an export knows, from a recording and from what people give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rig_common.arrays import Floats
from rig_common.cdr import CdrError, Reader, read_stamp_ns
from rig_common.errors import RigError, why
from rig_common.msgs.decode import Intrinsics, read_camera_info, read_imu, read_transforms
from rig_common.quaternions import Quaternion, matrix_from_wxyz
from rig_common.validation import hint
from sensor_rig.bags.reader import BagReader
from sensor_rig.correct.clocks import LearnedRecording, learn_recording
from sensor_rig.correct.followers import find_followers
from sensor_rig.export.knowledge import LIDARS, ImuNoise, Knowledge, KnownSensor, Triple
from sync_engine.config import SyncConfig
from sync_engine.cues.mounting import MountingStatus

INFO_TYPE = 'sensor_msgs/msg/CameraInfo'
REST_S, REST_STRETCHES = 1.0, 5
"""An IMU's noise is read from so many of its calmest stretches of this length."""
SAME_PERIOD = 0.02
"""LiDARs whose periods differ by more than this part have no common phase."""


def knowledge_of(
    source: Path,
    sync: SyncConfig | None,
    sidecar: Path | None,
    advance: Callable[[float], None],
) -> Knowledge:
    """Return what is known of a recording."""
    with BagReader(source, sidecar) as bag:
        known = _from_recording(bag, learn_recording(bag, sync, advance))
        return replace(known, problems=bag.problems)


def _from_recording(bag: BagReader, learned: LearnedRecording) -> Knowledge:
    config = learned.config
    imu = config.imu_sensor_id
    base = imu or config.reference_sensor_id
    tracks = learned.tracks(base, to_host=False)
    status = learned.engine.engine.status().sensors
    times = _Times(bag, learned.names)
    sensors = {}
    for topic, name in learned.names.items():
        given, track = config.inputs[name], tracks.get(name)
        latency_s, jitter_s = times.latency_and_jitter_s(topic)
        sensors[name] = KnownSensor(
            name,
            topic,
            given.type,
            status[name].rate_hz or times.rate_hz(topic),
            np.nan if track is None else (track.summary.median_ns - given.stamp_shift_ns) / 1e9,
            np.inf if track is None else track.summary.sigma_s,
            learned.state(track).value,
            np.nan if track is None else track.summary.drift_ppm,
            0 if track is None else track.summary.starts - 1,
            *_mounting(status[name].mounting, given.imu_quat_wxyz),
            latency_s=latency_s,
            jitter_s=jitter_s,
        )
    found = Knowledge(
        str(bag.path), bag.duration_s, sensors, config.reference_sensor_id, imu,
        _noise_at_rest(bag, sensors[imu]) if imu in sensors else ImuNoise(),
    )  # fmt: skip
    return _with_phases(_with_intrinsics(_with_mounts(found, bag), bag, learned), times)


def _mounting(
    found: MountingStatus | None, declared: Quaternion
) -> tuple[Quaternion | None, float, bool]:
    """Return rotation, sigma (deg) and whether it is declared; what motion shows goes first."""
    if found is not None and found.axis_imu is None and found.observable:
        return found.quat_wxyz, found.sigma_deg, found.source == 'declared'
    return declared if any(declared) else None, np.nan, any(declared)


class _Times:
    """Stamps and arrivals of the inputs, ns."""

    def __init__(self, bag: BagReader, names: Mapping[str, str]) -> None:
        self._stamps: dict[str, list[int]] = {topic: [] for topic in names}
        self._arrivals: dict[str, list[int]] = {topic: [] for topic in names}
        for topic, receive_ns, raw, _ in bag.messages([*names]):
            with suppress(CdrError):
                self._stamps[topic].append(read_stamp_ns(raw))
                self._arrivals[topic].append(receive_ns)

    def rate_hz(self, topic: str) -> float:
        stamps = self._stamps[topic]
        span_s = (stamps[-1] - stamps[0]) / 1e9 if len(stamps) > 1 else 0.0
        return (len(stamps) - 1) / span_s if span_s > 0.0 else 0.0

    def stamps_s(self, topic: str, zero_ns: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        return (np.array(self._stamps[topic], np.int64) - zero_ns) / 1e9

    def zero_ns(self, topic: str) -> int:
        return self._stamps[topic][0] if self._stamps[topic] else 0

    def latency_and_jitter_s(self, topic: str) -> tuple[float, float]:
        """Return how late messages come after their stamps, and how far stamps are off a grid."""
        stamps = np.array(self._stamps[topic], np.int64)
        if len(stamps) < 20:
            return np.nan, np.nan
        delays = (np.array(self._arrivals[topic], np.int64) - stamps) / 1e9
        seconds = (stamps - stamps[0]) / 1e9
        period_s = float(np.median(np.diff(seconds)))
        if period_s <= 0.0:
            return float(np.percentile(delays, 99)), np.nan
        numbers = np.cumsum(np.r_[0, np.rint(np.diff(seconds) / period_s)])
        rest = seconds - np.polyval(np.polyfit(numbers, seconds, 1), numbers)
        low, high = np.percentile(rest, (0.5, 99.5))
        return float(np.percentile(delays, 99)), float(high - low) / 2.0


def _with_phases(known: Knowledge, times: _Times) -> Knowledge:
    """Add to LiDARs of one period where in it each is stamped, by what belongs together.

    Captures are compared on one clock, their stamps then give the place.
    """
    lidars = [sensor for sensor in known.of(LIDARS) if sensor.known and sensor.rate_hz > 0.0]
    if not lidars:
        return known
    first, sensors = lidars[0], dict(known.sensors)
    zero_ns, period_s = times.zero_ns(first.topic), 1.0 / first.rate_hz
    for sensor in lidars:
        if abs(sensor.rate_hz * period_s - 1.0) > SAME_PERIOD:
            continue
        mine = times.stamps_s(sensor.topic, zero_ns)
        captures = mine - (sensor.ahead_s - first.ahead_s)
        others = times.stamps_s(first.topic, zero_ns)
        near = others[np.clip(np.searchsorted(others, captures) - 1, 0, len(others) - 1)]
        after_s = (captures - near)[(captures >= others[0]) & (captures < others[-1] + period_s)]
        phase_s = _circular_median(after_s, period_s) + sensor.ahead_s - first.ahead_s
        sensors[sensor.name] = replace(sensor, phase_s=phase_s)
    return replace(known, sensors=sensors)


def _circular_median(values_s: np.ndarray[Any, np.dtype[np.float64]], period_s: float) -> float:
    """Return the middle of phases, from just below 0 to just below a period."""
    if not len(values_s):
        return np.nan
    angles = values_s / period_s * 2.0 * np.pi
    middle = float(np.angle(np.exp(1j * angles).mean())) / (2.0 * np.pi) * period_s
    near = (values_s - middle + period_s / 2.0) % period_s - period_s / 2.0
    found = middle + float(np.median(near))
    return found + period_s if found < -0.1 * period_s else found


def _with_mounts(known: Knowledge, bag: BagReader) -> Knowledge:
    """Add where /tf_static says that sensors are in the IMU's frame."""
    steps: dict[str, tuple[str, Floats]] = {}
    for message in bag.messages([name for name in bag.topics if name.endswith('tf_static')]):
        with suppress(CdrError):
            for each in read_transforms(message.raw):
                x, y, z, w = each.rotation_xyzw
                step = np.eye(4)
                step[:3, :3], step[:3, 3] = matrix_from_wxyz([w, x, y, z]), each.translation_m
                steps[each.child_frame_id.strip('/')] = each.frame_id.strip('/'), step

    def pose_of(topic: str) -> tuple[str, str, Floats]:
        """Return the frame of a topic's messages, its root, and its pose there."""
        start, pose = '', np.eye(4)
        for message in islice(bag.messages([topic]), 1):
            with suppress(CdrError):
                start = Reader(message.raw).header()[1].strip('/')
        root = start
        for _ in range(len(steps)):  # a tree; a ring ends here, too
            if root in steps:
                root, step = steps[root]
                pose = step @ pose
        return start, root, pose

    if not known.imu or not steps:
        return known
    imu_frame, imu_root, imu_pose = pose_of(known.sensors[known.imu].topic)
    sensors = dict(known.sensors)
    for name, sensor in known.sensors.items():
        frame, root, pose = pose_of(sensor.topic)
        if root == imu_root and frame != imu_frame:
            x, y, z = (np.linalg.inv(imu_pose) @ pose)[:3, 3].tolist()
            sensors[name] = replace(sensor, position_m=(x, y, z), position_source='/tf_static')
    return replace(known, sensors=sensors)


def _with_intrinsics(known: Knowledge, bag: BagReader, learned: LearnedRecording) -> Knowledge:
    """Add what the camera_info of each camera says."""
    owners = {**find_followers(bag, learned.names).topics}
    owners |= {topic: learned.config.inputs[name].clock_of or name
               for topic, name in learned.names.items()}  # fmt: skip
    wanted = {topic: owners[topic] for topic, about in bag.topics.items()
              if about.type_name == INFO_TYPE and topic in owners}  # fmt: skip
    found: dict[str, Intrinsics] = {}
    for topic, _, raw, _ in bag.messages([*wanted]) if wanted else ():
        with suppress(CdrError):
            found.setdefault(wanted[topic], read_camera_info(raw))
        if len(found) == len(set(wanted.values())):
            break
    sensors = {
        name: replace(sensor, intrinsics=found.get(name)) for name, sensor in known.sensors.items()
    }
    return replace(known, sensors=sensors)


def _noise_at_rest(bag: BagReader, imu: KnownSensor) -> ImuNoise:
    """Return white noise from the calmest stretches of an IMU: at most this, as motion adds."""
    rows = []
    for message in bag.messages([imu.topic]):
        with suppress(CdrError):
            gyro, force = read_imu(message.raw)
            rows.append((*gyro, *force))
    size = int(REST_S * imu.rate_hz)
    count = len(rows) // size if size >= 20 else 0
    if count < REST_STRETCHES:
        return ImuNoise()
    parts = np.array(rows)[: count * size].reshape(count, size, 6)
    # Differences of neighbours: what moves slowly does not count.
    sigmas = np.diff(parts, axis=1).std(axis=1) / 2.0**0.5
    calm = np.sort(sigmas, axis=0)[:REST_STRETCHES].mean(axis=0) / imu.rate_hz**0.5
    gyro_density, accel_density = float(calm[:3].max()), float(calm[3:].max())
    return ImuNoise(
        gyro_density,
        accel_density,
        source='at most this: from the calmest seconds of the recording, motion included',
    )


def with_declared_noise(known: Knowledge, sensors: Mapping[str, Any]) -> Knowledge:
    """Return it with the noise that a rig file declares for its IMU, where it does."""
    declared = sensors.get(known.imu)
    gyro, accel = getattr(declared, 'gyro', None), getattr(declared, 'accel', None)
    if gyro is None or accel is None:
        return known
    values = [max(np.atleast_1d(each)) for each in (
        gyro.noise_density, accel.noise_density, gyro.random_walk, accel.random_walk)]  # fmt: skip
    if not any(values[:2]):
        return known
    densities = [float(value) or np.nan for value in values]
    gyro_density, accel_density, gyro_walk, accel_walk = densities
    noise = ImuNoise(gyro_density, accel_density, gyro_walk, accel_walk, 'as the rig file says')
    return replace(known, noise=noise)


# ---- what people give ---------------------------------------------------------------------------


def with_positions(known: Knowledge, file: Path) -> Knowledge:
    """Return it with the positions of a YAML file: `camera: [0.05, 0.0, -0.01]`.

    Each is the place of a sensor's origin in the IMU's frame, m.
    """
    try:
        values = yaml.safe_load(file.read_text(encoding='utf-8'))
    except OSError as error:
        raise RigError(f'cannot read {file}: {why(error)}') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RigError(f'{file} is not YAML: {" ".join(str(error).split())}') from None
    if not isinstance(values, dict):
        raise RigError(f'{file} should map inputs to positions, such as lidar: [0, 0, 0.1]')
    sensors = dict(known.sensors)
    for name, given in values.items():
        if name not in sensors:
            raise RigError(f'{file} names {name}, which is no input; '
                           f'{hint(str(name), list(sensors), "inputs are")}')  # fmt: skip
        sensors[name] = replace(
            sensors[name],
            position_m=_position(given, f'{file}: {name}'),
            position_source='--extrinsics',
        )
    return replace(known, sensors=sensors)


def _position(given: object, where: str) -> Triple:
    numbers = given if isinstance(given, list) else []
    if len(numbers) != 3 or not all(isinstance(value, (int, float)) for value in numbers):
        raise RigError(f'{where} is {given!r}; it should be three numbers: x, y, z in m')
    x, y, z = map(float, numbers)
    return x, y, z
