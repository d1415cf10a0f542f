"""A model reads nothing outside its own folder, whichever element names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig_common.errors import RigError
from sim_sensors.world.config.world import WorldConfig
from sim_sensors.world.model.model_file import compile_model

SOLID = 'v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n'
ATTACH = '<worldbody><attach model="part" body="part" prefix="p_"/></worldbody>'
GEOM = '<worldbody><geom type="mesh" mesh="solid"/></worldbody>'


def child(directory: str) -> str:
    return (
        f'<mujoco><compiler meshdir="{directory}"/>'
        '<asset><mesh name="solid" file="solid.obj"/></asset><worldbody>'
        '<body name="part"><geom type="mesh" mesh="solid"/></body>'
        '</worldbody></mujoco>'
    )


# What the model's folder holds; `model.xml` is loaded. `../solid.obj` and `../part.xml` exist.
OUTSIDE = {
    'mesh': {
        'model.xml': '<mujoco><asset><mesh name="solid" file="../solid.obj"/></asset>'
        f'{GEOM}</mujoco>'
    },
    'mesh directory': {
        'model.xml': '<mujoco><compiler meshdir=".."/><asset><mesh name="solid" '
        f'file="solid.obj"/></asset>{GEOM}</mujoco>'
    },
    'asset directory': {
        'model.xml': '<mujoco><compiler assetdir=".."/><asset><mesh name="solid" '
        f'file="solid.obj"/></asset>{GEOM}</mujoco>'
    },
    'texture': {
        'model.xml': '<mujoco><asset><texture name="t" type="2d" file="../t.png"/></asset>'
        '</mujoco>'
    },
    'side of a cube': {
        'model.xml': '<mujoco><asset><texture name="t" type="cube" '
        'fileup="../t.png"/></asset></mujoco>'
    },
    'height field': {
        'model.xml': '<mujoco><asset><hfield name="h" size="1 1 1 1" '
        'file="../t.png"/></asset></mujoco>'
    },
    'include': {'model.xml': '<mujoco><include file="../part.xml"/></mujoco>'},
    'include of an include': {
        'model.xml': '<mujoco><include file="sub/near.xml"/></mujoco>',
        'sub/near.xml': '<mujoco><include file="../../part.xml"/></mujoco>',
    },
    'attached model': {
        'model.xml': '<mujoco><asset><model name="part" file="../part.xml"/>'
        f'</asset>{ATTACH}</mujoco>'
    },
    'attached model in an include': {
        'model.xml': f'<mujoco><asset><include file="near.xml"/></asset>{ATTACH}</mujoco>',
        'near.xml': '<mujocoinclude><model name="part" file="../part.xml"/></mujocoinclude>',
    },
    'mesh directory of an attached model': {
        'model.xml': f'<mujoco><asset><model name="part" file="sub/part.xml"/></asset>{ATTACH}'
        '</mujoco>',
        'sub/part.xml': child('../..'),
    },
    'flexible body': {
        'model.xml': '<mujoco><worldbody><body name="b"><flexcomp name="f" dim="2" '
        'type="mesh" mass="1" file="../solid.obj"/></body></worldbody></mujoco>'
    },
}


def write(folder: Path, files: dict[str, str]) -> Path:
    (folder.parent / 'solid.obj').write_text(SOLID)
    (folder.parent / 'part.xml').write_text(child('.'))
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / 'model.xml'


@pytest.mark.parametrize('case', OUTSIDE)
def test_a_file_outside_is_refused(tmp_path: Path, case: str) -> None:
    model = write(tmp_path / 'robot', OUTSIDE[case])
    with pytest.raises(RigError, match=r'which is outside its own folder .*allow_outside_files'):
        compile_model(WorldConfig(model=str(model)), [])


def test_a_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    model = write(
        tmp_path / 'robot',
        {'model.xml': f'<mujoco><asset><mesh name="solid" file="s.obj"/></asset>{GEOM}</mujoco>'},
    )
    (tmp_path / 'robot' / 's.obj').symlink_to(tmp_path / 'solid.obj')
    with pytest.raises(RigError, match='which is outside its own folder'):
        compile_model(WorldConfig(model=str(model)), [])


def test_what_cannot_be_checked_is_refused(tmp_path: Path) -> None:
    model = write(
        tmp_path / 'robot',
        {'model.xml': '<mujoco><!-- a -- b --><include file="../part.xml"/></mujoco>'},
    )
    with pytest.raises(RigError, match=r'not well-formed XML .*, so what it reads cannot be'):
        compile_model(WorldConfig(model=str(model)), [])


def test_files_inside_are_read_and_outside_too_where_that_is_allowed(tmp_path: Path) -> None:
    model = write(
        tmp_path / 'robot',
        {
            'model.xml': f'<mujoco><asset><model name="part" file="sub/part.xml"/></asset>{ATTACH}'
            '</mujoco>',
            'sub/part.xml': child('.'),
            'sub/solid.obj': SOLID,
        },
    )
    assert compile_model(WorldConfig(model=str(model)), []).nmesh == 1
    for case in ('mesh', 'mesh directory of an attached model', 'attached model'):
        model = write(tmp_path / case.replace(' ', '_'), OUTSIDE[case])
        assert compile_model(WorldConfig(model=str(model), allow_outside_files=True), []).nmesh
