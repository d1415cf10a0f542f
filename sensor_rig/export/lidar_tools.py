"""LiDAR-inertial tools: FAST-LIO, LI-Init, LIO-SAM; and Autoware's concatenation of LiDARs."""

from __future__ import annotations

from sensor_rig.export.knowledge import LIDARS, Knowledge, KnownSensor
from sensor_rig.export.text import (
    CORRECT,
    apart,
    difference,
    gap,
    noise_lines,
    number,
    rotation_note,
    rows_text,
    warnings,
)


def fast_lio(known: Knowledge) -> dict[str, str]:
    """Return the part of a FAST-LIO configuration that is known here."""
    imu = known.require_imu('FAST-LIO')
    lidar = known.require(LIDARS, 'LiDAR', 'FAST-LIO')[0]
    lines = [
        '# time_offset_lidar_to_imu: t_lidar = t_imu - value, stamps of one capture.',
        'common:',
        f'    lid_topic: "{lidar.topic}"',
        f'    imu_topic: "{imu.topic}"',
        '    time_sync_en: false   # true replaces the value below by a guess',
        *difference(known, 'time_offset_lidar_to_imu', imu, lidar, indent='    '),
        'mapping:',
        '    # acc_cov, gyr_cov, b_acc_cov, b_gyr_cov are tuning values, not noise densities.',
        *_extrinsics(lidar, 'extrinsic_T', 'extrinsic_R', to_imu=True),
    ]
    return {'fast_lio.yaml': '\n'.join(lines) + '\n'}


def li_init(known: Knowledge) -> dict[str, str]:
    """Return what LI-Init should come to; it has no time offset to be given."""
    imu = known.require_imu('LI-Init')
    lidar = known.require(LIDARS, 'LiDAR', 'LI-Init')[0]
    lines = [
        '# LI-Init takes no offset, it estimates one: compare its result with this.',
        '# "Time Lag IMU to LiDAR": t_lidar = t_imu - value, stamps of one capture.',
        *difference(known, 'time_lag_imu_to_lidar', imu, lidar),
        *_extrinsics(lidar, 'translation_lidar_to_imu', 'rotation_lidar_to_imu', to_imu=True,
                     indent=''),
    ]  # fmt: skip
    return {'li_init.yaml': '\n'.join(lines) + '\n'}


def lio_sam(known: Knowledge) -> dict[str, str]:
    """Return the part of a LIO-SAM configuration that is known here; it has no time offset."""
    imu = known.require_imu('LIO-SAM')
    lidar = known.require(LIDARS, 'LiDAR', 'LIO-SAM')[0]
    lines = [
        '/**:',
        '  ros__parameters:',
        f'    # LIO-SAM has no time offset: it takes stamps as they are. {CORRECT}.',
    ]
    lines += [f'    # {each}' for each in apart(known, 't_imu = t_lidar {}', imu, lidar)]
    lines += [f'    pointCloudTopic: "{lidar.topic}"', f'    imuTopic: "{imu.topic}"']
    keys = ('imuAccNoise', 'imuGyrNoise', 'imuAccBiasN', 'imuGyrBiasN')
    lines += noise_lines(known.noise, keys, '    ')
    lines.append('    # extrinsicRot takes vectors of the IMU into the LiDAR frame.')
    lines += _extrinsics(lidar, 'extrinsicTrans', 'extrinsicRot', to_imu=False)
    return {'lio_sam.yaml': '\n'.join(lines) + '\n'}


def autoware(known: Knowledge) -> dict[str, str]:
    """Return the matching of Autoware's concatenate_and_time_synchronize_node."""
    lidars = known.require(LIDARS, 'LiDAR', 'Autoware')
    lines = [
        '/**:',
        '  ros__parameters:',
        '    # Clouds belong together whose stamp - lidar_timestamp_offset is the same within the',
        '    # noise window. This matches stamps as they are; it does not correct them, and the',
        f'    # motion compensation uses them as they are. {CORRECT}.',
        f'    input_topics: [{", ".join(lidar.topic for lidar in lidars)}]',
        '    matching_strategy:',
        '      type: advanced',
    ]
    if any(lidar.phase_s != lidar.phase_s for lidar in lidars):
        unknown = ', '.join(lidar.name for lidar in lidars if lidar.phase_s != lidar.phase_s)
        lines.append(gap('lidar_timestamp_offsets', f'the period of {unknown} is not that of '
                         f'{lidars[0].name}, or was not recorded', '      '))  # fmt: skip
        return {'autoware.yaml': '\n'.join(lines) + '\n'}
    first_s = min(lidar.phase_s for lidar in lidars)
    offsets = ', '.join(number(lidar.phase_s - first_s) for lidar in lidars)
    windows = ', '.join(number(max(lidar.jitter_s, 1e-4)) for lidar in lidars)
    for lidar in lidars[1:]:
        lines += [f'      # {text}' for text in warnings(known, lidar, lidars[0])]
    lines += [
        f'      lidar_timestamp_offsets: [{offsets}]',
        f'      lidar_timestamp_noise_window: [{windows}]',
    ]
    return {'autoware.yaml': '\n'.join(lines) + '\n'}


def _extrinsics(
    lidar: KnownSensor,
    translation_key: str,
    rotation_key: str,
    *,
    to_imu: bool,
    indent: str = '    ',
) -> list[str]:
    lines = []
    if lidar.position_m is None:
        lines.append(gap(translation_key, f'the position of {lidar.name} in the IMU frame is '
                         'neither in /tf_static nor given (--extrinsics)', indent))  # fmt: skip
    rotation = lidar.rotation()
    if rotation is None:
        return [*lines, gap(rotation_key, f'the rotation of {lidar.name} is not known', indent)]
    if lidar.position_m is not None:
        place = [float(value) for value in lidar.position_m]
        if not to_imu:
            place = (-rotation.T @ place).tolist()
        source = f'   # from {lidar.position_source}'
        lines.append(f'{indent}{translation_key}: {rows_text([place])[0]}{source}')
    turned = rotation if to_imu else rotation.T
    values = ', '.join(text.strip('[]') for text in rows_text(turned.tolist()))
    return [*lines, f'{indent}# {rotation_note(lidar)}', f'{indent}{rotation_key}: [{values}]']
