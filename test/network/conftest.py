"""Hosts for tests of more than one machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from support.namespaces import Hosts, why_not


@pytest.fixture(scope='session')
def network_allowed() -> None:
    """Skip, with the reason, where this machine makes no network namespaces."""
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    reason = why_not()
    if reason:
        pytest.skip(reason)


@pytest.fixture
def make_hosts(network_allowed: None) -> Iterator[Callable[[int], Hosts]]:
    """Make hosts with it; they are taken down after the processes of the test."""
    made: list[Hosts] = []

    def make(number: int) -> Hosts:
        made.append(Hosts(number))
        return made[-1]

    yield make
    for hosts in made:
        hosts.close()
