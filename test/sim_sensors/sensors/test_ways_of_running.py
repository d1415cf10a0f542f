"""Every type gives the same messages over ROS, in lockstep, as without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip('rclpy', reason='one of the ways is over ROS')

from support.all_sensors import DRAWN, EVERY, SCENE, entry
from support.rendering import renders
from support.ros_rigs import LockstepRun, write_rig

from rig_common.digest import StreamDigests
from sensor_rig.inprocess import InProcessRig

SECONDS = 0.5
HARDER: dict[str, dict[str, Any]] = {
    'camera': {
        'readout_s': 0.01,
        'distortion': {'k1': -0.1},
        'shot_noise': 4.0,
        'vignetting': 0.3,
    },
    'contact': {'threshold_n': 4.0, 'release_n': 3.0, 'debounce_s': 0.02, 'noise': 1.0},
    'contact_force': {'bandwidth_hz': 50.0, 'overload_n': 4.0, 'cross_talk': 0.01},
    'wheel_odometry': {'slip_noise': 0.01},
}


def test_every_type_is_equal_to_no_ros(tmp_path: Path) -> None:
    kinds = [kind for kind in EVERY if renders() or kind not in DRAWN]
    sensors = {
        f'a_{kind}': entry(
            kind, **HARDER.get(kind, {}), delay_range_s=[0.01, 0.02], jitter_s=0.005
        )
        for kind in kinds
    }
    rig = write_rig(tmp_path, sensors, model=SCENE, keyframe='turning', lockstep_timeout_s=60.0)
    expected = StreamDigests()
    plain = InProcessRig(rig, arrays=False)
    for message in plain.run(SECONDS):
        expected.add(message.topic, message.data)
    assert len({topic.split('/')[0] for topic in expected.counts}) == len(kinds)
    with LockstepRun(rig) as run:
        run.run(SECONDS + 0.05)
        heard = StreamDigests()
        for topic, count in expected.counts.items():
            messages = run.recorder.heard[topic].messages
            assert len(messages) >= count, topic
            for raw in messages[:count]:
                heard.add(topic, raw)
    ours, theirs = expected.hex(), heard.hex()
    assert [topic for topic in ours if ours[topic] != theirs[topic]] == []
