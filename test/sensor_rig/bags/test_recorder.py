"""`rig record`: a simulated run without ROS, and the live graph."""

from __future__ import annotations

import json
import re
import sys
import time

import pytest
from rosbags.typesys import Stores, get_typestore

from rig_common.msgs import read_time_reference
from rig_common.msgs.decode import read_odometry
from rig_common.validation import hint
from sensor_rig.bags.reader import BagReader
from sensor_rig.bags.recorder import topics_of
from sensor_rig.cli.main import main
from sensor_rig.inprocess import open_rig

RIG = """/**:
  ros__parameters:
    seed: 7
    world: {model: rover_yard.xml, timestep_s: 0.001, real_time_factor: 0.0, driver: figure_eight}
    sensors:
      imu: {type: imu, rate_hz: 200.0, delay_range_s: [0.001, 0.002], mount: {body: rover}}
      wheels: {type: wheel_odometry, rate_hz: 20.0, delay_range_s: [0.005, 0.006]}
    sync:
      inputs: {imu: {collect: true}, wheels: {stamp_source: ptp}}
      reference_sensor_id: wheels
      imu_sensor_id: imu
"""


@pytest.fixture
def rig_file(tmp_path):
    file = tmp_path / 'sim.yaml'
    file.write_text(RIG)
    return file


def messages_of(path, topic=''):
    with BagReader(path) as bag:
        return [m for m in bag.messages() if topic in ('', m.topic)]


def test_a_rig_is_recorded_without_ros(tmp_path, rig_file, capsys):
    out = tmp_path / 'out'
    assert main(['record', str(out), '--rig', str(rig_file), '--seconds', '2', '--json']) == 0
    counts = json.loads(capsys.readouterr().out)['messages']
    assert counts['/imu/data_raw'] == pytest.approx(400, abs=2)
    assert counts['/wheels/odom'] == counts['/truth/time/wheels'] == pytest.approx(40, abs=1)
    assert counts['/synced/wheels/odom'] == counts['/sync/bundle'] > 30
    for message in messages_of(out, '/truth/time/imu'):
        capture_ns, _, stamp_ns, source = read_time_reference(message.raw)
        assert source == 'imu'
        assert capture_ns == stamp_ns  # its clock is perfect
        assert 1_000_000 <= message.receive_ns - capture_ns <= 3_000_000


def test_syncing_the_recording_gives_the_bundles_of_the_run(tmp_path, rig_file):
    """The engine sees the same in both: recorded receive times are the ticks of arrival."""
    recorded, synced = tmp_path / 'recorded', tmp_path / 'synced'
    main(['record', str(recorded), '--rig', str(rig_file), '--seconds', '3'])
    assert main(['sync', str(recorded), str(synced), '--rig', str(rig_file), '--causal']) == 0
    topic = '/synced/wheels/odom'
    online, offline = messages_of(recorded, topic), messages_of(synced, topic)
    assert len(online) > 40
    assert offline[: len(online)] == online


def test_only_some_topics_and_no_sync(tmp_path, rig_file):
    main(
        [
            'record',
            str(tmp_path / 'a'),
            '--rig',
            str(rig_file),
            '--seconds',
            '0.5',
            '--no-sync',
            '--storage',
            'sqlite3',
        ]
    )
    with BagReader(tmp_path / 'a') as bag:
        assert set(bag.topics) == {
            '/imu/data_raw',
            '/wheels/odom',
            '/truth/time/imu',
            '/truth/time/wheels',
            '/truth/odom',
            '/tf',
            '/tf_static',
        }
    main(
        [
            'record',
            str(tmp_path / 'b'),
            '--rig',
            str(rig_file),
            '--seconds',
            '0.5',
            '--topics',
            'imu/data_raw',
        ]
    )
    with BagReader(tmp_path / 'b') as bag:
        assert set(bag.topics) == {'/imu/data_raw'}


