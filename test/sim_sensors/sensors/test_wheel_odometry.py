from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError
from support.sensor_run import decode, feed, make_sensor, run

from sim_sensors.pipeline.pipeline import Pipeline, RunSetup
from sim_sensors.timing.arrays.layout import Array

PLATE = """
<mujoco>
  <option gravity="0 0 0"/>
  <worldbody>
    <body name="arm">
      <joint name="orbit" axis="0 0 1"/>
      <geom type="box" size="0.1 0.1 0.1"/>
    </body>
    <body name="base" pos="5 0 0">
      <geom type="box" size="0.1 0.1 0.1"/>
      <body name="l"><joint name="left" axis="0 1 0"/><geom type="sphere" size="0.1"/></body>
      <body name="r"><joint name="right" axis="0 -1 0"/><geom type="sphere" size="0.1"/></body>
    </body>
  </worldbody>
  <keyframe><key name="turning" qvel="0.5 4 -6"/></keyframe>
</mujoco>
"""
CIRCLE = {
    'type': 'wheel_odometry',
    'rate_hz': 50.0,
    'mount': {'body': 'arm', 'pos_m': [2.0, 0.0, 0.0], 'rpy_rad': [0.0, 0.0, np.pi / 2]},
}
WHEELS = {
    'type': 'wheel_odometry',
    'rate_hz': 50.0,
    'mount': {'body': 'base'},
    'left_joints': ['left'],
    'right_joints': ['right'],
    'reverse': [False, True],
    'wheel_radius_m': 0.1,
    'track_m': 0.4,
}


def arc(speed: float, turn: float, time_s: Array) -> Array:
    """Return x, y, yaw [n, 3] of constant forward speed and yaw rate."""
    yaw = turn * time_s
    radius = speed / turn
    return np.stack([radius * np.sin(yaw), radius * (1.0 - np.cos(yaw)), yaw], axis=1)


def test_base_on_a_circle(tmp_path: Path) -> None:
    done = run(tmp_path, PLATE, {'odom': CIRCLE}, 6.0, keyframe='turning')
    expected = arc(1.0, 0.5, done.times_s('odom'))
    np.testing.assert_allclose(done.truth('odom', 'pose'), expected, atol=1e-6)
    np.testing.assert_allclose(done.values('odom', 'pose'), expected, atol=1e-6)
    np.testing.assert_allclose(
        done.values('odom', 'twist'), [[1.0, 0.0, 0.5]] * len(expected), atol=1e-6
    )


def test_wheels_turn_the_base(tmp_path: Path) -> None:
    done = run(tmp_path, PLATE, {'odom': WHEELS}, 3.0, keyframe='turning')
    speed, turn = 0.1 * (4.0 + 6.0) / 2, 0.1 * (6.0 - 4.0) / 0.4
    np.testing.assert_allclose(
        done.values('odom', 'pose'), arc(speed, turn, done.times_s('odom')), atol=1e-6
    )
    message = decode('nav_msgs/msg/Odometry', done.messages('odom')[-1]['odom'])
    assert (message.header.frame_id, message.child_frame_id) == ('odom', 'odom')
    yaw = 2.0 * np.arctan2(message.pose.pose.orientation.z, message.pose.pose.orientation.w)
    assert yaw == pytest.approx(done.values('odom', 'pose')[-1, 2])
    assert message.twist.twist.linear.x == pytest.approx(speed)
    assert message.twist.twist.angular.z == pytest.approx(turn)
    covariance = message.pose.covariance.reshape(6, 6)
    assert covariance[2, 2] == 1e6
    assert covariance[0, 0] == 0.0


def test_systematic_errors(tmp_path: Path) -> None:
    wrong = {**WHEELS, 'radius_error': [0.02, -0.01], 'track_error': 0.05, 'slip': 0.1}
    done = run(tmp_path, PLATE, {'odom': wrong}, 3.0, keyframe='turning')
    left, right = 0.1 * 4.0 * 1.02 / 0.9, 0.1 * 6.0 * 0.99 / 0.9
    expected = arc((left + right) / 2, (right - left) / (0.4 * 1.05), done.times_s('odom'))
    np.testing.assert_allclose(done.values('odom', 'pose'), expected, atol=1e-6)
    right_one = arc(0.5, 0.5, done.times_s('odom'))
    np.testing.assert_allclose(done.truth('odom', 'pose'), right_one, atol=1e-6)


