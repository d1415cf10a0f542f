"""Names of the topics of the truth, decided once; relative, so a namespace moves them."""

from __future__ import annotations


def truth_topic(sensor: str, *, hidden: bool = False) -> str:
    """Return the topic of a sensor's truth; ROS tools do not list names that start with `_`."""
    return f'{"_truth" if hidden else "truth"}/{sensor}'


def truth_time_topic(sensor: str, *, hidden: bool = False) -> str:
    """Return the topic that pairs true capture times with the sensor's stamps."""
    return truth_topic(f'time/{sensor}', hidden=hidden)
