from __future__ import annotations

from typing import Any

import pytest

from rig_common.errors import RigError
from sync_engine.config import load_config

GOOD: dict[str, Any] = {
    'inputs': {'cam': {'topic': 'cam/image'}, 'imu': {'collect': True}},
    'reference_sensor_id': 'cam',
    'required_sensors': ['cam'],
    'imu_sensor_id': 'imu',
}


def changed(**changes: Any) -> dict[str, Any]:
    return GOOD | changes


def test_defaults_are_the_design_notes() -> None:
    config = load_config(GOOD)
    assert (config.window.min_ms, config.window.max_ms) == (20.0, 100.0)
    assert (config.buffer.max_size, config.buffer.timeout_s) == (1000, 1.0)
    kf = config.adakf
    assert (kf.initial_offset, kf.process_noise, kf.measurement_noise, kf.residual_window) == (
        0.0,
        1e-4,
        1e-3,
        20,
    )
    assert config.missing_strategy == 'drop'


@pytest.mark.parametrize(
    ('values', 'sentence'),
    [
        (changed(windw={}), r'^sync\.windw: Extra inputs are not permitted'),
        (changed(window={'min_ms': 'x'}), r'^sync\.window\.min_ms: .*\(it is \'x\'\)\.$'),
        (changed(window={'min_ms': 200.0}), r'min_ms \(200\.0\) must not exceed max_ms'),
        (changed(window={'max_ms': float('nan')}), r'sync\.window\.max_ms'),
        (changed(reference_sensor_id='x'), r"reference_sensor_id names 'x', which is not"),
        (changed(imu_sensor_id='x'), r"imu_sensor_id names 'x'"),
        (changed(required_sensors=['imu']), r"must contain the reference 'cam'"),
        (changed(inputs={'cam': {'collect': True}, 'imu': {}}), r'not collected'),
        (changed(inputs={'cam': {'deadline_s': 2.0}, 'imu': {}}), r'must not exceed buffer'),
        (changed(inputs={'cam': {'clock_of': 'y'}, 'imu': {}}), r"clock_of names 'y'"),
        (changed(inputs={'cam': {'stamp_source': 'trigger'}, 'imu': {}}), r'cannot have'),
        (
            changed(inputs={'cam': {'topic': 't'}, 'imu': {'topic': 't'}}),
            r"inputs 'cam' and 'imu' share topic 't'",
        ),
        (
            changed(inputs={'cam': {'imu_quat_wxyz': [1.0, 1.0, 0.0, 0.0]}, 'imu': {}}),
            'unit quaternion',
        ),
    ],
)
def test_mistakes_are_one_sentence(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(RigError, match=sentence) as caught:
        load_config(values)
    assert '\n' not in str(caught.value)
