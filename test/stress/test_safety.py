"""What keeps the machine safe, checked on the source itself and on the page's address."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sensor_rig.cli.demo import is_local

PACKAGES = ('rig_common', 'sensor_rig', 'sim_sensors', 'sync_engine')
MODULES = {'pickle', 'marshal', 'shelve', 'dill', 'cloudpickle', 'joblib'}
CALLS = {
    'eval',
    'exec',
    'os.system',
    'os.popen',
    'yaml.load',
    'yaml.unsafe_load',
    'yaml.full_load',
}

SHIPS_TO_RAY = ('sensor_rig/sweep/running/ray_cluster.py', 'pickle')
"""Ray pickles whatever goes to its workers; here it is our own experiment, and no file is read."""


def sources(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for package in PACKAGES:
        for file in sorted((root / package).rglob('*.py')):
            yield file, ast.parse(file.read_text(encoding='utf-8'))


def test_nothing_unpickles_evaluates_or_loads_unsafe_yaml(root: Path) -> None:
    found = []
    for file, tree in sources(root):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = {alias.name.partition('.')[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {(node.module or '').partition('.')[0]}
            elif isinstance(node, ast.Call):
                names = {ast.unparse(node.func)} & CALLS
                if any(
                    key.arg == 'shell' and ast.unparse(key.value) == 'True'
                    for key in node.keywords
                ):
                    names.add('shell=True')
                if ast.unparse(node.func) == 'np.load' and 'allow_pickle=False' not in (
                    ast.unparse(node)
                ):
                    names.add('np.load')
            else:
                continue
            found += [
                f'{file}:{node.lineno}: {name}'
                for name in names & (MODULES | CALLS | {'shell=True', 'np.load'})
                if (file.relative_to(root).as_posix(), name) != SHIPS_TO_RAY
            ]
    assert not found


@pytest.mark.parametrize(
    ('host', 'local'),
    [
        ('127.0.0.1', True),
        ('localhost', True),
        ('::1', True),
        ('0.0.0.0', False),
        ('192.168.1.5', False),
        ('::', False),
        ('robot.example.org', False),
        ('', False),
    ],
)
def test_only_loopback_counts_as_this_machine(host: str, local: bool) -> None:
    assert is_local(host) is local


def test_the_page_answers_on_this_machine_unless_told_otherwise() -> None:
    import inspect

    pytest.importorskip('viser', reason='the live page needs viser')
    from sensor_rig.page.access import LOCAL, PagePlace
    from sensor_rig.page.app import Page

    assert inspect.signature(Page.__init__).parameters['host'].default == LOCAL == '127.0.0.1'
    assert PagePlace().host == LOCAL
