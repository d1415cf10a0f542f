"""Which Fast DDS profile a run gets, and what is said about it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sensor_rig.cli.support.probes import shared_memory
from sensor_rig.running.middleware import (
    FILE_VARIABLES,
    RANGE_VARIABLE,
    prepare_middleware,
    profile,
)


def prepared(**given: str) -> tuple[str, str, list[str]]:
    """Return the range, the name of the profile that is set, and what was told."""
    told: list[str] = []
    environ = dict(given)
    prepare_middleware(told.append, environ)
    files = [Path(environ[name]).name for name in FILE_VARIABLES if name in environ]
    return environ[RANGE_VARIABLE], ', '.join(files), told


def test_a_run_stays_on_this_machine_without_a_word() -> None:
    assert prepared() == ('LOCALHOST', 'local.xml', [])
    assert prepared(ROS_AUTOMATIC_DISCOVERY_RANGE='OFF') == ('OFF', 'local.xml', [])
    assert prepared(ROS_AUTOMATIC_DISCOVERY_RANGE='SUBNET', ROS_LOCALHOST_ONLY='1') == (
        'SUBNET',
        'local.xml',
        [],
    )


@pytest.mark.parametrize(
    'given',
    [
        {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SUBNET'},
        {'ROS_AUTOMATIC_DISCOVERY_RANGE': 'SYSTEM_DEFAULT'},
        {'ROS_STATIC_PEERS': '10.0.0.7'},
        {'ROS_DISCOVERY_SERVER': '10.0.0.7:11811'},
    ],
)
def test_what_opens_the_rig_is_said(given: dict[str, str]) -> None:
    _, file, told = prepared(**given)
    assert file == 'network.xml'
    ((name, value),) = given.items()
    assert told == [
        f'{name} is {value}: other machines of the network can see and control this rig'
    ]


@pytest.mark.parametrize('variable', FILE_VARIABLES)
def test_a_profile_of_the_users_own_is_left_alone(variable: str) -> None:
    _, file, told = prepared(**{variable: '/home/me/dds.xml'})
    assert file == 'dds.xml'
    assert told == [
        f'the Fast DDS profile /home/me/dds.xml is used as it is; what sensor_rig '
        f'would set is in {profile("local")}'
    ]


def test_a_profile_in_the_working_directory_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'DEFAULT_FASTDDS_PROFILES.xml').write_text('<dds/>')
    _, file, told = prepared()
    assert not file and 'DEFAULT_FASTDDS_PROFILES.xml is used as it is' in told[0]
    assert prepared(SKIP_DEFAULT_XML_FILE='1')[1:] == ('local.xml', [])


def test_our_own_profile_is_exchanged_by_a_run_inside_a_run() -> None:
    inherited = {FILE_VARIABLES[0]: str(profile('local'))}
    assert prepared(**inherited)[1:] == ('local.xml', [])
    assert prepared(**inherited, ROS_AUTOMATIC_DISCOVERY_RANGE='SUBNET')[1] == 'network.xml'


def test_another_middleware_gets_no_profile_and_a_word() -> None:
    _, file, told = prepared(RMW_IMPLEMENTATION='rmw_cyclonedds_cpp')
    assert not file and 'RMW_IMPLEMENTATION is rmw_cyclonedds_cpp' in told[0]
    assert prepared(RMW_IMPLEMENTATION='rmw_fastrtps_cpp')[1:] == ('local.xml', [])


IMAGE_BYTES = 640 * 480 * 3
SEGMENT = re.compile(
    r'([0-9a-f]+)-([0-9a-f]+) .*/dev/shm/fast(?:dds|rtps)_[0-9a-f]{16}$', re.MULTILINE
)


@pytest.mark.skipif(shared_memory().state != 'ok', reason='/dev/shm has no room')
def test_a_bundle_of_images_fits_into_shared_memory() -> None:
    rclpy = pytest.importorskip('rclpy', reason='rclpy is not installed')
    from rig_common.ros.executor import ros_context

    with ros_context([]):
        node = rclpy.create_node('segment')
        maps = Path('/proc/self/maps').read_text()
        node.destroy_node()
    sizes = [int(end, 16) - int(begin, 16) for begin, end in SEGMENT.findall(maps)]
    assert max(sizes) > 4 * IMAGE_BYTES
