"""The world node's services, parameters, commands and topics, over ROS in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import rclpy

pytest.importorskip('rclpy', reason='rclpy is not installed')

from geometry_msgs.msg import PoseStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from support.places import ROVER_YARD as ROVER
from support.ros_client import Client
from support.ros_rigs import MS, LockstepRun, write_rig
from visualization_msgs.msg import MarkerArray

from rig_common.errors import RigError
from rig_common.ros import qos
from rig_common.ros.types import message_class
from sensor_rig.nodes.building import make_world
from sim_sensors.world.scene.markers import Scene

SENSORS = {
    'baro': {
        'type': 'barometer',
        'mount': {'body': 'rover'},
        'rate_hz': 50.0,
        'delay_range_s': [0.003, 0.003],
        'noise': 1.0,
    }
}


@pytest.fixture(scope='module')
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LockstepRun]:
    rig = write_rig(
        tmp_path_factory.mktemp('world'), SENSORS, model=ROVER.read_text(), driver='commands'
    )
    with LockstepRun(rig, extra=[Client]) as run:
        run.run(0.1)
        yield run


@pytest.fixture
def client(run: LockstepRun) -> Iterator[Client]:
    yield run.extra[0]  # type: ignore[misc]
    run.world.loop.resume()


def ask(client: Client, run: LockstepRun, service: str) -> str:
    answer = client.call(run, Trigger, f'/world/{service}')
    assert answer.success
    return str(answer.message)


def settled(run: LockstepRun) -> Callable[[], bool]:
    return lambda: run.world.loop.paused and not run.world.conductor.blocked


def test_pause_and_resume(run: LockstepRun, client: Client) -> None:
    assert ask(client, run, 'pause').startswith('paused at')
    run.until(settled(run))
    before = run.now_s
    for _ in range(20):
        run.spinner.wait(min(run.world.advance(), 0.002))
    assert run.now_s == before
    ask(client, run, 'resume')
    run.until(lambda: run.now_s > before + 0.01)


def test_a_world_that_stands_still_shows_its_scene_to_whoever_comes(
    run: LockstepRun, client: Client
) -> None:
    scene = Scene(run.world.world.model)
    wanted = {shape.geom for shape in (*scene.static, *scene.moving)}
    ask(client, run, 'pause')
    run.until(settled(run))
    markers = client.listen(MarkerArray, 'world/markers', qos.latched(10))
    run.until(lambda: {each.id for message in markers for each in message.markers} == wanted)
    ask(client, run, 'resume')


def test_step_takes_exactly_as_many_steps_as_asked_for(run: LockstepRun, client: Client) -> None:
    ask(client, run, 'pause')
    run.until(settled(run))
    before = run.world.world.tick
    client.set(run, 'world', step_count=37)
    ask(client, run, 'step')
    run.until(settled(run))
    assert run.world.world.tick == before + 37


def test_reset_begins_a_new_episode_at_time_zero(run: LockstepRun, client: Client) -> None:
    run.run(run.now_s + 0.2)
    pressures: list[list[bytes]] = []
    resets = run.world.loop.resets
    for seed in (11, -1, 11):
        client.set(run, 'world', reset_seed=seed)
        episodes = len(run.recorder.episodes)
        ask(client, run, 'reset')
        run.until(lambda: len(run.recorder.episodes) > episodes)  # noqa: B023
        run.until(lambda: len(run.recorder.heard['baro/pressure'].messages) >= 5)
        heard = run.recorder.heard['baro/pressure']
        assert heard.arrivals_ns[:3] == [3 * MS, 23 * MS, 43 * MS]
        pressures.append(heard.messages[:5])
    assert pressures[0] == pressures[2]
    assert pressures[0] != pressures[1]
    heard_of = [(tick.seed, tick.episode) for tick in run.recorder.episodes[-3:]]
    assert heard_of == [(11, 0), (11, 1), (11, 0)]
    assert run.world.loop.resets == resets + 3


def test_the_real_time_factor_can_be_set(run: LockstepRun, client: Client) -> None:
    (result,) = client.set(run, 'world', world__real_time_factor=50.0)
    assert result.successful
    assert run.world.loop.pacer.factor == 50.0
    (result,) = client.set(run, 'world', world__real_time_factor=-1.0)
    assert not result.successful
    assert 'world.real_time_factor' in result.reason
    (result,) = client.set(run, 'world', world__real_time_factor=0.0)
    assert result.successful


def test_what_cannot_change_is_read_only(run: LockstepRun, client: Client) -> None:
    (result,) = client.set(run, 'world', world__timestep_s=0.002)
    assert not result.successful
    assert 'read-only' in result.reason or 'read only' in result.reason


def test_parameters_are_described(run: LockstepRun, client: Client) -> None:
    request = DescribeParameters.Request(names=['world.real_time_factor'])
    answer = client.call(run, DescribeParameters, '/world/describe_parameters', request)
    (descriptor,) = answer.descriptors
    assert descriptor.description.startswith('Simulated seconds per wall second')
    assert descriptor.floating_point_range[0].from_value == 0.0
    assert not descriptor.read_only


@pytest.mark.parametrize('node', ['world', 'emulator_0'])
def test_the_time_of_a_running_node_stays(run: LockstepRun, client: Client, node: str) -> None:
    change = Parameter('use_sim_time', value=True).to_parameter_msg()
    answer = client.call(
        run, SetParameters, f'/{node}/set_parameters', SetParameters.Request(parameters=[change])
    )
    assert answer.results[0].reason == (
        f'use_sim_time is false here, and {node} cannot change its time while it runs'
    )


def test_commands_move_the_rover(run: LockstepRun, client: Client) -> None:
    odometry = client.listen(Odometry, 'truth/odom')
    twist = client.create_publisher(Twist, 'cmd_vel', 10)
    run.until(lambda: twist.get_subscription_count() > 0)
    message = Twist()
    message.linear.x = 0.8
    twist.publish(message)
    start = run.now_s
    run.until(lambda: run.now_s > start + 1.5 and len(odometry) > 10)
    assert odometry[-1].twist.twist.linear.x == pytest.approx(0.8, abs=0.2)
    assert odometry[-1].header.frame_id == 'world'
    assert odometry[-1].child_frame_id == 'rover'
    moved = odometry[-1].pose.pose.position.x - odometry[0].pose.pose.position.x
    assert moved > 0.3
    twist.publish(Twist())
    client.destroy_publisher(twist)


def test_stamped_twists_move_the_rover_too(run: LockstepRun, client: Client) -> None:
    odometry = client.listen(Odometry, 'truth/odom')
    context = rclpy.Context()  # one participant has one type for a topic
    rclpy.init(context=context)
    node = rclpy.create_node('driver', context=context)
    twist = node.create_publisher(TwistStamped, 'cmd_vel', 10)
    run.until(lambda: twist.get_subscription_count() > 0)
    message = TwistStamped()
    message.twist.linear.x = -0.6
    twist.publish(message)
    start = run.now_s
    run.until(lambda: run.now_s > start + 1.5 and len(odometry) > 10)
    assert odometry[-1].twist.twist.linear.x == pytest.approx(-0.6, abs=0.2)
    node.destroy_node()
    rclpy.shutdown(context=context)


def test_joint_commands_reach_actuators_by_name(run: LockstepRun, client: Client) -> None:
    publisher = client.create_publisher(JointState, 'joint_commands', 10)
    run.until(lambda: publisher.get_subscription_count() > 0)
    name, index = next(iter(run.world.world.actuators.items()))
    publisher.publish(JointState(name=[name], velocity=[0.5]))
    run.until(lambda: run.world.world.actuation.ctrl[0, index] == 0.5)
    publisher.publish(JointState(name=['nobody'], velocity=[0.5]))
    publisher.publish(JointState(name=[name], velocity=[0.0]))
    run.until(lambda: run.world.world.actuation.ctrl[0, index] == 0.0)


def test_what_joint_commands_cannot_do_changes_nothing(run: LockstepRun, client: Client) -> None:
    world = run.world.world
    publisher = client.create_publisher(JointState, 'joint_commands', 10)
    run.until(lambda: publisher.get_subscription_count() > 0)
    (first, index), (second, other) = list(world.actuators.items())[:2]
    before = world.actuation.ctrl[0, other]
    publisher.publish(JointState(name=[second, 'nobody'], velocity=[0.7, 0.7]))
    publisher.publish(JointState(name=[second], velocity=[0.7, 0.7]))
    publisher.publish(JointState(name=[first], velocity=[0.25]))
    run.until(lambda: world.actuation.ctrl[0, index] == 0.25)
    assert world.actuation.ctrl[0, other] == before
    publisher.publish(JointState(name=[first], velocity=[0.0]))
    run.until(lambda: world.actuation.ctrl[0, index] == 0.0)


def test_poses_and_trajectories_are_taken_by_topic(run: LockstepRun, client: Client) -> None:
    world = run.world.world
    body = next(iter(world.placing.free))
    pose = client.create_publisher(PoseStamped, f'pose_commands/{body}', 10)
    run.until(lambda: pose.get_subscription_count() > 0)
    trajectory = message_class('trajectory_msgs/msg/JointTrajectory')
    path = client.create_publisher(trajectory, 'joint_trajectory', 10)
    run.until(lambda: path.get_subscription_count() > 0)
    at = world.placing.free[body]
    wrong, broken, right = PoseStamped(), PoseStamped(), PoseStamped()
    wrong.header.frame_id = 'moon'
    wrong.pose.position.x = 50.0
    broken.pose.position.x = broken.pose.orientation.w = float('nan')
    x = float(world.bound('qpos')[0, at]) + 0.5
    right.pose.position.x, right.pose.position.z = x, float(world.bound('qpos')[0, at + 2])
    pose.publish(wrong)
    pose.publish(broken)
    pose.publish(right)
    run.until(lambda: abs(world.bound('qpos')[0, at] - x) < 0.2)
    name, index = next(iter(world.actuators.items()))
    point = message_class('trajectory_msgs/msg/JointTrajectoryPoint')
    points = [point(positions=[1.0]), point(positions=[4.0])]
    points[0].time_from_start.nanosec, points[1].time_from_start.sec = 1_000_000, 3
    path.publish(trajectory(joint_names=[name, 'nobody'], points=points))
    path.publish(trajectory(joint_names=[name], points=[point(positions=[float('nan')])] * 1000))
    path.publish(trajectory(joint_names=[name], points=points))
    run.until(lambda: world.actuation.ctrl[0, index] == pytest.approx(1.0, abs=0.01))
    path.publish(trajectory())  # stop, whatever it wants last
    publisher = client.create_publisher(JointState, 'joint_commands', 10)
    run.until(lambda: publisher.get_subscription_count() > 0)
    publisher.publish(JointState(name=[name], velocity=[0.0]))
    run.until(lambda: world.actuation.ctrl[0, index] == 0.0)


def test_clock_comes_at_its_rate_and_markers_show_the_scene(
    run: LockstepRun, client: Client
) -> None:
    clocks = client.listen(Clock, '/clock', qos.clock())
    markers = client.listen(MarkerArray, 'world/markers', qos.latched(10))
    start = run.now_s
    run.until(lambda: run.now_s > start + 0.5 and len(markers) > 3)
    times = [c.clock.sec * 1000 * MS + c.clock.nanosec for c in clocks]
    assert times == sorted(times)
    assert all(time_ns % (4 * MS) == 0 for time_ns in times)
    scene = run.world.world.model
    names = {marker.id for array in markers for marker in array.markers}
    assert len(names) > 10
    assert max(names) < scene.ngeom
    static = next(array for array in markers if len(array.markers) > 10)
    assert all(marker.header.frame_id == 'world' for marker in static.markers)


def test_truth_is_made_only_for_those_who_listen(run: LockstepRun) -> None:
    channel = run.world.channels[0]
    calls: list[int] = []
    reader = channel._reader
    original = reader.read
    emulator = run.emulators[0].channels['baro']

    def counting(view: Any, *rest: Any) -> None:
        calls.append(view.time_ns)
        original(view, *rest)

    reader.read = counting  # type: ignore[method-assign]
    run.run(run.now_s + 0.2)
    assert calls
    try:
        type(emulator).wanted, wanted = property(lambda self: False), type(emulator).wanted
        run.until(lambda: not emulator.listening)
        run.run(run.now_s + 0.05)
        calls.clear()
        run.run(run.now_s + 0.2)
        assert not calls
    finally:
        type(emulator).wanted = wanted  # type: ignore[method-assign]
        reader.read = original  # type: ignore[method-assign]
    count = len(run.recorder.heard['baro/pressure'].messages)
    run.until(lambda: len(run.recorder.heard['baro/pressure'].messages) > count + 3)


def test_a_bad_model_is_one_sentence(tmp_path: Path, run: LockstepRun) -> None:
    rig = write_rig(
        tmp_path, {'imu': {'type': 'imu', 'mount': {'body': 'rovre'}}}, model=ROVER.read_text()
    )
    with pytest.raises(RigError, match="did you mean 'rover'"):
        make_world(rig, name='broken')


@pytest.mark.parametrize(
    ('key', 'value', 'sentence'),
    [
        ('real_time_factor', -1.0, 'world.real_time_factor is -1.0; it should be greater than'),
        (
            'start_time_s',
            5000.0,
            'world.start_time_s is 5000.0 here and 1000.0 in the rig file; all',
        ),
        ('hide_truth', True, 'world.hide_truth is true here and false in the rig file; all nodes'),
    ],
)
def test_an_override_that_cannot_be_is_refused(
    run: LockstepRun, key: str, value: Any, sentence: str
) -> None:
    with pytest.raises(RigError, match=sentence):
        make_world(
            run.rig, name='other', parameter_overrides=[Parameter(f'world.{key}', value=value)]
        )
