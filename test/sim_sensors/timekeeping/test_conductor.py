"""The bookkeeping of ticks and answers, without ROS and without a clock."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from rig_common.errors import RigError
from rig_common.lockstep.again import Kept
from rig_common.lockstep.messages import Ack, Tick
from rig_common.times import NEVER_NS, TimeBase
from sim_sensors.timekeeping.conductor import GONE_S, HEARTBEAT_NS, REPEAT_S, Conductor
from sim_sensors.timekeeping.roster import MOST_MEMBERS, SLACK_NS

MS = 1_000_000
START_NS = -MS


@dataclass
class Stage:
    """A conductor and what it sent."""

    lockstep: bool = True
    collectors: tuple[str, ...] = ()
    ticks: list[Tick] = field(default_factory=list)
    settled: list[Tick] = field(default_factory=list)
    connected: bool = True

    def __post_init__(self) -> None:
        self.conductor = Conductor(
            dt_ns=MS,
            seed=3,
            lockstep=self.lockstep,
            sensors=['imu', 'lidar'],
            collectors=self.collectors,
            timeout_s=10.0,
            send_tick=self.ticks.append,
            send_settled=self.settled.append,
            connected=lambda readers: self.connected,
            time_base=TimeBase(),
            kept=Kept(),
            run='r',
        )

    def join(self, name: str, *serves: str, wake_ms: float = 2.5) -> None:
        conductor = self.conductor
        conductor.on_ack(
            Ack(
                name,
                conductor._time_ns,
                int(wake_ms * MS),
                serves=serves,
                round=conductor._round if conductor.in_barrier else 0,
            )
        )

    def open(self) -> None:
        """Let everybody join, in both rounds of the barrier."""
        for wall_s in (0.0, 0.01):
            self.join('/a', 'imu')
            self.join('/b', 'lidar', wake_ms=7.0)
            for name in self.collectors:
                self.join(f'/{name}', wake_ms=1000.0)
            self.conductor.attend(wall_s, START_NS)

    def ack(self, name: str, time_ms: float, wake_ms: float, **sent: int) -> None:
        self.conductor.on_ack(Ack(name, int(time_ms * MS), int(wake_ms * MS), sent))


def test_nothing_moves_before_every_sensor_is_served() -> None:
    stage = Stage()
    stage.conductor.attend(0.0, START_NS)
    assert stage.conductor.blocked
    assert stage.conductor.waiting_for == ['imu', 'lidar']
    stage.join('/a', 'imu')
    stage.conductor.attend(0.1, START_NS)
    assert stage.conductor.waiting_for == ['lidar']
    assert stage.ticks[-1].round
    assert stage.ticks[-1].time_ns == START_NS


def test_waiting_is_said_only_when_it_takes_long() -> None:
    stage = Stage()
    stage.conductor.attend(5.0, START_NS)
    assert stage.conductor.blocked
    assert not stage.conductor.stuck(5.9)
    assert stage.conductor.stuck(6.1)
    stage.open()
    assert not stage.conductor.stuck(6.1)


def test_a_second_round_confirms_that_all_know_of_all() -> None:
    stage = Stage()
    stage.join('/a', 'imu')
    stage.join('/b', 'lidar')
    stage.conductor.attend(0.0, START_NS)
    assert stage.conductor.waiting_for == ['/a', '/b', 'imu', 'lidar']
    stage.join('/a', 'imu')
    stage.join('/b', 'lidar')
    stage.connected = False
    stage.conductor.attend(0.01, START_NS)
    assert stage.conductor.waiting_for == ['connections']
    stage.connected = True
    stage.conductor.attend(0.02, START_NS)
    assert not stage.conductor.blocked


def test_the_world_runs_to_the_earliest_promise_and_no_further() -> None:
    stage = Stage()
    stage.open()
    assert stage.conductor.next_tick_ns == 3 * MS
    assert stage.conductor.limit_ns == 3 * MS
    stage.conductor.tick(3 * MS, 0, {'imu': 3})
    assert stage.ticks[-1] == Tick(3 * MS, 0, 0, 3, 0, True, {'imu': 3}, 'r.0')
    assert stage.conductor.waiting_for == ['/a']
    assert stage.conductor.limit_ns == 3 * MS
    stage.ack('/a', 3, 8)
    assert not stage.conductor.blocked
    assert stage.conductor.limit_ns == 7 * MS


def test_an_answer_to_an_older_tick_does_not_count() -> None:
    stage = Stage()
    stage.open()
    stage.conductor.tick(3 * MS, 0, {})
    stage.ack('/a', 2, 3)
    assert stage.conductor.waiting_for == ['/a']


def test_collectors_hear_what_was_sent_after_all_have_answered() -> None:
    stage = Stage(collectors=('sync',))
    stage.open()
    stage.conductor.tick(7 * MS, 0, {})
    stage.settled.clear()
    stage.ack('/a', 7, 9, **{'imu/data': 2})
    assert not stage.settled
    stage.ack('/b', 7, 20, **{'lidar/scan': 1})
    assert stage.settled[-1].sent == {'imu/data': 2, 'lidar/scan': 1}
    assert stage.conductor.waiting_for == ['/sync']
    stage.ack('/sync', 7, 1000)
    assert not stage.conductor.blocked


def test_collectors_are_left_alone_when_there_is_nothing_for_them() -> None:
    stage = Stage(collectors=('sync',))
    stage.open()
    stage.settled.clear()
    stage.conductor.tick(3 * MS, 0, {})
    stage.ack('/a', 3, 8)
    assert not stage.settled
    assert not stage.conductor.blocked


def test_a_missing_answer_is_an_error_that_names_the_node() -> None:
    stage = Stage()
    stage.open()
    stage.conductor.tick(3 * MS, 0, {})
    stage.conductor.attend(20.0, 3 * MS)
    stage.conductor.attend(29.0, 3 * MS)
    with pytest.raises(RigError, match=r'from /a within 10 s, 0\.003 s after the start'):
        stage.conductor.attend(31.0, 3 * MS)


def test_a_node_that_never_joins_is_missed_before_the_first_step() -> None:
    stage = Stage()
    stage.conductor.attend(0.0, -MS)
    with pytest.raises(RigError, match='within 10 s, before the first step'):
        stage.conductor.attend(11.0, -MS)


def test_an_unanswered_tick_is_repeated_for_those_who_join() -> None:
    stage = Stage()
    stage.open()
    stage.conductor.tick(3 * MS, 0, {})
    count = len(stage.ticks)
    stage.conductor.attend(20.0, 3 * MS)
    assert len(stage.ticks) == count
    stage.conductor.attend(20.0 + 1.1 * REPEAT_S, 3 * MS)
    assert stage.ticks[-1] == stage.ticks[-2]


def test_a_node_that_restarts_in_lockstep_gets_a_barrier() -> None:
    stage = Stage()
    stage.open()
    stage.conductor.tick(3 * MS, 0, {})
    stage.join('/a', 'imu', wake_ms=8)
    assert stage.conductor.in_barrier
    assert stage.ticks[-1].round
    assert stage.ticks[-1].time_ns == 3 * MS
    assert stage.conductor.missing() == ['/a', '/b', 'imu', 'lidar']


def test_an_answer_to_a_barrier_that_is_over_changes_nothing() -> None:
    stage = Stage()
    stage.open()
    late = Ack('/a', START_NS, 2 * MS, serves=('imu',), round=1)
    stage.conductor.tick(3 * MS, 0, {})
    stage.ack('/a', 3, 8, imu=1)
    stage.conductor.on_ack(late)
    assert not stage.conductor.wants_barrier
    assert stage.conductor.roster.members['/a'].wake_ns == 8 * MS


def test_a_reset_waits_until_everybody_has_confirmed() -> None:
    stage = Stage(lockstep=False)
    stage.join('/a', 'imu')
    stage.conductor.tick(3 * MS, 0, {})
    stage.conductor.new_episode(1, 9, START_NS)
    assert stage.conductor.blocked
    tick = stage.ticks[-1]
    assert (tick.time_ns, tick.episode, tick.seed, tick.round) == (START_NS, 1, 9, 2)
    assert tick.run != stage.ticks[0].run
    for wall_s in (0.0, 0.01):
        stage.join('/a', 'imu')
        stage.conductor.attend(wall_s, START_NS)
    assert not stage.conductor.blocked


def test_outside_lockstep_nobody_is_waited_for_at_first() -> None:
    stage = Stage(lockstep=False)
    assert not stage.conductor.blocked
    assert stage.conductor.limit_ns >= NEVER_NS
    assert stage.conductor.next_tick_ns <= START_NS + HEARTBEAT_NS + MS
    stage.join('/a', 'imu', wake_ms=2.5)
    assert stage.conductor.next_tick_ns == 3 * MS
    stage.conductor.tick(3 * MS, 0, {'imu': 1})
    assert stage.ticks[-1].sent == {}
    assert stage.settled == stage.ticks
    assert not stage.conductor.blocked
    assert 3 * MS <= stage.conductor.limit_ns <= 3 * MS + SLACK_NS


def test_outside_lockstep_a_silent_node_is_given_up_and_may_come_back() -> None:
    stage = Stage(lockstep=False)
    stage.join('/a', 'imu', wake_ms=2.5)
    now_ns = stage.conductor.limit_ns
    stage.conductor.attend(0.0, now_ns)
    stage.conductor.attend(1.1 * GONE_S, now_ns)
    assert not stage.conductor.roster.members
    assert stage.conductor.limit_ns > now_ns
    stage.ack('/a', 3, 50)
    assert stage.conductor.roster.members['/a'].wake_ns == 50 * MS


def test_in_real_time_emulators_hear_of_a_time_before_it_comes() -> None:
    stage = Stage(lockstep=False)
    conductor = stage.conductor
    conductor.follow_host(1.0)
    stage.join('/a', 'imu', wake_ms=10.4)
    stage.join('/sync', wake_ms=11.0)
    assert conductor.next_tick_ns == 9 * MS  # a step and a millisecond before 10.4 ms
    conductor.tick(9 * MS, 5, {})
    told = stage.ticks[-1]
    assert told.pace == 1.0
    assert told.time_ns + told.ahead_ns > 10.4 * MS
    assert conductor.next_tick_ns == 11 * MS, 'the sync node goes by ticks'
    assert conductor.limit_ns > 11 * MS
    conductor.tick(9 * MS, 5, {}, stands=True)
    assert not stage.ticks[-1].pace
    conductor.follow_host(0.0)
    assert conductor.next_tick_ns == 11 * MS
    assert not Stage(lockstep=True).conductor._pace


def test_a_node_that_did_not_look_at_the_clock_is_told_the_time() -> None:
    stage = Stage(lockstep=False)
    stage.conductor.follow_host(1.0)
    stage.join('/a', 'imu', wake_ms=10.4)
    stage.conductor.tick(9 * MS, 5, {})
    now_ns = stage.conductor.limit_ns
    stage.conductor.attend(0.0, now_ns)
    stage.conductor.attend(1.1 * REPEAT_S, now_ns)
    assert stage.ticks[-1].time_ns == now_ns >= 10.4 * MS
    stage.conductor.attend(1.1 * GONE_S, now_ns)
    assert not stage.conductor.roster.members, 'it was told and did not answer'


def test_a_late_wish_is_heard() -> None:
    stage = Stage(lockstep=False)
    stage.join('/a', 'imu', wake_ms=20)
    stage.conductor.tick(5 * MS, 0, {})
    stage.ack('/a', 5, 7)
    assert stage.conductor.next_tick_ns == 7 * MS


def test_the_world_waits_for_commands_that_a_node_says_it_sent() -> None:
    stage = Stage(collectors=('controller',))
    stage.conductor.expect_commands(['cmd_vel'])
    stage.open()
    stage.conductor.on_command('cmd_vel')  # of somebody who does not take part
    stage.conductor.tick(3 * MS, 0, {})
    stage.ack('/a', 3, 10, imu=1)
    stage.ack('/controller', 3, 1000, cmd_vel=2)
    assert stage.conductor.waiting_for == ['cmd_vel on its way']
    stage.conductor.on_command('cmd_vel')
    assert stage.conductor.blocked
    stage.conductor.on_command('cmd_vel')
    assert not stage.conductor.blocked


def test_a_command_may_come_before_the_word_of_it() -> None:
    stage = Stage(collectors=('controller',))
    stage.conductor.expect_commands(['cmd_vel'])
    stage.open()
    stage.conductor.tick(3 * MS, 0, {})
    stage.ack('/a', 3, 10, imu=1)
    stage.conductor.on_command('cmd_vel')
    stage.ack('/controller', 3, 1000, cmd_vel=1)
    assert not stage.conductor.blocked


def test_a_silent_node_is_named_until_it_is_back() -> None:
    stage = Stage(lockstep=False)
    stage.join('/a', 'imu')
    stage.join('/b', 'lidar', wake_ms=7.0)
    conductor, now_ns = stage.conductor, 3 * MS + SLACK_NS
    conductor.tick(3 * MS + SLACK_NS, 0, {})
    conductor.attend(0.0, now_ns)
    assert conductor.silent(0.1) == []
    assert conductor.silent(0.5) == ['/a'], 'the world waits for it'
    conductor.attend(1.1 * GONE_S, now_ns)
    assert conductor.silent(2.0) == ['/a'], 'it was given up'
    stage.ack('/a', 3, 9)
    assert conductor.silent(2.0) == []


def test_a_stranger_that_invents_names_takes_no_memory_without_end() -> None:
    stage = Stage(lockstep=False)
    for number in range(MOST_MEMBERS + 50):
        stage.join(f'/n{number}', 'imu')
    assert len(stage.conductor.roster.members) == MOST_MEMBERS
    stage.join('/n3', 'imu')
    assert len(stage.conductor.roster.members) == MOST_MEMBERS
