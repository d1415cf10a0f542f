"""What `rig inspect` writes copes with what it found."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.blind import Recording
from support.defects import DEFECTS

from rig_common.paramfile.reader import parse
from sensor_rig.bags.starter import starter_rig
from sensor_rig.findings.corrections import corrections_of, stamp_points_of
from sensor_rig.findings.search import search
from sensor_rig.rigfile import rig_from_parameters


@pytest.mark.parametrize(
    ('defect', 'point'), [('stamp_at_end', 'end'), ('stamp_in_the_middle', 'middle')]
)
def test_the_stamped_point_of_a_sweep_is_written(defect: str, point: str) -> None:
    recording = Recording(2)
    DEFECTS[defect](recording)
    facts, findings = search(recording.records())
    text = starter_rig(facts, 'a bag', stamp_points_of(findings))
    sync = rig_from_parameters(parse(text).values, Path('rig')).sync
    assert sync is not None
    lidar = sync.inputs['lidar']
    assert lidar.stamp_point == point
    assert lidar.capture_s == pytest.approx(recording.sweep_s, rel=0.01)
    assert lidar.latency_s > recording.sweep_s
    assert corrections_of(findings)['/lidar/points'] == {'stamp_point': point}


@pytest.mark.parametrize(('defect', 'offset_s'), [('clock_gps', 18.0), ('clock_tai', 37.0)])
def test_leap_seconds_are_corrected_by_whole_ones(defect: str, offset_s: float) -> None:
    recording = Recording(2)
    (topic,) = {topic for code, topic in DEFECTS[defect](recording) if code == defect}
    clock = corrections_of(search(recording.records())[1])[topic]['clock']
    assert isinstance(clock, dict)
    assert abs(clock['offset_s']) == offset_s
