"""How much faster than real time a rig runs without ROS, and where the time goes.

    python -m bench.realtime                     # the demo rig without its camera
    python -m bench.realtime --rig everything --keep-cameras

Machines and their load differ, so every figure also comes as a ratio to the bare physics (mj_step
alone on the same model), measured in turns with the rest within one run.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import mujoco

from sensor_rig.inprocess import InProcessRig
from sensor_rig.rigfile import RigConfig, load_rig

CAMERAS = ('camera', 'depth_camera', 'segmentation')
TARGET = 10.0
"""Simulated seconds per second that the demo rig without camera must reach without ROS."""


def without(config: RigConfig, *, cameras: bool = False, sensors: bool = False,
            sync: bool = False) -> RigConfig:
    """Return `config` without some of its parts."""
    kept = {name: each for name, each in config.sensors.items()
            if not sensors and not (cameras and each.type in CAMERAS)}
    changes: dict[str, object] = {'sensors': kept}
    if sync or sensors:
        changes['sync'] = None
    elif cameras and config.sync is not None:
        gone = set(config.sensors) - set(kept)
        inputs = {name: each for name, each in config.sync.inputs.items() if name not in gone}
        required = tuple(name for name in config.sync.required_sensors if name not in gone)
        reference = config.sync.reference_sensor_id
        changes['sync'] = None if reference in gone else config.sync.model_copy(
            update={'inputs': inputs, 'required_sensors': required})
    return config.model_copy(update=changes)


def bare_physics(rig: InProcessRig) -> Callable[[], object]:
    """Return mj_step on a copy of the rig's world, at the same place and under its commands."""
    model, data = rig.world.model, mujoco.MjData(rig.world.model)

    def step() -> None:
        mujoco.mj_step(model, data)
    return step


def seconds_per_tick(step: Callable[[], object], ticks: int) -> float:
    """Return the CPU time of one call, s; waiting for other programs does not count."""
    began = time.process_time()
    for _ in range(ticks):
        step()
    return (time.process_time() - began) / ticks


def main() -> int:
    """Measure in turns and print the table."""
    parser = argparse.ArgumentParser(description='speed of a rig without ROS')
    parser.add_argument('--rig', default='demo')
    parser.add_argument('--seconds', type=float, default=4.0, help='simulated time per row')
    parser.add_argument('--keep-cameras', action='store_true')
    given = parser.parse_args()
    config = without(load_rig(given.rig), cameras=not given.keep_cameras)
    rigs = {
        'world and driver': InProcessRig(without(config, sensors=True)),
        '+ sensors, no messages': InProcessRig(without(config, sync=True), messages=False),
        '+ all messages': InProcessRig(without(config, sync=True), arrays=False),
    }
    if config.sync is not None:
        rigs['+ sync engine'] = InProcessRig(config, arrays=False)
    rows: dict[str, Callable[[], object]] = {
        'mj_step alone': bare_physics(rigs['world and driver'])}
    rows |= {name: rig.step for name, rig in rigs.items()}
    timestep_s = config.simulated_world.timestep_s
    for step in rows.values():
        seconds_per_tick(step, round(1.6 / timestep_s))  # past the driver's rest
    rounds = 8
    ticks = max(1, round(given.seconds / timestep_s / rounds))
    spent = dict.fromkeys(rows, 0.0)
    for _ in range(rounds):
        for name, step in rows.items():
            spent[name] += seconds_per_tick(step, ticks) / rounds
    base = spent['mj_step alone']
    print(f'{given.rig}: {", ".join(config.sensors)}')
    print(f'{"":26}{"us a step":>11}{"x real time":>13}{"ratio to mj_step":>18}')
    for name, each in spent.items():
        print(f'{name:26}{each * 1e6:11.1f}{timestep_s / each:13.1f}{each / base:18.2f}')
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
