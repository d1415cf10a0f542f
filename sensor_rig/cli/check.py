"""Validate a rig file: as rcl would read it, every key, unit and range, and against its model.

Where MuJoCo is installed the model is compiled with the sensors in it, so that a wrong body, a
missing mesh or a rate the physics cannot serve is found here and not in the first run.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rig_common.errors import RigError
from rig_common.text import printable
from sensor_rig.cli.support.output import add_json_argument, print_json, print_table
from sensor_rig.cli.support.progress import note

if TYPE_CHECKING:
    from rig_common.errors import Mistake
    from sensor_rig.rigfile import RigConfig
    from sim_sensors.interface import AnySensor, SensorConfig
    from sim_sensors.timing.config import TimingConfig

NAME = 'check'
GROUP = 'set up'
HELP = 'validate a rig file and say what is in it'
EPILOG = 'exit code: 0 when the file is valid, 2 when it is not (one sentence for each mistake)'
LONG_S = 100.0
"""From here on a time is shown in seconds."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the file and --json."""
    parser.add_argument('file', help='a rig file, or the bare name of a shipped one, as in "demo"')
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Print what the file configures, or all that is wrong with it."""
    try:
        rig = checked(args.file)
    except RigError as error:
        for mistake in error.mistakes:
            print(f'error: {printable(mistake.sentence)}', file=sys.stderr)
        return error.EXIT_CODE
    if args.json:
        from sensor_rig.rigfile.timing_figures import timing_figures
        from sensor_rig.rigfile.unit_slips import unit_slips, unmounted

        figures = {name: each.as_json() for name, each in timing_figures(rig).items()}
        print_json(
            {**rig.as_json(), 'timing': figures, 'warnings': unit_slips(rig) + unmounted(rig)}
        )
        return 0
    print_summary(rig)
    return 0


def checked(file: str) -> RigConfig:
    """Return the rig of a file that is valid in itself and fits its model."""
    from sensor_rig.cli.support.rendering import begin_trial_for

    begin_trial_for(file)
    from sensor_rig.rigfile import load_rig

    rig = load_rig(file)
    if rig.sync is not None:
        from sync_engine.wire.cue_readers import Lenses, readers_of

        readers_of(rig.sync, Lenses(rig.sync))
    check_against_model(rig)
    return rig


def check_against_model(rig: RigConfig) -> None:
    """Build the rig once, with one environment; what this machine lacks is said, not refused."""
    if rig.world is None:
        return
    if importlib.util.find_spec('mujoco') is None:
        note('MuJoCo is not installed here, so the model was not looked at')
        return
    from sensor_rig.rigfile.rig_reading import Mistakes

    one = rig.with_world(num_envs=1, skip_unavailable=True)
    mistakes = Mistakes(rig.path, rig.places)
    with mistakes.below('world'):
        _build(one)
    if mistakes.found and rig.sensors:
        mistakes.found = _found_alone(one) or mistakes.found
    mistakes.refuse()


def _build(rig: RigConfig) -> None:
    from sensor_rig.inprocess import InProcessRig

    # Without the engine: its filters load all of scipy, and have nothing to find here.
    InProcessRig(rig, sync=False)


def _found_alone(rig: RigConfig) -> list[Mistake]:
    """Return what is wrong with the world alone, else with each sensor alone in it."""
    from sensor_rig.rigfile.rig_reading import Mistakes

    alone = Mistakes(rig.path, rig.places)
    bare = replace(rig, sensors={}, sync=None, links={})
    with alone.below('world'):
        _build(bare)
    for name in rig.sensors if not alone.found else ():
        with alone.below(f'sensors.{name}'):
            _build(
                replace(
                    bare,
                    sensors=_with_triggers(name, rig.sensors),
                    links={
                        key: link
                        for key, link in rig.links.items()
                        if key == rig.sensors[name].link
                    },
                )
            )
    # A sensor that triggers others fails with each of them.
    return list({each.sentence: each for each in reversed(alone.found)}.values())


def _with_triggers(name: str, sensors: Mapping[str, SensorConfig]) -> dict[str, SensorConfig]:
    """Return the sensor and those that trigger it, by name."""
    found: dict[str, SensorConfig] = {}
    while name:
        found[name] = sensors[name]
        name = sensors[name].trigger
    return found


def print_summary(rig: RigConfig) -> None:
    """Print the world, the sensors with their timing, and the sync engine's inputs."""
    from sensor_rig.rigfile.unit_slips import unit_slips, unmounted

    print(f'{rig.path} is valid')
    if rig.world is not None:
        factor = rig.world.real_time_factor
        pace = f'{factor:g} x real time' if factor else 'as fast as it can'
        copies = f', {rig.num_envs} environments' if rig.num_envs > 1 else ''
        print(
            f'world: {rig.world.model}, steps of {rig.world.timestep_s * 1e3:g} ms, {pace}{copies}'
        )
    if rig.sensors:
        print_table(
            (
                'sensor',
                'type',
                'rate Hz',
                'capture ms',
                'delay ms',
                'jitter ms',
                'clock ms',
                'ppm',
                'loss %',
            ),
            [_sensor_row(name, sensor) for name, sensor in rig.make_sensors().items()],
        )
        print('capture: how long one lasts (a sweep, an exposure); the delay counts from its end')
        _print_timing(rig)
    if rig.streams:
        print_table(
            ('stream', 'topics', 'base', 'delay ms', 'jitter ms', 'clock ms', 'ppm', 'loss %'),
            [
                (name, ' '.join(each.topics), each.base, *_timing(each))
                for name, each in rig.streams.items()
            ],
        )
    for sentence in unit_slips(rig) + unmounted(rig):
        print(f'WARNING: {sentence}')
    if rig.sync_left_out:
        print(f'WARNING: {rig.sync_left_out}')
    if rig.sync is not None:
        print_table(
            ('sync input', 'topic', 'message', 'stamps'),
            [
                (name, source.topic, source.type, source.stamp_source)
                for name, source in rig.sync.inputs.items()
            ],
        )


