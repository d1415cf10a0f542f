"""Fixtures for every area: an own ROS domain, processes that always end, waiting."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.places import ROOT
from support.processes import Processes
from support.waiting import wait_until as _wait_until

from sensor_rig.running.domain import claim_domain
from sensor_rig.running.middleware import FILE_VARIABLES, OPENING, prepare_middleware

# A shell has what it starts in the background ignore SIGINT, and every process of a test as well.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Before any test module can import rclpy, and for every process that a test starts.
os.environ['ROS_DOMAIN_ID'] = str(claim_domain())
for _name in ('ROS_AUTOMATIC_DISCOVERY_RANGE', 'ROS_LOCALHOST_ONLY', *OPENING, *FILE_VARIABLES):
    os.environ.pop(_name, None)
prepare_middleware(print)
os.environ['PYTHONPATH'] = os.pathsep.join(
    filter(None, [str(ROOT), os.environ.get('PYTHONPATH', '')])
)

# A generated case may take as long as a busy machine needs.
with suppress(ImportError):
    from hypothesis import settings

    settings.register_profile('unhurried', deadline=None)
    settings.load_profile('unhurried')


@pytest.fixture(scope='session')
def ros_domain_id() -> int:
    """Return the domain that this test process has for itself."""
    return int(os.environ['ROS_DOMAIN_ID'])


@pytest.fixture
def processes() -> Iterator[Processes]:
    """Start processes with it; all are ended afterwards, and a failure shows their output."""
    started = Processes()
    try:
        yield started
    finally:
        started.stop_all()


@pytest.fixture
def wait_until() -> Callable[..., Any]:
    """Return `wait_until(condition, timeout=30.0, what='the condition')`."""
    return _wait_until


@pytest.fixture
def caplog(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> pytest.LogCaptureFixture:
    """Catch our loggers where launch is loaded, too: loggers made after it tell nobody else."""
    for name, logger in logging.root.manager.loggerDict.items():
        if name.split('.')[0] in ('rig_common', 'sensor_rig', 'sim_sensors', 'sync_engine'):
            monkeypatch.setattr(logger, 'propagate', True, raising=False)
    return caplog


@pytest.fixture(scope='session')
def root() -> Path:
    """Return the root of the source tree."""
    return ROOT


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip tests that start nodes where there is no ROS."""
    if item.get_closest_marker('ros') is not None:
        pytest.importorskip('rclpy', reason='rclpy is not installed')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the output of the processes of a test that failed."""
    report: Any = yield
    started = getattr(item, 'funcargs', {}).get('processes')
    if report.failed and isinstance(started, Processes):
        for process in started.started:
            title = f'output of {" ".join(process.command)} (exit code {process.exit_code})'
            report.sections.append((title, process.output))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Repeat at the end which checks of `rig test` failed before the tests."""
    for name in filter(None, os.environ.get('RIG_FAILED_CHECKS', '').split(',')):
        terminalreporter.write_line(f'{name} FAILED, see the top', red=True)
