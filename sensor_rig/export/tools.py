"""The tools that are written for, and what each means by a time offset.

`means` is the convention, `upstream` where it stands; the test of each applies the same
formula to stamps with a known offset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sensor_rig.export import camera_tools, filter_tools, lidar_tools
from sensor_rig.export.knowledge import Knowledge


@dataclass(frozen=True)
class Tool:
    """One export."""

    title: str
    means: str
    upstream: str
    """Repository and file where the convention stands."""
    write: Callable[[Knowledge], dict[str, str]]
    """From what is known to the text of each file, by its name."""


TOOLS: dict[str, Tool] = {
    'kalibr': Tool(
        'Kalibr',
        'timeshift_cam_imu, s: t_imu = t_cam + value',
        'ethz-asl/kalibr: aslam_offline_calibration/kalibr/python/'
        'kalibr_imu_camera_calibration/IccSensors.py',
        camera_tools.kalibr,
    ),
    'openvins': Tool(
        'OpenVINS',
        'timeshift_cam_imu, s: t_imu = t_cam + value; one for all cameras',
        'rpng/open_vins: ov_msckf/src/core/VioManagerOptions.h, state/StateOptions.h',
        camera_tools.openvins,
    ),
    'vins': Tool(
        'VINS-Mono, VINS-Fusion',
        'td, s: t_imu = t_cam + value; one for all cameras',
        'HKUST-Aerial-Robotics/VINS-Mono: config/euroc/euroc_config.yaml, estimator_node.cpp',
        camera_tools.vins,
    ),
    'orb_slam3': Tool(
        'ORB-SLAM3',
        'no time offset',
        'UZ-SLAMLab/ORB_SLAM3: Examples/Monocular-Inertial/EuRoC.yaml',
        camera_tools.orb_slam3,
    ),
    'fast_lio': Tool(
        'FAST-LIO',
        'time_offset_lidar_to_imu, s: t_lidar = t_imu - value',
        'hku-mars/FAST_LIO: src/laserMapping.cpp',
        lidar_tools.fast_lio,
    ),
    'li_init': Tool(
        'LI-Init',
        'takes none; its result "Time Lag IMU to LiDAR", s: t_lidar = t_imu - value',
        'hku-mars/LiDAR_IMU_Init: include/LI_init/LI_init.cpp',
        lidar_tools.li_init,
    ),
    'lio_sam': Tool(
        'LIO-SAM',
        'no time offset',
        'TixiaoShan/LIO-SAM: config/params.yaml',
        lidar_tools.lio_sam,
    ),
    'autoware': Tool(
        'Autoware, concatenation of LiDARs',
        'lidar_timestamp_offsets, s: stamp - value is equal for clouds that belong together',
        'autowarefoundation/autoware_universe: '
        'sensing/autoware_pointcloud_preprocessor/docs/concatenate-data.md',
        lidar_tools.autoware,
    ),
    'px4': Tool(
        'PX4',
        'EKF2_GPS_DELAY (SENS_GPS0_DELAY since 2026), _EV_, _BARO_, _MAG_, _RNG_, ms: '
        't_imu = t_stamp - value, 0 to 300',
        'PX4/PX4-Autopilot: src/modules/ekf2/EKF/estimator_interface.cpp',
        filter_tools.px4,
    ),
    'robot_localization': Tool(
        'robot_localization',
        'no time offset',
        'cra-ros-pkg/robot_localization: params/ekf.yaml',
        filter_tools.robot_localization,
    ),
    'message_filters': Tool(
        'message_filters of ROS 2 Kilted',
        'queue_offset, ns: stamp - value is on one clock',
        'ros2/message_filters: src/message_filters/__init__.py',
        filter_tools.message_filters,
    ),
}
