"""Both halves in one loop: sensors, sync engine, bundles."""

from __future__ import annotations

import pytest

from bench.realtime import without
from rig_common.cdr import read_stamp_ns
from rig_common.digest import StreamDigests
from rig_common.errors import RigError
from sensor_rig.inprocess import InProcessRig, open_rig
from sensor_rig.rigfile import load_rig, rig_from_parameters

MS = 1_000_000
PARAMETERS = {
    'seed': 3,
    'world': {'model': 'rover_yard.xml', 'driver': 'figure_eight', 'timestep_s': 0.002},
    'sensors': {
        'imu': {
            'type': 'imu',
            'rate_hz': 100.0,
            'mount': {'site': 'imu_mount'},
            'delay_range_s': [0.002, 0.002],
        },
        'wheels': {
            'type': 'wheel_odometry',
            'rate_hz': 20.0,
            'mount': {'body': 'rover'},
            'delay_range_s': [0.004, 0.004],
        },
        'tracker': {
            'type': 'pose',
            'rate_hz': 10.0,
            'mount': {'body': 'rover'},
            'delay_range_s': [0.02, 0.02],
            'clock': {'offset_s': -0.03},
        },
    },
    'sync': {
        'reference_sensor_id': 'tracker',
        'required_sensors': ['tracker', 'wheels'],
        'imu_sensor_id': 'imu',
        'inputs': {'imu': {'collect': True}},
    },
}


def make(**keys):
    return InProcessRig(rig_from_parameters(PARAMETERS), **keys)


def bundles_of(rig, seconds=2.0):
    """Return (sequence, stamp, emission) of every bundle and the digests of all its messages."""
    told, digests = [], StreamDigests()
    for _ in range(round(seconds / 0.002)):
        rig.step()
        for bundle in rig.bundles:
            told.append((bundle.sequence, bundle.stamp_ns, bundle.emitted_ns))
            for output in rig.outputs(bundle):
                digests.add(output.topic, output.raw)
    return told, digests.hex()


def test_bundles_come_out_and_repeat_bit_for_bit():
    first, digests = bundles_of(make())
    assert len(first) >= 15
    assert {
        'synced/tracker/odom',
        'synced/wheels/odom',
        'synced/imu/data_raw',
        'sync/bundle',
        'sync/offset/wheels',
    } <= set(digests)
    assert bundles_of(make()) == (first, digests)


def test_a_bundle_waits_for_its_partners_and_shares_one_stamp():
    rig = make()
    made = []
    for _ in range(1000):
        rig.step()
        made += [(rig.time_ns, bundle) for bundle in rig.bundles]
    assert made
    for now_ns, bundle in made:
        assert bundle.emitted_ns <= now_ns
        stamps = {
            read_stamp_ns(output.raw)
            for output in rig.outputs(bundle)
            if output.topic in ('synced/tracker/odom', 'synced/wheels/odom')
        }
        assert stamps == {bundle.stamp_ns}
        assert all(member.arrival_ns <= now_ns for member in bundle.members.values())


def test_a_reset_starts_the_sync_engine_anew():
    rig = make()
    first = bundles_of(rig)
    rig.reset(seed=3)
    assert bundles_of(rig) == first


def test_without_messages_or_sync_there_are_no_bundles():
    for keys in ({'messages': False}, {'sync': False}):
        rig = make(**keys)
        rig.step()
        assert rig.sync is None
        assert rig.bundles == []
    quiet = make(sync=False)
    loud = make()
    for _ in range(100):
        assert [m.data for m in quiet.step()] == [m.data for m in loud.step()]


def test_keys_of_the_world_can_be_overridden():
    rig = open_rig('demo', messages=False, num_envs=2, driver='commands', skip_unavailable=True)
    assert rig.num_envs == 2
    rig.step()
    assert rig.read('imu').values.shape == (2, 6)
    with pytest.raises(RigError, match=r'world\.num_envs is 0'):
        open_rig('demo', num_envs=0)


def test_a_dict_is_a_rig_too():
    rig = open_rig(PARAMETERS, sync=False, num_envs=2, driver='none')
    rig.step()
    assert rig.num_envs == 2 and list(rig.sensors) == list(PARAMETERS['sensors'])


def test_a_rig_without_a_world_is_refused(tmp_path):
    file = tmp_path / 'real.yaml'
    file.write_text('/**:\n  ros__parameters:\n    seed: 1\n')
    with pytest.raises(RigError, match='has no world: section'):
        open_rig(file)


def test_the_demo_rig_is_what_it_says():
    rig = load_rig('demo')
    assert {'imu', 'front_lidar', 'camera', 'wheels', 'gnss'} == set(rig.sensors)
    lidar, camera = rig.sensors['front_lidar'], rig.sensors['camera']
    assert lidar.clock.offset_s == -0.085
    assert lidar.delay_range_s == (0.04, 0.06)
    assert (lidar.jitter_s, lidar.loss.probability) == (0.005, 0.01)
    assert (camera.clock.offset_s, camera.clock.drift_ppm) == (0.037, 20.0)
    assert rig.sync.reference_sensor_id == 'front_lidar'


def test_the_clocks_of_the_demo_are_found_and_stay_found():
    """For 45 s no estimate leaves its own sigmas: a biased cue is believed only after a while."""
    rig = InProcessRig(without(load_rig('demo'), cameras=True), arrays=False)
    truth_ns = {}
    for step in range(45_000):
        for message in rig.step():
            truth_ns[message.sample.sensor] = message.stamp_ns - message.sample.capture_ns
        if step >= 10_000 and step % 1000 == 0:
            for name in rig.config.sync.inputs:
                found = rig.sync.engine.offset_to_host(name)
                error_s = (found.offset_ns - truth_ns[name]) / 1e9
                assert abs(error_s) < 4.0 * found.sigma_s, (name, step, error_s, found)
