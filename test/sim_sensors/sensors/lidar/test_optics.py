"""What comes back from surfaces that are no geoms: cloth and soft bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.ray_scenes import needs_embree

from sim_sensors.rig import Rig
from sim_sensors.sensors.lidar.config import Lidar2dConfig
from sim_sensors.sensors.lidar.scan import Lidar2d
from sim_sensors.world.config.world import WorldConfig

CURTAIN = """
<mujoco><option gravity="0 0 0"/>
  <asset><material name="felt"/></asset>
  <worldbody>
    <geom type="box" size=".1 5 5" pos="-3 0 0"/>
    <flexcomp name="cloth" type="grid" count="5 5 1" spacing=".5 .5 .5" pos="2 0 0" dim="2"
              euler="0 90 0" radius=".01" mass="10" {material}><edge equality="true"/></flexcomp>
    <flexcomp name="other" type="grid" count="5 5 1" spacing=".5 .5 .5" pos="0 2.5 0" dim="2"
              euler="90 0 0" radius=".01" mass="10"><edge equality="true"/></flexcomp>
  </worldbody>
</mujoco>
"""
AHEAD, LEFT, BEHIND = 0, 2, 4
"""Rays at the first cloth, the second and the wall."""


def scans(tmp_path: Path, backend: str, material: str = '', **keys: Any) -> tuple[Any, Any]:
    """Return ranges and intensities [captures, 8] of a scanner between two cloths and a wall."""
    model = tmp_path / 'curtain.xml'
    model.write_text(CURTAIN.format(material=material))
    config = Lidar2dConfig(type='lidar2d', rate_hz=1000.0, num_rays=8, backend=backend, **keys)
    rig = Rig(WorldConfig(model=str(model)), [Lidar2d('scan', config)], seed=3)
    values = []
    for _ in range(400):
        rig.step()
        values.append(rig.read('scan').values[0].copy())
    del values[0]  # nothing has arrived yet
    layout = rig.sensors['scan'].return_layout
    fields = layout.unpack(np.array(values))
    return fields['ranges'], fields['intensities']


BACKENDS = ['mujoco', pytest.param('embree', marks=needs_embree)]


@pytest.mark.parametrize('backend', BACKENDS)
def test_cloth_returns_as_much_as_a_wall_of_the_default_reflectivity(
    tmp_path: Path, backend: str
) -> None:
    ranges, intensities = scans(
        tmp_path, backend, noise=0.01, optics={'dark_range_m': 5.0, 'default_reflectivity': 0.8}
    )
    for ray, distance_m in ((AHEAD, 2.0), (LEFT, 2.5), (BEHIND, 2.9)):
        back = np.isfinite(ranges[:, ray])
        assert back.mean() > 0.9
        assert ranges[back, ray].mean() == pytest.approx(distance_m, abs=0.1)  # cloth gives way
        assert np.diff(ranges[back, ray]).std() < 0.02
        assert np.median(intensities[back, ray]) == pytest.approx(80.0, rel=0.1)


@pytest.mark.parametrize('backend', BACKENDS)
def test_cloth_has_the_reflectivity_of_its_material(tmp_path: Path, backend: str) -> None:
    _, intensities = scans(
        tmp_path,
        backend,
        'material="felt"',
        optics={'default_reflectivity': 0.8, 'reflectivity': {'felt': 0.2}},
    )
    last = intensities[-1]
    assert last[AHEAD] / last[LEFT] == pytest.approx(0.25, rel=0.1)
