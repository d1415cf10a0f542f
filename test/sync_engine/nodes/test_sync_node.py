"""The sync node on a real robot's topics: host time, any publisher, no simulator involved."""

from __future__ import annotations

import json
import sys
import time
from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy', reason='rclpy is not installed')

import rclpy
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_srvs.srv import Trigger
from support.installed import ros_package

from rig_common import msgs
from rig_common.cdr import read_stamp_ns
from rig_common.errors import RigError
from rig_common.ros import qos
from rig_common.ros.executor import Spinner, close_node, ros_context
from rig_common.ros.types import message_class
from sensor_rig.nodes.building import make_sync
from sensor_rig.rigfile import rig_from_parameters

pytestmark = pytest.mark.ros

SCAN = msgs.laser_scan(
    'lidar',
    16,
    angle_min_rad=0,
    angle_max_rad=1,
    angle_increment_rad=0.1,
    range_min_m=0,
    range_max_m=9,
)
IMAGE = msgs.image('cam', 8, 8, 'mono8')
IMU = msgs.imu('imu')
TEMPLATES = {'lidar/scan': SCAN, 'camera/image_raw': IMAGE, 'imu/data_raw': IMU}
PERIODS_S = {'lidar/scan': 0.1, 'camera/image_raw': 0.033, 'imu/data_raw': 0.01}
DIAGNOSTICS = 'diagnostic_msgs/msg/DiagnosticArray'


def sync_section(**changes):
    section = {
        'inputs': {
            'lidar': {'topic': 'lidar/scan', 'type': SCAN.type_name, 'latency_s': 0.01},
            'camera': {'topic': 'camera/image_raw', 'type': IMAGE.type_name, 'latency_s': 0.01},
            'imu': {
                'topic': 'imu/data_raw',
                'type': IMU.type_name,
                'latency_s': 0.001,
                'collect': True,
            },
        },
        'reference_sensor_id': 'lidar',
        'required_sensors': ['lidar', 'camera'],
        'imu_sensor_id': 'imu',
    }
    section.update(changes)
    return section


class Robot:
    """A robot's drivers and a downstream node, beside the sync node, on one executor."""

    def __init__(self, rig, best_effort=(), **options):
        self.spinner = Spinner()
        self.sync = make_sync(rig, **options)
        self.node = rclpy.create_node('robot')
        for node in (self.sync, self.node):
            self.spinner.add(node)
        self.publishers = {
            topic: self.node.create_publisher(
                message_class(template.type_name),
                topic,
                QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
                if topic in best_effort
                else qos.sensor_out(),
            )
            for topic, template in TEMPLATES.items()
        }
        self.heard = {}
        self.sent = dict.fromkeys(TEMPLATES, 0)
        self._due = dict.fromkeys(TEMPLATES, time.monotonic())

    def listen(self, topic, type_name):
        messages = self.heard.setdefault(topic, [])
        self.node.create_subscription(
            message_class(type_name),
            topic,
            messages.append,
            qos.sensor_in(500.0, reliable=True),
            raw=True,
        )
        return messages

    def drive(self, until, timeout_s=60.0, publish=True):
        """Publish on schedule until a condition holds; the timeout only bounds a broken run."""
        end = time.monotonic() + timeout_s
        while not until():
            assert time.monotonic() < end, 'the condition did not come true'
            for topic in TEMPLATES if publish else ():
                while time.monotonic() >= self._due[topic]:
                    self._due[topic] = max(
                        self._due[topic] + PERIODS_S[topic], time.monotonic() - 1.0
                    )
                    self.publishers[topic].publish(
                        TEMPLATES[topic].fill(time.time_ns() - 5_000_000)
                    )
                    self.sent[topic] += 1
            self.spinner.turn(0.002)

    def call(self, name, kind=Trigger, request=None):
        client = self.node.create_client(kind, name)
        self.drive(client.service_is_ready)
        future = client.call_async(request or kind.Request())
        self.drive(future.done)
        return future.result()

    def set(self, **values):
        request = SetParameters.Request(
            parameters=[
                Parameter(key.replace('__', '.'), value=value).to_parameter_msg()
                for key, value in values.items()
            ]
        )
        return self.call('/sync/set_parameters', SetParameters, request).results

    def close(self):
        self.spinner.close()
        close_node(self.sync)
        self.node.destroy_node()


