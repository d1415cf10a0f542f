"""What a user installs: as a wheel with pip, and as a ROS package with colcon."""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from xml.etree import ElementTree

import pytest

import sensor_rig

SHARED = ('launch', 'config', 'worlds', 'datasheets', 'examples')


def shared_files(root: Path) -> set[str]:
    """Return the data files of the source tree, relative to it."""
    return {
        path.relative_to(root).as_posix()
        for folder in SHARED
        for path in (root / folder).rglob('*')
        if path.is_file() and '__pycache__' not in path.parts
    }


@pytest.fixture(scope='module')
def copy(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the source tree, so that builds leave nothing in the tree itself."""
    target = tmp_path_factory.mktemp('workspace') / 'src' / 'sensor_rig'
    ignored = shutil.ignore_patterns(
        '.*', '__pycache__', 'build', 'install', 'log', 'dist', 'runs', '*.egg-info'
    )
    shutil.copytree(root, target, ignore=ignored)
    return target


def run(*command: str, cwd: Path, **changes: str) -> str:
    """Run a command that must succeed and return what it printed."""
    environment = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'} | changes
    result = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_versions_agree(root: Path) -> None:
    package = ElementTree.parse(root / 'package.xml').getroot()
    assert package.get('format') == '3'
    assert package.findtext('version') == sensor_rig.__version__
    headings = re.findall(r'^## (.+)$', (root / 'CHANGELOG.md').read_text(), re.MULTILINE)
    assert headings[0].split()[0] == sensor_rig.__version__
    released = re.compile(r'\d+\.\d+\.\d+ \(\d{4}-\d{2}-\d{2}\)')
    assert [each for each in headings[1:] if not released.fullmatch(each)] == []


def test_no_two_test_files_have_one_name(root: Path) -> None:
    """A plugin that imports test files by their base name takes the second for the first."""
    names = Counter(path.name for path in (root / 'test').rglob('test_*.py'))
    assert [name for name, number in names.items() if number > 1] == []


def test_package_xml_names_what_pip_installs(root: Path) -> None:
    config = configparser.ConfigParser()
    config.read(root / 'setup.cfg')
    names = {
        re.split(r'[>=<; ]', line)[0].lower()
        for line in config['options']['install_requires'].split('\n')
        if line
    }
    package = ElementTree.parse(root / 'package.xml').getroot()
    declared = {element.text for element in package.iter('exec_depend')}
    known_as = {'pyyaml': 'yaml', 'pillow': 'pil'}
    missing = {
        name
        for name in names
        if not declared & {f'python3-{known_as.get(name, name)}', f'python3-{name}-pip'}
    }
    assert missing == {'viser', 'embreex'}  # no rosdep keys; package.xml says so


def test_tests_need_no_more_than_package_xml_declares(root: Path) -> None:
    """`colcon test` runs with the declared packages alone; what needs more has to skip."""
    undeclared = {
        'allantools',
        'build',
        'embreex',
        'importlinter',
        'jsonschema',
        'mcap',
        'mkdocs',
        'playwright',
        'ray',
        'torch',
        'viser',
        'xdist',
    }
    for path in (root / 'test').rglob('*.py'):
        tree = ast.parse(path.read_text())
        for node in tree.body:
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [str(node.module)]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in {each.split('.')[0] for each in names} & undeclared:
                assert f"importorskip('{name}" in path.read_text(), f'{path} imports {name}'


def test_every_executable_exists(root: Path) -> None:
    scripts = setup_cfg(root)['options.entry_points']['console_scripts'].split('\n')
    targets = [line.partition('=')[2].strip() for line in scripts if line]
    assert len(targets) == 1, 'pip would put more than sensor-rig into bin/'
    for target in targets:
        module, _, function = target.partition(':')
        source = find_spec(module)
        assert source is not None, module
        assert f'def {function}(' in Path(str(source.origin)).read_text(), target


def test_every_dependency_is_explained(root: Path) -> None:
    config = setup_cfg(root)
    sections = [config['options']['install_requires'], *config['options.extras_require'].values()]
    page = (root / 'docs' / 'dependencies.md').read_text().lower()
    for line in '\n'.join(sections).split('\n'):
        name = re.split(r'[<>=;! ]', line.strip().lower())[0]
        short = re.sub('^ros-[a-z]+-', '', name).replace('-', '_')
        assert not name or name in page or short in page, f'{name} is not in docs/dependencies.md'


def setup_cfg(root: Path) -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None)
    config.read(root / 'setup.cfg')
    return config


@pytest.fixture(scope='module')
def dist(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the source archive, and the wheel that was built from it."""
    pytest.importorskip('build', reason='needs build (part of the extra "test")')
    folder = tmp_path_factory.mktemp('dist')
    run(sys.executable, '-m', 'build', '--no-isolation', '--outdir', str(folder), cwd=copy)
    return folder


def test_wheel_carries_everything(root: Path, dist: Path) -> None:
    (wheel,) = dist.glob('*.whl')
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {
        'sensor_rig/cli/main.py',
        'sim_sensors/registry.py',
        'sync_engine/__init__.py',
    } <= names
    assert not {name for name in names if name.startswith(('test/', 'bench/', 'docs/'))}
    data = {name.partition('data/share/sensor_rig/')[2] for name in names}
    assert shared_files(root) <= data


def test_source_archive_carries_everything(root: Path, dist: Path) -> None:
    (source,) = dist.glob('*.tar.gz')
    listing = run('tar', '-tzf', str(source), cwd=dist)
    for file in {
        *shared_files(root),
        'rig',
        'package.xml',
        'docs/README.md',
        'tools/matrix',
        'test/test_packaging.py',
        'bench/driver.py',
    }:
        assert f'/{file}\n' in listing, file


@pytest.fixture(scope='module')
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with the wheel in it, which sees the dependencies of this one.

    They are too large to be installed again for a test; `tools/matrix --package` does that.
    """
    (wheel,) = dist.glob('*.whl')
    venv = tmp_path_factory.mktemp('installed')
    run(sys.executable, '-m', 'venv', '--without-pip', str(venv), cwd=venv)
    run(
        sys.executable,
        '-m',
        'pip',
        '--python',
        str(venv / 'bin' / 'python'),
        'install',
        '--no-deps',
        '--no-index',
        str(wheel),
        cwd=venv,
    )
    (packages,) = venv.glob('lib/python3*/site-packages')
    # A line in a .pth file makes a folder visible, but not what its own .pth files point to: the
    # source tree, where it is installed to be edited, stays out of sight.
    (packages / 'dependencies.pth').write_text(sysconfig.get_path('purelib') + '\n')
    return venv


def test_the_installed_wheel_finds_its_files(root: Path, installed: Path, tmp_path: Path) -> None:
    code = 'import sensor_rig; from rig_common import paths; print(sensor_rig.__file__)'
    shown = run(
        str(installed / 'bin/python'), '-c', f'{code}; print(paths.share_dir())', cwd=tmp_path
    ).split()
    assert Path(shown[0]).is_relative_to(installed)
    assert Path(shown[1]) == installed / 'share' / 'sensor_rig'
    assert shared_files(root) == shared_files(Path(shown[1]))
    assert not (installed / 'bin' / 'sync').exists()
    for executable in ('world', 'emulator', 'sync', 'degrade'):
        assert os.access(installed / 'lib' / 'sensor_rig' / executable, os.X_OK)


@pytest.mark.slow
def test_the_demo_runs_from_the_installed_wheel_in_an_empty_folder(
    installed: Path, tmp_path: Path
) -> None:
    pytest.importorskip('rclpy', reason='the demo needs ROS 2')
    told = run(
        str(installed / 'bin/sensor-rig'),
        'demo',
        '--seconds',
        '0.5',
        '--rtf',
        '0',
        '--headless',
        '--json',
        cwd=tmp_path,
    )
    assert json.loads(told)['simulated_s'] >= 0.5
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope='module')
def workspace(copy: Path) -> Path:
    """Return a colcon workspace in which the package was built."""
    if shutil.which('colcon', path=f'{Path(sys.executable).parent}:{os.environ["PATH"]}') is None:
        pytest.skip('needs colcon (part of the extra "test")')
    folder = copy.parents[1]
    run(sys.executable, '-m', 'colcon', 'build', cwd=folder)
    return folder


def test_colcon_builds_without_warnings_of_the_manifest(workspace: Path) -> None:
    told = (workspace / 'log' / 'latest_build' / 'sensor_rig' / 'stderr.log').read_text()
    assert 'no files found' not in told
    assert 'no previously-included' not in told


def test_colcon_knows_the_package(workspace: Path) -> None:
    listed = run(sys.executable, '-m', 'colcon', 'list', cwd=workspace)
    assert listed.split() == ['sensor_rig', 'src/sensor_rig', '(ros.ament_python)']


def test_colcon_installs_what_ros_looks_for(root: Path, workspace: Path) -> None:
    prefix = workspace / 'install' / 'sensor_rig'
    assert (prefix / 'share/ament_index/resource_index/packages/sensor_rig').is_file()
    for executable in ('world', 'emulator', 'sync', 'degrade', 'sensor-rig'):
        assert os.access(prefix / 'lib' / 'sensor_rig' / executable, os.X_OK)
    for file in shared_files(root):
        assert (prefix / 'share' / 'sensor_rig' / file).is_file()


def test_installed_package_finds_its_files(workspace: Path, tmp_path: Path) -> None:
    prefix = workspace / 'install' / 'sensor_rig'
    (packages,) = prefix.glob('lib/python3*/site-packages')
    code = 'from rig_common import paths; print(paths.share_dir())'
    shown = run(sys.executable, '-c', code, cwd=tmp_path, PYTHONPATH=str(packages))
    assert shown.strip() == str(prefix / 'share' / 'sensor_rig')


def test_colcon_test_runs_pytest(workspace: Path) -> None:
    """`colcon test` passes silently when it finds no test dependency: so look what it ran."""
    run(
        sys.executable,
        '-m',
        'colcon',
        'test',
        '--return-code-on-test-failure',
        '--pytest-args',
        'test/test_packaging.py',
        '-k',
        'test_versions_agree',
        cwd=workspace,
    )
    result = (workspace / 'build' / 'sensor_rig' / 'pytest.xml').read_text()
    assert 'tests="1"' in result
    assert 'test_versions_agree' in result
