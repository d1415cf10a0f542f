"""What a node takes from the graph has a row that says what a hostile message does there."""

from __future__ import annotations

import re
from collections import Counter

from support.places import ROOT

TAKES = re.compile(r'\.create_(?:subscription|service|action_server)\(')
IN_THE_TABLE = {
    'rig_common/ros/follower.py': 2,
    'rig_common/ros/services.py': 1,
    'sim_sensors/nodes/world.py': 1,
    'sim_sensors/ros/commands.py': 1,
    'sim_sensors/ros/other_worlds.py': 1,
    'sim_sensors/ros/emulator_channel.py': 1,
    'sync_engine/ros/inputs.py': 1,
    'sensor_rig/page/ros/page_node.py': 2,
    'sensor_rig/running/ros/monitor.py': 4,
    'sensor_rig/bags/ros/listening.py': 1,
    'sensor_rig/degrade/ros/degrade_node.py': 1,
}
"""Places that docs/security.md, "What the nodes take from the graph", has a row for."""


def test_the_table_of_what_nodes_take_is_complete() -> None:
    found: Counter[str] = Counter()
    for package in ('rig_common', 'sim_sensors', 'sync_engine', 'sensor_rig'):
        for file in (ROOT / package).rglob('*.py'):
            count = len(TAKES.findall(file.read_text()))
            if count:
                found[str(file.relative_to(ROOT))] = count
    assert found == IN_THE_TABLE
