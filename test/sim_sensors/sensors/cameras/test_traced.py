"""Depth and geom ids by rays: as rendered, without a renderer, for many environments at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.rendering import needs_renderer

from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.raycast.embree_api import has_embree
from sim_sensors.raycast.many import ManyCaster
from sim_sensors.rig import Rig
from sim_sensors.world.rendering import renderer as render

PICTURE: dict[str, Any] = {
    'width': 48,
    'height': 36,
    'rate_hz': 20.0,
    'mount': {'body': 'rover', 'pos_m': [0.5, 0.0, 0.6], 'rpy_rad': [0.0, 0.3, 0.2]},
}


def rig_of(num_envs: int = 1, **keys: Any) -> Rig:
    config = rig_from_parameters(
        {
            'world': {
                'model': 'rover_yard.xml',
                'driver': 'figure_eight',
                'timestep_s': 0.002,
                'num_envs': num_envs,
            },
            'sensors': {
                'depth': {'type': 'depth_camera', 'baseline_m': 0.0, **PICTURE, **keys},
                'ids': {'type': 'segmentation', **PICTURE, **keys},
            },
        }
    )
    return Rig(config.simulated_world, config.make_sensors().values(), seed=1)


@needs_renderer
def test_rays_see_what_the_renderer_draws() -> None:
    rigs = {renderer: rig_of(renderer=renderer) for renderer in ('gl', 'rays')}
    for _ in range(120):
        for rig in rigs.values():
            rig.step()
    ids = {name: rig.read('ids').values[0] for name, rig in rigs.items()}
    same = ids['gl'] == ids['rays']
    assert same.mean() > 0.98, 'only pixels on edges may differ'
    assert len(np.unique(ids['rays'])) > 4
    depth = {name: rig.read('depth').values[0] for name, rig in rigs.items()}
    finite = same & np.isfinite(depth['gl']) & np.isfinite(depth['rays'])
    assert finite.mean() > 0.3
    off = np.abs(depth['gl'] - depth['rays'])[finite] / depth['rays'][finite]
    assert np.median(off) < 1e-3 and np.quantile(off, 0.98) < 0.02


def test_rays_need_no_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError('a renderer was asked for')

    monkeypatch.setattr(render, 'backend', refuse)
    monkeypatch.setattr(render, 'Renderer', refuse)
    rig = rig_of(renderer='rays')
    rig.step()
    assert np.isfinite(rig.read('depth').values).any()


@pytest.mark.skipif(not has_embree(), reason='Embree is not installed here')
def test_pictures_of_many_environments_are_those_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    together = rig_of(3, renderer='rays')
    monkeypatch.setattr(ManyCaster, 'is_complete', False)
    singly = rig_of(3, renderer='rays')
    for _ in range(60):
        together.step()
        singly.step()
    for name in ('depth', 'ids'):
        np.testing.assert_array_equal(together.read(name).values, singly.read(name).values)


def test_a_rolling_shutter_is_traced_band_by_band() -> None:
    rig = rig_of(renderer='rays', readout_s=0.02)
    for _ in range(60):
        rig.step()
    assert np.isfinite(rig.read('depth').values).any()