@pytest.fixture
def robot():
    """Return a function that makes the robot of a sync section; all are closed."""
    made = []
    with ros_context([]):

        def make(section=None, **options):
            rig = rig_from_parameters({'sync': section or sync_section()})
            made.append(Robot(rig, **options))
            return made[-1]

        yield make
        for each in made:
            each.close()


def test_bundles_come_out_under_one_stamp_and_nothing_is_lost_without_a_name(robot):
    run = robot()
    scans = run.listen('synced/lidar/scan', SCAN.type_name)
    images = run.listen('synced/camera/image_raw', IMAGE.type_name)
    bundles = run.listen('sync/bundle', DIAGNOSTICS)
    offsets = run.listen('sync/offset/camera', 'sensor_msgs/msg/TimeReference')
    collected = run.listen('synced/imu/data_raw', IMU.type_name)
    run.drive(
        lambda: min(map(len, (scans, images, bundles, offsets))) >= 10 and len(collected) > 50
    )
    stamps = [read_stamp_ns(raw) for raw in scans]
    assert stamps == sorted(set(stamps))
    assert set(stamps[:9]) <= {read_stamp_ns(raw) for raw in images}
    stamp_ns, (head, *members) = msgs.read_diagnostic_array(bundles[3])
    assert stamp_ns in stamps
    assert {status.name for status in members} == {'lidar', 'camera', 'imu'}
    assert head.values['reference'] == 'lidar'
    assert abs(time.time_ns() - stamp_ns) < 3600 * 10**9  # on the host's clock
    engine = run.sync.engine
    assert engine.ledger.imbalance(engine.buffered()) == {}
    for name, topic in (('lidar', 'lidar/scan'), ('camera', 'camera/image_raw')):
        assert 0 < engine.ledger[name].received <= run.sent[topic]


def test_a_plain_exact_synchronizer_behind_it_gets_every_bundle(robot):
    message_filters = ros_package('message_filters')
    run = robot()
    sets = []
    inputs = [
        message_filters.Subscriber(
            run.node, message_class(kind), topic, qos_profile=qos.sensor_in(100.0, reliable=True)
        )
        for topic, kind in (
            ('synced/lidar/scan', SCAN.type_name),
            ('synced/camera/image_raw', IMAGE.type_name),
        )
    ]
    exact = message_filters.TimeSynchronizer(inputs, 10)
    exact.registerCallback(lambda scan, image: sets.append((scan, image)))
    run.drive(lambda: len(sets) >= 8)
    for scan, image in sets:
        assert scan.header.stamp == image.header.stamp
        assert (scan.header.frame_id, image.header.frame_id) == ('lidar', 'cam')


def test_single_topics_come_out_at_once_with_their_right_stamps(robot):
    """The camera is stamped 5 ms before it is sent, and declares a latency of 25 ms."""
    section = sync_section(correct={'inputs': ['camera']})
    section['inputs']['camera'] |= {'latency_s': 0.025, 'latency_sigma_s': 0.0005}
    run = robot(section)
    run.drive(run.publishers['camera/image_raw'].get_subscription_count, publish=False)
    images = run.listen('corrected/camera/image_raw', IMAGE.type_name)
    given = run.listen('camera/image_raw', IMAGE.type_name)

    def moved_ms():
        return [(read_stamp_ns(a) - read_stamp_ns(b)) / 1e6 for a, b in
                zip(images, given, strict=False)]  # fmt: skip

    run.drive(lambda: len(images) >= 60 and moved_ms()[-1] != 0.0)
    assert -40.0 < moved_ms()[-1] < -19.0
    stamps = [read_stamp_ns(raw) for raw in images]
    settled = stamps[-20:]
    assert settled == sorted(settled)


def test_nothing_is_published_for_nobody(robot):
    run = robot()
    run.drive(lambda: run.sync.engine.status().bundles >= 5)
    assert not any(run.sync.published.values())


