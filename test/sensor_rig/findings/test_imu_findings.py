"""An IMU whose accelerometer is late against its gyro, by how gravity turns in its frame."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from rig_common import msgs
from rig_common.arrays import Floats
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.writer import BagWriter
from sensor_rig.findings.imu import ImuMotion
from sensor_rig.findings.model import Severity
from sensor_rig.findings.page import findings_page
from sensor_rig.findings.recording import inspect_recording

S = 10**9
START_NS = 1_700_000_000 * S
FINE_S = 0.002


def messages(
    delay_s: float, *, tilt_rad: float = 0.6, push: float = 0.1, seed: int = 1
) -> Iterator[tuple[int, bytes]]:
    """Yield 60 s of an IMU in a hand: tilts and turns of 0.1 to 0.5 Hz, pushes in m/s^2."""
    random = np.random.default_rng(seed)
    fine = np.arange(-1.0, 61.0, FINE_S)

    def swing(size: float) -> Floats:
        waves = [
            np.sin(2.0 * np.pi * random.uniform(0.1, 0.5) * fine + random.uniform(0.0, 6.0))
            for _ in range(5)
        ]
        return np.asarray(size / 5**0.5 * np.sum(waves, axis=0))

    turns = Rotation.from_euler('ZYX', np.stack([swing(1.0), swing(tilt_rad), swing(tilt_rad)], 1))
    gyro = (turns[:-1].inv() * turns[1:]).as_rotvec() / FINE_S
    pushes = np.stack([swing(push) for _ in range(3)], 1)
    force = turns.inv().apply(pushes + np.array([0.0, 0.0, 9.81]))
    times = np.arange(0.0, 60.0, 0.01)
    rates, felt = (
        np.stack([np.interp(at, fine[: len(each)], column) for column in each.T], 1)
        for at, each in ((times, gyro), (times - delay_s, force))
    )
    rates += random.normal(0.0, 0.005, rates.shape)
    felt += random.normal(0.0, 0.05, felt.shape)
    template = msgs.imu('imu')
    for time_s, rate, acceleration in zip(times, rates, felt, strict=True):
        stamp_ns = START_NS + round(time_s * S)
        yield (
            stamp_ns,
            bytes(
                template.fill(stamp_ns, angular_velocity=rate, linear_acceleration=acceleration)
            ),
        )


def motion(*args: float, **options: float) -> ImuMotion:
    found = ImuMotion()
    for _, raw in messages(*args, **options):  # type: ignore[arg-type]
        found.add(raw)
    return found


@pytest.mark.parametrize('delay_s', [-0.03, 0.0, 0.015])
def test_tilting_tells_the_delay(delay_s: float) -> None:
    found = motion(delay_s).delay()
    assert found is not None
    assert found.delay_s == pytest.approx(delay_s, abs=max(4.0 * found.sigma_s, 0.001))
    assert found.sigma_s < 0.004


@pytest.mark.parametrize('options', [{'tilt_rad': 0.0}, {'tilt_rad': 0.2, 'push': 3.0}])
def test_turns_on_the_level_and_pushes_tell_nothing(options: dict[str, float]) -> None:
    assert motion(0.03, **options).delay() is None


def test_few_or_broken_messages_tell_nothing() -> None:
    found = ImuMotion()
    found.add(b'\0\1\0\0')
    assert found.delay() is None
    for k in range(300):
        found.add(bytes(msgs.imu('imu').fill(START_NS + k % 2, angular_velocity=[np.nan] * 3)))
    assert found.delay() is None


@pytest.mark.parametrize('delay_s', [0.0, 0.03])
def test_inspect_says_it_with_its_plot(tmp_path: Path, delay_s: float) -> None:
    with BagWriter(tmp_path / 'bag') as writer:
        writer.add_topic('/imu/data', 'sensor_msgs/msg/Imu')
        for stamp_ns, raw in messages(delay_s):
            writer.write('/imu/data', stamp_ns + 1_000_000, raw)
    with BagReader(tmp_path / 'bag') as bag:
        inspection = inspect_recording(bag)
    found = [each for each in inspection.findings if each.code == 'imu_delay']
    assert len(found) == bool(delay_s)
    for each in found:
        assert each.severity >= Severity.WARNING
        assert each.evidence['delay_ms'] == pytest.approx(30.0, abs=5.0)
        assert 'its accelerometer is' in each.sentence
        assert 'delay of the accelerometer' in findings_page('bag', inspection)
