"""What every sensor owes its users, whatever it measures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.all_sensors import DRAWN, EVERY, EXACT, KINDS, SCENE, entry
from support.body_sensors import PLATE
from support.sensor_run import decode, make_sensor, run

from rig_common.errors import RigError
from sensor_rig.rigfile import rig_from_parameters
from sim_sensors import registry
from sim_sensors.pipeline.pipeline import Pipeline, RunSetup


def test_every_type_is_tried_here() -> None:
    assert sorted(EVERY) == sorted(registry.BUILT_IN)


@pytest.mark.parametrize('kind', EVERY)
def test_metadata_are_plain_facts(kind: str) -> None:
    sensor = make_sensor('s', **entry(kind))
    facts = sensor.metadata()
    assert (facts['name'], facts['type'], facts['rate_hz'], facts['frame_id']) == (
        's',
        kind,
        50.0,
        's_optical' if kind in DRAWN else 's',
    )
    widths = [int(np.prod(shape)) for shape in facts['fields'].values()]
    assert sum(widths) == sensor.return_layout.width
    assert facts['topics'] == {each.suffix: each.type_name for each in sensor.topics()}


@pytest.mark.parametrize('kind', KINDS)
def test_measurements_lie_in_the_observation_space(tmp_path: Path, kind: str) -> None:
    gymnasium = pytest.importorskip('gymnasium', reason='gymnasium is not installed')
    exact = EXACT.get(kind, {}) if kind == 'depth_camera' else {}  # a hole (NaN) is in no space
    done = run(tmp_path, SCENE, {'s': entry(kind, **exact)}, 0.2, keyframe='turning')
    sensor = done.sensors['s']
    space = sensor.observation_space()
    assert isinstance(
        space, gymnasium.spaces.MultiBinary if kind == 'contact' else gymnasium.spaces.Box
    )
    for sample in done.samples['s']:
        assert space.contains(sensor.observation(sample.values)), sample.values


@pytest.mark.parametrize('kind', KINDS)
def test_without_errors_the_measurement_is_the_truth(tmp_path: Path, kind: str) -> None:
    done = run(tmp_path, SCENE, {'s': entry(kind, **EXACT.get(kind, {}))}, 0.2, keyframe='turning')
    assert len(done.samples['s']) in (10, 11)  # a sweep that began at the end is not complete
    rows = np.array([each.values for each in done.samples['s']])
    truth = np.array([each.truth for each in done.samples['s']])
    precision = 1e-6 if rows.dtype == np.float32 else 1e-9
    np.testing.assert_allclose(rows, truth, rtol=precision, atol=precision)
    assert rows.any(), 'there is nothing to measure'


NOISY: dict[str, dict[str, Any]] = {
    'clock_pps': {'accuracy_s': 1e-6},
    'pose': {'position_noise_m': 0.1},
    'camera': {'read_noise': 10.0},
    'contact': {'noise': 20.0, 'threshold_n': 20.0},
}
"""What makes a type noisy that the generic noise alone does not."""


@pytest.mark.parametrize('kind', KINDS)
def test_environments_and_seeds_are_independent(tmp_path: Path, kind: str) -> None:
    keys = entry(kind, **NOISY.get(kind, {'noise': 0.1}))
    runs = [
        run(tmp_path, SCENE, {'s': keys}, 0.3, num_envs=n, seed=seed)
        for n, seed in ((3, 1), (1, 1), (3, 2))
    ]
    three, alone, other = (
        [each.values.tobytes() for each in done.samples['s'] if each.env == 0] for done in runs
    )
    assert len(three) > 13
    assert three == alone
    if kind == 'segmentation':  # which has no noise
        return
    assert three != other
    second = [each.values.tobytes() for each in runs[0].samples['s'] if each.env == 1]
    assert three != second


@pytest.mark.parametrize(
    'kind', [kind for kind in EVERY if kind not in ('clock_pps', 'joint_state')]
)
def test_an_unknown_body_is_named(tmp_path: Path, kind: str) -> None:
    keys = entry(kind, mount={'body': 'plat'})
    with pytest.raises(RigError, match=r"mount\.body is 'plat'.*did you mean 'plate'"):
        run(tmp_path, SCENE, {'s': keys}, 0.1)


def test_only_filters_ask_for_truth_between_captures() -> None:
    """Over ROS truth at the physics rate is a message a step: who does not filter must not ask."""
    costly = {
        'imu': {'gyro': {'bandwidth_hz': 50.0}},
        'barometer': {'bandwidth_hz': 1.0},
        'joint_state': {'backlash': 0.1},
        'wheel_odometry': {},
        'force_torque': {'bandwidth_hz': 100.0},
        'contact_force': {'overload_n': 100.0},
        'tactile': {},
        'temperature_grid': {},
    }
    cheap = {
        'imu': {'gyro': {'noise_density': 1e-3, 'bias_instability': 1e-4}},
        'barometer': {'drift_pa': 1.0},
        'gnss': {'outage': {'mean_interval_s': 9.0}},
        'joint_state': {'counts_per_rev': 100.0, 'drop_probability': 0.1},
        'wheel_odometry': {'left_joints': ['a'], 'right_joints': ['b']},
        'magnetometer': {},
        'pose': {},
        'clock_pps': {},
        'force_torque': {},
        'contact': {'debounce_s': 0.1, 'release_n': 0.5},
        'camera': {},
        'lidar2d': {},
    }
    for expected, cases in ((True, costly), (False, cheap)):
        for kind, keys in cases.items():
            sensor = make_sensor('s', **{**entry(kind), **keys})
            pipeline = Pipeline(sensor, RunSetup(seed=1, dt_ns=1_000_000))
            assert (pipeline.ticks.rate > pipeline.schedule.rate) == expected, kind


# ---- the registry is open -----------------------------------------------------------------------

FOREIGN = """
from rig_common import msgs
from sim_sensors.interface.config import SensorConfig
from sim_sensors.timing.arrays.layout import Layout
from sim_sensors.interface.sensor import Sensor, Topic
from sim_sensors.interface.mounts import add_native
from sim_sensors.interface.truth import ColumnReader

