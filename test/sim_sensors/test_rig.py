"""A rig in a plain loop: what a subscriber would see is what the file says, again and again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.cart import MS, Place, SweepingPlace, cart_rig, place
from support.start import START_NS

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.digest import StreamDigests
from rig_common.errors import RigError, UnavailableError
from sensor_rig.rigfile import rig_from_parameters
from sim_sensors.rig import Rig

IMU = {
    'type': 'imu',
    'rate_hz': 200.0,
    'mount': {'body': 'rover'},
    'noise': 0.02,
    'delay_range_s': [0.003, 0.009],
    'jitter_s': 0.002,
    'clock': {'offset_s': 0.25, 'drift_ppm': 40.0},
    'loss': {'probability': 0.1},
}


def yard_rig(num_envs=1, seed=5, messages=True, **sensors):
    config = rig_from_parameters(
        {
            'seed': seed,
            'sensors': sensors or {'imu': IMU},
            'world': {'model': 'rover_yard.xml', 'driver': 'figure_eight', 'num_envs': num_envs},
        }
    )
    return Rig(
        config.simulated_world, config.make_sensors().values(), seed=config.seed, messages=messages
    )


def digests(rig, seconds=0.3):
    streams = StreamDigests()
    for message in rig.run(seconds):
        streams.add(message.topic, message.data)
    return streams.hex()


# ---- messages ------------------------------------------------------------------------------


def test_messages_come_when_they_arrive_with_the_sensors_stamp(tmp_path):
    rig = cart_rig(
        tmp_path,
        place(rate_hz=100.0, delay_range_s=(0.004, 0.004), clock={'offset_s': 2.0}),
        messages=True,
    )
    seen = []
    for _ in range(60):
        for message in rig.step():
            assert message.arrival_ns == rig.time_ns
            assert read_stamp_ns(message.data) == message.stamp_ns
            position = msgs.joint_state(['0']).read(message.data)[1]['position'][0]
            seen.append((message.topic, message.arrival_ns, message.stamp_ns, position))
    assert [row[:3] for row in seen] == [
        ('place/place', START_NS + (10 * k + 4) * MS, START_NS + (2000 + 10 * k) * MS)
        for k in range(6)
    ]
    assert [row[3] for row in seen] == pytest.approx([10 * k for k in range(6)])


def test_a_sweep_is_gathered_part_by_part_and_arrives_after_its_end(tmp_path):
    rig = cart_rig(
        tmp_path,
        place(kind=SweepingPlace, rate_hz=50.0, delay_range_s=(0.003, 0.003)),
        messages=True,
    )
    messages = list(rig.run(0.1))
    assert [m.sample.capture_ns for m in messages] == [START_NS + 20 * k * MS for k in range(5)]
    assert [m.arrival_ns for m in messages] == [START_NS + (20 * k + 13) * MS for k in range(5)]
    for k, message in enumerate(messages):
        assert message.sample.values == pytest.approx([20 * k, 20 * k + 4, 20 * k + 8])


def test_sweeps_that_overlap_do_not_mix(tmp_path):
    class LongSweep(SweepingPlace):
        parts_ms = (0, 15, 30)
        duration_ms = 35

    rig = cart_rig(tmp_path, place(kind=LongSweep, rate_hz=100.0), messages=True)
    values = [message.sample.values for message in rig.run(0.2)]
    assert len(values) == 17
    for k, row in enumerate(values):
        assert row == pytest.approx([10 * k, 10 * k + 15, 10 * k + 30])


def test_messages_of_one_tick_come_in_order_of_arrival(tmp_path):
    rig = cart_rig(
        tmp_path,
        place('b', rate_hz=100.0, delay_range_s=(0.0004, 0.0004)),
        place('a', rate_hz=100.0, delay_range_s=(0.0006, 0.0006)),
        messages=True,
    )
    rig.step()
    assert [message.topic for message in rig.step()] == ['b/place', 'a/place']


def test_environments_have_their_own_topics(tmp_path):
    rig = cart_rig(tmp_path, place(rate_hz=100.0), num_envs=3, messages=True)
    assert [m.topic for m in rig.step()] == [f'env_{env}/place/place' for env in range(3)]


# ---- the same again ------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    first = digests(yard_rig())
    assert first == digests(yard_rig())
    assert first != digests(yard_rig(seed=6))


def test_a_reset_with_the_seed_is_a_new_rig_and_without_one_a_new_episode():
    rig = yard_rig()
    first = digests(rig)
    rig.reset()
    assert rig.elapsed_ns < 0
    second = digests(rig)
    rig.reset(seed=5)
    assert digests(rig) == first != second
    again = yard_rig()
    again.reset()
    assert digests(again) == second


def test_other_sensors_change_nothing():
    alone, together = (
        digests(yard_rig()),
        digests(yard_rig(imu=IMU, second={**IMU, 'rate_hz': 90.0})),
    )
    assert alone['imu/data_raw'] == together['imu/data_raw'] != together['second/data_raw']


def test_the_number_of_environments_changes_nothing():
    one, three = digests(yard_rig(), 0.1), digests(yard_rig(num_envs=3), 0.1)
    assert one['imu/data_raw'] == three['env_0/imu/data_raw'] != three['env_1/imu/data_raw']


# ---- arrays --------------------------------------------------------------------------------


def test_reads_are_delayed_and_the_truth_is_not(tmp_path):
    rig = cart_rig(tmp_path, place(rate_hz=100.0, delay_range_s=(0.015, 0.015)), num_envs=2)
    for _ in range(50):
        assert rig.step() == []
        now_ms = rig.elapsed_ns // MS
        reading = rig.read('place')
        assert reading.valid.all() == (now_ms >= 15)
        if now_ms >= 15:
            expected = (now_ms - 15) // 10 * 10
            assert reading.values[:, 0] == pytest.approx([expected] * 2)
            assert reading.capture_ns.tolist() == [START_NS + expected * MS] * 2
        truth = rig.read_ground_truth('place')
        assert truth.values[:, 0] == pytest.approx([now_ms // 10 * 10] * 2)


def test_what_nobody_reads_is_not_measured(tmp_path):
    rig = cart_rig(tmp_path, place(rate_hz=100.0))
    reader = rig._readers['place']
    for _ in range(35):
        rig.step()
    assert reader.calls == []
    rig.read('place')
    rig.read('place')
    assert [call[0] for call in reader.calls] == [34 * MS]


def test_a_partial_reset_begins_anew_for_those_alone(tmp_path):
    keys = {'rate_hz': 100.0, 'delay_range_s': (0.005, 0.005)}
    rig = cart_rig(
        tmp_path, place(**keys), place('sweep', SweepingPlace, rate_hz=50.0), num_envs=3
    )
    for _ in range(24):  # 23 ms: amid a sweep
        rig.step()
    rig.reset([1])
    assert not rig.read('place').valid[1]
    for _ in range(30):
        rig.step()
        now_ms = rig.elapsed_ns // MS
        reading, sweep = rig.read('place'), rig.read('sweep')
        assert reading.values[[0, 2], 0] == pytest.approx([(now_ms - 5) // 10 * 10] * 2)
        assert reading.valid[1] == (now_ms >= 28)
        if now_ms >= 28:
            since = (now_ms - 28) // 10 * 10
            assert reading.values[1, 0] == pytest.approx(since)
            assert reading.capture_ns[1] == START_NS + (23 + since) * MS
        k = (now_ms - 10) // 20 * 20
        assert sweep.values[0] == pytest.approx([k, k + 4, k + 8])
        assert sweep.valid[1] == (now_ms >= 33)
        if now_ms >= 33:
            k = (now_ms - 33) // 20 * 20
            assert sweep.values[1] == pytest.approx([k, k + 4, k + 8])


def test_read_sensors_gives_arrays_of_ones_own(tmp_path):
    rig = cart_rig(tmp_path, place('a'), place('b'), num_envs=2)
    rig.step()
    reading = rig.read_sensors('place')
    assert reading.values.shape[:2] == (2, 2)
    assert rig.names_of('place') == ('a', 'b')
    reading.values[:] = 99
    assert (rig.read('a').values != 99).all()
    with pytest.raises(RigError, match='imu'):
        rig.read_sensors('imu')


# ---- mistakes ------------------------------------------------------------------------------


def test_mistakes_are_one_sentence(tmp_path):
    rig = cart_rig(tmp_path, place(), num_envs=2)
    with pytest.raises(RigError, match='nothing has been measured yet'):
        rig.read('place')
    with pytest.raises(RigError, match='stands at its start already'):
        rig.reset([0])
    rig.step()
    with pytest.raises(RigError, match=r"'plase', .* did you mean 'place'\?"):
        rig.read('plase')
    with pytest.raises(RigError, match='a seed belongs to the whole rig'):
        rig.reset([0], seed=3)
    silent = cart_rig(tmp_path, place(), arrays=False, messages=True)
    silent.step()
    with pytest.raises(RigError, match='arrays=False'):
        silent.read('place')


class Blind(Place):
    """Needs what this machine does not have."""

    def validate(self, view):
        raise UnavailableError('there is no renderer')


def test_unavailable_sensors_are_left_out_where_that_is_allowed(tmp_path, caplog):
    with pytest.raises(UnavailableError, match='no renderer'):
        cart_rig(tmp_path, place('eye', Blind), place())
    rig = cart_rig(tmp_path, place('eye', Blind), place(), skip_unavailable=True)
    assert list(rig.sensors) == ['place']
    assert "without sensor 'eye': there is no renderer" in caplog.text
    rig.step()
    assert np.isfinite(rig.read('place').values).all()


def counting(rig: Rig, name: str) -> list[int]:
    """Return a list that grows by the time of every capture of sensor `name`."""
    taken: list[int] = []
    pipeline = rig.pipelines[name]
    supply = pipeline.supplier
    assert supply is not None

    def counted(envs: Any, out: Any) -> None:
        taken.append(rig.elapsed_ns)
        supply(envs, out)

    pipeline.supplier = counted
    return taken


LAZY: dict[str, Any] = {'type': 'pose', 'rate_hz': 100.0, 'mount': {'body': 'rover'}}


@pytest.mark.parametrize(
    ('world', 'force', 'watched', 'captures'),
    [
        ({}, False, False, 0),
        ({}, True, False, 5),
        ({}, False, True, 5),
        ({'lazy_sensor_update': False}, False, False, 5),
    ],
)
def test_what_nobody_reads_is_computed_where_it_is_asked_for(
    world: dict[str, Any], force: bool, watched: bool, captures: int
) -> None:
    config = rig_from_parameters(
        {'world': {'model': 'rover_yard.xml', **world}, 'sensors': {'tracker': LAZY}}
    )
    rig = Rig(config.simulated_world, config.make_sensors().values())
    if watched:
        rig.set_watched('tracker')
    taken = counting(rig, 'tracker')
    for _ in range(50):
        rig.step(force_recompute=force)
    assert len(taken) == captures
    if watched:
        rig.reset()
        assert rig.pipelines['tracker'].watched, 'a looker looks on after a reset'
        rig.set_watched('tracker', on=False)
        assert not rig.pipelines['tracker'].watched
