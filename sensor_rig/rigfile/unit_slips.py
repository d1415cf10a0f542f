"""Values of a rig file that are allowed and yet look like a slip of the unit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sensor_rig.rigfile import RigConfig

FAST = frozenset(
    {
        'imu',
        'joint_state',
        'contact',
        'contact_force',
        'contact_probe',
        'force_torque',
        'tactile',
        'wheel_odometry',
        'magnetometer',
        'range',
    }
)
"""Types whose samples travel in milliseconds."""
PLACELESS = ('joint_state', 'clock_pps')
LATENCIES = (
    'delay_range_s',
    'jitter_s',
    'latency.min_s',
    'latency.max_s',
    'latency.mean_s',
    'latency.sigma_s',
    'latency.means_s',
    'latency.sigmas_s',
    'latency.quantiles_s',
    'trigger_delay_s',
)
LONG_FAST_S, LONG_S = 0.5, 5.0
"""Latencies from which on a fast sensor, or any, is asked about."""


LARGE = (
    (
        ('clock.stamp_jitter_s', 'clock.servo.sigma_s'),
        0.1,
        'that is much for a clock, and the unit is s: is it ms or us?',
    ),
    (('exposure_s',), 1.0, 'that is a long exposure, and the unit is s: is it ms?'),
    (('mount.pos_m',), 50.0, 'that is far from its body, and the unit is m: is it mm?'),
    (('max_range_m', 'range_max_m'), 2000.0, 'that is far, and the unit is m: is it mm?'),
    (
        ('clock.white_fm', 'clock.random_walk_fm'),
        1e-4,
        'that is much for a clock, and it is a plain fraction: is it ppm or ppb?',
    ),
)
"""Ends of keys, the size from which on a value is asked about, the question."""


def unit_slips(rig: RigConfig) -> list[str]:
    """Return a sentence for every value that is likely meant in another unit."""
    found = []
    for name, config in rig.sensors.items():
        for key, value in _numbers(config.model_dump()):
            question = _asked(key, value, config.type)
            if question:
                found.append(f'sensors.{name}.{key} is {value:g}; {question}')
    for name, link in rig.links.items():
        if link.bandwidth_bps < 1e4:
            found.append(
                f'links.{name}.bandwidth_bps is {link.bandwidth_bps:g}; that is little, '
                'and the unit is bit/s: is it Mbit/s?'
            )
    if rig.world is not None and rig.world.control_delay_s > LONG_FAST_S:
        found.append(
            f'world.control_delay_s is {rig.world.control_delay_s:g}; that is long for a '
            'command, and the unit is s: is it ms?'
        )
    return found


def unmounted(rig: RigConfig) -> list[str]:
    """Return a sentence for every sensor that is fixed to the world without being asked to."""
    return [
        f'sensors.{name}.mount names no body, so the sensor is fixed to the world; give the body '
        'that carries it, or body: world'
        for name, config in rig.sensors.items()
        if config.type not in PLACELESS
        and not getattr(config, 'left_joints', ())
        and not config.mount.site
        and 'body' not in config.mount.model_fields_set
    ]


def _numbers(values: Mapping[str, object], prefix: str = '') -> Iterator[tuple[str, float]]:
    """Yield (dotted key, number) of a config; of a list the value farthest from 0."""
    for key, value in values.items():
        path = f'{prefix}{key}'
        if isinstance(value, Mapping):
            yield from _numbers(value, f'{path}.')
        elif isinstance(value, (list, tuple)):
            numbers = [each for each in value if isinstance(each, (int, float))]
            if numbers:
                yield path, float(max(numbers, key=abs))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield path, float(value)


def _asked(key: str, value: float, kind: str) -> str:
    """Return the question about one value; empty where it looks right."""
    size = abs(value)
    last = key.rpartition('.')[2]
    if last.endswith('_rad') and size > 2.0 * math.pi + 1e-6:
        return 'that is more than a turn, and the unit is rad: is it degrees?'
    if last.endswith('_deg') and size and abs(math.remainder(size, math.pi / 2.0)) < 1e-3:
        return 'that is a part of pi, and the unit is degrees: is it rad?'
    if key in LATENCIES:
        if size > (LONG_FAST_S if kind in FAST else LONG_S):
            return f'that is long for a sensor of type {kind}, and the unit is s: is it ms?'
        return ''
    if key == 'rate_hz' and kind in FAST and 0.0 < size < 0.5:
        return 'that is slow for such a sensor, and the unit is Hz: is it the period in s?'
    if key == 'clock.drift_ppm' and 0.0 < size < 1e-3:
        return 'that is next to nothing, and the unit is ppm: is it a plain fraction?'
    for keys, most, question in LARGE:
        if size > most and key.endswith(keys):
            return question
    return ''
