"""How much faster than real time a rig runs without ROS, and where the time goes.

    ./rig python -m bench.realtime                     # the demo rig without its camera
    ./rig python -m bench.realtime --rig everything --keep-cameras

Machines and their load differ, so every figure also comes as a ratio to the bare physics (mj_step
alone on the same model), measured in turns with the rest within one run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np

from bench.figures import Figure
from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import RigConfig, load_rig

CAMERAS = ('camera', 'depth_camera', 'segmentation')
TARGET = 10.0
"""Simulated seconds per second that the demo rig without camera must reach without ROS."""
ROUNDS = 8
PHYSICS, DRIVEN = 'mj_step alone', 'world and driver'
MESSAGES, SYNCED = '+ all messages', '+ sync engine'


def without(
    config: RigConfig, *, cameras: bool = False, sensors: bool = False, sync: bool = False
) -> RigConfig:
    """Return `config` without some of its parts."""
    kept = {
        name: each
        for name, each in config.sensors.items()
        if not sensors and not (cameras and each.type in CAMERAS)
    }
    changes: dict[str, Any] = {'sensors': kept}
    if sync or sensors:
        changes['sync'] = None
    elif cameras and config.sync is not None:
        gone = set(config.sensors) - set(kept)
        inputs = {
            name: each
            for name, each in config.sync.inputs.items()
            if name not in gone and each.clock_of not in gone
        }
        required = tuple(name for name in config.sync.required_sensors if name not in gone)
        reference = config.sync.reference_sensor_id
        changes['sync'] = (
            None
            if reference in gone
            else config.sync.model_copy(update={'inputs': inputs, 'required_sensors': required})
        )
    return replace(config, **changes)


class BarePhysics:
    """mj_step and nothing else, from where a rig is and under its commands."""

    def __init__(self, rig: InProcessRig) -> None:
        self._rig = rig
        self._data = mujoco.MjData(rig.world.model)

    def follow(self) -> None:
        """Go to where the rig is: contacts cost, and a rover that drives has others."""
        mujoco.mj_copyData(self._data, self._rig.world.model, self._rig.world.data(0))

    def step(self) -> None:
        """Do one physics step."""
        mujoco.mj_step(self._rig.world.model, self._data)


def seconds_per_tick(step: Callable[[], object], ticks: int) -> float:
    """Return the CPU time of one call, s; waiting for other programs does not count."""
    began = time.process_time()
    for _ in range(ticks):
        step()
    return (time.process_time() - began) / ticks


def rigs_of(config: RigConfig) -> dict[str, InProcessRig]:
    """Return the rig in stages, each with more of it than the one before."""
    rigs = {
        DRIVEN: InProcessRig(without(config, sensors=True)),
        '+ sensors, no messages': InProcessRig(without(config, sync=True), messages=False),
        MESSAGES: InProcessRig(without(config, sync=True), arrays=False),
    }
    if config.sync is not None:
        rigs[SYNCED] = InProcessRig(config, arrays=False)
    return rigs


def measure(config: RigConfig, seconds: float) -> dict[str, Any]:
    """Return the cost of a step of every stage; `seconds` of simulated time each."""
    rigs = rigs_of(config)
    physics = BarePhysics(rigs[DRIVEN])
    rows: dict[str, Callable[[], object]] = {PHYSICS: physics.step}
    rows |= {name: rig.step for name, rig in rigs.items()}
    timestep_s = config.simulated_world.timestep_s
    for rig in rigs.values():
        seconds_per_tick(rig.step, round(1.6 / timestep_s))  # past the driver's rest
    ticks = max(1, round(seconds / timestep_s / ROUNDS))
    spent: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(ROUNDS):
        physics.follow()
        for name, step in rows.items():
            spent[name].append(seconds_per_tick(step, ticks))
    base = np.array(spent[PHYSICS])
    return {
        name: {
            'us_per_step': float(np.median(values)) * 1e6,
            'best_us_per_step': min(values) * 1e6,
            'x_real_time': timestep_s / float(np.median(values)),
            'x_real_time_range': [timestep_s / float(q) for q in np.percentile(values, [75, 25])],
            'ratio_to_mj_step': float(np.median(values / base)),
        }
        for name, values in spent.items()
    }


def run(quick: bool) -> dict[str, Any]:
    """Return the stages of the demo rig without its camera."""
    return measure(without(load_rig('demo'), cameras=True), 4.0 if quick else 20.0)


def headline(result: dict[str, Any]) -> list[Figure]:
    """Return the figures that count."""
    figures = []
    for name, stage, most in (
        ('all messages', MESSAGES, 2.8),
        ('all messages and the sync engine', SYNCED, 4.0),
    ):
        row = result[stage]
        low, high = row['x_real_time_range']
        figures += [
            Figure(
                f'demo rig without camera, {name}',
                row['x_real_time'],
                'x real time',
                TARGET,
                kind='absolute',
                spread=(low, high),
            ),
            Figure(
                f'step with {name} over mj_step alone',
                row['ratio_to_mj_step'],
                'x',
                most,
                better='lower',
            ),
        ]
    return figures


def main() -> int:
    """Measure in turns and print the table."""
    parser = argparse.ArgumentParser(description='speed of a rig without ROS')
    parser.add_argument('--rig', default='demo')
    parser.add_argument('--seconds', type=float, default=4.0, help='simulated time per row')
    parser.add_argument('--keep-cameras', action='store_true')
    given = parser.parse_args()
    config = without(load_rig(given.rig), cameras=not given.keep_cameras)
    print(f'{given.rig}: {", ".join(config.sensors)}')
    print(f'{"":26}{"us a step":>11}{"best":>9}{"x real time":>13}{"ratio to mj_step":>18}')
    for name, row in measure(config, given.seconds).items():
        print(
            f'{name:26}{row["us_per_step"]:11.1f}{row["best_us_per_step"]:9.1f}'
            f'{row["x_real_time"]:13.1f}{row["ratio_to_mj_step"]:18.2f}'
        )
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
