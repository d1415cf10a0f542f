"""The same files through rcl: what we read is what a node gets; what it breaks we refuse."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rig_common.errors import RigError
from rig_common.paramfile import events as paramevents
from rig_common.paramfile import reader as paramfile

rclpy = pytest.importorskip('rclpy', reason='rcl is the oracle here and needs ROS 2')
pytestmark = pytest.mark.ros

OWN = {'use_sim_time', 'start_type_description_service'}
"""Parameters every node declares for itself."""


def node_parameters(file: Path) -> dict[str, Any]:
    """Return the parameters that a node started with --params-file has."""
    context = rclpy.Context()
    rclpy.init(args=['--ros-args', '--params-file', str(file)], context=context)
    try:
        node = rclpy.create_node(
            'oracle',
            context=context,
            start_parameter_services=False,
            automatically_declare_parameters_from_overrides=True,
        )
        try:
            return {
                name: _plain(parameter.value)
                for name, parameter in node._parameters.items()
                if name not in OWN
            }
        finally:
            node.destroy_node()
    finally:
        context.try_shutdown()


def _plain(value: Any) -> Any:
    return list(value) if hasattr(value, '__len__') and not isinstance(value, str) else value


def comparable(flat: dict[str, Any]) -> dict[str, Any]:
    """Make NaN equal to NaN and 1 different from 1.0 and True."""
    return {
        name: [_typed(item) for item in value] if isinstance(value, list) else _typed(value)
        for name, value in flat.items()
    }


def _typed(value: Any) -> tuple[str, Any]:
    is_nan = isinstance(value, float) and math.isnan(value)
    return type(value).__name__, 'nan' if is_nan else value


@pytest.fixture(scope='module')
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    return tmp_path_factory.mktemp('parameters') / 'rig.yaml'


SCALARS = st.one_of(
    st.integers(-(2**66), 2**66).map(str),
    st.floats().map(repr),
    st.text('0123456789+-.eExX', min_size=1, max_size=8).filter(
        lambda t: t[0] not in '-.' or len(t) > 1
    ),
    st.sampled_from(
        [
            'on',
            'off',
            'Y',
            'n',
            'True',
            'no',
            '.inf',
            '-.Inf',
            '.NAN',
            'nan',
            '0x1F',
            '010',
            '1e-4',
            '"1"',
            "'on'",
            '""',
            '!!str 5',
            'a b',
            '1:30',
            '2020-01-01',
            '&x 3',
            '|-\n          7',
        ]
    ),
    st.text('abcXYZ_äß', min_size=1, max_size=6),
)
NAMES = st.text('abc_1', min_size=1, max_size=4)


def as_yaml(tree: Any, indent: str) -> str:
    if isinstance(tree, dict):
        return '\n' + '\n'.join(
            f'{indent}{key}: {as_yaml(value, indent + "  ")}' for key, value in tree.items()
        )
    return f'[{", ".join(tree)}]' if isinstance(tree, list) else str(tree)


FLOW = SCALARS.filter(lambda text: '\n' not in text)
TREES = st.recursive(
    st.one_of(SCALARS, st.lists(FLOW, min_size=1, max_size=3)),
    lambda inner: st.dictionaries(NAMES, inner, min_size=1, max_size=4),
    max_leaves=12,
)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tree=st.dictionaries(NAMES, TREES, min_size=1, max_size=4))
def test_any_accepted_file_gives_a_node_the_same_parameters(
    file: Path, tree: dict[str, Any]
) -> None:
    file.write_text('/**:\n  ros__parameters:' + as_yaml(tree, '    ') + '\n')
    try:
        ours = paramfile.flatten(paramfile.read(file))
    except RigError:
        return  # stricter than rcl is allowed; test_reader says where and why
    ours = {name: value for name, value in ours.items() if name not in OWN}
    assert comparable(ours) == comparable(node_parameters(file))


GARBLED = {
    'a: [[1, 2], [3]]': None,
    'a: [[1, 2]]': {'a': [1, 2]},
    'a: [0.3, 0]': None,
    'a:': None,
    'a: []': None,
    'a: {}\n    b: 1': None,
    'a: &x 1\n    b: *x': None,
    'a: null': {'a': 'null'},
    'a: ~': {'a': '~'},
    'a: [{x: 1}, {y: 2}]': {'a.x.y': [1, 2]},
    'a: 1\n    a: x': {'a': 1},
    'x: {a.b: {c: 1}, z: 2}': {'x.a.b.c': 1, 'x.a.z': 2},
    'a: !!float 1': {'a': 1},
    'a: "x\\0y"': {'a': 'x'},
}
"""What YAML allows, and what rcl makes of it (None: it refuses)."""


@pytest.mark.parametrize('body', GARBLED)
def test_what_rcl_garbles_is_refused(file: Path, body: str) -> None:
    file.write_text(f'/**:\n  ros__parameters:\n    {body}\n')
    with pytest.raises(RigError):
        paramfile.read(file)
    if GARBLED[body] is None:
        with pytest.raises(Exception):  # noqa: B017 - rclpy has a type of its own for each
            node_parameters(file)
    else:
        assert node_parameters(file) == GARBLED[body]


def test_shipped_rig_files_reach_a_node_unchanged(root: Path) -> None:
    files = sorted((root / 'config').glob('*.yaml'))
    for each in files:
        assert comparable(paramfile.flatten(paramfile.read(each))) == comparable(
            node_parameters(each)
        )


def test_the_reader_used_is_libyaml_as_in_rcl() -> None:
    assert paramevents._LOADER is yaml.CSafeLoader
