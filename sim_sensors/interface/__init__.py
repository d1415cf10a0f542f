"""What a sensor is, for the world below it and the pipeline above it."""

from sim_sensors.interface.batch import Batch, NoiseSource, ReadoutErrors, Timeline, clip_to
from sim_sensors.interface.config import SensorConfig, Vector3
from sim_sensors.interface.sensor import (
    AnySensor,
    FramePose,
    Origin,
    Sample,
    Sensor,
    Topic,
    frame_pose,
)

__all__ = [
    'AnySensor',
    'Batch',
    'FramePose',
    'NoiseSource',
    'Origin',
    'ReadoutErrors',
    'Sample',
    'Sensor',
    'SensorConfig',
    'Timeline',
    'Topic',
    'Vector3',
    'clip_to',
    'frame_pose',
]
