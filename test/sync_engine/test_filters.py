"""AdaptiveTimeSynchronizer keeps message_filters' contract, with and without the package."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from rig_common.errors import RigError
from sync_engine.filters import AdaptiveTimeSynchronizer

sensor_msgs = pytest.importorskip('sensor_msgs.msg', reason='sensor_msgs is not installed')
pytestmark = pytest.mark.ros

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def message_filters():
    return pytest.importorskip('message_filters', reason='message_filters is not installed '
                                                         '(it comes with a ROS installation)')


class Source:
    """The least that is a filter: what message_filters.SimpleFilter is."""

    def __init__(self):
        self.callbacks = []

    def registerCallback(self, cb, *args):  # noqa: N802
        self.callbacks.append((cb, args))
        return len(self.callbacks) - 1

    def signalMessage(self, *messages):  # noqa: N802
        for cb, args in self.callbacks:
            cb(*messages, *args)


class HostTime:
    """Arrival times for a synchronizer: set by the test."""

    def __init__(self):
        self.now_ns = START_NS

    def __call__(self):
        return self.now_ns


def imu(stamp_ns, rate=0.0):
    message = sensor_msgs.Imu()
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp_ns, 10**9)
    message.angular_velocity.x = float(rate)
    message.orientation_covariance[0] = -1.0
    return message


def stamp_ns(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


def play(sources, host, events):
    """Hand over (time, source index, message) in the order of time."""
    for time_ns, index, message in sorted(events, key=lambda event: event[:2]):
        host.now_ns = time_ns + 2 * MS
        sources[index].signalMessage(message)


def two_streams(count=20, late_ns=4 * MS, start_ns=START_NS):
    """A 10 Hz stream and a 30 Hz stream that is `late_ns` off every third time."""
    slow = [(start_ns + k * 100 * MS, 0, imu(start_ns + k * 100 * MS)) for k in range(count)]
    fast = [(start_ns + k * 33 * MS + late_ns, 1, imu(start_ns + k * 33 * MS + late_ns))
            for k in range(3 * count)]
    return slow + fast


def test_the_arguments_of_approximate_time_synchronizer_work():
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host)
    synchronizer.registerCallback(lambda *args: sets.append(args), 'mine')
    play(sources, host, two_streams())
    assert len(sets) >= 18
    for slow, fast, extra in sets:
        assert extra == 'mine'
        assert abs(stamp_ns(slow) - stamp_ns(fast)) <= 17 * MS
    assert synchronizer.engine.ledger.imbalance(synchronizer.engine.buffered()) == {}


def test_the_best_partner_is_taken_not_the_first():
    """The case of the tracker: 45 ms away where 0 ms was there."""
    sources, host, sets = [Source(), Source()], HostTime(), []
    AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host).registerCallback(
        lambda a, b: sets.append(stamp_ns(b) - stamp_ns(a)))
    events = [(START_NS + 55 * MS, 1, imu(START_NS + 55 * MS)),
              (START_NS + 100 * MS, 0, imu(START_NS + 100 * MS)),
              (START_NS + 101 * MS, 1, imu(START_NS + 100 * MS)),
              (START_NS + 140 * MS, 1, imu(START_NS + 140 * MS))]
    play(sources, host, events)
    assert sets == [0]


def test_it_does_what_the_original_does_on_clean_streams(message_filters):
    found = {}
    for kind in (AdaptiveTimeSynchronizer, message_filters.ApproximateTimeSynchronizer):
        sources, sets = [message_filters.SimpleFilter() for _ in range(2)], []
        synchronizer = kind(sources, 10, 0.02)
        synchronizer.registerCallback(
            lambda a, b, sets=sets: sets.append((stamp_ns(a), stamp_ns(b))))
        for k in range(30):
            for index in (0, 1):
                sources[index].signalMessage(imu(START_NS + k * 100 * MS + index * 3 * MS))
        found[kind] = sets
    ours, theirs = found.values()
    assert len(theirs) == 30
    assert ours == theirs[:len(ours)]
    assert len(ours) >= 29  # the last one waits for what may still come nearer


def test_caches_and_other_filters_are_inputs(message_filters):
    sources, host, sets = [message_filters.SimpleFilter() for _ in range(2)], HostTime(), []
    caches = [message_filters.Cache(source, 10) for source in sources]
    synchronizer = AdaptiveTimeSynchronizer(caches, 10, 0.05, now_ns=host)
    behind = message_filters.Cache(synchronizer_first(synchronizer, message_filters), 5)
    synchronizer.registerCallback(lambda a, b: sets.append((a, b)))
    play(sources, host, two_streams())
    assert len(sets) >= 18
    assert behind.getLast() is sets[-1][0]
    assert caches[0].getLast() is not None


def synchronizer_first(synchronizer, message_filters):
    """A filter that passes on the first message of every set."""
    first = message_filters.SimpleFilter()
    synchronizer.registerCallback(lambda a, b: first.signalMessage(a))
    return first


def test_it_can_be_an_input_itself():
    sources, host, sets = [Source() for _ in range(3)], HostTime(), []
    inner = AdaptiveTimeSynchronizer(sources[:2], 10, 0.05, now_ns=host)
    outer = AdaptiveTimeSynchronizer([inner, sources[2]], 10, 0.05, now_ns=host)
    outer.registerCallback(lambda *messages: sets.append([stamp_ns(m) for m in messages]))
    events = two_streams() + [(START_NS + k * 50 * MS, 2, imu(START_NS + k * 50 * MS))
                              for k in range(40)]
    play(sources, host, events)
    assert len(sets) >= 17
    assert {len(messages) for messages in sets} == {3}
    assert all(max(stamps) - min(stamps) < 50 * MS for stamps in sets)


def test_a_callback_that_raises_does_not_stop_the_others(caplog):
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host)

    def broken(*messages):
        raise RuntimeError('mine')

    synchronizer.registerCallback(broken)
    synchronizer.registerCallback(lambda *messages: sets.append(messages))
    play(sources, host, two_streams(5))
    assert len(sets) >= 4
    assert 'a callback of the synchronizer raised' in caplog.text


def test_callbacks_run_outside_the_lock():
    sources, host, seen = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host)

    def feeds_it_again(a, b):
        seen.append(stamp_ns(a))
        if len(seen) == 1:
            assert not synchronizer._lock.locked()
            sources[1].signalMessage(imu(stamp_ns(b) + 1 * MS))

    synchronizer.registerCallback(feeds_it_again)
    play(sources, host, two_streams(5))
    assert len(seen) >= 4


def test_sets_stay_in_order_with_many_threads():
    sources, sets = [Source(), Source()], []
    synchronizer = AdaptiveTimeSynchronizer(sources, 200, 0.05)
    synchronizer.registerCallback(lambda a, b: sets.append(stamp_ns(a)))

    def feed(index):
        for k in range(200):
            sources[index].signalMessage(imu(START_NS + k * 100 * MS))

    threads = [threading.Thread(target=feed, args=(index,)) for index in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(sets) >= 190
    assert sets == sorted(set(sets))


def test_a_looped_bag_gives_its_sets_in_every_loop():
    sources, host, sets = [Source(), Source()], HostTime(), []
    AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host).registerCallback(
        lambda a, b: sets.append(stamp_ns(a)))
    for loop in range(3):
        events = two_streams(30)
        for time_ns, index, message in sorted(events, key=lambda event: event[:2]):
            host.now_ns = time_ns + loop * 3_100 * MS
            sources[index].signalMessage(message)
        assert len(sets) >= (loop + 1) * 26


def test_headerless_messages_are_told_or_go_by_arrival(caplog):
    std_msgs = pytest.importorskip('std_msgs.msg', reason='std_msgs is not installed')
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host)
    sources[1].signalMessage(std_msgs.Bool())
    assert 'allow_headerless' in caplog.text
    assert synchronizer.engine.ledger['input_1'].invalid == 1
    allowed = AdaptiveTimeSynchronizer(sources, 10, 0.05, True, now_ns=host)
    allowed.registerCallback(lambda a, b: sets.append(b))
    events = [(START_NS + k * 50 * MS, 1, std_msgs.Bool()) for k in range(20)]
    events += [(START_NS + k * 100 * MS, 0, imu(START_NS + k * 100 * MS)) for k in range(10)]
    play(sources, host, events)
    assert len(sets) >= 8


CONFIG = {
    'inputs': {'slow': {}, 'fast': {}}, 'reference_sensor_id': 'slow', 'estimator': 'none',
    'required_sensors': ['slow'],
}


def test_a_configuration_gives_partial_sets():
    sources, host, sets = [Source(), Source()], HostTime(), []
    AdaptiveTimeSynchronizer(sources, {**CONFIG, 'missing_strategy': 'empty'},
                             now_ns=host).registerCallback(lambda a, b: sets.append(b))
    events = [event for event in two_streams(20)
              if event[1] == 0 or event[0] < START_NS + 1_000 * MS]
    play(sources, host, events)
    assert sets[:5].count(None) == 0
    assert sets[-3:] == [None, None, None]


def test_a_configuration_interpolates_decoded_messages():
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(
        sources, {**CONFIG, 'window': {'min_ms': 1.0, 'max_ms': 1.0},
                  'missing_strategy': 'interpolate'}, now_ns=host)
    synchronizer.registerCallback(lambda a, b: sets.append((a, b)))
    events = [(START_NS + k * 100 * MS, 0, imu(START_NS + k * 100 * MS)) for k in range(10)]
    events += [(START_NS + 10 * MS + k * 20 * MS, 1,
                imu(START_NS + 10 * MS + k * 20 * MS, rate=k)) for k in range(50)]
    play(sources, host, events)
    made = [(stamp_ns(a), b.angular_velocity.x) for a, b in sets if b is not None]
    assert len(made) >= 5
    for time_ns, rate in made:
        assert rate == pytest.approx((time_ns - START_NS - 10 * MS) / (20 * MS))


def test_mistakes_are_one_sentence():
    with pytest.raises(RigError, match='2 filters were given for the 3 inputs'):
        AdaptiveTimeSynchronizer([Source(), Source()], {
            **CONFIG, 'inputs': {'slow': {}, 'fast': {}, 'third': {}}})
    with pytest.raises(RigError, match='input 1 is a int'):
        AdaptiveTimeSynchronizer([Source(), 5], 10, 0.1)
    with pytest.raises(RigError, match='reference is 2'):
        AdaptiveTimeSynchronizer([Source(), Source()], 10, 0.1, reference=2)


def test_plain_subscriptions_are_inputs():
    rclpy = pytest.importorskip('rclpy', reason='rclpy is not installed')
    from rig_common.ros.executor import ros_context
    with ros_context([]):
        node = rclpy.create_node('filters')
        own, sets, host = [], [], HostTime()
        subscriptions = [node.create_subscription(sensor_msgs.Imu, f'imu_{k}', own.append, 10)
                         for k in range(2)]
        synchronizer = AdaptiveTimeSynchronizer(subscriptions, 10, 0.05, node=node, now_ns=host)
        synchronizer.registerCallback(lambda a, b: sets.append((a, b)))
        for time_ns, index, message in sorted(two_streams(5), key=lambda event: event[:2]):
            host.now_ns = time_ns
            subscriptions[index].callback(message)
        node.destroy_node()
    assert len(own) == 20
    assert len(sets) >= 4


def test_the_import_needs_neither_ros_nor_message_filters():
    code = ('import sys\n'
            'for name in ("rclpy", "message_filters", "sensor_msgs"): sys.modules[name] = None\n'
            'from sync_engine.filters import AdaptiveTimeSynchronizer\n'
            'print("loaded")\n')
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout == 'loaded\n'
