"""Fields of the model that differ between environments, against models compiled with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.attached import AttachedRig
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.world import make_world

SLED = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom type="plane" size="9 9 1" euler="0 12 0" friction="{friction} .005 .0001"/>
    <body name="sled" pos="0 0 .12"><freejoint/>
      <inertial pos="0 0 0" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>
      <geom name="runner" type="box" size=".1 .1 .05" friction=".01 .005 .0001"/>
      <body pos="0 0 .1"><joint name="mast" axis="1 0 0" damping="{damping}" stiffness="2"/>
        <geom type="capsule" size=".02" fromto="0 0 0 .05 0 .2" mass="{mass}"/></body>
    </body>
  </worldbody>
  <sensor><framepos objtype="body" objname="sled"/><jointpos joint="mast"/></sensor>
</mujoco>"""
NUMBERS = [
    {'mass': 1.0, 'inertia': 0.01, 'friction': 0.1, 'damping': 0.1},
    {'mass': 3.0, 'inertia': 0.05, 'friction': 0.1, 'damping': 0.1},
    {'mass': 1.0, 'inertia': 0.01, 'friction': 0.6, 'damping': 0.5},
]


def rows(world: Any, steps: int = 150) -> Any:
    found = []
    for _ in range(steps):
        world.step()
        found.append(world.sensordata.copy())
    return np.array(found)


@pytest.mark.parametrize('num_envs', [1, 3])
def test_a_reset_environment_is_one_compiled_with_its_numbers(
    tmp_path: Path, num_envs: int
) -> None:
    (tmp_path / 'sled.xml').write_text(SLED.format(**NUMBERS[0]))
    config = WorldConfig(model='sled.xml', timestep_s=0.002, num_envs=num_envs)
    world = make_world(config, base_dir=tmp_path)
    first = rows(world)
    wanted = NUMBERS[-num_envs:]
    for env, numbers in enumerate(wanted):
        (tmp_path / 'other.xml').write_text(SLED.format(**numbers))
        other = mujoco.MjModel.from_xml_path(str(tmp_path / 'other.xml'))
        for name in ('body_mass', 'body_inertia', 'geom_friction', 'dof_damping'):
            field = world.model_field(name)
            assert field.shape == (num_envs, *getattr(other, name).shape)
            field[env] = getattr(other, name)
    world.reset()
    found = rows(world)
    for env, numbers in enumerate(wanted):
        (tmp_path / 'other.xml').write_text(SLED.format(**numbers))
        alone = make_world(WorldConfig(model='other.xml', timestep_s=0.002), base_dir=tmp_path)
        np.testing.assert_allclose(found[:, env], rows(alone)[:, 0], atol=1e-12)
    assert np.abs(found[-1, -1] - first[-1, -1]).max() > 1e-2


def test_what_sensors_have_baked_in_is_refused(tmp_path: Path) -> None:
    (tmp_path / 'sled.xml').write_text(SLED.format(**NUMBERS[0]))
    world = make_world(WorldConfig(model='sled.xml', timestep_s=0.002), base_dir=tmp_path)
    with pytest.raises(RigError, match=r"takes body_mass, .* not 'geom_size'"):
        world.model_field('geom_size')
    model = mujoco.MjModel.from_xml_path(str(tmp_path / 'sled.xml'))
    data = mujoco.MjData(model)
    attached = AttachedRig(model, data, WorldConfig(model='(attached)', timestep_s=0.002), [])
    with pytest.raises(RigError, match='write body_mass of its MjModel'):
        attached.world.model_field('body_mass')
