"""Message classes by their type name."""

from __future__ import annotations

import importlib
from typing import Any

from rig_common.errors import RigError


def message_class(type_name: str, where: str = 'type') -> Any:
    """Return the rclpy class of e.g. `sensor_msgs/msg/Imu` (`sensor_msgs/Imu` works too)."""
    parts = type_name.split('/')
    if len(parts) == 2:
        parts.insert(1, 'msg')
    if len(parts) != 3 or parts[1] != 'msg' or not all(part.isidentifier() for part in parts):
        raise RigError(f'{where} is {type_name!r}; a message type is written package/msg/Name')
    try:
        module = importlib.import_module(f'{parts[0]}.msg')
    except ImportError:
        raise RigError(
            f'{where} is {type_name!r}; the message package {parts[0]} is not '
            f'installed on this machine'
        ) from None
    try:
        return getattr(module, parts[2])
    except AttributeError:
        raise RigError(f'{where} is {type_name!r}; {parts[0]} has no message {parts[2]}') from None


def is_installed(type_name: str) -> bool:
    """Whether this machine has the message type."""
    try:
        message_class(type_name)
    except RigError:
        return False
    return True


def is_stamped(message_type: Any) -> bool:
    """Whether the message starts with a std_msgs/Header."""
    fields = message_type.get_fields_and_field_types()
    return next(iter(fields.items()), None) == ('header', 'std_msgs/Header')
