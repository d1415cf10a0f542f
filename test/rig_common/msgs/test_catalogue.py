"""A new message type is one row and one decoder: inspect, sync and the viewers then know it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from rig_common import msgs
from rig_common.cdr import Reader
from rig_common.msgs.catalogue import CATALOGUE, MessageType, known
from rig_common.msgs.decode import PoseMessage
from sensor_rig.bags.inspect import TopicTimes, facts_of
from sensor_rig.bags.reader import BagTopic
from sensor_rig.bags.starter import starter_rig
from sensor_rig.view.foxglove import layout
from sensor_rig.view.trajectories import pose_types, read_pose_of
from sync_engine.config import SyncConfig
from sync_engine.wire.cue_readers import VALUES, Lenses, readers_of, types_of

TRACKED = 'acme_msgs/msg/TrackedPose'


def read_tracked(buf: bytes) -> PoseMessage:
    """Read the type of the test: a header, an orientation, a position."""
    reader = Reader(buf)
    stamp_ns, _ = reader.header()
    values = reader.array('f8', 7).astype(np.float64)
    return PoseMessage(stamp_ns, values[4:], values[:4])


@pytest.fixture
def tracked(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Put the type into the catalogue; return one message of it."""
    row = MessageType(
        TRACKED,
        read_tracked,
        'odometry',
        cue_bias_s=0.003,
        latency_s=(0.007, 0.004),
        view='pose',
        in_space=True,
    )
    monkeypatch.setitem(CATALOGUE, TRACKED, row)
    pose = msgs.pose_stamped('map')  # the same bytes in another order of meaning
    return pose.fill(10**9, position=[0.1, 0.2, 0.3], orientation=[0.9, 5.0, 6.0, 7.0])


def topics(raw: bytes) -> list[TopicTimes]:
    """Return the times of a recording of the type and of an IMU."""
    found = []
    imu = msgs.imu('imu')
    for name, kind in (('/tracker/pose', TRACKED), ('/imu/data', 'sensor_msgs/msg/Imu')):
        times = TopicTimes(name, kind, True)
        for index in range(50):
            time_ns = 10**9 + index * 10**7 * (1 if kind == TRACKED else 2)
            times.add(
                imu.fill(time_ns) if kind != TRACKED else restamped(raw, time_ns), time_ns + 10**6
            )
        found.append(times)
    return found


def restamped(raw: bytes, time_ns: int) -> bytes:
    """Return the message with another stamp."""
    return raw[:4] + np.array(divmod(time_ns, 10**9), '<u4').tobytes() + raw[12:]


def test_inspect_writes_its_cue_and_its_usual_latency(tracked: bytes) -> None:
    text = starter_rig(facts_of(topics(tracked)), 'drive')
    inputs = yaml.safe_load(text)['/**']['ros__parameters']['sync']['inputs']
    written = inputs['tracker_pose']
    assert written['cue'] == 'odometry'
    assert written['cue_bias_s'] == 0.003
    assert (written['latency_s'], written['latency_sigma_s']) == (0.007, 0.004)


def test_sync_reads_its_turns(tracked: bytes) -> None:
    given = {'topic': 'tracker/pose', 'type': TRACKED, 'cue': 'odometry'}
    config = SyncConfig(
        inputs={'tracker': given}, reference_sensor_id='tracker', required_sensors=('tracker',)
    )
    read = readers_of(config, Lenses(config))['tracker']
    assert read(tracked)['orientation'] == pytest.approx([0.1, 0.2, 0.3, 0.9])


def test_viewers_show_it(tracked: bytes, tmp_path: Path) -> None:
    topic = BagTopic('/tracker/pose', TRACKED, 50, True, None)
    panels = json.loads(layout({topic.name: topic}))['configById']
    assert '/tracker/pose' in panels['3D!world']['topics']
    assert TRACKED in pose_types()
    assert read_pose_of(TRACKED, tracked).position_m == pytest.approx([5.0, 6.0, 7.0])


def test_every_cue_has_types_with_decoders() -> None:
    for cue in VALUES:
        assert types_of(cue)
    for row in CATALOGUE.values():
        is_read_small = row.cue == 'image'  # a picture is decoded as far as the cue needs it
        assert row.decode is not None or row.cue == 'none' or is_read_small
        assert row.decode is not None or not row.view


def test_an_unknown_type_has_the_usual_latency_and_no_cue() -> None:
    row = known('acme_msgs/msg/Nothing')
    assert (row.cue, row.latency_s, row.view, row.rviz) == ('none', (0.02, 0.02), '', '')
