"""A compiled model, rebuilt, moves bit for bit like the original."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest
from support.places import ROOT

pytest.importorskip('gymnasium', reason='gymnasium is not installed')

import gymnasium

from rig_common.errors import RigError
from sim_sensors.world.foreign.constants import Constants
from sim_sensors.world.foreign.names import Names
from sim_sensors.world.foreign.rebuild import same_structure, spec_of

ASSETS = Path(gymnasium.__file__).parent / 'envs/mujoco/assets'
MODELS = [ASSETS / f'{name}.xml' for name in ('ant', 'half_cheetah', 'humanoid', 'pusher_v5')] + [
    ROOT / 'worlds' / f'{name}.xml' for name in ('arm', 'hand', 'drone', 'rover_yard')
]

ODD = """
<mujoco>
  <option integrator="implicitfast" timestep="0.002"/>
  <asset>
    <mesh name="wedge" vertex="0 0 0  0.3 0 0  0 0.2 0  0 0 0.1  0.3 0 0.1"/>
    <hfield name="hills" nrow="3" ncol="3" size="2 2 0.2 0.1" elevation="0 1 0 1 0 1 0 1 0"/>
    <texture name="checks" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0"/>
    <material name="floor" texture="checks"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="hills" material="floor"/>
    <site name="anchor" pos="0 0 1.5"/>
    <body pos="0 0 1"><joint type="ball"/><geom type="mesh" mesh="wedge"/><site name="end"/>
      <body pos="0.4 0 0"><joint name="elbow" axis="0 1 0" ref="0.2" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/></body></body>
    <body name="free" pos="1 0 1"><freejoint/><geom type="ellipsoid" size="0.1 0.05 0.2"/></body>
    <body name="hand" mocap="true" pos="1 1 1"><geom type="box" size="0.1 0.1 0.1"/></body>
    <body name="lift" pos="-1 0 1"><joint name="slide" type="slide" limited="true" range="-1 1"/>
      <geom size="0.1"/></body>
  </worldbody>
  <tendon>
    <spatial name="rope" stiffness="40"><site site="anchor"/><site site="end"/></spatial>
    <fixed name="mix"><joint joint="elbow" coef="1"/><joint joint="slide" coef="-2"/></fixed>
  </tendon>
  <equality><connect body1="free" body2="hand" anchor="0 0 0.3"/></equality>
  <contact><exclude body1="free" body2="lift"/></contact>
  <actuator>
    <position joint="elbow" kp="5"/><motor tendon="mix" gear="2" ctrllimited="true"
      ctrlrange="-1 1"/><general joint="slide" dyntype="filter" dynprm="0.05" gainprm="3"/>
  </actuator>
  <sensor><gyro name="anything" site="end"/></sensor>
</mujoco>
"""


def twin_of(model: mujoco.MjModel) -> mujoco.MjModel:
    spec = spec_of(model, Names(model))
    spec.worldbody.add_site(name='one_more')
    twin = spec.compile()
    assert same_structure(model, twin) == ''
    Constants(model, twin, Names(model))
    return twin


def travelled(model: mujoco.MjModel, steps: int = 150) -> np.ndarray:
    """Return [steps, nq] positions under commands that change."""
    data = mujoco.MjData(model)
    chance = np.random.default_rng(1)
    places = []
    for step in range(steps):
        if step % 10 == 0:
            data.ctrl[:] = chance.uniform(-0.3, 0.3, model.nu)
            data.mocap_pos[:] = 1.0 + 0.001 * step
        mujoco.mj_step(model, data)
        places.append(data.qpos.copy())
    return np.array(places)


@pytest.mark.parametrize('path', MODELS, ids=lambda path: path.stem)
def test_a_rebuilt_model_moves_like_the_original(path: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(path))
    np.testing.assert_array_equal(travelled(twin_of(model)), travelled(model))


def test_all_kinds_of_parts_are_rebuilt() -> None:
    model = mujoco.MjModel.from_xml_string(ODD)
    mine, theirs = travelled(twin_of(model)), travelled(model)
    # A mesh is centred again when it is compiled, which leaves a rounding.
    np.testing.assert_allclose(mine, theirs, atol=1e-6)
    assert np.ptp(theirs, 0).max() > 0.1, 'nothing moved, so nothing was compared'


def test_what_an_environment_changes_in_its_model_reaches_the_twin() -> None:
    model = mujoco.MjModel.from_xml_string(ODD)
    spec = spec_of(model, Names(model))
    twin = spec.compile()
    constants = Constants(model, twin, Names(model))
    model.body('lift').pos[:] = 3.0
    model.geom_rgba[2] = 0.25
    model.opt.gravity[:] = 0.0, 0.0, -1.6
    constants.copy()
    assert twin.body('lift').pos.tolist() == [3.0, 3.0, 3.0]
    assert twin.geom_rgba[2].tolist() == [0.25] * 4
    assert twin.opt.gravity.tolist() == [0.0, 0.0, -1.6]


def test_textures_and_materials_are_rebuilt() -> None:
    model = mujoco.MjModel.from_xml_string(ODD)
    twin = twin_of(model)
    np.testing.assert_array_equal(twin.tex_data, model.tex_data)
    np.testing.assert_array_equal(twin.mat_texid, model.mat_texid)


def test_soft_bodies_are_refused_in_one_sentence() -> None:
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" '
        'dim="2" mass="1"/></worldbody></mujoco>'
    )
    with pytest.raises(RigError, match=r'has flexes .* name its file as world\.model'):
        spec_of(model, Names(model))
