"""Parts of a rig for one host."""

from __future__ import annotations

import pytest

from rig_common.errors import RigError
from sensor_rig.rigfile import load_rig
from sensor_rig.running.node_plan import planned_nodes


@pytest.mark.parametrize(
    ('only', 'emulators', 'wanted'),
    [
        (['world'], 'per_sensor', {'world': None}),
        (['sync', 'imu'], 'per_sensor', {'sync': None, 'emulator_imu': ['imu']}),
        (
            ['imu', 'wheels', 'world'],
            'one',
            {'emulator_imu_wheels': ['imu', 'wheels'], 'world': None},
        ),
        ([], 'one', {'sync': None, 'emulator': None, 'world': None}),
    ],
)
def test_a_host_starts_what_is_named(only, emulators, wanted) -> None:
    nodes = planned_nodes(load_rig('soak'), emulators=emulators, only=only)
    assert {node.name: node.parameters.get('only') for node in nodes} == wanted


def test_every_part_of_a_rig_belongs_to_one_host_or_another() -> None:
    rig = load_rig('soak')
    first = planned_nodes(rig, only=['world', 'imu'])
    second = planned_nodes(rig, only=['front_lidar', 'wheels', 'sync'])
    assert {node.name for node in first + second} == {node.name for node in planned_nodes(rig)}


def test_a_name_that_the_rig_does_not_have_is_refused() -> None:
    with pytest.raises(RigError, match=r"only names 'camera'; soak.yaml has world, sync, imu"):
        planned_nodes(load_rig('soak'), only=['camera'])


def test_a_world_does_not_wait_for_a_sync_node_that_nobody_starts() -> None:
    rig = load_rig('soak')
    assert rig.runs_sync
    assert 'waits_for_sync' not in planned_nodes(rig)[-1].parameters
    assert planned_nodes(rig, sync=False)[-1].parameters['waits_for_sync'] is False
