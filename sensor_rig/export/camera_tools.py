"""Visual-inertial tools: Kalibr, OpenVINS, VINS-Mono and VINS-Fusion, ORB-SLAM3.

All that have a time shift mean the same: t_imu = t_cam + value, the stamps of both at one capture.
"""

from __future__ import annotations

import numpy as np

from sensor_rig.export.knowledge import CAMERAS, Knowledge, KnownSensor
from sensor_rig.export.text import (
    CORRECT,
    apart,
    difference,
    gap,
    noise_lines,
    number,
    rotation_note,
    rows_text,
)

DISTORTIONS = {'plumb_bob': 'radtan', 'equidistant': 'equidistant', 'fisheye': 'equidistant'}
"""ROS -> Kalibr."""


def kalibr(known: Knowledge) -> dict[str, str]:
    """Return camchain-imucam.yaml and imu.yaml."""
    chain = _camchain(known, 'Kalibr', 'T_cam_imu')
    return {
        'camchain-imucam.yaml': '\n'.join(chain) + '\n',
        'imu.yaml': '\n'.join(_imu_yaml(known, 'Kalibr')) + '\n',
    }


def openvins(known: Knowledge) -> dict[str, str]:
    """Return kalibr_imucam_chain.yaml and kalibr_imu_chain.yaml, OpenVINS' own dialect."""
    chain = _camchain(known, 'OpenVINS', 'T_imu_cam')
    imu = _imu_yaml(known, 'OpenVINS')
    cameras = known.of(CAMERAS)
    note = (
        [f'# OpenVINS keeps one shift for all cameras: that of cam0, {cameras[0].name}.']
        if len(cameras) > 1
        else []
    )
    return {
        'kalibr_imucam_chain.yaml': '\n'.join(['%YAML:1.0', '', *note, *chain]) + '\n',
        'kalibr_imu_chain.yaml': '\n'.join(
            ['%YAML:1.0', '', 'imu0:', *(f'  {line}' for line in imu)]
        )
        + '\n',
    }


def vins(known: Knowledge) -> dict[str, str]:
    """Return the part of a VINS-Mono or VINS-Fusion configuration that is known here."""
    imu = known.require_imu('VINS')
    cameras = known.require(CAMERAS, 'camera', 'VINS')
    first = cameras[0]
    lines = [
        '%YAML:1.0',
        '# td: t_imu = t_cam + td, where both are stamps of one capture.',
        f'imu_topic: "{imu.topic}"',
    ]
    for index, camera in enumerate(cameras[:2]):
        key = 'image_topic' if len(cameras) == 1 else f'image{index}_topic'
        lines.append(f'{key}: "{camera.topic}"')
    lines += difference(known, 'td', imu, first)
    is_constant = imu.known and first.known and not known.drift_ppm(imu, first)
    lines.append(f'estimate_td: {0 if is_constant else 1}   # 1: VINS refines td as it goes')
    if len(cameras) > 1:
        lines.append(f'# VINS keeps one td for all cameras: that of {first.name}.')
    lines += ['# Noise of single samples: continuous densities times the root of the IMU rate.']
    root = max(imu.rate_hz, 0.0) ** 0.5
    lines += noise_lines(known.noise, ('acc_n', 'gyr_n', 'acc_w', 'gyr_w'), scale=root)
    for index, camera in enumerate(cameras[:2]):
        lines += _opencv_pose(f'body_T_cam{index}', camera, inverse=False)
    return {'vins.yaml': '\n'.join(lines) + '\n'}


def orb_slam3(known: Knowledge) -> dict[str, str]:
    """Return the IMU part of an ORB-SLAM3 settings file, which has no time shift."""
    imu = known.require_imu('ORB-SLAM3')
    camera = known.require(CAMERAS, 'camera', 'ORB-SLAM3')[0]
    lines = [
        '%YAML:1.0',
        f'# ORB-SLAM3 has no time shift: it takes stamps as they are. {CORRECT}.',
        *(f'# {each}' for each in apart(known, 't_imu = t_cam {}', imu, camera)),
        *_opencv_pose('IMU.T_b_c1', camera, inverse=False),
    ]
    keys = ('IMU.NoiseAcc', 'IMU.NoiseGyro', 'IMU.AccWalk', 'IMU.GyroWalk')
    lines += noise_lines(known.noise, keys)
    lines.append(f'IMU.Frequency: {number(round(imu.rate_hz, 3))}')
    return {'orb_slam3.yaml': '\n'.join(lines) + '\n'}


