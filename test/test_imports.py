"""Where ROS may be imported, and that each half runs alone.

Which package may import which is the contract for import-linter in pyproject.toml.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from support.places import ROOT

PACKAGES = ('rig_common', 'sensor_rig', 'sim_sensors', 'sync_engine')
ROS = frozenset(
    {
        'rclpy',
        'rcl_interfaces',
        'builtin_interfaces',
        'std_msgs',
        'std_srvs',
        'sensor_msgs',
        'geometry_msgs',
        'nav_msgs',
        'diagnostic_msgs',
        'visualization_msgs',
        'rosgraph_msgs',
        'tf2_msgs',
        'tf2_ros',
        'message_filters',
        'launch',
        'launch_ros',
        'ament_index_python',
        'rosidl_runtime_py',
        'rosbag2_py',
    }
)
ROS_FOLDERS = frozenset({'ros', 'nodes'})
GUARDED = frozenset(
    {'sync_engine/filters/synchronizer.py', 'sync_engine/filters/typed_messages.py'}
)
"""May import ROS, but only where a missing ROS is handled."""


def sources() -> list[str]:
    """Return every source file, relative to the root."""
    return sorted(
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob('*.py')
    )


def imports(source: str) -> Iterator[tuple[str, int]]:
    """Yield (module, line) of every import in a file, wherever it stands."""
    for node in ast.walk(ast.parse((ROOT / source).read_text(), source)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f'{source}:{node.lineno}: relative import; say the package'
            yield str(node.module), node.lineno


def module_of(source: str) -> str:
    """Return the dotted module name of a file."""
    return source.removesuffix('.py').removesuffix('/__init__').replace('/', '.')


def is_ros_shell(source: str) -> bool:
    """Say whether the file is in a folder that may import ROS."""
    return bool(ROS_FOLDERS & set(Path(source).parts[:-1]))


@pytest.mark.parametrize('source', sources())
def test_ros_is_imported_in_the_shells_only(source: str) -> None:
    if is_ros_shell(source) or source in GUARDED:
        return
    found = [
        f'{source}:{line} imports {name}'
        for name, line in imports(source)
        if name.split('.')[0] in ROS
    ]
    assert not found


def test_imports_go_down_only() -> None:
    cli = pytest.importorskip('importlinter.cli', reason='import-linter is not installed')
    result = subprocess.run(
        [
            sys.executable,
            '-c',
            f'import sys; from {cli.__name__} import lint_imports; '
            'sys.exit(lint_imports(cache_dir=None))',
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stdout


def test_tests_of_the_core_do_not_import_benchmarks() -> None:
    files = [
        path.relative_to(ROOT).as_posix()
        for part in ('rig_common', 'sim_sensors', 'support', 'sync_engine')
        for path in sorted((ROOT / 'test' / part).rglob('*.py'))
    ]
    assert len(files) > 100
    assert not [
        f'{file}:{line} imports {name}'
        for file in files
        for name, line in imports(file)
        if name.split('.')[0] == 'bench'
    ]


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for source in sources():
        for node in ast.parse((ROOT / source).read_text(), source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith('_'):
                places.setdefault(node.name, []).append(source)
    assert not {name: found for name, found in places.items() if len(found) > 1}


BLOCKED_IMPORT = """
import importlib, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in blocked:
            raise ModuleNotFoundError(f'blocked by the test: {name}', name=name)

blocked, modules = set(sys.argv[1].split(',')), sys.argv[2:]
sys.meta_path.insert(0, Blocker())
for module in modules:
    importlib.import_module(module)
"""


def import_without(blocked: frozenset[str] | set[str], modules: list[str]) -> str:
    """Import `modules` in a fresh process that cannot import `blocked`; return what went wrong."""
    assert modules
    command = [sys.executable, '-c', BLOCKED_IMPORT, ','.join(sorted(blocked)), *modules]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return '' if result.returncode == 0 else result.stderr


def core_modules(package: str) -> list[str]:
    """Return the modules of a package outside its ROS shells that can be imported here."""
    tensors = 'sim_sensors/timing/arrays/tensors.py'
    needs = (('viser', 'sensor_rig/page/'), ('torch', tensors), ('array_api_compat', tensors))
    left_out = tuple(path for name, path in needs if find_spec(name) is None)
    return [
        module_of(source)
        for source in sources()
        if source.startswith(f'{package}/')
        and not is_ros_shell(source)
        and not source.endswith('__main__.py')
        and not source.startswith(left_out)
    ]


@pytest.mark.parametrize('package', PACKAGES)
def test_core_is_importable_without_ros(package: str) -> None:
    assert not import_without(ROS, core_modules(package))


def test_sync_engine_needs_no_simulator() -> None:
    assert not import_without({'mujoco', 'sim_sensors', 'sensor_rig'}, core_modules('sync_engine'))


def test_sync_node_needs_no_simulator() -> None:
    pytest.importorskip('rclpy', reason='the node needs ROS')
    blocked = {'mujoco', 'sim_sensors', 'sensor_rig'}
    assert not import_without(blocked, ['sync_engine.nodes.sync'])


def test_simulator_needs_no_sync_engine() -> None:
    assert not import_without(
        {'filterpy', 'sync_engine', 'sensor_rig'}, core_modules('sim_sensors')
    )


def test_a_rig_file_is_readable_without_simulator() -> None:
    assert not import_without({'mujoco', 'filterpy', 'sim_sensors', *ROS}, ['sensor_rig.rigfile'])


def test_the_blocker_blocks() -> None:
    assert 'blocked by the test: mujoco' in import_without({'mujoco'}, ['mujoco'])
