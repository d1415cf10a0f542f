"""Sensors on a simulation that somebody else steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from rig_common.errors import RigError
from sensor_rig.inprocess import attach
from sensor_rig.rigfile import read_parameters, resolve_rig, rig_from_parameters
from sim_sensors.rig import Rig
from sim_sensors.world.model.model_file import find_model

MODEL = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="trunk" pos="0 0 0.6"><freejoint/>
      <geom type="box" size="0.2 0.1 0.05" mass="2"/>
      <site name="weird site" pos="0.1 0 0" euler="0 0 90"/>
      <body name="limb" pos="0.2 0 0"><joint name="swing" axis="0 1 0" damping="0.05"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02" mass="0.3"/></body>
    </body>
  </worldbody>
  <actuator><motor joint="swing" gear="1"/></actuator>
  <sensor>
    <accelerometer name="sensor_17" site="weird site"/><gyro name="ahrs" site="weird site"/>
    <jointpos name="q" joint="swing"/>
  </sensor>
</mujoco>
"""
RIG: dict[str, Any] = {
    'seed': 3,
    'sensors': {
        'imu': {'type': 'imu', 'rate_hz': 500.0, 'mount': {'site': 'weird site'}},
        'tracker': {'type': 'pose', 'rate_hz': 500.0, 'mount': {'body': 'trunk'}},
    },
}


def pair(xml: str = MODEL) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(xml)
    return model, mujoco.MjData(model)


