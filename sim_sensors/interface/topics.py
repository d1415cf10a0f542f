"""Names of topics, decided once. Those of the rig are relative, so a namespace moves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rig_common.topics import truth_topic

if TYPE_CHECKING:
    from sim_sensors.interface.sensor import AnySensor

CLOCK_TOPIC = '/clock'
"""Where ROS looks for simulated time, in every namespace."""


def env_prefix(env: int, num_envs: int) -> str:
    """Return `env_3/` in a world of several environments, else nothing."""
    return f'env_{env}/' if num_envs > 1 else ''


def sensor_topics(sensor: AnySensor, env: int, num_envs: int) -> dict[str, str]:
    """Return what `sensor` publishes in environment `env`: relative topic by suffix."""
    prefix = env_prefix(env, num_envs)
    return {topic.suffix: prefix + topic.of(sensor.name) for topic in sensor.topics()}


def parameter_events_topic(*, hidden: bool = False) -> str:
    """Return where an emulator says its parameters: delays and clocks are truth, too."""
    return '/_truth/parameter_events' if hidden else '/parameter_events'


def diagnostics_topic(*, hidden: bool = False) -> str:
    """Return where an emulator says what it did to its streams, their true latency among it."""
    return truth_topic('diagnostics', hidden=True) if hidden else '/diagnostics'


def truth_key(sensor: str, env: int, num_envs: int) -> str:
    """Return the name under which ticks count a sensor's truth messages."""
    return env_prefix(env, num_envs) + sensor
