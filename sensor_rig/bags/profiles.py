"""Quality of service as recordings write it: YAML, of which nothing is believed."""

from __future__ import annotations

from typing import Any

import yaml
from rosbags.interfaces import Qos
from rosbags.rosbag2.metadata import parse_qos

LONGEST_TEXT = 1 << 16
LOADER: Any = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
"""Knows no tags and runs no code."""


def profiles_of(given: object) -> list[Qos]:
    """Return the profiles of a topic (a text of YAML, or what was read from it), or none."""
    try:
        if isinstance(given, str):
            if '*' in given or len(given) > LONGEST_TEXT:  # an alias, of which nobody has need
                return []
            given = LOADER(given).get_single_data()
        if not isinstance(given, list):
            return []
        return parse_qos(given)
    except Exception:  # whatever rosbags makes of what is no profile
        return []
