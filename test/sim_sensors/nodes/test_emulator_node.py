"""The emulator node: changes at run time, faults, laziness, late joining, diagnostics."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import DescribeParameters
from rclpy.parameter import Parameter
from std_srvs.srv import Trigger
from support.ros_client import Client
from support.ros_rigs import MS, LockstepRun, write_rig
from support.start import START_NS

from rig_common.errors import RigError
from rig_common.msgs import read_time_reference
from rig_common.ros.executor import close_node
from sensor_rig.nodes.building import make_emulator

ON_PLATE = {'mount': {'body': 'plate'}}
SENSORS: dict[str, Any] = {
    'baro': {'type': 'barometer', 'rate_hz': 50.0, 'delay_range_s': [0.02, 0.02], **ON_PLATE},
    'mag': {'type': 'magnetometer', 'rate_hz': 25.0, 'delay_range_s': [0.005, 0.005], **ON_PLATE},
}
NODE = 'emulator_0'


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockstepRun]:
    rig = write_rig(tmp_path_factory.mktemp('emulator'), SENSORS)
    with LockstepRun(rig, extra=[Client]) as run:
        run.run(0.1)
        yield run


@pytest.fixture
def client(run: LockstepRun) -> Client:
    return run.extra[0]  # type: ignore[return-value]


def latencies_ms(run: LockstepRun, since_s: float, sensor: str = 'baro') -> dict[int, float]:
    """Return what the subscriber saw of captures since then: capture (ms) -> latency (ms)."""
    times = run.recorder.heard[f'truth/time/{sensor}']
    captures = [read_time_reference(raw)[0] - START_NS for raw in times.messages]
    return {
        capture // MS: (arrival - capture) / MS
        for capture, arrival in zip(captures, times.arrivals_ns, strict=True)
        if capture >= since_s * 1e9
    }


def test_a_longer_delay_takes_effect_on_the_next_capture(run: LockstepRun, client: Client) -> None:
    start = run.now_s
    (result,) = client.set(run, NODE, sensors__baro__delay_range_s=[0.045, 0.045])
    assert result.successful, result.reason
    changed = run.now_s
    run.run(changed + 0.3)
    seen = latencies_ms(run, start)
    before = [value for capture, value in seen.items() if capture <= start * 1e3]
    after = [value for capture, value in seen.items() if capture > changed * 1e3]
    assert set(before) <= {20.0}
    assert len(after) > 10
    assert set(after) == {45.0}


def test_a_shorter_delay_is_kept_exactly_too(run: LockstepRun, client: Client) -> None:
    (result,) = client.set(run, NODE, sensors__baro__delay_range_s=[0.02, 0.02])
    assert result.successful
    changed = run.now_s
    run.run(changed + 0.3)
    after = [value for capture, value in latencies_ms(run, changed + 0.05).items()]
    assert len(after) > 10
    assert set(after) == {20.0}


@pytest.mark.parametrize(
    ('key', 'value', 'reason'),
    [
        ('delay_range_s', [0.05, 0.01], 'the first must not be larger'),
        ('jitter_s', 0.03, 'must not be larger than the smallest delay'),
        ('jitter_s', -0.01, 'out of bounds|range|greater'),
        ('noise', float('nan'), 'finite|range'),
        ('loss__probability', 1.0, 'less than 1'),
        ('clock__offset_s', -1000.0, 'sensors.baro: its stamps would begin at 0 s'),
        ('rate_hz', 10.0, 'read-only|read only'),
        ('jitter_s', 'much', 'sensors.baro.jitter_s is .much.; it should be'),
        ('noise', True, 'sensors.baro.noise is true; it should be a number'),
        ('noise', 0, 'sensors.baro.noise is 0, which ROS takes for integers; .* write 0.0'),
        (
            'delay_range_s',
            [0, 1],
            r'sensors.baro.delay_range_s is \[0, 1\], .* so write \[0.0, 1.0\]',
        ),
    ],
)
def test_bad_values_are_refused_with_a_reason(
    run: LockstepRun, client: Client, key: str, value: Any, reason: str
) -> None:

    (result,) = client.set(run, NODE, **{f'sensors__baro__{key}': value})
    assert not result.successful
    assert re.search(reason, result.reason, re.IGNORECASE), result.reason


def test_a_refused_value_leaves_the_type_of_its_parameter(
    run: LockstepRun, client: Client
) -> None:
    (result,) = client.set(run, NODE, sensors__baro__noise=0)
    answer = client.call(
        run,
        DescribeParameters,
        f'/{NODE}/describe_parameters',
        DescribeParameters.Request(names=['sensors.baro.noise']),
    )
    assert not result.successful
    assert answer.descriptors[0].type == ParameterType.PARAMETER_DOUBLE


def test_parameters_are_described_with_their_range(run: LockstepRun, client: Client) -> None:
    names = ['sensors.baro.jitter_s', 'sensors.baro.rate_hz', 'sensors.baro.clock.stamp_at']
    answer = client.call(
        run,
        DescribeParameters,
        f'/{NODE}/describe_parameters',
        DescribeParameters.Request(names=names),
    )
    jitter, rate, stamp_at = answer.descriptors
    assert 'uniform' in jitter.description
    assert jitter.floating_point_range[0].from_value == 0.0
    assert rate.read_only
    assert stamp_at.additional_constraints == 'one of capture, arrival'


def test_a_fault_begins_with_a_trigger(run: LockstepRun, client: Client) -> None:
    results = client.set(run, NODE, fault__sensor='mag', fault__kind='dead', fault__duration_s=0.2)
    assert all(result.successful for result in results)
    answer = client.call(run, Trigger, f'/{NODE}/inject_fault')
    assert answer.success
    assert answer.message.startswith('mag: dead from')
    start = float(answer.message.split()[3])
    run.run(start + 0.5)
    captures = np.array(sorted(latencies_ms(run, start - 0.1, 'mag')))
    gap = np.diff(captures).max()
    assert 200 <= gap <= 260


def test_a_wrong_fault_is_refused(run: LockstepRun, client: Client) -> None:
    client.set(run, NODE, fault__sensor='nobody')
    answer = client.call(run, Trigger, f'/{NODE}/inject_fault')
    assert not answer.success
    assert 'this node serves baro, mag' in answer.message


def test_a_fault_that_stamps_before_zero_is_refused(run: LockstepRun, client: Client) -> None:
    client.set(run, NODE, fault__sensor='mag', fault__kind='clock_step', fault__offset=-2000.0)
    answer = client.call(run, Trigger, f'/{NODE}/inject_fault')
    assert not answer.success
    assert 'sensors.mag: its stamps would begin at' in answer.message
    assert not run.emulators[0].channels['mag'].pipeline.faults.step_times_ns


def test_diagnostics_tell_what_it_does(run: LockstepRun, client: Client) -> None:
    seen = client.listen(DiagnosticArray, '/diagnostics')
    run.until(
        lambda: any(status.name == 'emulator_0: mag' for array in seen for status in array.status)
    )
    (status,) = [status for status in seen[-1].status if status.name == 'emulator_0: mag'] or [
        status for array in seen for status in array.status if status.name == 'emulator_0: mag'
    ][-1:]
    values = {pair.key: pair.value for pair in status.values}
    assert float(values['configured rate (Hz)']) == 25.0
    assert float(values['latency p50 (ms)']) == 5.0
    assert int(values['published']) + int(values['lost']) + int(values['in flight']) == int(
        values['captured']
    )


def test_an_emulator_that_restarts_joins_in(run: LockstepRun) -> None:
    run.end(run.emulators[0])
    stopped = run.now_s
    run.emulators[0] = make_emulator(run.rig, name=NODE)
    run.add(run.emulators[0])
    run.run(stopped + 0.5)
    captures = sorted(latencies_ms(run, stopped + 0.1))
    assert np.diff(captures).max() == 20
    assert captures[-1] > stopped * 1e3 + 400


def test_an_emulator_joins_a_world_that_stands_still(run: LockstepRun, client: Client) -> None:
    client.call(run, Trigger, '/world/pause')
    run.until(lambda: run.world.loop.paused and not run.world.conductor.blocked)
    run.end(run.emulators[0])
    stopped = run.now_s
    run.emulators[0] = make_emulator(run.rig, name=NODE)
    run.add(run.emulators[0])
    run.until(lambda: run.emulators[0]._follower.joined)
    assert run.now_s == stopped
    client.call(run, Trigger, '/world/resume')
    run.run(stopped + 0.3)
    captures = sorted(latencies_ms(run, stopped))
    assert np.diff(captures).max() == 20
    assert captures[0] <= stopped * 1e3 + 20


def test_a_world_that_restarts_is_followed_from_its_start(run: LockstepRun) -> None:
    run.end(run.world)
    run.start_world()
    run.run(0.5)
    captures = sorted(latencies_ms(run, 0.0))
    assert captures == list(range(0, captures[-1] + 1, 20))
    assert captures[-1] > 400


def test_an_unknown_sensor_is_refused(run: LockstepRun) -> None:
    with pytest.raises(RigError, match="only names the sensor 'sonar'; the rig has baro, mag"):
        make_emulator(run.rig, ['sonar'], name='broken')


@pytest.mark.parametrize(
    ('key', 'value', 'sentence'),
    [
        ('rate_hz', 20.0, 'sensors.baro.rate_hz is 20.0 here and .* so change the rig file'),
        (
            'jitter_s',
            -1.0,
            'sensors.baro.jitter_s is -1.0; it should be greater than or equal to 0',
        ),
        ('jitter_s', True, 'sensors.baro.jitter_s is true; it should be a number'),
        ('clock.stamp_at', 3, 'sensors.baro.clock.stamp_at is 3; it should be'),
        ('clock.offset_s', -2000.0, 'sensors.baro: its stamps would begin at -1000 s'),
    ],
)
def test_an_override_that_cannot_be_is_refused(
    run: LockstepRun, key: str, value: Any, sentence: str
) -> None:
    with pytest.raises(RigError, match=sentence):
        make_emulator(
            run.rig,
            name='other',
            parameter_overrides=[Parameter(f'sensors.baro.{key}', value=value)],
        )


def test_hidden_truth_is_hidden(tmp_path: Path, run: LockstepRun) -> None:
    rig = write_rig(tmp_path, {'secret': SENSORS['baro']}, hide_truth=True)
    emulator = make_emulator(rig, name='hidden', namespace='/elsewhere')
    try:
        names = [
            name
            for name, _ in emulator.get_publisher_names_and_types_by_node('hidden', '/elsewhere')
        ]
        assert '/elsewhere/_truth/time/secret' in names
        assert not any('/truth/' in name for name in names)
    finally:
        close_node(emulator)
