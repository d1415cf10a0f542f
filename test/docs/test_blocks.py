"""Blocks of code on the pages work: Python runs, rig files are valid."""

from __future__ import annotations

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from support.markdown import PAGES, ROOT, blocks, named

from rig_common.errors import RigError
from rig_common.paramfile import reader as paramfile
from sensor_rig.rigfile import rig_from_parameters

SECTION = re.compile(r'(world|sensors|streams|sync|seed|extends):')
WORLD = {'model': 'rover_yard.xml'}
PYTHON = [page for page in PAGES if any(block.language == 'python' for block in blocks(page))]
YAML = [
    (page, block.text)
    for page in PAGES
    for block in blocks(page)
    if block.language == 'yaml'
    or (not block.language and (block.text.startswith('/**:') or SECTION.match(block.text)))
]


@pytest.mark.parametrize('page', PYTHON, ids=named)
def test_python_runs(page: Path) -> None:
    """All blocks of a page, one after the other in one namespace; long loops are cut short."""
    code = '\n'.join(block.text for block in blocks(page) if block.language == 'python')
    if 'sync_engine.filters' in code:
        pytest.importorskip('rclpy', reason='this page is for ROS nodes')
    if 'gymnasium.make' in code:
        pytest.importorskip('imageio', reason="Gymnasium's MuJoCo environments need imageio")
    code = re.sub(r'range\([\d_]{3,}\)', 'range(60)', code)
    try:
        with redirect_stdout(io.StringIO()):
            exec(compile(code, named(page), 'exec'), {'__name__': 'page'})
    except RigError as error:
        if 'render' not in str(error):
            raise
        pytest.skip(f'this page uses a camera: {error}')


@pytest.mark.parametrize(
    ('page', 'text'), YAML, ids=[f'{named(page)}-{index}' for index, (page, _) in enumerate(YAML)]
)
def test_rig_files_are_valid(page: Path, text: str, tmp_path: Path) -> None:
    """A part of a rig file is completed with the shipped world."""
    if not text.startswith('/**:'):
        body = '\n'.join(f'    {line}' for line in text.splitlines())
        text = f'/**:\n  ros__parameters:\n{body}\n'
    file = tmp_path / 'rig.yaml'
    file.write_text(text)
    values = paramfile.read(file)
    if values.pop('extends', None) and 'sensors' in values:
        pytest.skip(
            'it completes a file that the page makes; running the page shows that it works'
        )
    for part in (*values.get('sensors', {}).values(), *values.get('streams', {}).values()):
        if 'extends' in part:
            ready = paramfile.read(ROOT / part.pop('extends'))
            part.update({**ready, **part})
    if 'sensors' in values:
        values.setdefault('world', WORLD)
    rig_from_parameters(values, file)