def test_a_best_effort_publisher_is_heard_too(robot):
    run = robot(best_effort=['imu/data_raw'])
    diagnostics = run.listen('/diagnostics', DIAGNOSTICS)
    ledger = run.sync.engine.ledger
    run.drive(lambda: ledger['imu'].received > 20 and ledger['lidar'].received > 3)

    def told():
        return any(
            status.name == 'sync: reliability' and 'imu' in status.message
            for raw in diagnostics
            for status in msgs.read_diagnostic_array(raw)[1]
        )

    run.drive(told)


def test_a_mismatch_that_cannot_be_helped_is_in_the_diagnostics(robot):
    rig = sync_section()
    run = robot(
        rig,
        best_effort=['imu/data_raw'],
        parameter_overrides=[Parameter('reliability', value='reliable')],
    )
    diagnostics = run.listen('/diagnostics', DIAGNOSTICS)

    def told():
        return any(
            status.level == msgs.Level.ERROR and 'imu/data_raw' in status.values
            for raw in diagnostics
            for status in msgs.read_diagnostic_array(raw)[1]
        )

    run.drive(told)
    assert run.sync.engine.ledger['imu'].received == 0


def test_the_diagnostics_say_how_every_input_does(robot):
    run = robot()
    diagnostics = run.listen('/diagnostics', DIAGNOSTICS)
    found = {}

    def complete():
        for raw in diagnostics:
            found.update({status.name: status for status in msgs.read_diagnostic_array(raw)[1]})
        return int(found['sync: engine'].values['bundles'] if 'sync: engine' in found else 0) > 3

    run.drive(complete)
    assert {'sync: engine', 'sync: lidar', 'sync: camera', 'sync: imu'} <= set(found)
    for key in ('state', 'latency p50 (ms)', 'latency p99 (ms)', 'bytes held', 'window (ms)'):
        assert key in found['sync: engine'].values
    camera = found['sync: camera']
    assert camera.hardware_id == 'camera/image_raw'
    for key in (
        'rate (Hz)',
        'offset to reference (ms)',
        'sigma to reference (ms)',
        'rests on',
        'received',
        'unmatched',
        'late',
        'duplicate',
    ):
        assert key in camera.values
    assert found['sync: engine'].values['time'] == 'host'


def test_silence_is_told(robot):
    run = robot()
    diagnostics = run.listen('/diagnostics', DIAGNOSTICS)
    run.drive(
        lambda: any(
            status.level == msgs.Level.ERROR and 'no data from' in status.message
            for raw in diagnostics
            for status in msgs.read_diagnostic_array(raw)[1]
        ),
        publish=False,
    )


def silences(diagnostics):
    """Return what was said of inputs without data, and forget it."""
    heard = [status for raw in diagnostics for status in msgs.read_diagnostic_array(raw)[1]]
    diagnostics.clear()
    return [status.message for status in heard if 'no data from' in status.message]


@pytest.mark.parametrize('back_s', [3600, -3600])
def test_a_host_clock_that_is_set_makes_no_silence_and_hides_none(robot, monkeypatch, back_s):
    run = robot()
    diagnostics = run.listen('/diagnostics', DIAGNOSTICS)
    run.drive(lambda: run.sync.engine.status().bundles > 3)
    diagnostics.clear()
    host = SimpleNamespace(**vars(time))
    host.time_ns = lambda: time.time_ns() - back_s * 10**9
    monkeypatch.setattr('sync_engine.nodes.sync.time', host)
    bundles = run.sync.engine.status().bundles
    run.drive(lambda: run.sync.engine.status().bundles > bundles + 3)
    run.drive(lambda: len(diagnostics) > 2)
    assert not silences(diagnostics)
    run.drive(lambda: silences(diagnostics), publish=False)


def test_two_robots_in_namespaces_keep_their_diagnostics_apart(robot):
    rigs = [robot(namespace=name) for name in ('robot1', 'robot2')]
    run = robot()
    found = {}

    def listen():
        for raw in diagnostics:
            found.update({status.name: status for status in msgs.read_diagnostic_array(raw)[1]})
        wanted = {f'{space}sync: engine' for space in ('', 'robot1/', 'robot2/')}
        for each in rigs:
            each.spinner.turn(0.001)
        return wanted <= set(found)

    diagnostics = run.listen('/diagnostics', DIAGNOSTICS)
    run.drive(listen)
    assert found['robot1/sync: engine'].hardware_id == 'robot1/sync'
    assert found['robot2/sync: camera'].hardware_id == 'robot2/camera/image_raw'
    assert int(found['robot1/sync: engine'].values['bundles']) == 0


