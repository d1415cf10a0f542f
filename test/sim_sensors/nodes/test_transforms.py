"""/tf and /tf_static as a listener of tf2 gets them: late, reliable, in step with the truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

from nav_msgs.msg import Odometry
from scipy.spatial.transform import Rotation
from std_srvs.srv import Trigger
from support.installed import ros_package
from support.places import ROVER_YARD as ROVER
from support.ros_client import Client
from support.ros_rigs import MS, LockstepRun, write_rig

from rig_common.ros import qos

tf2_msgs = ros_package('tf2_msgs.msg')

SENSORS = {
    'wheels': {
        'type': 'wheel_odometry',
        'mount': {'body': 'rover'},
        'rate_hz': 20.0,
        'left_joints': ['wheel_rear_left'],
        'right_joints': ['wheel_rear_right'],
        'wheel_radius_m': 0.12,
        'track_m': 0.48,
    },
    'heat': {'type': 'temperature_grid', 'mount': {'body': 'rover', 'pos_m': [0.1, 0.2, 0.3]}},
    'load': {'type': 'contact_force', 'mount': {'body': 'wheel_rear_left'}, 'rate_hz': 20.0},
}
START_NS = 1000 * 1000 * MS
"""Stamp of the beginning, by `world.start_time_s`."""
LISTENED = qos.internal(100)
"""What tf2 subscribes /tf with."""


@pytest.fixture
def run(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LockstepRun]:
    rig = write_rig(
        tmp_path,
        SENSORS,
        model=ROVER.read_text(),
        driver='figure_eight',
        true_base_frame='really',
        **getattr(request, 'param', {}),
    )
    with LockstepRun(rig, extra=[Client]) as run:
        yield run


def client_of(run: LockstepRun) -> Client:
    return run.extra[0]  # type: ignore[return-value]


def stamp_ns(header: Any) -> int:
    return int(header.stamp.sec * 1000 * MS + header.stamp.nanosec)


def poses(messages: list[Any]) -> dict[str, dict[int, tuple[np.ndarray, Rotation]]]:
    """Return the poses of every frame in its parent by their stamps."""
    found: dict[str, dict[int, tuple[np.ndarray, Rotation]]] = {}
    for each in (each for message in messages for each in message.transforms):
        place, turn = each.transform.translation, each.transform.rotation
        found.setdefault(each.child_frame_id, {})[stamp_ns(each.header)] = (
            np.array([place.x, place.y, place.z]),
            Rotation.from_quat([turn.x, turn.y, turn.z, turn.w]),
        )
    return found


def parents(*topics: list[Any]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in (each for topic in topics for message in topic for each in message.transforms):
        found.setdefault(each.child_frame_id, set()).add(each.header.frame_id)
    return found


def test_frames_agree_with_the_truth_and_with_odometry(run: LockstepRun) -> None:
    client = client_of(run)
    moving = client.listen(tf2_msgs.TFMessage, '/tf', LISTENED)
    truth = client.listen(Odometry, 'truth/odom', LISTENED)
    wheels = client.listen(Odometry, 'wheels/odom', LISTENED)
    run.run(3.0)  # before the first bump, where the wheels slip
    fixed = client.listen(tf2_msgs.TFMessage, '/tf_static', qos.latched(100))
    run.until(lambda: bool(fixed))  # long after it was sent
    assert parents(moving, fixed) == {
        'rover': {'odom'},
        'swing': {'world'},
        'turnstile': {'world'},
        'odom': {'map'},
        'map': {'world'},
        'really': {'world'},
        'wheel_rear_left': {'rover'},
        'wheels': {'rover'},
        'heat': {'rover'},
        'load': {'wheel_rear_left'},
    }
    assert poses(fixed)['heat'][START_NS][0].tolist() == [0.1, 0.2, 0.3]
    times = [stamp_ns(message.transforms[0].header) for message in moving]
    assert times == list(range(times[0], times[-1] + 1, 50 * MS))
    at = poses(moving)
    true = {stamp_ns(each.header): each.pose.pose for each in truth}
    both = sorted(true.keys() & at['really'].keys())
    assert len(both) > 20
    for time in both:
        place, turn = at['really'][time]
        assert place.tolist() == [getattr(true[time].position, axis) for axis in 'xyz']
        expected = [getattr(true[time].orientation, part) for part in 'xyzw']
        np.testing.assert_allclose(np.abs(np.dot(turn.as_quat(), expected)), 1.0, atol=1e-12)
    assert_odometry_ends_at_the_rover(at, wheels, *poses(fixed)['odom'].values())


def assert_odometry_ends_at_the_rover(
    at: dict[str, Any], wheels: list[Any], start: tuple[np.ndarray, Rotation]
) -> None:
    """What the wheels count, seen from the frame they count in, is where the rover is."""
    last = next(each for each in reversed(wheels) if stamp_ns(each.header) in at['rover'])
    time, pose = stamp_ns(last.header), last.pose.pose
    travel = np.array([getattr(pose.position, axis) for axis in 'xyz'])
    assert np.linalg.norm(travel) > 0.5
    place, turn = start
    np.testing.assert_allclose(place + turn.apply(travel), at['really'][time][0], atol=0.1)
    np.testing.assert_allclose(travel, at['rover'][time][0], atol=0.1)


def test_a_reset_begins_again_at_time_zero(run: LockstepRun) -> None:
    client = client_of(run)
    moving = client.listen(tf2_msgs.TFMessage, '/tf', LISTENED)
    fixed = client.listen(tf2_msgs.TFMessage, '/tf_static', qos.latched(100))
    run.run(2.5)
    before = poses(moving)
    moving.clear()
    assert client.call(run, Trigger, '/world/reset').success
    run.until(lambda: run.now_s < 1.0)
    run.until(lambda: run.now_s > 2.0)
    again = poses(
        [each for each in moving if stamp_ns(each.transforms[0].header) < START_NS + 2000 * MS]
    )
    both = sorted(before['rover'].keys() & again['rover'].keys())
    assert len(both) > 20
    for time in both:
        np.testing.assert_array_equal(before['rover'][time][0], again['rover'][time][0])
    starts = [
        str(transform)
        for message in fixed
        for transform in message.transforms
        if transform.child_frame_id == 'odom'
    ]
    assert len(starts) == 2
    assert starts[0] == starts[1], 'both episodes start at one place'


@pytest.mark.parametrize('run', [{'hide_truth': True, 'lockstep': False}], indirect=True)
def test_hidden_truth_leaves_what_moves_to_others(run: LockstepRun) -> None:
    client = client_of(run)
    moving = client.listen(tf2_msgs.TFMessage, '/tf', LISTENED)
    fixed = client.listen(tf2_msgs.TFMessage, '/tf_static', qos.latched(100))
    run.run(0.5)
    run.until(lambda: bool(fixed))
    assert not moving
    assert parents(fixed) == {'wheels': {'rover'}, 'heat': {'rover'}, 'load': {'wheel_rear_left'}}
