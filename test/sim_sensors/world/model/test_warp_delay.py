"""MuJoCo Warp delays sensors and commands by itself, world by world: an oracle for ours.

It is no dependency and compiles for a minute on a CPU:

    pip install "mujoco-warp>=4" pydantic pyyaml scipy pytest pytest-timeout
    PYTHONPATH=. python -m pytest -m long test/sim_sensors/world/model/test_warp_delay.py
"""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray
from support.toy_sensors import MS, make

from sim_sensors.world.actuation.delay_lines import ControlDelay
from sim_sensors.world.model import native_delay

warp = pytest.importorskip('warp', reason='mujoco-warp is not installed')
mjw = pytest.importorskip('mujoco_warp', reason='mujoco-warp is not installed')
VERSION = tuple(map(int, mjw.__version__.split('.')[:2]))
own_delay_needed = pytest.mark.skipif(
    VERSION < (4, 0),
    reason=f'mujoco-warp {mjw.__version__} has no delay of its own for each world',
)

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

WORLDS, STEP_NS, STEPS = 5, 2 * MS, 60
XML = """
<mujoco>
  <option timestep="0.002" gravity="0 0 0"/>
  <worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="slide"/></actuator>
  <sensor><clock/><jointpos joint="slide"/></sensor>
</mujoco>"""


class Worlds:
    """Copies of the slider, pushed by random forces, each with a delay of its own."""

    def __init__(self, delays_s: NDArray[Any], interpolation: str) -> None:
        spec = mujoco.MjSpec.from_string(XML)
        longest_s = float(delays_s.max())  # compiled in, it makes all histories long enough
        for each in (*spec.sensors, *spec.actuators):
            native_delay.delay([each], longest_s, STEP_NS)
            each.interp = ('zoh', 'linear', 'cubic').index(interpolation)
        compiled = spec.compile()
        self.model = mjw.put_model(compiled)
        self.data = mjw.put_data(compiled, mujoco.MjData(compiled), nworld=WORLDS)
        for name, count in (('sensor_delay', 2), ('actuator_delay', 1)):
            of_each = np.repeat(delays_s[:, None], count, 1).astype(np.float32)
            assert getattr(self.model, name).shape[1:] == of_each.shape[1:]
            setattr(self.model, name, warp.array(of_each, dtype=float))
        self.random = np.random.default_rng(1)

    def step(self) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Push; return the commands, the forces they had and the sensors, a row for a world."""
        commands = self.random.normal(scale=100.0, size=(WORLDS, 1))
        self.data.ctrl.assign(commands.astype(np.float32))
        mjw.step(self.model, self.data)
        return commands, self.data.actuator_force.numpy(), self.data.sensordata.numpy()


class Undelayed:
    """Where the sliders really are: integrated by hand from the forces that they had."""

    def __init__(self, worlds: Worlds) -> None:
        self._mass_kg = float(worlds.model.body_mass.numpy()[0, 1])
        self.position, self._speed = np.zeros((2, WORLDS))

    def push(self, force: NDArray[Any]) -> None:
        self._speed += force / self._mass_kg * STEP_NS / 1e9
        self.position += self._speed * STEP_NS / 1e9


def own_delays(**keys: Any) -> Any:
    """Return a pipeline whose environments have drawn a delay each."""
    return make(WORLDS, dt_ns=STEP_NS, delay_range_s=(0.003, 0.031), **keys)


@own_delay_needed
@pytest.mark.parametrize('interpolation', ['zoh', 'linear', 'cubic'])
def test_every_environment_reads_what_a_world_of_its_delay_reads(interpolation: str) -> None:
    pipeline = own_delays(interpolation=interpolation)
    delay_ns = pipeline.transit.latency_ns
    assert len(np.unique(delay_ns)) == WORLDS
    delayed = Worlds(delay_ns / 1e9, interpolation)
    compared = np.zeros(WORLDS, int)
    truth = Undelayed(delayed)
    for step in range(STEPS):
        now_ns = step * STEP_NS
        pipeline.tick(None, now_ns, np.stack([np.full(WORLDS, now_ns / 1e9), truth.position], 1))
        _, forces, sensors = delayed.step()
        truth.push(forces[:, 0])
        settled = now_ns >= delay_ns + 3 * STEP_NS  # before: zeros there, nothing here
        np.testing.assert_allclose(
            pipeline.read(now_ns).values[settled], sensors[settled], rtol=2e-5, atol=2e-6
        )
        compared += settled
    assert (compared > 35).all()


@own_delay_needed
@pytest.mark.parametrize('interpolation', ['zoh', 'linear', 'cubic'])
def test_every_actuator_gets_what_one_of_a_world_with_its_delay_gets(interpolation: str) -> None:
    delays_s = own_delays().transit.latency_ns / 1e9
    worlds = Worlds(delays_s, interpolation)
    line = ControlDelay(WORLDS, 1, delays_s[:, None], STEP_NS, interpolation)
    past_ns = [-STEP_NS * back for back in range(18, 0, -1)]
    line.start_history(past_ns, np.zeros((len(past_ns), WORLDS, 1)))
    # Time is float32 there: after 60 steps it may be off by 0.2 us, a ten-thousandth of a step,
    # which is as much of the way between two commands of some hundred newtons.
    rounding = 2e-3 if interpolation == 'zoh' else 0.1
    for step in range(STEPS):
        commands, forces, _ = worlds.step()
        line.set(step * STEP_NS, commands)
        np.testing.assert_allclose(forces, line.read(step * STEP_NS), rtol=1e-4, atol=rounding)
    assert np.abs(forces).max() > 10.0


@pytest.mark.xfail(
    VERSION < (3, 17),
    reason='mujoco-warp below 3.17 delays sensors of limit forces twice',
    strict=False,
)
def test_forces_of_limits_are_delayed_once() -> None:
    """A slider is pushed harder and harder into its limit; MuJoCo itself is the oracle."""
    compiled = mujoco.MjModel.from_xml_string("""
    <mujoco>
      <option timestep="0.002" gravity="0 0 0"/>
      <worldbody><body>
        <joint name="slide" type="slide" range="-0.01 0.01" limited="true" damping="50"/>
        <geom size="0.1"/>
      </body></worldbody>
      <actuator><motor joint="slide"/></actuator>
      <sensor><jointlimitfrc joint="slide" delay="0.006" nsample="6"/></sensor>
    </mujoco>""")
    model, data = mjw.put_model(compiled), mujoco.MjData(compiled)
    theirs = mjw.put_data(compiled, data)
    seen = []
    for step in range(120):
        data.ctrl[:] = step
        theirs.ctrl.assign(data.ctrl[None].astype(np.float32))
        mujoco.mj_step(compiled, data)
        mjw.step(model, theirs)
        seen.append((data.sensordata[0], theirs.sensordata.numpy()[0, 0]))
    ours, warped = np.array(seen).T
    assert np.ptp(ours) > 10.0
    np.testing.assert_allclose(warped, ours, rtol=2e-2, atol=0.5)
