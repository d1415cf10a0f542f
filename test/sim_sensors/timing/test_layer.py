"""The timing of streams is the lowest layer: it loads nothing above itself."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import sim_sensors.timing.stamp_limits
import sim_sensors.timing.transit
print(*(name for name in sys.modules if name.partition('.')[0] in ('mujoco', 'sim_sensors')))
"""


def test_transit_loads_the_timing_layer_alone() -> None:
    found = subprocess.run(
        [sys.executable, '-c', LOADED], capture_output=True, text=True, check=True
    )
    loaded = set(found.stdout.split())
    assert 'sim_sensors.timing.transit' in loaded
    above = {name for name in loaded if not name.startswith('sim_sensors.timing')}
    assert above == {'sim_sensors'}
