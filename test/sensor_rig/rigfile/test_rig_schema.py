"""The schema of a rig file, held against shipped and broken files by a validator of its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.places import ROOT

from sensor_rig.cli import main as entry
from sensor_rig.rigfile.rig_schema import rig_schema

jsonschema = pytest.importorskip('jsonschema')

FOLDERS = ('config', 'datasheets', 'examples', 'test/launch')
SHIPPED = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).glob('*.yaml')
    if '/**:' in path.read_text()
)  # not the plans of sweeps
BROKEN = sorted((ROOT / 'test' / 'badinput' / 'rigs').glob('*.yaml'))

SEVERAL_KEYS = {
    'deadline_above_timeout',
    'delays_the_wrong_way_round',
    'exposure_above_period',
    'exposure_above_step',
    'exposure_above_trigger',
    'imu_is_none',
    'imu_unknown',
    'input_of_no_sensor',
    'jitter_above_delay',
    'readout_above_period',
    'reference_not_required',
    'reference_unknown',
    'required_unknown',
    'rotation_is_none',
    'site_and_body',
    'tiny_rate',
    'trigger_in_a_ring',
    'trigger_unknown',
    'truth_rate_does_not_fit',
    'two_inputs_on_one_topic',
    'two_sensors_on_one_topic',
    'window_the_wrong_way_round',
    'rate_above_physics',
    'huge_rate',
    'timestep_of_a_fraction',
}
OTHER_FILES = {'extends_in_a_ring_a', 'extends_in_a_ring_b', 'extends_itself', 'extends_nothing'}
MODEL = {
    'driver_without_wheels',
    'mesh_is_missing',
    'model_is_missing',
    'model_is_no_xml',
    'model_misspelt',
    'model_reads_outside',
    'wrong_body',
    'wrong_joint',
    'wrong_keyframe',
    'wrong_site',
}
MISSING = {'model_is_not_given', 'no_type', 'sensors_without_a_world'}
"""What another file may give."""
NOT_IN_JSON = {'not_a_number', 'not_a_number_in_a_list', 'given_twice'}
"""NaN, and a key given twice."""


@pytest.fixture(scope='module')
def validator() -> Any:
    schema = json.loads(json.dumps(rig_schema()))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize('file', SHIPPED, ids=[path.stem for path in SHIPPED])
def test_shipped_files_are_valid(validator: Any, file: Path) -> None:
    problems = [
        f'{error.json_path}: {error.message}'
        for error in validator.iter_errors(yaml.safe_load(file.read_text()))
    ]
    assert problems == []


def test_broken_files_are_refused_but_for_what_a_schema_cannot_know(validator: Any) -> None:
    accepted = set()
    for file in BROKEN:
        try:
            document = yaml.safe_load(file.read_text())
        except yaml.YAMLError:
            continue
        if validator.is_valid(document):
            accepted.add(file.stem)
    assert accepted == {'good'} | SEVERAL_KEYS | OTHER_FILES | MODEL | MISSING | NOT_IN_JSON


def rig(body: dict[str, Any]) -> dict[str, Any]:
    return {'/**': {'ros__parameters': body}}


WORLD = {'model': 'rover_yard.xml'}
IMU = {'type': 'imu', 'mount': {'body': 'rover'}}


@pytest.mark.parametrize(
    ('document', 'valid'),
    [
        (rig({'world': WORLD, 'sensors': {'imu': IMU}}), True),
        ({'seed': 1}, False),
        ({'/**': {'ros__parameters': {'seed': 1}, 'more': 1}}, False),
        (rig({'sensors': {'imu': IMU}}), True),  # the world may be in another file
        (rig({'extends': 'demo.yaml', 'sensors': {'imu': {'rate_hz': 5.0}}}), True),
        (rig({'sensors': {'imu': {'rate_herz': 5.0}}, 'world': WORLD}), False),
        (rig({'sensors': {'imu': {'extends': 'datasheets/x.yaml'}}, 'world': WORLD}), True),
        (rig({'world': WORLD, 'sensors': {'imu': {**IMU, 'num_rays': 3}}}), False),
        (
            rig({'world': WORLD, 'sensors': {'imu': {**IMU, 'gyro': {'noise_density': 1e-3}}}}),
            True,
        ),
        (
            rig({'world': WORLD, 'sensors': {'imu': {**IMU, 'gyro': {'noise_density': -1.0}}}}),
            False,
        ),
        (
            rig({'world': WORLD, 'sensors': {'imu': {**IMU, 'faults': {'a': {'at_s': -1.0}}}}}),
            False,
        ),
        (rig({'world': {'timestep_s': -0.001}}), False),
        (rig({'world': {**WORLD, 'driver': 'taxi'}}), False),
        (rig({'sync': {'reference_sensor_id': 1, 'required_sensors': ['a']}}), False),
        (
            rig(
                {
                    'sync': {
                        'reference_sensor_id': 'a',
                        'required_sensors': ['a'],
                        'inputs': {'a': {'topic': '/a', 'type': 'sensor_msgs/msg/Imu'}},
                    }
                }
            ),
            True,
        ),
        (rig({'streams': {'a': {'topics': ['/a'], 'jitter_s': 0.01}}}), True),
        (rig({'streams': {'a': {'jitter_s': -0.01}}}), False),
        (rig({'type': 'imu', 'rate_hz': 100.0}), True),
        (rig({'type': 'imu', 'rate_herz': 100.0}), False),
    ],
)
def test_what_a_file_may_say(validator: Any, document: dict[str, Any], valid: bool) -> None:
    assert validator.is_valid(document) == valid


def test_every_key_has_a_description_for_editors() -> None:
    definitions = rig_schema()['$defs']
    bare = [
        f'{name}.{key}'
        for name, each in definitions.items()
        for key, value in each.get('properties', {}).items()
        if 'description' not in value and '$ref' not in value and 'const' not in value
    ]
    assert bare == ['Rig.use_sim_time']


def test_the_file_for_editors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert entry.main(['schema', '--output', str(tmp_path / 'rig.schema.json')]) == 0
    assert '# yaml-language-server: $schema=rig.schema.json' in capsys.readouterr().out
    assert json.loads((tmp_path / 'rig.schema.json').read_text()) == rig_schema()
    assert entry.main(['schema', '--output', str(tmp_path / 'none' / 'rig.json')]) == 2
    assert 'in a folder that exists' in capsys.readouterr().err
