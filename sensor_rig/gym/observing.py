"""What a rig's sensors look like as a Gymnasium observation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary, Space

from rig_common.arrays import AnyArray
from rig_common.errors import RigError
from sim_sensors.interface import AnySensor
from sim_sensors.rig import Rig

OWN = 'env'
"""Key of the environment's own observation beside the sensors."""


def sensor_space(sensor: AnySensor, stack: int = 0) -> Space[Any]:
    """Return the space of one environment's reading; a picture keeps its shape.

    `stack` readings, newest first, have an axis of their own.
    """
    space = sensor.observation_space()
    shape = _shape(sensor, space)
    if stack:
        shape = (stack, *shape)
    if isinstance(space, MultiBinary):
        return MultiBinary(shape)
    low, high = (
        np.broadcast_to(bound.reshape(shape[1:] if stack else shape), shape)
        for bound in (space.low, space.high)
    )
    return Box(low.copy(), high.copy(), shape, space.dtype.type)


def _shape(sensor: AnySensor, space: Any) -> tuple[int, ...]:
    shapes = list(sensor.return_layout.shapes.values())
    if len(shapes) == 1 and len(shapes[0]) > 1:
        return tuple(shapes[0])
    return tuple(space.shape)


class SensedSpaces:
    """Observations of the sensors of a rig, all environments at once."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._stacks = {
            name: max(sensor.config.history_length, 0) for name, sensor in rig.sensors.items()
        }
        self.spaces = {
            name: sensor_space(sensor, self._stacks[name]) for name, sensor in rig.sensors.items()
        }
        """By sensor; a sensor with `history_length` N gives its last N readings."""

    def read(self) -> tuple[dict[str, AnyArray], dict[str, dict[str, AnyArray]]]:
        """Return (values, facts) by sensor, [num_envs, ...]; zeros where nothing has arrived.

        Facts are `valid`, `age_s` (time since the capture) and `stamp_ns`, [num_envs].
        """
        values, facts = {}, {}
        for name, sensor in self.rig.sensors.items():
            reading = self.rig.read(name, history_length=self._stacks[name] or None)
            seen = sensor.observation(reading.values)
            values[name] = seen.reshape(len(seen), *self.spaces[name].shape or ())
            first = (slice(None), 0) if self._stacks[name] else slice(None)
            valid = reading.valid[first]
            age_s = (self.rig.time_ns - reading.capture_ns[first]) / 1e9
            facts[name] = {
                'valid': valid,
                'age_s': np.where(valid, age_s, 0.0),
                'stamp_ns': reading.stamp_ns[first],
            }
        return values, facts


def merged(own: Space[Any] | None, senses: Mapping[str, Space[Any]]) -> Dict:
    """Return the space of the sensors beside the environment's own observation, if any."""
    spaces: dict[str, Space[object]] = {}
    if isinstance(own, Dict):
        spaces.update(own.spaces)
    elif own is not None:
        spaces[OWN] = own
    for name, space in senses.items():
        if name in spaces:
            raise RigError(
                f'the environment observes {name!r} already; give the sensor another '
                f'name, or use keep=False'
            )
        spaces[name] = space
    return Dict(spaces)