def test_poses_and_frames_are_in_it(tmp_path, rig_file):
    main(['record', str(tmp_path / 'a'), '--rig', str(rig_file), '--seconds', '1'])
    odometry = messages_of(tmp_path / 'a', '/truth/odom')
    rig = open_rig(rig_file)
    for message in odometry:
        while rig.elapsed_ns < 0 or rig.time_ns < message.receive_ns:
            rig.step()
        motion = read_odometry(message.raw)
        assert motion.stamp_ns == message.receive_ns == rig.time_ns
        assert motion.position_m == pytest.approx(rig.world.data(0).body('rover').xpos)
    assert len(odometry) == 50
    store = get_typestore(Stores.ROS2_KILTED)
    (fixed,) = messages_of(tmp_path / 'a', '/tf_static')
    moving = messages_of(tmp_path / 'a', '/tf')
    frames = {
        each.child_frame_id: each.header.frame_id
        for raw in (fixed.raw, moving[0].raw)
        for each in store.deserialize_cdr(raw, 'tf2_msgs/msg/TFMessage').transforms
    }
    assert frames.items() >= {
        ('imu', 'rover'),
        ('rover', 'odom'),
        ('odom', 'map'),
        ('map', 'world'),
    }
    assert len(moving) == 20


URDF = """<robot name="arm">
  <link name="base"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"
    izz="1"/></inertial></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"
    izz="1"/></inertial><visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>
  <link name="upper"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0"
    izz="1"/></inertial></link>
  <joint name="a" type="continuous"><parent link="base"/><child link="lower"/></joint>
  <joint name="b" type="continuous"><parent link="lower"/><child link="upper"/></joint>
</robot>
"""


def test_a_robot_description_is_recorded_with_a_frame_for_every_link(tmp_path):
    (tmp_path / 'arm.urdf').write_text(URDF)
    rig = tmp_path / 'rig.yaml'
    rig.write_text(
        '/**:\n  ros__parameters:\n    world: {model: arm.urdf}\n    sensors: '
        '{joints: {type: joint_state, joints: [a, b], rate_hz: 50.0}}\n'
    )
    assert main(['record', str(tmp_path / 'a'), '--rig', str(rig), '--seconds', '0.2']) == 0
    store = get_typestore(Stores.ROS2_KILTED)
    (text,) = messages_of(tmp_path / 'a', '/robot_description')
    assert store.deserialize_cdr(text.raw, 'std_msgs/msg/String').data == URDF
    frames = {
        each.child_frame_id
        for topic in ('/tf', '/tf_static')
        for message in messages_of(tmp_path / 'a', topic)
        for each in store.deserialize_cdr(message.raw, 'tf2_msgs/msg/TFMessage').transforms
    }
    assert {'base', 'lower', 'upper'} <= frames


@pytest.mark.parametrize('options', [[], ['--no-sync']])
def test_a_sync_that_does_not_run_is_said(tmp_path, rig_file, capsys, options):
    rig_file.write_text(RIG.replace('world: {', 'world: {num_envs: 2, '))
    assert (
        main(['record', str(tmp_path / 'a'), '--rig', str(rig_file), '--seconds', '0.2', *options])
        == 0
    )
    said = (
        ''
        if options
        else (
            'WARNING: sync: is left out, because world.num_envs is 2 and the '
            'sync engine runs with one environment only\n'
        )
    )
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(
    ('topic', 'words'),
    [
        ('/imu/data', "the rig publishes no topic '/imu/data'; did you mean '/imu/data_raw'?"),
        (
            'nope',
            "no topic 'nope'; there are /imu/data_raw, /sync/bundle, /sync/offset/imu, /synced/",
        ),
    ],
)
def test_a_topic_that_is_not_there_is_refused(tmp_path, rig_file, capsys, topic, words):
    assert (
        main(
            [
                'record',
                str(tmp_path / 'a'),
                '--rig',
                str(rig_file),
                '--topics',
                '/wheels/odom',
                topic,
            ]
        )
        == 2
    )
    assert words in capsys.readouterr().err
    assert not (tmp_path / 'a').exists()


