"""The assertions of the launch tests, with the built-in runner's processes."""

from __future__ import annotations

from support.live_rig import watching
from support.places import SMALL_RIG as RIG
from support.processes import Processes

from sensor_rig.rigfile import load_rig
from sensor_rig.running.node_plan import planned_nodes


def test_processes_come_up_survive_a_kill_and_end_cleanly(processes: Processes) -> None:
    rig = load_rig(RIG)
    planned = {node.name: node for node in planned_nodes(rig)}
    with watching(rig) as watcher:
        started = {name: processes.start(*node.command()) for name, node in planned.items()}
        watcher.assert_graph_comes_up(set(planned))
        watcher.assert_rates_are_right()
        watcher.assert_bundles_flow()

        def kill_and_start_again() -> None:
            started['emulator_wheels'].kill()
            started['again'] = processes.start(*planned['emulator_wheels'].command())

        watcher.assert_returns_after('wheels/odom', kill_and_start_again)
    for name, process in started.items():
        if name != 'emulator_wheels':
            process.interrupt()
            assert process.wait() == 0, (name, process.output)


def test_one_emulator_for_all_sensors_is_one_node() -> None:
    rig = load_rig(RIG)
    assert [node.name for node in planned_nodes(rig, emulators='one')] == [
        'sync',
        'emulator',
        'world',
    ]
    assert [node.name for node in planned_nodes(rig, world=False)] == ['sync']