def test_counts_make_steps_of_travel(tmp_path: Path) -> None:
    done = run(
        tmp_path, PLATE, {'odom': {**WHEELS, 'counts_per_rev': 64.0}}, 3.0, keyframe='turning'
    )
    travel = done.values('odom', 'travel') / (2.0 * np.pi * 0.1 / 64.0)
    np.testing.assert_allclose(travel, np.round(travel), atol=1e-9)
    np.testing.assert_allclose(done.values('odom', 'pose'), done.truth('odom', 'pose'), atol=0.05)


def test_covariance_is_that_of_many_runs() -> None:
    sensor = make_sensor(
        'odom',
        type='wheel_odometry',
        rate_hz=10.0,
        left_joints=['l'],
        right_joints=['r'],
        track_m=0.5,
        slip_noise=0.02,
    )
    time_s = np.arange(101) * 0.1
    rows = np.stack([0.4 * time_s, 0.6 * time_s, 0.4 + 0 * time_s, 0.6 + 0 * time_s], axis=1)
    last = feed(sensor, rows, period_s=0.1, num_envs=4000)[-1]
    claimed = last[:, 6:15].reshape(-1, 3, 3).mean(axis=0)
    seen = np.cov(last[:, :3].T)
    np.testing.assert_allclose(np.sqrt(np.diag(claimed)), np.sqrt(np.diag(seen)), rtol=0.05)
    scale = np.sqrt(np.outer(np.diag(seen), np.diag(seen)))
    np.testing.assert_allclose(claimed / scale, seen / scale, atol=0.06)


def test_covariance_grows_and_the_twist_s_does_not() -> None:
    sensor = make_sensor(
        'odom',
        type='wheel_odometry',
        rate_hz=10.0,
        left_joints=['l'],
        right_joints=['r'],
        slip_noise=0.02,
    )
    time_s = np.arange(50) * 0.1
    rows = np.stack([time_s, time_s, 1 + 0 * time_s, 1 + 0 * time_s], axis=1)
    values = feed(sensor, rows, period_s=0.1)[:, 0]
    assert np.all(np.diff(values[:, [6, 10, 14]], axis=0)[1:] > 0.0)
    assert values[1:, 3].var() == pytest.approx(0.5 * 0.02**2 / 0.1, rel=0.5)


def test_travel_is_summed_tick_by_tick_through_resets_and_long_pauses() -> None:
    """Against a plain loop, to the bit; the rate leaves 333 ticks between captures."""
    envs, dt_ns = 3, 1_000_000
    sensor = make_sensor('odom', type='wheel_odometry', rate_hz=3.0)
    pipeline = Pipeline(sensor, RunSetup(num_envs=envs, seed=1, dt_ns=dt_ns))
    speeds = np.random.default_rng(5).normal(size=(900, envs, 2))
    travel, before = np.zeros((envs, 2)), np.full((envs, 2), np.nan)
    for tick, speed in enumerate(speeds):
        if tick in (200, 500, 501):
            pipeline.reset([tick % 2], (tick - 1) * dt_ns)
            travel[tick % 2], before[tick % 2] = 0.0, np.nan
        moved = 0.001 * (0.5 * (before + speed))
        travel, before = np.where(np.isnan(before), 0.0, travel + moved), speed
        pipeline.tick(None, tick * dt_ns, np.hstack([np.zeros((envs, 2)), speed]))
        reading = pipeline.read_ground_truth()
        fresh = reading.valid & (reading.capture_ns == tick * dt_ns)
        assert np.array_equal(reading.values[fresh, 15:], travel[fresh])
    assert reading.valid.all()


def test_one_side_alone_is_refused() -> None:
    with pytest.raises(ValidationError, match='go together'):
        make_sensor('odom', type='wheel_odometry', left_joints=['l'])