def test_a_hint_stays_readable():
    assert hint('x', ['aa', 'bb']) == 'there are aa, bb'
    assert hint('x', []) == 'there are none'
    assert hint('x', [f'env_{n}' for n in range(50)]).endswith(', env_39 and 10 more')


def test_every_topic_of_a_recording_can_be_asked_for(tmp_path, rig_file):
    rig = open_rig(rig_file)
    main(['record', str(tmp_path / 'a'), '--rig', str(rig_file), '--seconds', '1'])
    with BagReader(tmp_path / 'a') as bag:
        assert set(bag.topics) == {f'/{topic}' for topic in topics_of(rig)}


def test_an_imu_that_is_none_in_the_recording_is_refused(tmp_path, rig_file, capsys):
    main(['record', str(tmp_path / 'a'), '--rig', str(rig_file), '--seconds', '0.2', '--no-sync'])
    robot = tmp_path / 'robot.yaml'
    robot.write_text(
        '/**: {ros__parameters: {sync: {inputs: {wheels: {topic: "/wheels/odom"}}, '
        'reference_sensor_id: wheels, imu_sensor_id: wheels}}}'
    )
    assert main(['sync', str(tmp_path / 'a'), str(tmp_path / 'b'), '--rig', str(robot)]) == 2
    assert (
        "imu_sensor_id names 'wheels', whose messages are nav_msgs/msg/Odometry; it should "
        'name an input of sensor_msgs/msg/Imu, or be left out' in capsys.readouterr().err
    )
    assert not (tmp_path / 'b').exists()


def test_an_interrupted_recording_says_what_it_holds(tmp_path, rig_file, processes):
    out = tmp_path / 'out'
    recorder = processes.rig('record', str(out), '--rig', str(rig_file), '--seconds', '100000')
    deadline_s = time.monotonic() + 60.0
    while not any(file.stat().st_size > 100_000 for file in out.glob('*.mcap')):
        assert time.monotonic() < deadline_s, recorder.output
        time.sleep(0.05)
    recorder.interrupt()
    assert recorder.wait() == 130
    found = re.search(
        r'interrupted; written: \S+out \((\d+) messages in ([\d.]+) s\)',
        ' '.join(recorder.output.split()),
    )
    with BagReader(out) as bag:
        assert bag.message_count == int(found.group(1)) > 100
    assert float(found.group(2)) > 0.1


def test_mistakes_are_one_sentence(tmp_path, rig_file, capsys):
    assert main(['record', str(tmp_path / 'a')]) == 2
    assert main(['record', str(tmp_path / 'a'), '--rig', str(rig_file), '--seconds', '-1']) == 2
    assert 'more than zero' in capsys.readouterr().err
    assert main(['record', str(tmp_path / 'a'), '--rig', str(tmp_path / 'no.yaml')]) == 2
    assert not (tmp_path / 'a').exists()


