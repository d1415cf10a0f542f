"""The rotation against the IMU: found with the offset, checked where it is declared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from support.lone_clock import LonePair
from support.sync_feeder import S

from rig_common.arrays import Floats
from rig_common.quaternions import matrix_from_wxyz, wxyz_from_matrix
from sync_engine.config import MotionConfig
from sync_engine.cues.base import XYZ_AXES
from sync_engine.cues.gyro import GyroTrack
from sync_engine.cues.motion import Rotation, RotationFit
from sync_engine.cues.mounting import Mounting, MountingSource, turned_by

OPTICAL = matrix_from_wxyz((0.5, -0.5, 0.5, -0.5))
OFFSET_S, START, SIGMA_RAD = 0.043, 50 * S, 5e-4
IMU_HZ, FRAME_S, LENGTH_S = 200, 0.05, 20.0


@dataclass(frozen=True)
class Drive:
    """Angular rate as a sum of sines about each axis; `scale` [3] makes some axes quiet."""

    scale: tuple[float, float, float] = (1.0, 1.0, 1.0)

    def angle(self, time: Floats) -> Floats:
        t = np.asarray(time)[..., None]
        rng = np.random.default_rng(3)
        size, omega = rng.uniform(0.05, 0.25, (3, 5)), rng.uniform(0.7, 9.0, (3, 5))
        phase = rng.uniform(0.0, 6.0, (3, 5))
        turned = np.sum(size * np.sin(omega * t[..., None] + phase), axis=-1)
        return np.asarray(turned * self.scale)

    def gyro(self) -> GyroTrack:
        track, step = GyroTrack(60.0), 1e-4
        times = np.arange(round(LENGTH_S * IMU_HZ)) / IMU_HZ
        rates = (self.angle(times + step) - self.angle(times - step)) / (2 * step)
        rates += np.random.default_rng(4).normal(0.0, 0.003, rates.shape) + 0.004
        for time, rate in zip(times, rates, strict=True):
            track.add(START + round(time * S), *rate.tolist())
        return track

    def turns(self, mounting: Floats, axes: tuple[int, ...] = (0, 1, 2)) -> list[Rotation]:
        times = np.arange(1.0, LENGTH_S - 1.0, FRAME_S)
        seen = np.diff(self.angle(times), axis=0) @ mounting  # R' g: in the sensor's frame
        seen += np.random.default_rng(5).normal(0.0, SIGMA_RAD, seen.shape)
        stamps = [START + round((time + OFFSET_S) * S) for time in times]
        return [
            Rotation(
                one,
                two,
                tuple(turn[list(axes)]),
                tuple(XYZ_AXES[i] for i in axes),
                (SIGMA_RAD**2,) * len(axes),
            )
            for one, two, turn in zip(stamps, stamps[1:], seen, strict=False)
        ]


def followed(
    fit: RotationFit, gyro: GyroTrack, turns: list[Rotation]
) -> list[tuple[float, float]]:
    """Feed the turns one by one; return (error, sigma) after every piece (s)."""
    found = LonePair(0.0, 0.1).follow(fit, gyro, turns)
    return [(offset_s - OFFSET_S, sigma_s) for offset_s, sigma_s in found]


def angle_deg(one: Floats, other: Floats) -> float:
    return float(np.degrees(np.arccos(np.clip((np.trace(one.T @ other) - 1.0) / 2.0, -1.0, 1.0))))


@pytest.mark.parametrize(
    'mounting',
    [
        OPTICAL,
        np.eye(3),
        turned_by(np.array([1.0, -2.0, 0.5])),
        turned_by(np.array([0.0, 3.1, 0.0])),
    ],
)
def test_an_unknown_rotation_is_found_with_the_offset(mounting: Floats) -> None:
    drive = Drive()
    fit = RotationFit(MotionConfig(), Mounting())
    fixes = followed(fit, drive.gyro(), drive.turns(mounting))
    assert len(fixes) >= 5
    assert all(abs(error) < 4.0 * sigma + 2e-4 for error, sigma in fixes)
    status = fit.mounting_status('camera')
    assert status.source is MountingSource.ESTIMATED
    assert status.observable
    off = angle_deg(matrix_from_wxyz(status.quat_wxyz), mounting)
    assert off < max(0.3, 4.0 * status.sigma_deg)
    assert status.sigma_deg < 1.0


def test_a_yaw_cue_finds_where_its_axis_points() -> None:
    """A scanner on its side, in a drive that turns about all axes."""
    drive = Drive()
    fit = RotationFit(MotionConfig(), Mounting())
    fixes = followed(fit, drive.gyro(), drive.turns(OPTICAL, axes=(2,)))
    assert all(abs(error) < 4.0 * sigma + 2e-4 for error, sigma in fixes)
    status = fit.mounting_status('lidar')
    assert status.axis_imu == pytest.approx(OPTICAL[:, 2], abs=0.02)
    assert status.source is MountingSource.ESTIMATED


def test_turns_about_one_axis_leave_the_rotation_open_but_not_the_offset() -> None:
    drive = Drive((0.0, 0.0, 1.5))
    fit = RotationFit(MotionConfig(), Mounting())
    fixes = followed(fit, drive.gyro(), drive.turns(OPTICAL))
    assert fixes
    assert abs(fixes[-1][0]) < 1e-3
    status = fit.mounting_status('camera')
    assert not status.observable
    assert status.source is MountingSource.UNKNOWN
    assert status.sigma_deg > 10.0
    seen = matrix_from_wxyz(status.quat_wxyz).T @ np.array([0.0, 0.0, 1.0])
    assert seen == pytest.approx(OPTICAL.T @ np.array([0.0, 0.0, 1.0]), abs=0.02)
    assert status.open_axis is not None
    assert abs(status.open_axis[2]) > 0.99  # the turn about it is not observable, the rest is


@pytest.mark.parametrize(
    ('declared', 'off_deg'),
    [(np.eye(3), 120.0), (OPTICAL @ turned_by(np.array([0.0, 0.2, 0.0])), 11.5)],
)
def test_a_wrong_declaration_is_contradicted_and_not_used(
    declared: Floats, off_deg: float
) -> None:
    drive = Drive()
    fit = RotationFit(MotionConfig(), Mounting(declared))
    fixes = followed(fit, drive.gyro(), drive.turns(OPTICAL))
    assert all(abs(error) < 5.0 * sigma + 5e-4 for error, sigma in fixes)
    status = fit.mounting_status('camera')
    assert status.source is MountingSource.CONTRADICTED
    assert status.declared_off_deg == pytest.approx(off_deg, abs=1.0)
    assert status.contradiction.startswith('inputs.camera.imu_quat_wxyz is wrong')
    assert angle_deg(matrix_from_wxyz(status.quat_wxyz), OPTICAL) < 1.0


def test_a_right_declaration_stands() -> None:
    drive = Drive()
    fit = RotationFit(MotionConfig(), Mounting(OPTICAL @ turned_by(np.array([0.01, 0.02, 0.0]))))
    followed(fit, drive.gyro(), drive.turns(OPTICAL))
    status = fit.mounting_status('camera')
    assert status.source is MountingSource.DECLARED
    assert status.contradiction == ''
    assert status.declared_off_deg == pytest.approx(1.28, abs=0.3)


def test_turns_of_something_else_are_refused() -> None:
    """No rotation and no offset explain them: nothing is believed, declared or not."""
    other = np.random.default_rng(9).normal(0.0, 0.02, (400, 3))
    turns = [
        Rotation(turn.stamp_from_ns, turn.stamp_to_ns, tuple(noise), XYZ_AXES, (1e-6,) * 3)
        for turn, noise in zip(Drive().turns(OPTICAL), other, strict=False)
    ]
    for mounting in (Mounting(), Mounting(np.eye(3))):
        fit = RotationFit(MotionConfig(), mounting)
        assert followed(fit, Drive().gyro(), turns) == []
        assert fit.mismatched > 0
        assert not fit.mounting_status('camera').observable


def test_quaternions_of_matrices() -> None:
    for vector in np.random.default_rng(1).normal(0.0, 1.5, (20, 3)):
        matrix = turned_by(vector)
        assert matrix_from_wxyz(wxyz_from_matrix(matrix)) == pytest.approx(matrix, abs=1e-12)
