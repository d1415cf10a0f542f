"""Which rays start inside a geom, in many environments at once, against one after the other."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from sim_sensors.raycast.poses import Solids
from sim_sensors.raycast.ray_caster import visible_geoms
from sim_sensors.raycast.shape_exceptions import Exceptions

STATIC = """
    <geom type="box" size="0.5 0.2 0.3" pos="1 0 0" euler="0 0 30"/>
    <geom type="sphere" size="0.4" pos="-1 0 0"/>"""
MOVING = '<body pos="0 1 0"><freejoint/><geom type="capsule" size="0.4 0.4"/></body>'


@pytest.mark.parametrize('bodies', [STATIC, MOVING, STATIC + MOVING])
@pytest.mark.parametrize('length_m', [0.0, 0.6])
def test_the_middle_of_the_origins_decides(bodies: str, length_m: float) -> None:
    model = mujoco.MjModel.from_xml_string(f'<mujoco><worldbody>{bodies}</worldbody></mujoco>')
    rng = np.random.default_rng(3)
    states = [mujoco.MjData(model) for _ in range(400)]
    for data in states:
        if model.nq:
            data.qpos[3:7] = rng.normal(size=4)
        mujoco.mj_forward(model, data)
    way = length_m * rng.normal(size=(400, 1, 3))
    times = np.linspace(0.0, 1.0, 5 if length_m else 1)[None, :, None]
    origins = rng.uniform(-1.2, 1.2, (400, 1, 3)) + way * times
    exceptions = Exceptions(model, 20.0, visible_geoms(model))
    slack_m = 2.0 * float(np.abs(origins[:, -1] - origins[:, 0]).max())
    rows, ranks, points = Solids(model, exceptions.solids).near(
        origins,
        slack_m,
        np.stack([data.xpos for data in states]),
        np.stack([data.xmat for data in states]),
    )
    inside = exceptions.holds(ranks, points)
    found = set(zip(rows[inside].tolist(), exceptions.solids[ranks[inside]].tolist(), strict=True))
    expected = {
        (row, geom)
        for row, data in enumerate(states)
        for geom in exceptions._around(data, origins[row])
    }
    assert found == expected
    assert {geom for _, geom in found} == set(range(model.ngeom))