def test_readings_are_those_of_the_models_own_sensors_whatever_they_are_called() -> None:
    """The rate at the instant of the pose: the mean of the gyro before and after it."""
    model, data = pair()
    rig = attach(model, data, RIG)
    for step in range(300):
        data.ctrl[:] = np.sin(0.1 * step)
        mujoco.mj_step(model, data)
        rig.observe()
        now = mujoco.MjData(model)
        mujoco.mj_setState(model, now, _state(model, data), mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_forward(model, now)
        expected = now.sensordata[:6].copy()
        after = mujoco.MjData(model)
        mujoco.mj_setState(model, after, _state(model, data), mujoco.mjtState.mjSTATE_INTEGRATION)
        mujoco.mj_step(model, after)
        now.qvel[:] = after.qvel
        mujoco.mj_forward(model, now)
        expected[3:] = 0.5 * (expected[3:] + now.sensordata[3:6])
        np.testing.assert_allclose(rig.read_ground_truth('imu').values[0], expected, atol=1e-9)
    assert rig.elapsed_ns == 299 * 2_000_000


def _state(model: mujoco.MjModel, data: mujoco.MjData) -> np.ndarray:
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


def test_sensors_may_be_called_as_sites_and_cameras_of_the_model() -> None:
    """As Unitree's Go1 has a site `imu`; here its tendon and its own sensors are on it."""
    named = (
        MODEL.replace('weird site', 'imu')
        .replace('<body name="limb"', '<camera name="tracker"/><body name="limb"')
        .replace(
            '<actuator>',
            '<tendon><spatial><site site="imu"/><site site="imu_"/></spatial></tendon><actuator>',
        )
        .replace('<body name="trunk"', '<site name="imu_"/><body name="trunk"')
    )
    mount = {'body': 'trunk', 'pos_m': [0.1, 0.0, 0.0], 'rpy_rad': [0.0, 0.0, np.pi / 2]}
    rig = attach(
        *pair(named),
        {
            'seed': 3,
            'sensors': {**RIG['sensors'], 'imu': {**RIG['sensors']['imu'], 'mount': mount}},
        },
    )
    expected = attach(*pair(), RIG)
    for each in (rig, expected):
        each.observe()
    np.testing.assert_allclose(rig.read('imu').values, expected.read('imu').values, atol=1e-12)
    assert rig.world.model.ntendon == 1


@pytest.mark.parametrize('integrator', ['Euler', 'RK4', 'implicitfast'])
def test_sensors_measure_between_the_steps_of_an_environment(integrator: str) -> None:
    """An environment that moves five steps at once gives the messages of one that moves one."""
    xml = MODEL.replace('timestep="0.002"', f'timestep="0.002" integrator="{integrator}"')
    found = []
    for stride in (1, 5):
        model, data = pair(xml)
        rig = attach(model, data, RIG, messages=True)
        messages = rig.observe()
        for step in range(100 // stride):
            data.ctrl[:] = np.sin(0.1 * (step * stride // 5))
            mujoco.mj_step(model, data, nstep=stride)
            messages += rig.observe()
        assert rig.world.mismatch < 1e-9
        found.append([(each.topic, each.stamp_ns, each.sample.truth.copy()) for each in messages])
    single, strided = found
    assert len(single) == len(strided) > 200
    # At the end of an environment's step the next command is not known yet.
    between = [k for k, each in enumerate(single) if (each[1] // 2_000_000) % 5]
    for k in between:
        assert single[k][:2] == strided[k][:2]
        np.testing.assert_allclose(strided[k][2], single[k][2], atol=1e-8)


def test_time_that_goes_back_begins_a_new_episode() -> None:
    model, data = pair()
    rig = attach(
        model,
        data,
        {
            'sensors': {
                'imu': {**RIG['sensors']['imu'], 'noise': 0.1, 'delay_range_s': [0.01, 0.01]}
            }
        },
    )
    mujoco.mj_step(model, data, nstep=20)
    rig.observe()
    mujoco.mj_step(model, data, nstep=20)
    rig.observe()
    assert rig.read('imu').valid.all() and rig.episode == 0
    mujoco.mj_resetData(model, data)
    rig.observe()
    assert rig.episode == 1 and rig.elapsed_ns == 0 and not rig.read('imu').valid.any()


def test_the_pair_is_looked_at_only() -> None:
    model, data = pair()
    rig = attach(model, data, RIG)
    mujoco.mj_step(model, data, nstep=7)
    before = _state(model, data), model.site_pos.copy()
    rig.observe()
    np.testing.assert_array_equal(_state(model, data), before[0])
    np.testing.assert_array_equal(model.site_pos, before[1])


def test_a_model_changed_while_it_runs_is_taken_over_at_the_next_reset() -> None:
    model, data = pair()
    rig = attach(model, data, RIG)
    model.opt.gravity[:] = 0.0, 0.0, -1.6
    rig.reset()
    assert rig.world.model.opt.gravity[2] == -1.6


def test_a_file_serves_where_a_model_cannot_be_rebuilt(tmp_path: Path) -> None:
    xml = MODEL.replace(
        '<body name="trunk"',
        '<flexcomp name="f" type="grid" count="3 3 1" '
        'spacing=".1 .1 .1" pos="2 0 1" dim="2" mass="1"/><body name="trunk"',
    )
    (tmp_path / 'soft.xml').write_text(xml)
    model, data = pair(xml)
    with pytest.raises(RigError, match=r'name its file as world\.model'):
        attach(model, data, RIG)
    rig = attach(model, data, {**RIG, 'world': {'model': str(tmp_path / 'soft.xml')}})
    mujoco.mj_step(model, data, nstep=3)
    rig.observe()
    np.testing.assert_allclose(
        rig.read('tracker').values[0, :3], data.body('trunk').xpos, atol=0.01
    )


@pytest.mark.parametrize(
    ('rig', 'text'),
    [
        ({'sensors': {}}, 'has no sensors:'),
        ({'sensors': {'imu': {'type': 'imu', 'mount': {'body': 'trnk'}}}}, "did you mean 'trunk'"),
        (
            {'sensors': {'imu': {'type': 'imu'}}, 'world': {'model': 'rover_yard.xml'}},
            'is not the attached model: nq is',
        ),
        ({'sensors': {'limb': {'type': 'imu', 'mount': {'site': 'nowhere'}}}}, 'mount.site'),
    ],
)
def test_mistakes_are_named(rig: dict[str, Any], text: str) -> None:
    with pytest.raises(RigError, match=text):
        attach(*pair(), rig)


def test_commands_belong_to_whoever_steps() -> None:
    with pytest.raises(RigError, match='somebody else commands'):
        attach(*pair(), RIG).command({'swing': 1.0})


def test_every_type_of_sensor_reads_as_in_a_world_of_the_rigs_own() -> None:
    raw = read_parameters(resolve_rig('everything'))
    for sensor in raw['sensors'].values():
        if 'segments' in sensor or sensor.get('type', '').startswith('lidar'):
            sensor['backend'] = 'mujoco'  # auto may choose for each
    raw.pop('sync', None)
    config = rig_from_parameters(raw).with_world(driver='none', skip_unavailable=True)
    own = Rig(config.simulated_world, config.make_sensors().values(), seed=config.seed)
    model = mujoco.MjModel.from_xml_path(str(find_model(config.simulated_world.model, None)))
    model.opt.timestep = config.simulated_world.timestep_s
    data = mujoco.MjData(model)
    rig = attach(model, data, {**raw, 'world': {'skip_unavailable': True}})
    data.ctrl[:2] = 4.0, 6.0
    own.world.command_all(data.ctrl[None])
    for _ in range(130):
        own.step()
        rig.observe()
        mujoco.mj_step(model, data)
    assert set(own.sensors) == set(rig.sensors)
    for name in own.sensors:
        np.testing.assert_array_equal(
            own.read_ground_truth(name).values, rig.read_ground_truth(name).values, err_msg=name
        )
