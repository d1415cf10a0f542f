"""Standard ROS 2 messages as CDR bytes, one function per type, made without ROS.

A function that returns a `Template` is called once per sensor and filled per sample; one that
returns `bytes` writes a message whose size varies. Block names are the fields of the message
definition; vectors are [3], quaternions [4] in ROS order (x, y, z, w), covariances row-major.
"""

from rig_common.msgs.body import (
    fluid_pressure,
    imu,
    joint_state,
    magnetic_field,
    nav_sat_fix,
    odometry,
    point_stamped,
    pose_stamped,
    range_reading,
    temperature,
    twist_stamped,
    vector3_stamped,
    wrench_stamped,
)
from rig_common.msgs.scene import (
    IMAGE_ENCODINGS,
    camera_info,
    compressed_image,
    image,
    laser_scan,
    point_cloud2,
    point_cloud2_message,
)
from rig_common.msgs.system import (
    Level,
    Status,
    Transform,
    bool_message,
    clock,
    diagnostic_array,
    float64_message,
    read_diagnostic_array,
    read_time_reference,
    string_message,
    tf_message,
    time_reference,
    uint64_message,
)

__all__ = [
    'IMAGE_ENCODINGS',
    'Level',
    'Status',
    'Transform',
    'bool_message',
    'camera_info',
    'clock',
    'compressed_image',
    'diagnostic_array',
    'float64_message',
    'fluid_pressure',
    'image',
    'imu',
    'joint_state',
    'laser_scan',
    'magnetic_field',
    'nav_sat_fix',
    'odometry',
    'point_cloud2',
    'point_cloud2_message',
    'point_stamped',
    'pose_stamped',
    'range_reading',
    'read_diagnostic_array',
    'read_time_reference',
    'string_message',
    'temperature',
    'tf_message',
    'time_reference',
    'twist_stamped',
    'uint64_message',
    'vector3_stamped',
    'wrench_stamped',
]
