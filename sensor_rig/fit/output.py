"""What a fit is written as: a datasheet, a rig file, or JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import yaml

from rig_common.errors import RigError
from rig_common.msgs.catalogue import known
from rig_common.text import printable
from sensor_rig.bags.starter import input_names
from sensor_rig.fit.fitting import TopicFit
from sensor_rig.fit.servo import ServoFit

VERSION = 1
FASTEST_HZ = 1000.0
"""Rate of the physics of a rig file that is written here."""


def datasheet(fit: TopicFit, source: str) -> str:
    """Return the text of a datasheet that a sensor can start from with `extends:`."""
    return _head(
        [fit], source, 'A datasheet of timing: take it with extends: in a sensor.'
    ) + _dumped(fit.keys())


def servo_datasheet(fit: ServoFit, source: str) -> str:
    """Return the text of a datasheet with a disciplined clock."""
    lines = [
        '# A datasheet of a clock: take it with extends: in a sensor.',
        f'# Fitted by rig fit from {printable(source)}: '
        f'{len(fit.corrections.offset_s)} corrections',
        *(f'#   {note}' for note in fit.notes),
    ]
    return '\n'.join(lines) + '\n' + _dumped({'clock': {'servo': fit.keys()}})


def servo_json(fit: ServoFit, source: str) -> dict[str, Any]:
    """Return a fitted servo as JSON values."""
    return {
        'version': VERSION,
        'source': source,
        'servo': {
            'corrections': len(fit.corrections.offset_s),
            'period_s': fit.period_s,
            'sigma_s': fit.sigma_s._asdict(),
            'correlations': list(fit.correlations),
            'keys': {'clock': {'servo': fit.keys()}},
            'notes': list(fit.notes),
        },
    }


def rig_file(fits: Sequence[TopicFit], source: str) -> str:
    """Return the text of a rig file: a sensor for every topic that one can be simulated for."""
    names = input_names([fit.times.name for fit in fits])
    sensors: dict[str, Any] = {}
    links: dict[str, Any] = {}
    for fit in fits:
        kind = known(fit.times.type_name).sensor
        if not kind:
            continue
        name = names[fit.times.name]
        keys = {'type': kind, **fit.keys()}
        keys['rate_hz'] = min(keys['rate_hz'], FASTEST_HZ)
        if fit.bandwidth_bps is not None and fit.times.sizes is not None:
            links[f'{name}_link'] = {'bandwidth_bps': float(f'{fit.bandwidth_bps.value:.4g}')}
            keys.update(link=f'{name}_link', size_bytes=round(float(fit.times.sizes.mean())))
        sensors[name] = keys
    if not sensors:
        raise RigError(
            f'{source} has no topic that a sensor can be simulated for; choose one '
            'with --topic to write it as a datasheet'
        )
    values: dict[str, Any] = {'world': {'model': 'rover_yard.xml'}, 'sensors': sensors}
    if links:
        values['links'] = links
    return _head(
        fits,
        source,
        'A rig with the timing of a recording: set the model, and the mount of each sensor.',
    ) + _dumped(values)


def _head(fits: Sequence[TopicFit], source: str, what: str) -> str:
    lines = [f'# {what}', f'# Fitted by rig fit from {printable(source)}.']
    for fit in fits:
        lines.append(f'# {printable(fit.times.name)}: {len(fit.times)} messages')
        lines += [f'#   {printable(note)}' for note in fit.notes]
    return '\n'.join(lines) + '\n'


def _dumped(values: dict[str, Any]) -> str:
    return yaml.safe_dump(
        {'/**': {'ros__parameters': values}}, sort_keys=False, default_flow_style=None, width=110
    )


def as_json(fits: Sequence[TopicFit], source: str) -> dict[str, Any]:
    """Return everything that was found, as JSON values."""
    return {
        'version': VERSION,
        'source': source,
        'topics': {fit.times.name: _topic(fit) for fit in fits},
    }


def _topic(fit: TopicFit) -> dict[str, Any]:
    gaps, clock = fit.gaps, fit.clock
    found: dict[str, Any] = {
        'messages': len(fit.times),
        'type': fit.times.type_name,
        'keys': fit.keys(),
        'rate_hz': gaps.rate_hz._asdict(),
        'stamp_regularity_s': gaps.regularity_s,
        'loss': {
            'told': gaps.regular,
            'probability': gaps.probability._asdict(),
            'burst_mean': gaps.burst_mean._asdict(),
            'runs': np.bincount(gaps.runs).tolist()[1:] if len(gaps.runs) else [],
            'duplicate_probability': gaps.duplicates._asdict(),
        },
        'clock': {
            'offset_s': fit.offset_s,
            'drift_ppm': clock.drift_ppm._asdict(),
            'drift_written': clock.has_drift,
            'white_fm': clock.white_fm._asdict(),
            'random_walk_fm': clock.random_walk_fm._asdict(),
            'resolution_s': clock.resolution_s,
            'counter_bits': clock.counter_bits,
            'steps': [{'at_s': s.at_s, 'offset_s': s.offset_s} for s in clock.steps],
        },
        'link': None
        if fit.bandwidth_bps is None
        else {'bandwidth_bps': fit.bandwidth_bps._asdict()},
        'notes': fit.notes,
        'latency': None,
    }
    if fit.choice is not None:
        found['latency'] = {
            'model': fit.choice.fitted.model,
            'held_out_log_density': fit.choice.scores,
            'passed_over': list(fit.choice.passed_over),
            'parameters': {name: each._asdict() for name, each in fit.parameters.items()},
            'correlation': fit.correlation._asdict(),
            'correlations': list(fit.lags),
            **{name: each._asdict() for name, each in fit.figures.items()},
        }
    return found
