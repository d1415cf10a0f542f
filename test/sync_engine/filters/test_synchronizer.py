"""AdaptiveTimeSynchronizer keeps message_filters' contract, with and without the package."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from contextlib import nullcontext
from unittest.mock import Mock

import pytest
from support.installed import ros_package

from rig_common.errors import RigError
from sync_engine.filters import AdaptiveTimeSynchronizer

sensor_msgs = pytest.importorskip('sensor_msgs.msg', reason='sensor_msgs is not installed')
pytestmark = pytest.mark.ros

MS = 1_000_000
START_NS = 1_700_000_000_000_000_000


@pytest.fixture
def message_filters():
    return ros_package('message_filters')


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
    fast = [
        (start_ns + k * 33 * MS + late_ns, 1, imu(start_ns + k * 33 * MS + late_ns))
        for k in range(3 * count)
    ]
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
        lambda a, b: sets.append(stamp_ns(b) - stamp_ns(a))
    )
    events = [
        (START_NS + 55 * MS, 1, imu(START_NS + 55 * MS)),
        (START_NS + 100 * MS, 0, imu(START_NS + 100 * MS)),
        (START_NS + 101 * MS, 1, imu(START_NS + 100 * MS)),
        (START_NS + 140 * MS, 1, imu(START_NS + 140 * MS)),
    ]
    play(sources, host, events)
    assert sets == [0]


def test_it_does_what_the_original_does_on_clean_streams(message_filters):
    found = {}
    for kind in (AdaptiveTimeSynchronizer, message_filters.ApproximateTimeSynchronizer):
        sources, sets = [message_filters.SimpleFilter() for _ in range(2)], []
        synchronizer = kind(sources, 10, 0.02)
        synchronizer.registerCallback(
            lambda a, b, sets=sets: sets.append((stamp_ns(a), stamp_ns(b)))
        )
        for k in range(30):
            for index in (0, 1):
                sources[index].signalMessage(imu(START_NS + k * 100 * MS + index * 3 * MS))
        found[kind] = sets
    ours, theirs = found.values()
    assert len(theirs) == 30
    assert ours == theirs[: len(ours)]
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


@pytest.mark.parametrize('original', [False, True])
def test_a_synchronizer_can_be_an_input(original, request):
    sources, host, sets = [Source() for _ in range(3)], HostTime(), []
    if original:
        kind = request.getfixturevalue('message_filters').ApproximateTimeSynchronizer
        inner = kind(sources[:2], 10, 0.05)
    else:
        inner = AdaptiveTimeSynchronizer(sources[:2], 10, 0.05, now_ns=host)
    outer = AdaptiveTimeSynchronizer([inner, sources[2]], 10, 0.05, now_ns=host)
    outer.registerCallback(lambda *messages: sets.append([stamp_ns(m) for m in messages]))
    events = two_streams() + [
        (START_NS + k * 50 * MS, 2, imu(START_NS + k * 50 * MS)) for k in range(40)
    ]
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
        lambda a, b: sets.append(stamp_ns(a))
    )
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
    'inputs': {'slow': {}, 'fast': {}},
    'reference_sensor_id': 'slow',
    'estimator': 'none',
    'required_sensors': ['slow'],
}


def test_a_configuration_gives_partial_sets():
    sources, host, sets = [Source(), Source()], HostTime(), []
    AdaptiveTimeSynchronizer(
        sources, {**CONFIG, 'missing_strategy': 'empty'}, now_ns=host
    ).registerCallback(lambda a, b: sets.append(b))
    events = [
        event for event in two_streams(20) if event[1] == 0 or event[0] < START_NS + 1_000 * MS
    ]
    play(sources, host, events)
    assert sets[:5].count(None) == 0
    assert sets[-3:] == [None, None, None]


def test_a_configuration_interpolates_decoded_messages():
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(
        sources,
        {**CONFIG, 'window': {'min_ms': 1.0, 'max_ms': 1.0}, 'missing_strategy': 'interpolate'},
        now_ns=host,
    )
    synchronizer.registerCallback(lambda a, b: sets.append((a, b)))
    events = [(START_NS + k * 100 * MS, 0, imu(START_NS + k * 100 * MS)) for k in range(10)]
    events += [
        (START_NS + 10 * MS + k * 20 * MS, 1, imu(START_NS + 10 * MS + k * 20 * MS, rate=k))
        for k in range(50)
    ]
    play(sources, host, events)
    made = [(stamp_ns(a), b.angular_velocity.x) for a, b in sets if b is not None]
    assert len(made) >= 5
    for time_ns, rate in made:
        assert rate == pytest.approx((time_ns - START_NS - 10 * MS) / (20 * MS))


def test_the_signatures_of_every_distribution_are_taken():
    sources = [Source(), Source()]
    humble = AdaptiveTimeSynchronizer(sources, 10, 0.05, True)
    assert (humble.allow_headerless, humble.queue_offset) == (True, [])
    humble = AdaptiveTimeSynchronizer(sources, 10, 0.05, allow_headerless=True)
    assert humble.allow_headerless
    kilted = AdaptiveTimeSynchronizer(sources, 10, 0.05, [0, 5 * MS], False, True)
    assert (kilted.allow_headerless, kilted.sync_arrival_time) == (False, True)
    assert kilted.queue_offset == [0, 5 * MS]
    assert AdaptiveTimeSynchronizer(sources, 10, 0.05, None).queue_offset == []
    assert AdaptiveTimeSynchronizer(sources, 10, 0.05, False, True).allow_headerless
    rolling = AdaptiveTimeSynchronizer(sources, 10, 0.05, False, False, False, stamp_ns)
    assert rolling.time_getter is stamp_ns


def test_queue_offsets_shift_the_stamps():
    """An input that is stamped 100 ms ahead, as message_filters means it: its stamp minus it."""
    sources, host, sets = [Source(), Source()], HostTime(), []
    AdaptiveTimeSynchronizer(sources, 10, 0.01, [0, 100 * MS], now_ns=host).registerCallback(
        lambda a, b: sets.append(stamp_ns(b) - stamp_ns(a))
    )
    play(
        sources,
        host,
        [
            (START_NS + k * 50 * MS, index, imu(START_NS + k * 50 * MS + ahead))
            for k in range(20)
            for index, ahead in enumerate((0, 100 * MS))
        ],
    )
    assert len(sets) == 20
    assert set(sets) == {100 * MS}


def test_messages_can_go_by_their_arrival():
    sources, host, sets = [Source(), Source()], HostTime(), []
    AdaptiveTimeSynchronizer(
        sources, 10, 0.01, sync_arrival_time=True, now_ns=host
    ).registerCallback(lambda a, b: sets.append((a, b)))
    play(
        sources,
        host,
        [
            (START_NS + k * 50 * MS + index * MS, index, imu(1 + k + 10**9 * index))
            for k in range(20)
            for index in range(2)
        ],
    )
    assert len(sets) >= 19
    assert all(stamp_ns(b) - stamp_ns(a) == 10**9 for a, b in sets)


def test_a_getter_of_the_users_gives_the_stamp():
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(
        sources, 10, 0.01, time_getter=lambda message: message.get('t'), now_ns=host
    )
    synchronizer.registerCallback(lambda a, b: sets.append((a['t'], b['t'])))
    for k in range(20):
        for source in sources:
            source.signalMessage({'t': k * 10**9})
    sources[0].signalMessage({'other': 1})
    assert len(sets) >= 19
    assert all(a == b for a, b in sets)
    assert synchronizer.engine.ledger['input_0'].invalid == 1


def test_the_attributes_of_the_original_are_there():
    sources, host = [Source(), Source()], HostTime()
    synchronizer = AdaptiveTimeSynchronizer(sources, 7, 0.05, now_ns=host)
    assert synchronizer.queue_size == 7
    assert synchronizer.slop.nanoseconds == 50 * MS
    message = imu(START_NS)
    sources[1].signalMessage(message)
    assert synchronizer.queues == [{}, {START_NS: message}]
    synchronizer.slop, synchronizer.queue_size = 0.2, 9
    assert (synchronizer.slop.nanoseconds, synchronizer.queue_size) == (200 * MS, 9)
    configured = AdaptiveTimeSynchronizer(sources, CONFIG, now_ns=host)
    assert configured.slop.nanoseconds == 100 * MS
    sources[1].signalMessage(message)
    assert configured.queues == [{}, {START_NS: message}]
    with pytest.raises(RigError, match='slop cannot be set'):
        configured.slop = 0.1


def test_a_callback_can_be_taken_back():
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(sources, 10, 0.05, now_ns=host)
    first = synchronizer.registerCallback(lambda *messages: sets.append(1))
    synchronizer.unregisterCallback(first)
    assert synchronizer.registerCallback(lambda *messages: sets.append(2)) != first
    play(sources, host, two_streams(5))
    assert set(sets) == {2}


@pytest.mark.parametrize('given', [(10, 0.05), (CONFIG,)])
def test_a_flush_gives_what_waits(given):
    sources, host, sets = [Source(), Source()], HostTime(), []
    synchronizer = AdaptiveTimeSynchronizer(sources, *given, now_ns=host)
    synchronizer.registerCallback(lambda a, b: sets.append(stamp_ns(b) - stamp_ns(a)))
    play(
        sources,
        host,
        [(START_NS, 1, imu(START_NS)), (START_NS + 3 * MS, 0, imu(START_NS + 3 * MS))],
    )
    assert sets == []
    synchronizer.flush()
    assert sets == [-3 * MS]


def test_it_is_one_of_their_filters_and_feeds_them(message_filters):
    """One input makes sets of one message, which is what a Cache takes."""
    sources, host, sets = [message_filters.SimpleFilter() for _ in range(2)], HostTime(), []
    single = [AdaptiveTimeSynchronizer([source], 10, 0.05, now_ns=host) for source in sources]
    assert all(isinstance(each, message_filters.SimpleFilter) for each in single)
    cache = message_filters.Cache(single[0], 30)
    exact = message_filters.TimeSynchronizer(single, 10)
    exact.registerCallback(lambda a, b: sets.append((a, b)))
    play(
        sources,
        host,
        [
            (START_NS + k * 50 * MS, index, imu(START_NS + k * 50 * MS))
            for k in range(20)
            for index in range(2)
        ],
    )
    assert len(cache.cache_msgs) >= 19
    assert len(sets) >= 19


def test_sets_of_several_messages_do_not_fit_their_filters(message_filters, caplog):
    """Theirs take one message at a time, from the original as from this class; docs say so."""
    for kind in (AdaptiveTimeSynchronizer, message_filters.ApproximateTimeSynchronizer):
        synchronizer = kind([Source(), Source()], 10, 0.05)
        cache = message_filters.Cache(synchronizer, 30)
        with pytest.raises(TypeError) if kind is not AdaptiveTimeSynchronizer else nullcontext():
            synchronizer.signalMessage(imu(START_NS), imu(START_NS))
        assert not cache.cache_msgs
    assert 'TypeError' in caplog.text


@pytest.mark.parametrize('share', [0.02, 0.1, 0.3])
def test_out_of_order_it_finds_every_set_that_the_original_finds(message_filters, share):
    rng = random.Random(3)
    events = [
        (
            START_NS + k * 20 * MS + 25 * MS * (rng.random() < share),
            index,
            imu(START_NS + k * 20 * MS + index * MS),
        )
        for k in range(300)
        for index in (0, 1)
    ]
    found = {}
    for kind in (AdaptiveTimeSynchronizer, message_filters.ApproximateTimeSynchronizer):
        sources, sets = [message_filters.SimpleFilter() for _ in range(2)], {}
        synchronizer = kind(sources, 10, 0.005)
        synchronizer.registerCallback(
            lambda a, b, sets=sets: sets.update({stamp_ns(a): abs(stamp_ns(b) - stamp_ns(a))})
        )
        play(sources, HostTime(), events)
        if kind is AdaptiveTimeSynchronizer:
            synchronizer.flush()
        found[kind] = sets
    ours, theirs = found.values()
    assert ours.keys() >= theirs.keys()
    assert all(ours[stamp] <= away for stamp, away in theirs.items())
    assert list(ours) == sorted(ours)


def test_mistakes_are_one_sentence():
    with pytest.raises(RigError, match='queue_offset has 1 values'):
        AdaptiveTimeSynchronizer([Source(), Source()], 10, 0.1, [5])
    with pytest.raises(RigError, match='2 filters were given for the 3 inputs'):
        AdaptiveTimeSynchronizer(
            [Source(), Source()], {**CONFIG, 'inputs': {'slow': {}, 'fast': {}, 'third': {}}}
        )
    with pytest.raises(RigError, match='input 1 is a int'):
        AdaptiveTimeSynchronizer([Source(), 5], 10, 0.1)
    with pytest.raises(RigError, match=r"queue_offset is 'ab'; it should be a list of ns"):
        AdaptiveTimeSynchronizer([Source(), Source()], 10, 0.1, 'ab')
    with pytest.raises(RigError, match=r'queue_size is 10\.0; it should be a whole number'):
        AdaptiveTimeSynchronizer([Source(), Source()], 10.0, 0.1)
    with pytest.raises(RigError, match='reference is 2'):
        AdaptiveTimeSynchronizer([Source(), Source()], 10, 0.1, reference=2)


def test_what_it_has_to_say_goes_to_the_logger_of_its_node(caplog):
    """Which reaches /rosout; Python's own does not."""
    node = Mock(spec=['get_logger', 'get_clock', 'create_timer'])
    synchronizer = AdaptiveTimeSynchronizer(
        [Source(), Source()], 10, 0.05, node=node, now_ns=HostTime()
    )
    synchronizer.add(object(), None, 1)
    synchronizer.registerCallback(lambda message: 1 / 0)
    synchronizer.signalMessage(object())
    logger = node.get_logger.return_value
    assert 'without a header came on input input_1' in logger.warning.call_args.args[0]
    assert 'ZeroDivisionError' in logger.error.call_args.args[0]
    assert not caplog.text


def test_plain_subscriptions_are_inputs():
    rclpy = pytest.importorskip('rclpy', reason='rclpy is not installed')
    from rig_common.ros.executor import ros_context

    with ros_context([]):
        node = rclpy.create_node('filters')
        own, sets, host = [], [], HostTime()
        subscriptions = [
            node.create_subscription(sensor_msgs.Imu, f'imu_{k}', own.append, 10) for k in range(2)
        ]
        synchronizer = AdaptiveTimeSynchronizer(subscriptions, 10, 0.05, node=node, now_ns=host)
        synchronizer.registerCallback(lambda a, b: sets.append((a, b)))
        for time_ns, index, message in sorted(two_streams(5), key=lambda event: event[:2]):
            host.now_ns = time_ns
            subscriptions[index].callback(message)
        node.destroy_node()
    assert len(own) == 20
    assert len(sets) >= 4


def test_the_import_needs_neither_ros_nor_message_filters():
    code = (
        'import sys\n'
        'for name in ("rclpy", "message_filters", "sensor_msgs"): sys.modules[name] = None\n'
        'from sync_engine.filters import AdaptiveTimeSynchronizer\n'
        'print("loaded")\n'
    )
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True)
    assert done.stdout == 'loaded\n'
