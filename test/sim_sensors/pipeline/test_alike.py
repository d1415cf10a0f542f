"""Sensors of one class in one pipeline give what each gives alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rig_common.errors import RigError
from sim_sensors.registry import sensor_class
from sim_sensors.rig import Rig
from sim_sensors.timing.faults import FaultConfig
from sim_sensors.world.config.world import WorldConfig

TRIAD = {'noise_density': 1e-3, 'bias_instability': 1e-4, 'random_walk': 1e-5}
LATE = {
    'delay_range_s': (0.003, 0.008),
    'jitter_s': 0.001,
    'loss': {'probability': 0.1},
    'accel': TRIAD,
    'gyro': TRIAD,
    'history_length': 3,
    'phase_range_s': (0.0, 0.01),
    'rate_hz': 100.0,
}


def make(
    together: bool,
    kind: str = 'imu',
    count: int = 4,
    num_envs: int = 3,
    odd: int = -1,
    world: dict[str, Any] | None = None,
    **keys: Any,
) -> Rig:
    """Return a rig of `count` sensors alike, but for the noise of number `odd`."""
    made = sensor_class(kind)
    sensors = [
        made(
            f'{kind}_{place}',
            made.config_class(
                type=kind,
                mount={'body': 'rover', 'pos_m': (0.1 * place, 0.0, 0.3)},
                **(keys | ({'noise': 0.5} if place == odd else {})),
            ),
        )
        for place in range(count)
    ]
    return Rig(
        WorldConfig(model='rover_yard.xml', num_envs=num_envs, **(world or {})),
        sensors,
        seed=3,
        together=together,
    )


@pytest.mark.parametrize('keys', [{'rate_hz': 200.0}, LATE, {'stack_history': True, **LATE}])
@pytest.mark.parametrize(('kind', 'odd'), [('imu', -1), ('imu', 2), ('range', -1)])
def test_together_is_the_same_as_apart(kind: str, odd: int, keys: dict[str, Any]) -> None:
    if kind == 'range':
        keys = {key: value for key, value in keys.items() if key not in ('accel', 'gyro')}
    rigs = [make(together, kind, odd=odd, **keys) for together in (True, False)]
    for step in range(50):
        readings = []
        for rig in rigs:
            rig.step()
            if step == 20:
                rig.reset([1])
            alone = rig.read(f'{kind}_3', [2, 0])
            whole = rig.read_sensors(kind)
            assert np.array_equal(rig.read_sensors()[kind].values, whole.values)
            assert np.array_equal(whole.values[[2, 0], 3], alone.values)
            readings.append((*whole, *alone, *rig.read_ground_truth(f'{kind}_1')))
        assert all(np.array_equal(ours, theirs) for ours, theirs in zip(*readings, strict=True))
    assert whole.values.shape[:2] == (3, 4)
    assert len(set(map(id, rigs[0].pipelines.values()))) == (1 if odd < 0 else 2)


def test_what_is_lazy_is_computed_for_the_sensors_that_are_read() -> None:
    rig = make(True, rate_hz=200.0)
    rig.step()
    assert rig.read('imu_1').valid.all()
    outdated = rig.pipelines['imu_1'].outdated.reshape(3, 4)
    assert outdated.tolist() == [[True, False, True, True]] * 3


def test_the_arrays_are_the_readers_own() -> None:
    rig = make(True)
    rig.step()
    before = rig.read_sensors('imu', envs=[1]).values.copy()
    rig.read_sensors('imu', envs=[1]).values[:] = 7.0
    assert np.array_equal(rig.read_sensors('imu', envs=[1]).values, before)


def test_one_of_many_cannot_change_alone() -> None:
    rig = make(True)
    with pytest.raises(RigError, match='together=False'):
        rig.pipelines['imu_1'].inject(FaultConfig(kind='dead'))
    make(False).pipelines['imu_1'].inject(FaultConfig(kind='dead'))


def test_a_type_that_is_not_there_is_named() -> None:
    rig = make(True)
    rig.step()
    with pytest.raises(RigError, match='gps'):
        rig.read_sensors('gps')


def test_pasts_and_times_of_a_rig_have_its_time_base() -> None:
    rig = make(True, rate_hz=100.0, delay_range_s=(0.025, 0.025), history_length=4)
    rig.step()
    assert not rig.read('imu_2').valid.any()
    now_ns = rig.time_ns
    times_ns = now_ns - np.array([30, 20, 10]) * 1_000_000
    rig.init_sensor_history('imu_2', times_ns, np.ones((3, 3, 6)))
    assert rig.read('imu_2').capture_ns.tolist() == [int(times_ns[0])] * 3
    assert not rig.read('imu_1').valid.any()
    for _ in range(40):
        rig.step()
    at_ns = rig.time_ns - np.array([0, 5, 10]) * 1_000_000
    reading = rig.read('imu_2', at_ns=at_ns)
    assert (reading.capture_ns <= at_ns - 25_000_000).all()
    with pytest.raises(RigError, match='after the present'):
        rig.read('imu_2', at_ns=rig.time_ns + 1)


def test_commands_are_read_as_they_arrive() -> None:
    rig = make(True, num_envs=2, world={'control_delay_s': 0.005})
    count = rig.world.actuation.actuators.count
    column = next(iter(rig.world.actuators.values()))
    times_ns = rig.time_ns - np.array([4, 2]) * 1_000_000
    values = np.zeros((2, 2, count))
    values[:, 0, column], values[:, 1, column] = 1.0, [2.0, 3.0]
    rig.init_ctrl_history(times_ns, values)
    for _ in range(4):
        rig.step()
    assert rig.read_ctrl()[:, column].tolist() == [2.0, 3.0]
    earlier_ns = rig.time_ns - np.array([0, 2]) * 1_000_000
    assert rig.read_ctrl(at_ns=earlier_ns)[:, column].tolist() == [2.0, 1.0]
    between = rig.read_ctrl(at_ns=rig.time_ns - 2_000_000, interpolation='linear')
    assert between[:, column].tolist() == [1.5, 2.0]
    with pytest.raises(RigError, match='control_delay_s'):
        make(True).init_ctrl_history(times_ns, values)
