"""Which settings of a sensor can change while it runs, and which cannot."""

from __future__ import annotations

from rig_common.errors import RigError
from rig_common.paramfile.reader import flatten
from sim_sensors.interface import AnySensor, SensorConfig

FIXED_KEYS: tuple[str, ...] = (
    'type',
    'mount',
    'rate_hz',
    'phase_s',
    'phase_range_s',
    'truth_rate_hz',
    'trigger',
    'trigger_delay_s',
    'delay_backend',
    'interpolation',
    'history_length',
    'fast_noise',
    'random_walk',
    'frame_id',
    'link',
    'size_bytes',
)
"""What cannot change while a rig runs."""


def check_change(sensor: AnySensor, config: SensorConfig) -> None:
    """Refuse a `config` that `sensor` cannot take while it runs."""
    fixed = FIXED_KEYS
    if config.delay_backend == 'mujoco':
        fixed += ('delay_range_s', 'jitter_s', 'latency', 'order')
    for key in fixed:
        if getattr(config, key) != getattr(sensor.config, key):
            raise RigError(f'{key} of {sensor.name!r} cannot change while it runs')
    check_interpolation(sensor.name, config, config.interpolation)
    new = type(sensor)(sensor.name, config)
    for fact in (
        'truth_layout',
        'return_layout',
        'stateful',
        'disturbs',
        'fine_truth',
        'duration_ns',
    ):
        if getattr(new, fact) != getattr(sensor, fact):
            raise RigError(
                f'{sensor.name!r} cannot take '
                f'{" and ".join(_changes(sensor.config, config))} while it runs; '
                f'write it into the rig file and start again'
            )


def check_interpolation(name: str, config: SensorConfig, interpolation: str) -> None:
    """Refuse jitter where reads are interpolated: there is no one time to interpolate at."""
    if interpolation == 'zoh':
        return
    for key, given in (
        ('jitter_s', config.jitter_s),
        ('link', config.link),
        ('latency.model', config.latency.model != 'delay'),
        ('latency.stalls', config.latency.stalls.probability),
    ):
        if given:
            raise RigError(
                f'{name!r} has {key} and interpolation {interpolation}; '
                'only zoh knows latencies that change from sample to sample'
            )


def _changes(old: SensorConfig, new: SensorConfig) -> list[str]:
    """Return `key value` of every key of the rig file in which two configs differ."""
    before, after = flatten(old.model_dump()), flatten(new.model_dump())
    return [f'{key} {value}' for key, value in after.items() if before.get(key) != value]
