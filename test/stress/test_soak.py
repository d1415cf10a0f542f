"""Five simulated minutes with faults: nothing grows, nothing is lost, bundles keep coming."""

from __future__ import annotations

import json

import pytest
from support.processes import Processes

from sensor_rig.running.vitals import Vital, Vitals

PATIENCE_S = 580.0
"""Wall time after which the run counts as hanging, on a busy machine too."""
MINUTES = 5


@pytest.mark.ros
@pytest.mark.timeout(PATIENCE_S + 20.0)
def test_five_minutes_of_faults(processes: Processes) -> None:
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    process = processes.rig('soak', '--minutes', str(MINUTES), '--seed', '4', '--json')
    code = process.wait(PATIENCE_S)
    report = json.loads(process.output[process.output.index('{\n') :])
    assert code == 0, report['violations']
    assert report['simulated_s'] >= 60 * MINUTES
    assert sum(report['faults'].values()) > 10
    assert report['bundles'] > 200
    assert 'Traceback' not in process.output


def samples(rss_mib, threads=9, files=20):
    return Vitals([Vital(60.0 * k, rss_mib(k), threads, files, 0, 3) for k in range(60)])


def test_growth_is_told_from_noise() -> None:
    assert not samples(lambda k: 200.0 + (k % 7)).violations()
    leak = samples(lambda k: 200.0 + 2.0 * k)
    assert leak.slope_mib_per_h() == pytest.approx(120.0)
    assert 'memory grew by 40.0 MiB' in leak.violations()[0]


def test_leaked_threads_and_files_are_told() -> None:
    vitals = samples(lambda k: 200.0)
    vitals.samples.append(Vital(3600.0, 200.0, 20, 99, 1, 3))
    assert vitals.violations() == [
        'threads went from 9 to 20',
        'open files went from 20 to 99',
        'child processes went from 0 to 1',
    ]
