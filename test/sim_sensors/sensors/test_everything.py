"""The rig with every sensor: all of it runs; those of the rover's own motion agree."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support.all_sensors import DRAWN
from support.body_sensors import EACH
from support.rendering import renders
from support.sensor_run import decode

from sensor_rig.rigfile import load_rig
from sim_sensors.outbox import Message
from sim_sensors.registry import BUILT_IN
from sim_sensors.rig import Rig
from sim_sensors.timing.arrays.layout import Array

SECONDS = 6.0
WHOLE_SECONDS = 1.5


@pytest.fixture(scope='module')
def rig() -> Rig:
    config = load_rig('everything')
    sensors = [each for each in config.make_sensors().values() if each.config.type in EACH]
    return Rig(config.simulated_world, sensors, seed=config.seed, messages=True)


@pytest.fixture(scope='module')
def messages(rig: Rig) -> list[Message]:
    return list(rig.run(SECONDS))


def truth(rig: Rig, messages: list[Message], sensor: str, field: str) -> tuple[Array, Array]:
    """Return capture times [n] s and the true `field` [n, ...] of `sensor`."""
    layout = rig.sensors[sensor].return_layout
    first = {each.sample.index: each.sample for each in messages if each.sample.sensor == sensor}
    return (
        np.array([each.capture_ns for each in first.values()]) / 1e9,
        np.array([layout.view(each.truth, field) for each in first.values()]),
    )


@pytest.fixture(scope='module')
def whole() -> tuple[Rig, list[Message]]:
    """Return the rig with all that works here, and its messages of WHOLE_SECONDS."""
    config = load_rig('everything')
    made = Rig(
        config.simulated_world,
        config.make_sensors().values(),
        seed=config.seed,
        messages=True,
        arrays=False,
    )
    return made, list(made.run(WHOLE_SECONDS))


def test_every_type_runs(whole: tuple[Rig, list[Message]]) -> None:
    running = {each.config.type for each in whole[0].sensors.values()}
    assert running == set(BUILT_IN) - (set() if renders() else set(DRAWN))


def test_every_topic_comes_at_its_rate(whole: tuple[Rig, list[Message]]) -> None:
    rig, messages = whole
    counts = Counter(each.topic for each in messages)
    for name, sensor in rig.sensors.items():
        for topic in sensor.topics():
            expected = sensor.config.rate_hz * WHOLE_SECONDS
            lost = 4 if sensor.config.loss.probability else 0
            late_s = sensor.duration_ns / 1e9 + sensor.config.delay_range_s[1]
            least = expected - lost - 2 - sensor.config.rate_hz * late_s
            assert max(least, 1) <= counts[topic.of(name)] <= expected + 1, topic


def test_every_message_can_be_read_by_others(whole: tuple[Rig, list[Message]]) -> None:
    seen = {each.topic: each for each in whole[1]}
    for message in seen.values():
        decoded = decode(message.type_name, message.data)
        for each in getattr(decoded, 'transforms', [decoded]):
            stamp = each.header.stamp
            assert stamp.sec * 10**9 + stamp.nanosec == message.stamp_ns


def test_position_sensors_agree_about_where_the_rover_went(
    rig: Rig, messages: list[Message]
) -> None:
    _, position = truth(rig, messages, 'tracker', 'position')
    way_m = np.linalg.norm(np.diff(position[:, :2], axis=0), axis=1).sum()
    assert way_m > 3.0, 'the driver does not move'
    _, pose = truth(rig, messages, 'odometry', 'pose')
    reckoned = np.linalg.norm(pose[-1, :2] - pose[0, :2])
    went = np.linalg.norm(position[-1, :2] - position[0, :2])
    assert reckoned == pytest.approx(went, abs=0.05 * way_m)


def test_antenna_moves_with_the_body_it_is_on(rig: Rig, messages: list[Message]) -> None:
    time_s, linear = truth(rig, messages, 'tracker', 'linear')
    _, angular = truth(rig, messages, 'tracker', 'angular')
    _, quats = truth(rig, messages, 'tracker', 'orientation')
    arm = rig.sensors['gnss'].config.mount.pos_m
    expected = Rotation.from_quat(quats).apply(linear + np.cross(angular, arm))
    gnss_s, velocity = truth(rig, messages, 'gnss', 'linear')
    same = np.searchsorted(time_s, gnss_s)
    np.testing.assert_array_equal(time_s[same], gnss_s)
    np.testing.assert_allclose(velocity, expected[same], atol=1e-9)
    assert np.abs(velocity).max() > 0.5


def test_gyro_integrates_to_the_true_turn(rig: Rig, messages: list[Message]) -> None:
    time_s, rate = truth(rig, messages, 'imu', 'angular_velocity')
    _, quats = truth(rig, messages, 'imu', 'orientation')
    yaw = np.unwrap(2.0 * np.arctan2(quats[:, 2], quats[:, 3]))
    turned = np.sum(0.5 * (rate[1:, 2] + rate[:-1, 2]) * np.diff(time_s))
    assert turned == pytest.approx(yaw[-1] - yaw[0], abs=0.03)
