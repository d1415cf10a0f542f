"""Which settings may change while the engine runs, and how."""

from __future__ import annotations

from typing import Any

from rig_common.errors import RigError
from sync_engine.config.sync_config import SyncConfig, load_config

_PLAIN = ('missing_strategy', 'stamp_policy')
_PER_INPUT = ('deadline_s', 'missing_strategy', 'max_gap_s', 'reuse', 'zero_stamp')


def runtime_parameters(config: SyncConfig) -> dict[str, object]:
    """Return every parameter that may change while running, with its present value."""
    values: dict[str, Any] = {name: getattr(config, name) for name in _PLAIN}
    values |= {f'window.{key}': value for key, value in config.window.model_dump().items()}
    for sensor_id, given in config.inputs.items():
        values |= {f'inputs.{sensor_id}.{key}': getattr(given, key) for key in _PER_INPUT}
    return values


def changed_config(config: SyncConfig, name: str, value: object) -> SyncConfig:
    """Return `config` with one dotted parameter changed; RigError where that is not possible."""
    if name not in runtime_parameters(config):
        raise RigError(
            f'sync.{name} cannot be changed while running; window.*, missing_strategy, '
            f'stamp_policy and inputs.<sensor>.({", ".join(_PER_INPUT)}) can.'
        )
    values = config.model_dump()
    section = values
    # An input's name may hold dots itself (a topic), so only the outer ones are split off.
    if name.startswith('inputs.'):
        sensor_id, key = name.removeprefix('inputs.').rsplit('.', 1)
        section = values['inputs'][sensor_id]
    elif name.startswith('window.'):
        section, key = values['window'], name.removeprefix('window.')
    else:
        key = name
    section[key] = value
    return load_config(values)
