"""Heights are those of single rays straight down, however the body lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from support.ray_scenes import needs_embree

from rig_common.errors import RigError
from sim_sensors.registry import sensor_class
from sim_sensors.rig import Rig
from sim_sensors.world.config.world import WorldConfig

STAIRS = """
<mujoco>
  <worldbody>
    {steps}
    <body name="trunk" pos="0.3 -0.2 1.1" euler="12 -25 130"><freejoint/>
      <geom type="box" size=".25 .15 .1"/>
      <body pos=".3 0 0"><joint axis="0 1 0"/><geom type="capsule" size=".04"
        fromto="0 0 0 .2 0 -.3"/>
      </body>
    </body>
  </worldbody>
  <keyframe><key qpos=".3 -.2 1.1 .9 .1 -.2 .4 0.3" qvel="2 1 0 1 2 3 0"/></keyframe>
</mujoco>"""
STEPS = ''.join(
    f'<geom type="box" size=".15 2 {0.05 + 0.05 * k}" pos="{-1 + 0.3 * k} 0 {0.05 + 0.05 * k}"/>'
    for k in range(7)
)
KEYS: dict[str, Any] = {'size_m': (1.6, 0.9), 'spacing_m': 0.1, 'above_m': 0.8}


def rig_of(tmp_path: Path, num_envs: int, **keys: Any) -> Rig:
    (tmp_path / 'stairs.xml').write_text(STAIRS.format(steps=STEPS))
    cls = sensor_class('height_scan')
    mount = {'body': 'trunk', 'pos_m': (0.1, 0.05, 0.2), 'rpy_rad': (0.3, 0.0, 0.2)}
    config = cls.config_class(type='height_scan', rate_hz=0.0, mount=mount, **{**KEYS, **keys})
    world = WorldConfig(model='stairs.xml', timestep_s=0.002, keyframe=0, num_envs=num_envs)
    return Rig(world, [cls('ground', config)], base_dir=tmp_path)


@needs_embree
@pytest.mark.parametrize('num_envs', [1, 3])
def test_heights_are_those_of_rays_straight_down(tmp_path: Path, num_envs: int) -> None:
    rig = rig_of(tmp_path, num_envs)
    model = rig.world.model
    for step in range(60):
        rig.step()
        if step == 20:
            rig.reset([num_envs - 1])
        if step % 20:
            continue
        heights = rig.sensors['ground'].return_layout.view(rig.read('ground').values, 'data')
        assert heights.shape == (num_envs, 17, 10)
        for env in range(num_envs):
            data = rig.world.data(env)
            site = model.site('ground').id
            forward = data.site_xmat[site].reshape(3, 3)[:2, 0]
            forward = forward / np.linalg.norm(forward)
            for row, column in np.ndindex(17, 10):
                ahead, left = 0.8 - 0.1 * row, 0.45 - 0.1 * column
                start = data.site_xpos[site] + (0.0, 0.0, 0.8)
                start[:2] += ahead * forward + left * np.array([-forward[1], forward[0]])
                found = np.zeros(1, np.int32)
                # stairs alone: the trunk and its leg are the sensor's own
                hidden = np.array([1, 0, 0, 0, 0, 0], np.uint8)
                model.geom_group[-2:] = 1
                distance = mujoco.mj_ray(
                    model, data, start, np.array([0.0, 0.0, -1.0]), hidden, 1, -1, found, None
                )
                model.geom_group[-2:] = 0
                expected = 5.0 if distance < 0 else distance - 0.8
                assert heights[env, row, column] == pytest.approx(expected, abs=1e-4)
    assert heights.min() < 2.0 and heights.max() == 5.0


def test_its_own_body_can_be_seen(tmp_path: Path) -> None:
    rig = rig_of(tmp_path, 1, exclude_own_body=False, size_m=(0.1, 0.1))
    rig.step()
    assert rig.read('ground').values.min() < 0.4


def test_too_fine_a_grid_is_refused() -> None:
    with pytest.raises(ValueError, match=r'spacing_m 0.001, which is 1602601 points'):
        sensor_class('height_scan').config_class(type='height_scan', spacing_m=0.001)


def test_an_unknown_key_is_named(tmp_path: Path) -> None:
    with pytest.raises((RigError, ValueError), match='spacing'):
        rig_of(tmp_path, 1, spacing_m=0.0)
