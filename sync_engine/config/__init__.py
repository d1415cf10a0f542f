"""The `sync:` section of a rig file: what may be written there, read once, and what may change."""

from sync_engine.config.input_config import (
    IMAGE_TYPES,
    IMU_TYPE,
    TF_TYPE,
    CueAxes,
    CueKind,
    InputConfig,
    StampSource,
)
from sync_engine.config.sync_config import (
    TELLS_TURNS,
    AdaKFConfig,
    EpochConfig,
    MotionConfig,
    SyncConfig,
    WindowConfig,
    load_config,
)

__all__ = [
    'IMAGE_TYPES',
    'IMU_TYPE',
    'TELLS_TURNS',
    'TF_TYPE',
    'AdaKFConfig',
    'CueAxes',
    'CueKind',
    'EpochConfig',
    'InputConfig',
    'MotionConfig',
    'StampSource',
    'SyncConfig',
    'WindowConfig',
    'load_config',
]