def _print_timing(rig: RigConfig) -> None:
    """Print what latency and clocks come to."""
    from sensor_rig.rigfile.timing_figures import ClockError, timing_figures

    def error(given: ClockError) -> str:
        spread = f' +- {_milliseconds(float(f"{given.sigma_s:.3g}"))}' if given.sigma_s else ''
        return _milliseconds(float(f'{given.mean_s:.6g}')) + spread

    print_table(
        (
            'sensor',
            'latency 5 %',
            'median',
            '95 %',
            '99 % ms',
            'lag 1',
            'clock after 1 min, ms',
            'after 1 h, ms',
        ),
        [
            (
                name,
                *(
                    f'{1e3 * each:.4g}'
                    for each in (
                        found.latency_p5_s,
                        found.latency_p50_s,
                        found.latency_p95_s,
                        found.latency_p99_s,
                    )
                ),
                '-' if found.correlation != found.correlation else f'{found.correlation:+.2f}',
                error(found.clock_after_minute),
                error(found.clock_after_hour),
            )
            for name, found in timing_figures(rig).items()
        ],
    )
    print(
        'latency: from capture to arrival, its own duration included; lag 1: correlation with '
        'the one before'
    )


def _sensor_row(name: str, sensor: AnySensor) -> tuple[object, ...]:
    config = sensor.config
    return (
        name,
        config.type,
        f'{config.rate_hz:g}' if config.rate_hz else 'every step',
        f'{sensor.duration_ns / 1e6:.3g}',
        *_timing(config),
    )


def _timing(config: TimingConfig) -> tuple[str, ...]:
    low, high = (_milliseconds(value) for value in config.delay_range_s)
    return (
        low if low == high else f'{low} to {high}',
        _milliseconds(config.jitter_s),
        _milliseconds(config.clock.offset_s),
        f'{config.clock.drift_ppm:g}',
        f'{config.loss.probability * 100:g}',
    )


def _milliseconds(seconds: float) -> str:
    """Return a time in ms, or in s where that would be a long number."""
    if abs(seconds) < LONG_S:
        return f'{seconds * 1e3:g}'
    return f'{seconds:.12g} s'