def test_settings_change_while_running_and_nonsense_is_refused(robot):
    run = robot()
    engine = run.sync.engine
    results = run.set(
        sync__window__min_ms=5.0,
        sync__inputs__camera__deadline_s=0.3,
        sync__missing_strategy='empty',
    )
    assert all(result.successful for result in results), results
    assert engine.config.window.min_ms == 5.0
    assert engine.config.inputs['camera'].deadline_s == 0.3
    assert engine.config.missing_strategy == 'empty'
    refused = run.set(sync__window__min_ms=500.0)[0]
    assert not refused.successful
    assert 'min_ms' in refused.reason
    assert engine.config.window.min_ms == 5.0
    refused = run.set(sync__missing_strategy='guess')[0]
    assert not refused.successful
    refused = run.set(sync__reference_sensor_id='camera')[0]
    assert not refused.successful


def test_reset_and_learned_offsets(robot, tmp_path):
    file = tmp_path / 'learned' / 'offsets.json'
    run = robot()
    answer = run.call('/sync/save_offsets')
    assert not answer.success
    assert 'offsets_file' in answer.message
    run.set(offsets_file=str(file))
    run.drive(lambda: run.sync.engine.status().bundles >= 3)
    answer = run.call('/sync/save_offsets')
    assert answer.success, answer.message
    assert set(json.loads(file.read_text())['clocks']) == {'lidar', 'camera', 'imu'}
    epoch = run.sync.engine.epochs.number
    assert run.call('/sync/reset').success
    assert run.sync.engine.epochs.number == epoch + 1
    answer = run.call('/sync/load_offsets')
    assert answer.success
    assert 'camera' in answer.message
    file.write_text('nonsense')
    assert not run.call('/sync/load_offsets').success


def test_a_type_without_header_is_an_input(robot):
    section = sync_section()
    section['inputs']['contact'] = {
        'topic': 'contact',
        'type': 'std_msgs/msg/Bool',
        'stamp_source': 'host',
    }
    run = robot(section)
    contact = run.node.create_publisher(message_class('std_msgs/msg/Bool'), 'contact', 10)
    out = run.listen('synced/contact', 'std_msgs/msg/Bool')

    def enough():
        contact.publish(msgs.bool_message(True))
        return len(out) >= 5

    run.drive(enough)
    assert set(out) == {msgs.bool_message(True)}


def test_a_clock_that_goes_back_begins_a_new_epoch(robot):
    """A bag played in a loop with --clock, no world around."""
    run = robot(parameter_overrides=[Parameter('use_sim_time', value=True)])
    clock = run.node.create_publisher(
        message_class('rosgraph_msgs/msg/Clock'), '/clock', qos.sensor_out()
    )
    template = msgs.clock()
    played = {'ns': 10 * 10**9}

    def play(until):
        def step():
            played['ns'] += 10_000_000
            clock.publish(template.fill(played['ns']))
            for topic, each in TEMPLATES.items():
                if topic != 'lidar/scan' or played['ns'] % 100_000_000 == 0:
                    run.publishers[topic].publish(each.fill(played['ns'] - 5_000_000))
            return until()

        run.drive(step, publish=False)

    engine = run.sync.engine
    play(lambda: engine.status().bundles >= 3)
    epoch = engine.epochs.number
    assert 9 * 10**9 < engine.now_ns < 1000 * 10**9
    played['ns'] = 5 * 10**9
    play(lambda: engine.epochs.number > epoch)
    bundles = engine.status().bundles
    play(lambda: engine.status().bundles > bundles)


@pytest.mark.parametrize(
    ('change', 'sentence'),
    [
        ({'type': 'no_such_msgs/msg/Thing'}, 'no_such_msgs is not installed'),
        ({'type': 'sensor_msgs/msg/Imx'}, 'has no message Imx'),
        ({'type': 'Imu'}, 'package/msg/Name'),
    ],
)
def test_a_wrong_type_is_one_sentence(change, sentence):
    section = sync_section()
    section['inputs']['camera'] = {**section['inputs']['camera'], **change}
    with ros_context([]), pytest.raises(RigError, match=sentence):
        make_sync(rig_from_parameters({'sync': section}))


