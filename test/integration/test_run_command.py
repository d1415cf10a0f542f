"""`rig demo` and `rig run` end by themselves or with Ctrl-C, say what was, leave nothing."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.processes import Processes
from support.ros_rigs import write_rig

from sensor_rig.rigfile import RigConfig
from sensor_rig.running.node_plan import planned_nodes

SENSORS: dict[str, Any] = {
    'imu': {
        'type': 'imu',
        'mount': {'body': 'plate'},
        'rate_hz': 100.0,
        'delay_range_s': [0.002, 0.002],
        'clock': {'offset_s': 0.2},
    },
    'mag': {
        'type': 'magnetometer',
        'mount': {'body': 'plate'},
        'rate_hz': 20.0,
        'delay_range_s': [0.01, 0.01],
        'loss': {'probability': 0.1},
    },
}
SYNC = {'reference_sensor_id': 'mag', 'required_sensors': ['mag', 'imu'], 'imu_sensor_id': 'imu'}
RIG = [sys.executable, '-m', 'sensor_rig']


@pytest.fixture
def rig(tmp_path: Path) -> RigConfig:
    # At the pace of the wall clock: the summary needs true times, which are heard only once this
    # process has met the emulators, however fast the machine is.
    return write_rig(tmp_path, SENSORS, sync=SYNC, lockstep_timeout_s=60.0, real_time_factor=1.0)


def left_behind(rig: RigConfig) -> list[str]:
    """Return the command lines of processes that still have to do with `rig`."""
    found = []
    for file in Path('/proc').glob('[0-9]*/cmdline'):
        try:
            words = file.read_bytes().decode(errors='replace').split('\0')
        except OSError:
            continue
        if str(rig.path) in words:
            found.append(' '.join(words))
    return found


@pytest.mark.parametrize('way', [[], ['--processes']], ids=['one process', 'many processes'])
def test_a_run_ends_by_itself_with_a_summary(
    processes: Processes, rig: RigConfig, way: list[str]
) -> None:
    process = processes.start(
        *RIG, 'demo', '--rig', str(rig.path), '--headless', '--seconds', '3', '--json', *way
    )
    assert process.wait(120.0) == 0
    output = process.output
    summary = json.loads(output[output.index('{') :])
    assert summary['simulated_s'] == 3.0
    assert summary['warnings'] == []
    assert summary['sensors']['imu']['achieved_hz'] == pytest.approx(100.0, abs=0.01)
    assert summary['sensors']['imu']['latency_p50_ms'] == 2.0
    mag = summary['sensors']['mag']
    assert 0 < mag['lost'] < 20
    assert summary['bundles'] > 10
    assert summary['inputs']['imu']['true_offset_ms'] == pytest.approx(200.0)
    for given in summary['inputs'].values():
        ledger = given['ledger']
        assert ledger['received'] == sum(ledger.values()) - ledger['received']
    assert not left_behind(rig)


def test_a_run_of_several_environments_counts_all_and_syncs_none(
    processes: Processes, tmp_path: Path
) -> None:
    rig = write_rig(tmp_path, SENSORS, sync=SYNC, num_envs=2, lockstep_timeout_s=60.0)
    assert [node.name for node in planned_nodes(rig)] == ['emulator_imu', 'emulator_mag', 'world']
    assert [node.name for node in planned_nodes(rig, world=False)] == ['sync']
    process = processes.start(*RIG, 'run', str(rig.path), '--seconds', '1', '--lockstep', '--json')
    assert process.wait(120.0) == 0
    output = process.output
    assert output.startswith('WARNING: sync: is left out, because world.num_envs is 2 ')
    summary = json.loads(output[output.index('{') :])
    assert summary['sensors']['imu']['published'] >= 2 * 100
    assert summary['sensors']['imu']['achieved_hz'] == pytest.approx(100.0, abs=0.01)
    assert (summary['bundles'], summary['inputs']) == (None, {})
    assert not left_behind(rig)


@pytest.mark.parametrize('way', [[], ['--processes']], ids=['one process', 'many processes'])
def test_an_interrupt_ends_everything(
    processes: Processes, rig: RigConfig, way: list[str], wait_until: Callable[..., Any]
) -> None:
    process = processes.start(
        *RIG, 'demo', '--rig', str(rig.path), '--headless', '--rtf', '1', *way
    )
    process.wait_for_output('Running')
    count = 5 if way else 1
    wait_until(lambda: len(left_behind(rig)) == count, what=f'{count} processes')
    process.interrupt()
    assert process.wait() in (0, 130)
    assert not left_behind(rig)
    assert 'Traceback' not in process.output


def test_a_mistake_is_one_sentence(processes: Processes, tmp_path: Path) -> None:
    rig = write_rig(tmp_path, SENSORS, model='<mujoco><worldbody/></mujoco>')
    process = processes.start(*RIG, 'run', str(rig.path), '--seconds', '1')
    assert process.wait() == 2
    assert "mount.body is 'plate', which the model does not have" in process.output
    assert 'Traceback' not in process.output
