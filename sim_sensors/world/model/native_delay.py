"""MuJoCo's own delay (`delay`, `nsample`, `interp`, `interval`) as a second backend.

A rig asks for it with `delay_backend: mujoco`. The delay is then part of the compiled model, so
that whatever else reads `sensordata` (a controller in C, another tool) sees the delayed values
too. What it cannot do, measured on MuJoCo 4.0, is refused or worked around here:

- it has no jitter and one delay for all environments;
- the shortest delay is one step (the value of now enters the history after the step);
- a history shorter than the delay silently gives newer values: `nsample` is sized here;
- before the first sample it gives zeros: captures are read only once they are there;
- orientations are interpolated by component: use `slerp` of the rig's own line instead;
- `interval` adds up floats and slips by a step: captures are taken on the exact schedule instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import mujoco
import numpy as np

from rig_common.arrays import Floats
from rig_common.errors import RigError
from rig_common.times import NS_PER_S, seconds_to_ns
from sim_sensors.interface import AnySensor
from sim_sensors.interface.truth import TruthReader, WorldView
from sim_sensors.timing.arrays import Array
from sim_sensors.world.config.world import WorldConfig


def check(sensor: AnySensor, dt_ns: int) -> None:
    """Raise RigError where MuJoCo cannot do what `sensor` asks of it."""
    config = sensor.config
    low, high = config.delay_range_s
    where = f'delay_backend of {sensor.name!r} is mujoco'
    for is_wrong, why in (
        (
            low != high or config.jitter_s,
            f'which knows one fixed delay and no jitter; delay_range_s is [{low}, {high}] and '
            f'jitter_s {config.jitter_s}',
        ),
        (
            config.latency.model != 'delay' or config.latency.stalls.probability or config.link,
            'which knows one fixed delay: no latency model, stalls or link',
        ),
        (
            seconds_to_ns(low) < dt_ns,
            f'whose shortest delay is one physics step, {dt_ns / NS_PER_S:g} s; delay_range_s is '
            f'[{low}, {high}]',
        ),
        (
            config.interpolation != 'zoh',
            'which gives values of physics steps and of no time between; interpolation is '
            f'{config.interpolation}, use zoh',
        ),
        (
            sensor.duration_ns or sensor.fine_truth,
            f'which only delays captures of an instant; {sensor.name!r} captures over time or '
            'filters what it measures',
        ),
    ):
        if is_wrong:
            raise RigError(f'{where}, {why}')


def check_control(spec: mujoco.MjSpec, config: WorldConfig) -> None:
    """Raise RigError where MuJoCo cannot delay commands as `config` asks."""
    where = 'world.control_delay_backend is mujoco'
    if int(spec.option.integrator) == int(mujoco.mjtIntegrator.mjINT_RK4) and (
        config.control_delay_s
    ):
        raise RigError(
            f'{where}, but the model uses the integrator RK4, whose substeps would '
            f'see commands of other times; use rig, or another integrator'
        )
    if config.control_delays_s or any(
        each.delay_range_s or each.jitter_s for each in config.actuators.values()
    ):
        raise RigError(
            f'{where}, which has one latency for all actuators; control_delays_s needs rig'
        )


def delay(
    delayed: Iterable[mujoco.MjsSensor | mujoco.MjsActuator], delay_s: float, dt_ns: int
) -> None:
    """Compile a delay into native sensors or actuators, before the model is compiled."""
    for each in delayed:
        each.delay = delay_s
        # fewer samples would shorten it silently
        each.nsample = -(-seconds_to_ns(delay_s) // dt_ns) + 3


def start_histories(
    model: mujoco.MjModel, data: mujoco.MjData, ctrl: Floats | None = None
) -> None:
    """Fill the histories with the present, so that nothing reads the zeros of before.

    Sensors hold what they measure now and actuators `ctrl` (by default `data.ctrl`), as if it had
    been so for ever. `data` must have been through `mj_forward`.
    """
    step = model.opt.timestep
    inputs = getattr(model, 'actuator_ctrlnum', np.ones(model.nu, int))  # 1 each in MuJoCo 3
    of_each = np.split(data.ctrl if ctrl is None else ctrl, np.cumsum(inputs)[:-1])
    for actuator, commands in enumerate(of_each if model.nu else ()):
        count = int(model.actuator_history[actuator, 0])
        if count:
            times = data.time - step * np.arange(count, 0, -1)
            values = np.tile(commands, (count, 1))
            mujoco.mj_initCtrlHistory(model, data, actuator, times, values)
    delays = model.sensor_delay.copy()
    model.sensor_delay[:] = 0.0  # without a delay sensordata is what is measured now
    mujoco.mj_forward(model, data)
    model.sensor_delay[:] = delays
    for sensor in range(model.nsensor):
        count = int(model.sensor_history[sensor, 0])
        if count:
            start, size = int(model.sensor_adr[sensor]), int(model.sensor_dim[sensor])
            times = data.time - step * np.arange(count, 0, -1)
            values = np.tile(data.sensordata[start : start + size], (count, 1))
            mujoco.mj_initSensorHistory(model, data, sensor, times, values, data.time)


def initial_history(model: mujoco.MjModel, keyframe: int, ctrl: Floats) -> Floats | None:
    """Return `data.history` of a world that begins at `keyframe` (-1: none) under `ctrl`."""
    if not model.nhistory:
        return None
    data = mujoco.MjData(model)
    if keyframe >= 0:
        mujoco.mj_resetDataKeyframe(model, data, keyframe)
    start_histories(model, data, ctrl)
    return np.array(data.history)


def compile_into(sensor: AnySensor, natives: Iterable[mujoco.MjsSensor], dt_ns: int) -> None:
    """Compile the delay of `sensor` into the native sensors it mounted, if it asks for that."""
    if sensor.config.delay_backend == 'mujoco':
        check(sensor, dt_ns)
        delay(natives, sensor.config.delay_range_s[0], dt_ns)


class DelayedReader:
    """Reads a capture when MuJoCo's delay has brought it into `sensordata`.

    The pipeline then sees a capture that takes as long as the delay, in whole steps.
    """

    def __init__(self, reader: TruthReader, delay_s: float, dt_ns: int) -> None:
        """Wrap the reader of a sensor whose native sensors are delayed by `delay_s`."""
        self._reader = reader
        self.parts_ns: Sequence[int] = (-(-seconds_to_ns(delay_s) // dt_ns) * dt_ns,)

    def read(self, view: WorldView, envs: Sequence[int], part: int, out: Array) -> None:
        """Write the truth of `envs` as it was one delay ago."""
        self._reader.read(view, envs, part, out)