@pytest.mark.ros
def test_the_live_graph_is_recorded_and_inspected(tmp_path, processes):
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    talker = (
        'import time, rclpy\n'
        'from rig_common import msgs\n'
        'from sensor_msgs.msg import Imu\n'
        'rclpy.init()\n'
        'node = rclpy.create_node("talker")\n'
        'publisher = node.create_publisher(Imu, "imu/data_raw", 10)\n'
        'hidden = node.create_publisher(Imu, "ns/_truth/imu", 10)\n'
        'template = msgs.imu("imu")\n'
        'while True:\n'
        '    raw = template.fill(time.time_ns() - 5_000_000)\n'
        '    publisher.publish(raw)\n'
        '    hidden.publish(raw)\n'
        '    time.sleep(0.01)\n'
    )
    processes.start(sys.executable, '-c', talker)
    out = tmp_path / 'live'
    recorder = processes.start(
        sys.executable,
        '-m',
        'sensor_rig',
        'record',
        str(out),
        '--live',
        '--topics',
        '/imu/data_raw',
        '/ns/_truth/imu',
    )
    inspector = processes.start(
        sys.executable, '-m', 'sensor_rig', 'inspect', '--live', '--seconds', '4', '--json'
    )
    assert inspector.wait() in (0, 1)  # 1: on a busy machine the few seconds tell too little
    topics = {
        t['name']: t for t in json.loads(inspector.output[inspector.output.index('{') :])['topics']
    }
    assert topics['/imu/data_raw']['count'] > 20
    assert '/ns/_truth/imu' not in topics  # hidden names are heard where they are named
    recorder.interrupt()
    assert recorder.wait() == 0
    with BagReader(out) as bag:
        assert bag.topics['/imu/data_raw'].message_count > 20
        assert bag.topics['/ns/_truth/imu'].message_count > 20
        for message in bag.messages():
            assert message.receive_ns > 1_600_000_000_000_000_000


@pytest.mark.ros
def test_a_slow_simulation_is_recorded_in_the_times_of_its_clock(tmp_path, processes):
    """In host time the samples of the recording would be four times as far apart."""
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    out, file = tmp_path / 'live', tmp_path / 'sim.yaml'
    file.write_text(RIG.replace('real_time_factor: 0.0', 'real_time_factor: 0.25, lockstep: true'))
    recorder = processes.start(sys.executable, '-m', 'sensor_rig', 'record', str(out), '--live')
    rig = processes.start(sys.executable, '-m', 'sensor_rig', 'run', str(file), '--seconds', '2')
    assert rig.wait() == 0
    recorder.interrupt()
    assert recorder.wait() == 0
    heard = messages_of(out, '/wheels/odom')
    assert len(heard) > 10
    for message in messages_of(out):
        assert 1000.0 <= message.receive_ns / 1e9 < 1003.0
    late_s = [(m.receive_ns - read_odometry(m.raw).stamp_ns) / 1e9 for m in heard]
    assert min(late_s) > -0.005  # /clock comes every 4 ms
    assert sorted(late_s)[len(late_s) // 2] < 0.015
    assert main(['sync', str(out), str(tmp_path / 'synced'), '--rig', str(file)]) == 0
    with BagReader(tmp_path / 'synced') as bag:
        assert bag.topics['/sync/bundle'].message_count > len(heard) - 5


@pytest.mark.ros
@pytest.mark.parametrize('clock', [True, False])
def test_the_arrivals_of_a_recording_are_of_one_clock(clock, monkeypatch):
    """What came before /clock spoke arrives at its first time; a /clock that is late is told."""
    pytest.importorskip('rclpy', reason='rclpy is not installed')
    from rosgraph_msgs.msg import Clock as ClockMessage

    from rig_common.ros.executor import close_node, ros_context
    from sensor_rig.bags.ros import listening

    heard = []
    with ros_context([]):
        listener = listening.Listener(lambda *_: None, lambda *given: heard.append(given))
        simulated_ns = [0]
        listener._clock_ns = lambda: simulated_ns[0]
        listener._receive('/a', b'1')
        listener.look()
        assert not heard  # it is held
        if not clock:
            monkeypatch.setattr(listening, 'HOLD_NS', 0)
            publisher = listener.create_publisher(ClockMessage, '/clock', 1)
            listener.look()
            assert not heard  # somebody may be about to say the time
            listener.destroy_publisher(publisher)
            listener.look()
            assert [given[:2] for given in heard] == [('/a', b'1')]
        simulated_ns[0] = 1000
        listener._receive('/a', b'2')
        assert listener.clock_came_late is not clock
        if clock:
            assert heard == [('/a', b'1', 1000), ('/a', b'2', 1000)]
        else:
            assert all(given[2] > 1_600_000_000_000_000_000 for given in heard)
        close_node(listener)