def _camchain(known: Knowledge, tool: str, pose_key: str) -> list[str]:
    imu = known.require_imu(tool)
    lines = [
        f'# From {known.source}.',
        '# timeshift_cam_imu: t_imu = t_cam + shift, where both are stamps of one capture.',
    ]
    for index, camera in enumerate(known.require(CAMERAS, 'camera', tool)):
        lines.append(f'cam{index}:')
        lines += _pose(pose_key, camera, inverse=pose_key == 'T_cam_imu')
        lines += _intrinsics(camera)
        lines.append(f'  rostopic: {camera.topic}')
        lines += difference(known, 'timeshift_cam_imu', imu, camera, indent='  ')
    return lines


def _pose(key: str, camera: KnownSensor, *, inverse: bool) -> list[str]:
    rows = _transform(camera, inverse=inverse)
    if rows is None:
        return _pose_gap(key, camera, '  ', inverse=inverse)
    note = f'  # {rotation_note(camera)}; translation from {camera.position_source}'
    return [note, f'  {key}:', *(f'  - {row}' for row in rows_text(rows))]


def _pose_gap(key: str, camera: KnownSensor, indent: str, *, inverse: bool) -> list[str]:
    rotation = camera.rotation()
    lines = []
    if camera.position_m is None:
        lines.append(gap(key, f'the position of {camera.name} in the IMU frame is neither in '
                         '/tf_static nor given (--extrinsics)', indent))  # fmt: skip
    if rotation is None:
        lines.append(gap(key, f'the rotation of {camera.name} is not known', indent))
    else:
        turned = rotation.T if inverse else rotation
        lines.append(f'{indent}# its rotation ({rotation_note(camera)}):')
        lines += [f'{indent}#   {row}' for row in rows_text(turned.tolist())]
    return lines


def _transform(camera: KnownSensor, *, inverse: bool) -> list[list[float]] | None:
    """Return the rows of T_imu_cam, or of its inverse; None where a part is not known."""
    rotation, position = camera.rotation(), camera.position_m
    if rotation is None or position is None:
        return None
    pose, place = np.eye(4), np.array(position)
    pose[:3, :3], pose[:3, 3] = rotation, place
    if inverse:
        pose[:3, :3], pose[:3, 3] = rotation.T, -rotation.T @ place
    rows: list[list[float]] = pose.tolist()
    return rows


def _opencv_pose(key: str, camera: KnownSensor, *, inverse: bool) -> list[str]:
    rows = _transform(camera, inverse=inverse)
    if rows is None:
        return _pose_gap(key, camera, '', inverse=inverse)
    return [
        f'# {camera.name} to the IMU: {rotation_note(camera)}; '
        f'translation from {camera.position_source}',
        f'{key}: !!opencv-matrix',
        '   rows: 4',
        '   cols: 4',
        '   dt: d',
        f'   data: [{", ".join(text.strip("[]") for text in rows_text(rows))}]',
    ]


def _intrinsics(camera: KnownSensor) -> list[str]:
    found = camera.intrinsics
    if found is None:
        return [gap('intrinsics', f'no camera_info of {camera.name} was recorded', '  ')]
    k, d = found.k, found.d.tolist()
    model = DISTORTIONS.get(found.model)
    lines = ['  # as its camera_info says', '  camera_model: pinhole']
    values = [float(k[0, 0]), float(k[1, 1]), float(k[0, 2]), float(k[1, 2])]
    lines.append(f'  intrinsics: {rows_text([values])[0]}')
    if model is None or len(d) < 4:
        lines.append(gap('distortion_coeffs', f'{found.model!r} with {len(d)} values', '  '))
    else:
        lines += [f'  distortion_model: {model}',
                  f'  distortion_coeffs: {rows_text([d[:4]])[0]}']  # fmt: skip
        if any(d[4:]):
            lines.append('  # further coefficients of camera_info have no place here')
    return [*lines, f'  resolution: [{found.width}, {found.height}]']


def _imu_yaml(known: Knowledge, tool: str) -> list[str]:
    imu = known.require_imu(tool)
    keys = (
        'accelerometer_noise_density',
        'gyroscope_noise_density',
        'accelerometer_random_walk',
        'gyroscope_random_walk',
    )
    lines = [f'# From {known.source}. Continuous: u/sqrt(Hz) and u/s/sqrt(Hz).']
    lines += noise_lines(known.noise, keys)
    return [*lines, f'rostopic: {imu.topic}', f'update_rate: {number(round(imu.rate_hz, 3))}']
