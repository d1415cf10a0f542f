"""Tests that draw pictures run where something can draw."""

from __future__ import annotations

from functools import cache

import pytest

from rig_common.errors import UnavailableError
from sim_sensors.world.rendering import renderer as render


@cache
def renders() -> bool:
    """Whether some GL library works here."""
    try:
        return bool(render.backend())
    except UnavailableError:
        return False


needs_renderer = pytest.mark.skipif(
    'not __import__("support.rendering").rendering.renders()',
    reason='no GL library renders on this machine',
)
