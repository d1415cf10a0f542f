"""Pictures by rays: as rendered, without a renderer, for many environments at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.rendering import needs_renderer

from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.raycast.embree_api import has_embree
from sim_sensors.raycast.many import ManyCaster
from sim_sensors.rig import Rig
from sim_sensors.sensors.cameras.camera import Camera, CameraConfig
from sim_sensors.world.config.world import WorldConfig
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


LIT = """
<mujoco>
  <asset><material name="blue" rgba=".1 .2 .9 1"/></asset>
  <worldbody>
    <geom type="box" size=".1 9 9" pos="3.1 0 0" rgba=".8 .4 .2 1"/>
    <body name="tag" pos="2 .3 0" euler="0 0 60"><joint axis="0 0 1"/>
      <geom type="box" size=".01 .4 .4" material="blue"/></body>
  </worldbody>
</mujoco>"""


def lit_rig(folder: Path, num_envs: int, **cameras: dict[str, Any]) -> Rig:
    (folder / 'lit.xml').write_text(LIT)
    world = WorldConfig(model='lit.xml', timestep_s=0.002, num_envs=num_envs)
    sensors = [
        Camera(name, CameraConfig(type='camera', renderer='rays', **keys))
        for name, keys in cameras.items()
    ]
    return Rig(world, sensors, base_dir=folder)


@pytest.mark.parametrize('encoding', ['rgb8', 'mono8'])
def test_colours_are_flat_under_a_light_at_the_camera(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(render, 'backend', lambda: pytest.fail('nothing should be rendered'))
    keys = {'encoding': encoding, 'width': 81, 'height': 61}
    for num_envs in (1, 2):
        rig = lit_rig(tmp_path, num_envs, eye=keys)
        rig.step()
        pictures = rig.sensors['eye'].return_layout.view(rig.read('eye').values, 'data')
        for picture in pictures.reshape(num_envs, 61, 81, -1):
            eye = rig.sensors['eye']
            assert isinstance(eye, Camera)
            x, y = eye.pixel_rays()
            facing = 1.0 / np.sqrt(1.0 + x * x + y * y)  # of the wall, which is square to the axis
            shown = np.array([0.8, 0.4, 0.2]) * (0.4 + 0.6 * facing[..., None])
            turned = np.abs(0.5 + np.sin(np.pi / 3) * -x) * facing
            tag = np.array([0.1, 0.2, 0.9]) * (0.4 + 0.6 * turned[..., None])
            for row, column, wanted in ((30, 75, shown), (5, 60, shown), (30, 33, tag)):
                pixel = 255.0 * wanted[row, column]
                if encoding == 'mono8':
                    pixel = pixel @ [0.299, 0.587, 0.114]
                np.testing.assert_allclose(picture[row, column], pixel, atol=1.0)


def test_rays_go_through_the_lens(tmp_path: Path) -> None:
    """A bent picture is, pixel by pixel, that of rays in the directions that the lens shows."""
    given = {'k1': -0.3, 'k2': 0.1}
    keys = {'width': 60, 'height': 40, 'fovy_deg': 90.0}
    rig = lit_rig(tmp_path, 1, bent={**keys, 'distortion': given}, flat=keys)
    rig.step()
    bent, flat = (each.pixel_rays() for each in rig.sensors.values() if isinstance(each, Camera))
    assert np.abs(bent[0]).max() > 1.1 * np.abs(flat[0]).max()
    colour = {
        name: rig.sensors[name].return_layout.view(rig.read(name).values, 'data')[0]
        for name in ('bent', 'flat')
    }
    facing = 1.0 / np.sqrt(1.0 + bent[0] ** 2 + bent[1] ** 2)
    np.testing.assert_allclose(
        colour['bent'][:8, :8, 0], 255.0 * 0.8 * (0.4 + 0.6 * facing[:8, :8]), atol=1.0
    )
    assert (colour['bent'][:8, :8, 0] <= colour['flat'][:8, :8, 0]).all()
