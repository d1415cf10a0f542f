"""Waiting for conditions, never for luck."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar('T')


def wait_until(
    condition: Callable[[], T], timeout: float = 30.0, what: str = 'the condition'
) -> T:
    """Return the first true result of `condition`; fail after `timeout` s of wall time.

    The timeout only bounds a broken run: it is never part of what a test asserts.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f'{what} did not come true within {timeout:g} s')
        time.sleep(0.01)