RIG = """/**:
  ros__parameters:
    offsets_file: "{offsets}"
    sync:
      inputs:
        lidar: {{topic: lidar/scan, type: sensor_msgs/msg/LaserScan}}
        imu: {{topic: imu/data_raw, type: sensor_msgs/msg/Imu, collect: true}}
      reference_sensor_id: lidar
      imu_sensor_id: imu
"""


def test_the_process_ends_cleanly_and_saves_what_it_learned(processes, wait_until, tmp_path):
    offsets = tmp_path / 'offsets.json'
    rig = tmp_path / 'rig.yaml'
    rig.write_text(RIG.replace('    offsets_file: "{offsets}"\n', '').format())
    node = processes.start(
        sys.executable,
        '-m',
        'sensor_rig.nodes.sync',
        '--rig',
        str(rig),
        '--ros-args',
        '-p',
        f'offsets_file:={offsets}',
    )
    node.wait_for_output('starting without saved offsets')
    node.interrupt()
    assert node.wait() == 0
    assert json.loads(offsets.read_text())['version'] == 1
    assert 'Traceback' not in node.output


def test_the_executable_has_help_and_refuses_unknown_options(processes):
    asked = processes.start(sys.executable, '-m', 'sensor_rig.nodes.sync', '--help')
    assert asked.wait() == 0
    assert '--rig FILE' in asked.output
    wrong = processes.start(sys.executable, '-m', 'sensor_rig.nodes.sync', '--rigg', 'demo')
    assert wrong.wait() == 2
    assert '--rigg' in wrong.output
    assert 'Traceback' not in wrong.output


def test_an_input_is_as_reliable_as_its_publishers_and_follows_them(robot):
    """A driver that is best effort is never asked for more, which it would log as an error."""
    run = robot(best_effort=['imu/data_raw'])

    def reliability(topic):
        infos = run.node.get_subscriptions_info_by_topic('/' + topic)
        return [info.qos_profile.reliability for info in infos]

    run.drive(lambda: reliability('imu/data_raw') and reliability('lidar/scan'))
    assert reliability('imu/data_raw') == [ReliabilityPolicy.BEST_EFFORT]
    assert reliability('lidar/scan') == [ReliabilityPolicy.RELIABLE]
    run.node.destroy_publisher(run.publishers['imu/data_raw'])
    run.publishers['imu/data_raw'] = run.node.create_publisher(
        message_class(IMU.type_name), 'imu/data_raw', qos.sensor_out()
    )
    run.drive(lambda: reliability('imu/data_raw') == [ReliabilityPolicy.RELIABLE])


def test_the_process_says_what_is_wrong_and_exits_with_2(processes, tmp_path):
    rig = tmp_path / 'rig.yaml'
    rig.write_text(
        RIG.format(offsets='')
        .replace('imu_sensor_id: imu', 'imu_sensor_id: imx')
        .replace('    offsets_file: ""\n', '')
    )
    node = processes.start(sys.executable, '-m', 'sensor_rig.nodes.sync', '--rig', str(rig))
    assert node.wait() == 2
    assert 'imx' in node.output
    assert 'Traceback' not in node.output


WITHOUT_SIMULATOR = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('mujoco', 'sim_sensors'):
            raise ModuleNotFoundError(f'blocked by the test: {name}', name=name)

sys.meta_path.insert(0, Blocker())
from sensor_rig.nodes import start
sys.exit(start('sync'))
"""


def test_a_rig_with_sync_alone_runs_without_a_simulator(processes, tmp_path):
    rig = tmp_path / 'rig.yaml'
    rig.write_text(RIG.replace('    offsets_file: "{offsets}"\n', '').format())
    node = processes.start(
        sys.executable,
        '-c',
        WITHOUT_SIMULATOR,
        '--rig',
        str(rig),
        '--ros-args',
        '-p',
        f'offsets_file:={tmp_path / "none.json"}',
    )
    node.wait_for_output('starting without saved offsets')
    node.interrupt()
    assert node.wait() == 0, node.output
