"""Who is in the rig, how far the world may go, and where it must send a tick.

Every node answers a tick with the time of the next one it needs and promises to publish nothing
before. The world may therefore run to the earliest of these times without asking anybody, and
what it sends is the same as if it had stopped at every step. In lockstep it waits there for the
answers; otherwise a node may lag by `SLACK_NS` before the world slows down for it.

Pure bookkeeping: no ROS, no clock of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from rig_common.errors import RigError
from rig_common.lockstep.again import Again, Kept
from rig_common.lockstep.messages import Ack, Tick
from rig_common.times import NS_PER_MS, NS_PER_S, TimeBase
from sim_sensors.timekeeping.roster import SLACK_NS, Roster

HEARTBEAT_NS = 50 * NS_PER_MS
"""Longest simulated time between ticks, so that late joiners and readers of time hear of it."""
REPEAT_S = 0.05
"""Wall time between repetitions of an unanswered tick: who joins now must hear one."""
GONE_S = 1.0
"""Outside lockstep, a node that says nothing for this long when the world waits for it is gone."""
LATE_S = 0.2
"""Outside lockstep, a node that the world waits for longer than this is why the clock is slow."""
LEAD_NS = NS_PER_MS
"""Host time, besides a step of the physics, by which a tick comes before its emulator publishes:
waking up and the way of the tick take a part of it."""
STUCK_S = 1.0
"""Wall time for which the world may wait before it says so: in lockstep it waits all the time."""

Send = Callable[[Tick], None]
Connected = Callable[[Mapping[str, Collection[str]]], bool]


class Conductor:
    """Decides when ticks go out and whether the world may move."""

    def __init__(
        self,
        *,
        dt_ns: int,
        seed: int,
        lockstep: bool,
        sensors: Collection[str],
        collectors: Collection[str],
        timeout_s: float,
        send_tick: Send,
        send_settled: Send,
        connected: Connected,
        time_base: TimeBase,
        kept: Kept,
        run: str = '',
    ) -> None:
        """Conduct the nodes of a rig; `run` distinguishes this world from one that ran before it.

        In lockstep, every one of `sensors` must be served and every node of `collectors` (names
        without namespace) present. `connected` says whether the world's own topics are matched
        with everyone the graph knows, the readers it is given among them. `kept` gets the truth
        that somebody `counts`. Ticks and answers carry the times of `time_base`; in here they
        count from the start of the run.
        """
        self.lockstep = lockstep
        self.roster = Roster()
        self._dt_ns = dt_ns
        self._pace = 0.0
        self._sensors = frozenset(sensors)
        self._collectors = frozenset(collectors)
        self._timeout_s = timeout_s
        self._send_tick, self._send_settled = send_tick, send_settled
        self._connected = connected
        self._run, self._starts = run, 0
        self._base = time_base
        self._episode, self._seed = 0, seed
        self._truths: Counter[str] = Counter()
        """Truth messages of this episode, by sensor."""
        self._samples: Counter[str] = Counter()
        """Messages of the emulators in this episode, by topic, as far as they are settled."""
        self._time_ns = -dt_ns
        """Time of the last tick."""
        self._barrier: set[str] | None = set() if lockstep else None
        """Members that answered the barrier; None while running."""
        self._round = 1
        """Number of the barrier's present or last round."""
        self._complete = False
        """Everybody is there; a second round then makes sure that all know of all."""
        self._waiting: set[str] = set()
        """Members whose answer to the current tick or settlement is missing."""
        self._settling = False
        self._kept = kept
        self._commands: Counter[str] = Counter()
        """Commands by topic that nodes have sent and that have not come."""
        self._wants_barrier = False
        self._since_s: float | None = None
        self._repeat_s = 0.0
        self._last: Callable[[], None] = self._send_barrier

    # ---- what the world asks ------------------------------------------------------------------

    @property
    def waiting_for(self) -> list[str]:
        """Names of what is missing before the world may move; empty when it may."""
        if self._barrier is not None:
            return self.missing() or ['connections']
        return sorted(self._waiting) or [f'{topic} on its way' for topic in self._on_the_way]

    @property
    def blocked(self) -> bool:
        """Whether the world must stand still, whatever the time (lockstep)."""
        return self._barrier is not None or bool(
            self.lockstep and (self._waiting or self._on_the_way)
        )

    @property
    def _on_the_way(self) -> list[str]:
        """Topics of commands that a node has sent and that are not here yet."""
        return [topic for topic, count in self._commands.items() if count > 0]

    def stuck(self, wall_s: float) -> bool:
        """Return whether the world has been waiting for unusually long."""
        return self.blocked and self._since_s is not None and wall_s - self._since_s > STUCK_S

    def silent(self, wall_s: float) -> list[str]:
        """Return who has not answered: given up and not heard since, or awaited for long."""
        waiting = self._since_s is not None and wall_s - self._since_s > LATE_S
        late = self.roster.behind(self._time_ns) if waiting else []
        return sorted({*self.roster.left, *late})

    @property
    def limit_ns(self) -> int:
        """Time the world must not pass before somebody has answered."""
        if self.blocked:
            return self._time_ns
        slack = 0 if self.lockstep else SLACK_NS
        return self._on_grid(self.roster.earliest_ns() + slack)

    @property
    def next_tick_ns(self) -> int:
        """Time, on the physics grid, of the next tick somebody needs."""
        earliest = self.roster.next_tick_ns(self._time_ns, self._lead_ns)
        return self._on_grid(max(min(earliest, self._time_ns + HEARTBEAT_NS), self._time_ns + 1))

    def follow_host(self, pace: float) -> None:
        """Let emulators publish by the host's clock, `pace` simulated seconds in one of it.

        With 0, and in lockstep, they publish at ticks.
        """
        self._pace = 0.0 if self.lockstep else pace

    @property
    def _lead_ns(self) -> int:
        """How much earlier than its wake time an emulator gets its tick."""
        return self._dt_ns + round(LEAD_NS * self._pace) if self._pace else 0

    def _on_grid(self, time_ns: int) -> int:
        """Return the first tick of the physics at or after `time_ns`."""
        return -(-time_ns // self._dt_ns) * self._dt_ns

    @property
    def in_barrier(self) -> bool:
        """Whether nodes are still joining."""
        return self._barrier is not None

    @property
    def wants_barrier(self) -> bool:
        """Whether a node waits to join at the next tick (lockstep)."""
        return self._wants_barrier

    def tick(
        self, time_ns: int, wall_ns: int, sent: Mapping[str, int], *, stands: bool = False
    ) -> None:
        """The world has reached `time_ns`: tell everyone, and note whose answer matters.

        `wall_ns` is the host's clock then, 0 where that is not known; `stands` says that the world
        does not go on from there by itself.
        """
        self._time_ns = time_ns
        self._since_s = None
        if not self.lockstep:
            self._tell(wall_ns, self._pace * (not stands))
            return
        self._truths.update(sent)
        tick = self._make(time_ns, wall_ns, self._truths)
        self._last = partial(self._send_tick, tick)
        self._waiting = self.roster.emulators_due(time_ns)
        self._settling = False
        unheeded = not self._waiting  # an answer may come while it is being sent
        self._send_tick(tick)
        if unheeded:
            self._answered()

    def _tell(self, wall_ns: int, pace: float) -> None:
        """Say the time outside lockstep."""
        tick = self._make(self._time_ns, wall_ns, {})
        if pace:
            tick = replace(tick, pace=pace, ahead_ns=self._lead_ns + SLACK_NS)
        self._send_tick(tick)
        self._send_settled(tick)

    def remind(self) -> None:
        """Say the time again, for those who join while the world stands still."""
        self._send_tick(self._make(self._time_ns, 0, self._truths))
        self._send_settled(self._make(self._time_ns, 0, self._samples))

    def new_episode(self, episode: int, seed: int, time_ns: int) -> None:
        """Start again before time 0; all have to confirm, so that no old sample is mixed in."""
        self._starts += 1
        self._episode, self._seed = episode, seed
        self._time_ns = time_ns
        self._waiting.clear()
        self._truths.clear()
        self._samples.clear()
        self.roster.take_sent()
        self._kept.forget()
        self._commands = Counter(dict.fromkeys(self._commands, 0))
        self._open_barrier()

    # ---- what the nodes say ---------------------------------------------------------------------

    def on_ack(self, ack: Ack) -> None:
        """Take an answer, a request for an earlier tick, or a node that joins."""
        if ack.serves is not None:
            self._join(ack, ack.serves)
            return
        member = self.roster.find(ack.name)
        if member is None:
            return
        member.wake_ns = self._base.run_ns(ack.wake_ns)
        if ack.name in self._waiting and self._base.run_ns(ack.time_ns) == self._time_ns:
            for topic, count in ack.sent.items():
                if topic in self._commands:
                    self._commands[topic] += count
                else:
                    member.sent[topic] += count
            self._kept.forget(member.reads)
            self._waiting.discard(ack.name)
            if not self._waiting:
                self._answered()

    def counts(self, key: str) -> bool:
        """Return whether a node in lockstep counts this truth, connected just now or not."""
        return self.lockstep and self.roster.counts(key)

    def answers(self, asked: Again) -> list[Again]:
        """Return the truth that somebody who waits has asked for."""
        now = asked.time_ns == self._base.stamp_ns(self._time_ns)
        return self._kept.answers(asked) if now and not asked.raw else []

    def lost_reader(self) -> None:
        """Open a barrier at the next tick: DDS has forgotten who reads ticks or truth.

        Nothing more is sent until everybody is connected, and has what was sent before.
        """
        self._wants_barrier = self.lockstep

    def expect_commands(self, topics: Collection[str]) -> None:
        """Wait, in lockstep, for what nodes say they have sent on these topics of the world."""
        self._commands.update(dict.fromkeys(topics, 0))

    def on_command(self, topic: str) -> None:
        """Note a command that has come; those that nodes said they sent are waited for."""
        self._commands[topic] -= 1

    def _join(self, ack: Ack, serves: tuple[str, ...]) -> None:
        if ack.round and (self._barrier is None or ack.round != self._round):
            return  # an answer to a repeated barrier that is over
        if not self.roster.admit(ack.name, serves, self._base.run_ns(ack.wake_ns), ack.reads):
            return
        if self._barrier is not None:
            if ack.round:
                self._barrier.add(ack.name)
        elif self.lockstep:
            self._wants_barrier = True
            now = self._base.run_ns(ack.time_ns) == self._time_ns
            if now and ack.name in self._waiting:  # a new one of that name
                self._waiting.discard(ack.name)
                if not self._waiting:
                    self._answered()

    # ---- barrier and settlement -----------------------------------------------------------------

    def missing(self) -> list[str]:
        """Return which sensors and nodes have not joined (lockstep), or not confirmed a reset."""
        if self._barrier is None:
            return []
        members = self.roster.members
        served = {s for name in self._barrier for s in members[name].serves}
        names = {name.rsplit('/', 1)[-1] for name in self._barrier}
        silent = {name for name in members if name not in self._barrier}
        if not self.lockstep:
            return sorted(silent)
        return sorted((self._sensors - served) | (self._collectors - names) | silent)

    def attend(self, wall_s: float, now_ns: int) -> None:
        """Repeat what is unanswered, lift the barrier when all are there, give up after a while.

        Call it while the world stands still at `now_ns`, a few times per `REPEAT_S`.
        """
        if self._barrier is None and not self._behind(now_ns):
            self._since_s = None
            return
        if self._since_s is None:
            self._since_s, self._repeat_s = wall_s, wall_s + REPEAT_S
        if (
            self._barrier is not None
            and not self.missing()
            and self._connected(self.roster.readers())
        ):
            self._finish_round()
            return
        if wall_s - self._since_s > (self._timeout_s if self.lockstep else GONE_S):
            self._give_up(now_ns)
            return
        if wall_s >= self._repeat_s:
            self._repeat_s = wall_s + REPEAT_S
            if self.blocked:
                self._last()
            else:
                self._time_ns = now_ns
                self._tell(0, 0.0)

    def _behind(self, now_ns: int) -> bool:
        if self.lockstep:
            return bool(self._waiting or self._on_the_way)
        return self.limit_ns <= now_ns

    def _give_up(self, now_ns: int) -> None:
        """Lockstep: an error that names who is missing. Else: go on without them."""
        self._since_s = None
        if self.lockstep:
            when = (
                'before the first step'
                if self._time_ns < 0
                else f'{self._time_ns / NS_PER_S:.3f} s after the start of the run'
            )
            raise RigError(
                f'lockstep: no answer from {", ".join(self.waiting_for)} within '
                f'{self._timeout_s:g} s, {when}; start what is missing (`ros2 run sensor_rig '
                f'sync --rig FILE`, or emulator), or take it out of world.wait_for'
            )
        self.roster.give_up(self.missing() or self.roster.behind(now_ns))
        self._barrier = None

    def _finish_round(self) -> None:
        if self._complete:
            self._barrier = None
            self._since_s = None
        else:
            self._complete = True
            self._round += 1
            self._barrier = set()
            self._send_barrier()

    def _open_barrier(self) -> None:
        self._barrier = set()
        self._round += 1
        self._complete = False
        self._wants_barrier = False
        self._since_s = None
        self._last = self._send_barrier
        self._send_barrier()

    def _send_barrier(self) -> None:
        readers = self.roster.readers()
        for send, counts in ((self._send_tick, self._truths), (self._send_settled, self._samples)):
            send(replace(self._make(self._time_ns, 0, counts), round=self._round, readers=readers))

    def _answered(self) -> None:
        """All have answered: settle with those who collect, then let a waiting node in."""
        if not self._settling and self._settle():
            return
        if self._wants_barrier:
            self._open_barrier()

    def _settle(self) -> bool:
        """Hand what the emulators sent to those who collect; False when nobody needs it."""
        sent = self.roster.take_sent()
        self._samples.update(sent)
        self._waiting = self.roster.collectors_due(self._time_ns, news=bool(sent))
        if not self._waiting:
            return False
        self._settling = True
        self._since_s = None
        for topic, count in self._commands.items():
            self._commands[topic] = max(count, 0)  # from others, who do not take part
        tick = self._make(self._time_ns, 0, self._samples)
        self._last = partial(self._send_settled, tick)
        self._send_settled(tick)
        return True

    def _make(self, time_ns: int, wall_ns: int, sent: Mapping[str, int]) -> Tick:
        return Tick(
            self._base.stamp_ns(time_ns),
            wall_ns,
            self._episode,
            self._seed,
            0,
            self.lockstep,
            dict(sent),
            f'{self._run}.{self._starts}',
        )
