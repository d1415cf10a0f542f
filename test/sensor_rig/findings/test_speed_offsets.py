"""How late a GNSS receiver is, from a recording with an odometry beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.speed_drive import bends, driven, varying

from rig_common import msgs
from rig_common.paramfile.reader import parse
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import starter_rig
from sensor_rig.bags.writer import BagWriter
from sensor_rig.findings.recording import inspect_recording
from sensor_rig.rigfile import rig_from_parameters
from sensor_rig.trust.replay import engine_track
from sensor_rig.trust.streams import read_streams
from sync_engine.config import SyncConfig

LATE_S = 0.15
START_NS = 1_700_000_000_000_000_000
ODOMETRY, FIX = 'nav_msgs/msg/Odometry', 'sensor_msgs/msg/NavSatFix'


@pytest.fixture(scope='module')
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a recording: odometry at 20 Hz, fixes at 5 Hz that are stamped late."""
    path: Path = tmp_path_factory.mktemp('bags') / 'drive'
    odometry, fix = msgs.odometry('odom', 'base_link'), msgs.nav_sat_fix('gnss')
    rng = np.random.default_rng(8)
    t_s, places = driven(varying, bends)
    messages = []
    for k in range(0, len(t_s), 5):
        stamp_ns = START_NS + round(t_s[k] * 1e9)
        place = (places[k].real, places[k].imag, 0.0)
        raw = odometry.fill(stamp_ns, position=place, orientation=(0.0, 0.0, 0.0, 1.0))
        messages.append((stamp_ns + round(1e9 * (0.01 + rng.exponential(0.002))), '/odom', raw))
    for k in range(7, len(t_s), 20):
        stamp_ns = START_NS + round((t_s[k] + LATE_S) * 1e9)
        east, north = places[k].imag, -places[k].real
        degrees = north / 111_229.0 + 50.0, east / 71_696.0 + 8.0  # WGS 84 at 50 degrees
        noise = rng.normal(0.0, 2e-7, 2)
        raw = fix.fill(stamp_ns, position=(*(degrees + noise), 100.0))
        messages.append((stamp_ns + round(1e9 * (0.01 + rng.exponential(0.005))), '/fix', raw))
    with BagWriter(path, 'mcap') as bag:
        bag.add_topic('/odom', ODOMETRY)
        bag.add_topic('/fix', FIX)
        for arrival_ns, topic, raw in sorted(messages):
            bag.write(topic, arrival_ns, raw)
    return path


def test_inspect_says_how_late_the_fixes_are(recording: Path) -> None:
    with BagReader(recording) as bag:
        seen = inspect_recording(bag)
    (said,) = (each for each in seen.findings if each.code == 'clock_offset')
    assert (said.topics, said.related) == (('/fix',), ('/odom',))
    assert said.evidence['offset_ms'] == pytest.approx(1e3 * LATE_S, abs=10.0)
    assert 'as their speed shows' in said.sentence
    assert '/fix' in seen.curves


def config_of(recording: Path) -> tuple[SyncConfig, str]:
    with BagReader(recording) as bag:
        text = starter_rig(inspect_recording(bag).facts, 'drive')
    sync = rig_from_parameters(parse(text).values, Path('drive')).sync
    assert sync is not None
    return sync, text


def test_a_starting_rig_file_and_trust_compare_them_by_speed(recording: Path) -> None:
    config, text = config_of(recording)
    assert config.inputs['fix'].cue == 'speed'
    assert config.speed_reference == 'odom', text
    (streams,) = read_streams(recording, config)
    assert (streams.sensor, streams.imu) == ('fix', 'odom')
    track = engine_track(streams)
    assert track.fixes > 2
    error_s = track.offset_ns[-1] / 1e9 - LATE_S
    assert abs(error_s) < 0.02 and abs(error_s) < 3.0 * track.sigma_s[-1]
