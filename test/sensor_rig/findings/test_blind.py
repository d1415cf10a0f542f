"""Findings on recordings with labelled defects, on clean ones, and on several defects at once."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from support.blind import EPOCH_S, Expected, Recording
from support.defects import CONSEQUENCES, DEFECTS

from sensor_rig.findings.model import Finding, Severity
from sensor_rig.findings.search import search

APART = (
    'clock_drift',
    'camera_info_differs',
    'point_times_zero',
    'frame_empty',
    'doubled_messages',
    'stereo_differs',
    'future_stamps',
    'stamp_at_end',
)
"""Defects that do not hide each other."""


def found_in(recording: Recording) -> list[Finding]:
    return search(recording.records())[1]


def pairs_of(findings: list[Finding]) -> Expected:
    return {(each.code, topic) for each in findings for topic in each.topics}


@pytest.mark.parametrize('name', DEFECTS)
def test_a_defect_is_found_and_nothing_else(name: str) -> None:
    recording = Recording(2)
    wanted = DEFECTS[name](recording)
    findings = found_in(recording)
    assert wanted <= pairs_of(findings), [each.sentence for each in findings]
    allowed = {code for code, _ in wanted} | CONSEQUENCES.get(name, set())
    others = [
        each.sentence
        for each in findings
        if each.severity >= Severity.WARNING and each.code not in allowed
    ]
    assert not others


@pytest.mark.parametrize('seed', range(8))
def test_a_clean_recording_has_no_findings(seed: int) -> None:
    assert found_in(Recording(seed)) == []


@pytest.mark.parametrize('names', list(pairwise(APART)))
def test_two_defects_are_both_found(names: tuple[str, str]) -> None:
    recording = Recording(3)
    wanted = DEFECTS[names[0]](recording) | DEFECTS[names[1]](recording)
    assert wanted <= pairs_of(found_in(recording))


def test_simulated_time_is_no_defect_unless_something_else_is_on_the_hosts_time() -> None:
    recording = Recording(6)
    for stream in recording.streams.values():
        # A simulation at 0.7 times real time that slows down after 10 s.
        stream.offset_s = 1000.0 - EPOCH_S
        stream.arrivals = stream.arrivals / 0.7 + np.maximum(stream.arrivals - 10.0, 0.0)
    assert {each.code for each in found_in(recording)} == {'simulated_time'}
    clock = recording.stream('rosgraph_msgs/msg/Clock', 100.0, 0.001, 0.0001)
    clock.stamped = False
    recording.streams['/clock'] = clock
    assert {each.code for each in found_in(recording)} == {'simulated_time'}
    recording.streams['/odom'].stamps = recording.streams['/odom'].arrivals - 0.001
    recording.streams['/odom'].offset_s = 0.0
    finding = found_in(recording)[0]
    assert finding.code == 'sim_time_mixed'


def test_findings_come_worst_first_and_say_what_to_do() -> None:
    recording = Recording(4)
    for name in ('frame_empty', 'future_stamps', 'qos_loss'):
        DEFECTS[name](recording)
    findings = found_in(recording)
    assert [each.severity for each in findings] == sorted(
        (each.severity for each in findings), reverse=True
    )
    for each in findings:
        assert each.what and each.effect and each.change, each.code
        assert each.as_json()['severity'] in ('info', 'warning', 'wrong')


def test_a_long_recording_needs_no_more_memory() -> None:
    recording = Recording(5)
    imu = recording.streams['/imu/data']
    imu.captures = np.arange(40_000) * 0.01
    imu.arrivals = imu.captures + 0.001
    recording.streams = {'/imu/data': imu}
    (record,) = recording.records(kept=20_000)
    record.finish()
    assert record.count == 40_000
    assert len(record.stamps_ns) == record.line.count == 20_000
    assert len(record.line.blocks) <= 1024
