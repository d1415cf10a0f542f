"""Offsets of a recording's clocks by the sync engine, where an IMU lets motion tell them."""

from __future__ import annotations

from math import hypot
from pathlib import Path
from tempfile import TemporaryDirectory

from rig_common.errors import RigError
from rig_common.msgs.catalogue import known
from sensor_rig.bags.inspect import TopicFacts
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.starter import IMU_TYPE, input_names, starter_rig, usable
from sensor_rig.fit.fitting import KnownClock
from sensor_rig.rigfile import load_rig
from sensor_rig.syncing.bag_sync import BagSync
from sync_engine.clocks.offset_state import OffsetState

ENOUGH_S = 0.01
"""Largest sigma of an offset to the IMU that is worth more than none."""


def offsets_by_motion(
    path: Path,
    facts: list[TopicFacts],
    least_delays_s: dict[str, float],
    sidecar: Path | None = None,
) -> dict[str, KnownClock]:
    """Return what the sync engine knows at the end of the recording, by topic; may be nothing.

    Motion compares clocks with the IMU's. Its own clock is taken for the host's where its least
    delay is a usual one, and else for one with the usual latency of an IMU.
    """
    topics = usable(facts)
    imu = next((topic.name for topic in topics if topic.type_name == IMU_TYPE), '')
    if not imu or len(topics) < 2:
        return {}
    names = input_names([topic.name for topic in topics])
    with TemporaryDirectory(prefix='sensor_rig_') as folder:
        file = Path(folder) / 'rig.yaml'
        file.write_text(starter_rig(facts, str(path)), encoding='utf-8')
        rig = load_rig(file)
    assert rig.sync is not None
    usual_s, sigma_s = known(IMU_TYPE).latency_s
    least_s = least_delays_s[imu]
    imu_offset_s = 0.0 if 0.0 <= least_s <= usual_s + 3.0 * sigma_s else usual_s - least_s
    found = {}
    with BagReader(path, sidecar) as bag:
        job = BagSync(bag, None, rig.sync, '')
        job.run(lambda _: None)
        for topic in topics:
            if topic.name == imu or topic.source == 'host':
                continue
            try:
                offset = job.sync.engine.offset(names[topic.name], names[imu])
            except (KeyError, RigError):
                continue
            if offset.state is OffsetState.LOCKED and offset.sigma_s < ENOUGH_S:
                found[topic.name] = KnownClock(
                    offset.offset_ns / 1e9 + imu_offset_s,
                    hypot(offset.sigma_s, sigma_s),
                    'the sync engine, from motion against the IMU',
                )
    return found
