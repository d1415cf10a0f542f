"""SIGINT and SIGTERM at any moment, also while modules are still loading: a clean end."""

from __future__ import annotations

import os
import signal
import time

import pytest
from support.places import SMALL_RIG
from support.processes import Processes

from sensor_rig.running.domain import claim_domain

pytestmark = pytest.mark.ros

RIG = str(SMALL_RIG)
PROGRAMS = {
    'world': ('-m', 'sensor_rig.nodes.world', '--rig', RIG),
    'emulator': ('-m', 'sensor_rig.nodes.emulator', '--rig', RIG),
    'sync': ('-m', 'sensor_rig.nodes.sync', '--rig', RIG),
    'run': ('-m', 'sensor_rig', 'run', RIG),
    'run in processes': ('-m', 'sensor_rig', 'run', RIG, '--processes'),
    'demo with its page': ('-m', 'sensor_rig', 'demo', '--rig', RIG, '--page-port', '0'),
}
DELAYS_S = (0.3, 0.8, 1.6, 3.0)
"""From the interpreter's start to a running node; which is which depends on the machine, and the
assertions hold for all."""


def traceback_of_ours(output: str) -> bool:
    """Whether a traceback goes through our code; the interpreter's own start is not ours."""
    return 'Traceback' in output and any(
        f'{package}{os.sep}' in output for package in ('sensor_rig', 'sim_sensors', 'sync_engine')
    )


@pytest.fixture(scope='module')
def domains() -> list[str]:
    """Return a domain for each that runs at the same time: two worlds in one refuse to run."""
    return [str(claim_domain()) for _ in DELAYS_S]


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize('name', PROGRAMS)
def test_a_signal_ends_a_program_cleanly(
    processes: Processes, domains: list[str], name: str, number: signal.Signals
) -> None:
    started = [processes.python(*PROGRAMS[name], ROS_DOMAIN_ID=domain) for domain in domains]
    begun = time.monotonic()
    for process, delay_s in zip(started, DELAYS_S, strict=True):
        time.sleep(max(0.0, begun + delay_s - time.monotonic()))
        os.kill(process.pid, number)
    for process, delay_s in zip(started, DELAYS_S, strict=True):
        code = process.wait()
        if 'init_import_site' in process.output:
            continue  # the interpreter was not up yet: its own end, with 1
        assert code in (0, 128 + signal.SIGINT, -number), (delay_s, code, process.output)
        assert not traceback_of_ours(process.output), (delay_s, process.output)
        assert not process.group_alive()