UP = Topic('up', 'geometry_msgs/msg/Vector3Stamped')


class TiltConfig(SensorConfig):
    liquid: str = 'mercury'


class Tilt(Sensor[TiltConfig]):
    config_class = TiltConfig
    truth_layout = Layout({'vector': (3,)}, float)

    def mount(self, spec):
        super().mount(spec)
        add_native(spec, self.name, 'framezaxis')

    def reader(self, view):
        return ColumnReader(view.model, [self.name + '/framezaxis'])

    def truth_template(self):
        return UP.type_name, msgs.vector3_stamped(self.frame_id)

    def topics(self):
        return [UP]

    def encode(self, sample):
        template = msgs.vector3_stamped(self.frame_id)
        return [(UP, template.fill(sample.stamp_ns, vector=sample.values))]


def no_sensor():
    pass
"""


@pytest.fixture
def foreign_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package of somebody else's, as pip lays it out, for one test."""
    (tmp_path / 'tilt_sensors.py').write_text(FOREIGN)
    info = tmp_path / 'tilt_sensors-1.0.dist-info'
    info.mkdir()
    (info / 'METADATA').write_text('Metadata-Version: 2.1\nName: tilt-sensors\nVersion: 1.0\n')
    (info / 'entry_points.txt').write_text(
        f'[{registry.ENTRY_POINT_GROUP}]\n'
        'tilt = tilt_sensors:Tilt\nbroken = tilt_sensors:no_sensor\n'
        'missing = tilt_sensors_not_there:Tilt\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    _forget()
    yield
    sys.modules.pop('tilt_sensors', None)
    _forget()


def _forget() -> None:
    registry._foreign.cache_clear()
    registry.sensor_class.cache_clear()


@pytest.mark.usefixtures('foreign_package')
def test_a_sensor_of_another_package_works_by_its_type_name(tmp_path: Path) -> None:
    assert 'tilt' in registry.type_names()
    keys = {
        'type': 'tilt',
        'liquid': 'spirit',
        'rate_hz': 10.0,
        'delay_range_s': [0.01, 0.01],
        'mount': {'body': 'plate', 'rpy_rad': [np.pi / 2, 0.0, 0.0]},
    }
    rig = rig_from_parameters({'world': {'model': 'rover_yard.xml'}, 'sensors': {'t': keys}})
    assert rig.sensors['t'].model_dump()['liquid'] == 'spirit'
    done = run(tmp_path, PLATE, {'t': keys}, 0.5)
    assert [each.arrival_ns - each.capture_ns for each in done.samples['t']] == [10_000_000] * 6
    up = decode('geometry_msgs/msg/Vector3Stamped', done.messages('t')[0]['up'])
    assert (up.vector.x, up.vector.y) == pytest.approx((0.0, -1.0))


@pytest.mark.usefixtures('foreign_package')
def test_keys_of_a_foreign_sensor_are_checked() -> None:
    with pytest.raises(RigError, match=r"unknown key 'liqid'.*did you mean 'liquid'"):
        rig_from_parameters(
            {
                'world': {'model': 'rover_yard.xml'},
                'sensors': {'t': {'type': 'tilt', 'liqid': 'spirit'}},
            }
        )


@pytest.mark.usefixtures('foreign_package')
@pytest.mark.parametrize(
    ('kind', 'sentence'),
    [
        ('broken', 'which is no Sensor class'),
        ('missing', "sensor type 'missing'.*tilt_sensors_not_there"),
        ('tlit', 'not known; did you mean .tilt.'),
    ],
)
def test_a_type_that_cannot_be_had_is_one_sentence(kind: str, sentence: str) -> None:
    with pytest.raises(RigError, match=sentence):
        registry.sensor_class(kind)
