"""A shared line: waiting, dropping, sending again; the same for whoever asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.transits import MS, arrivals, transit

from rig_common.errors import RigError
from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.timing.config import LinkConfig
from sim_sensors.timing.link import Link, LinkMember, LinkShare, serve
from sim_sensors.timing.schedule import Schedule


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30)), max_size=40),
    st.integers(0, 60),
    st.sampled_from([0, 40, 100]),
)
def test_serving_is_a_queue(messages: list[tuple[int, int]], free: int, limit: int) -> None:
    enter = np.cumsum([gap for gap, _ in messages]).astype(np.int64)
    service = np.array([each for _, each in messages], np.int64)
    served = serve(enter, service, free, limit)
    for k in range(len(messages)):  # the plain rule, message by message
        done = max(int(enter[k]), free) + int(service[k])
        dropped = bool(limit) and done - enter[k] > limit
        assert served.dropped[k] == dropped
        if not dropped:
            free = done
            assert served.leave_ns[k] == done
    assert served.free_ns == free


def line(bandwidth_bps: float = 100e6, **keys: Any) -> tuple[Link, dict[str, LinkMember]]:
    members = {
        'camera': LinkMember(Schedule(10.0, MS), 5 * MS, 900_000),
        'imu': LinkMember(Schedule(200.0, MS), 0, 500),
    }
    return Link('eth', LinkConfig(bandwidth_bps=bandwidth_bps, **keys), members), members


def test_an_image_delays_what_is_behind_it() -> None:
    link, _ = line()
    camera_ms = 900_000 * 8 / 100e6 * 1e3
    assert link.at('camera', 0)[0] / MS == pytest.approx(camera_ms, abs=0.1)
    waits = [link.at('imu', k)[0] / MS for k in range(20)]
    assert waits[0] == pytest.approx(0.04)
    assert waits[1] == pytest.approx(camera_ms + 0.04, abs=0.1)  # 5 ms: as the image is complete
    assert waits[5] == pytest.approx(camera_ms - 20.0 + 5 * 0.04, abs=0.1)
    assert waits[19] == pytest.approx(0.04)


def test_any_order_of_asking_gives_the_same_line() -> None:
    link, _ = line(queue_bytes=900_200)
    inorder = [link.at('imu', k) for k in range(30_000)]
    other, _ = line(queue_bytes=900_200)
    for k in (29_999, 5, 12_345, 29_998, 0):
        assert other.at('imu', k) == inorder[k]
    assert any(dropped for _, dropped in inorder)


def test_a_full_queue_drops_and_counts() -> None:
    link, members = line(queue_bytes=900_200)
    made = transit({}, rate_hz=200.0, link=LinkShare(link, 'imu'))
    _, lost = arrivals(made, 200)
    found = {fate.name: count for fate, count in made.transit.counts.items()}
    assert found['QUEUE_FULL'] == lost.sum() == 10
    assert members['imu'].size_bytes == 500


def test_a_reliable_link_sends_again_a_round_trip_later() -> None:
    link, _ = line(bandwidth_bps=1e9, reliable=True, round_trip_s=0.05)
    keys = {'loss': {'probability': 0.3, 'burst_mean': 2.0}}
    found, lost = arrivals(transit(keys, rate_hz=200.0, link=LinkShare(link, 'imu')), 1000)
    assert not lost.any()
    latency_ms = (found[:, 0] - 5 * MS * np.arange(1000)) / MS
    again = latency_ms // 50
    assert np.mean(again > 0) == pytest.approx(0.3, abs=0.06)
    assert np.mean(again > 1) == pytest.approx(0.09, abs=0.04)
    assert again.max() <= 8


@pytest.mark.parametrize(
    ('keys', 'problem'),
    [
        ({'bandwidth_bps': 50e6}, '146 % of what 5e[+]07 bit/s carry'),
        ({'bandwidth_bps': 100e6, 'queue_bytes': 100_000}, 'would never fit'),
    ],
)
def test_links_that_cannot_work_are_refused(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(RigError, match=problem):
        line(**keys)


RIG: dict[str, Any] = {
    'world': {'model': 'rover_yard.xml'},
    'sensors': {'imu': {'type': 'imu', 'rate_hz': 200.0, 'link': 'eth'}},
    'links': {'eth': {'bandwidth_bps': 1e9}},
}


def test_links_of_a_rig_file() -> None:
    assert rig_from_parameters(RIG).links['eth'].bandwidth_bps == 1e9
    for change, problem in (
        ({'links': {'eht': {'bandwidth_bps': 1e9}}}, "did you mean 'eht'"),
        ({'links': {**RIG['links'], 'usb': {'bandwidth_bps': 1.0}}}, 'carries nothing'),
        ({'links': {'eth': {}}}, 'links.eth.bandwidth_bps is missing'),
        ({'links': {'eth': {'bandwidth_bps': 1e9, 'reliable': True}}}, 'round trip above 0'),
        ({'links': {'eth': 3}}, 'should be a map'),
    ):
        with pytest.raises(RigError, match=problem):
            rig_from_parameters({**RIG, **change}, Path('rig.yaml'))
