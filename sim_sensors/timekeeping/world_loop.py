"""The world's loop: steps physics as far as it may go, and does what falls due on the way.

Between two ticks that somebody needs, physics runs in one go; nothing wakes a thousand times a
second only to step once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from rig_common.times import NEVER_NS, seconds_to_ns
from sim_sensors.timekeeping.conductor import REPEAT_S, Conductor
from sim_sensors.timekeeping.pacer import Pacer
from sim_sensors.world.world_base import WorldBase

BUDGET_S = 0.01
"""Longest time in `advance` before callbacks get their turn."""
PAUSED_S = 0.05
"""Time between two looks while nothing moves."""
WORKER_S = 0.001
"""Time between two looks at a worker that the world waits for."""
ON_TIME_S = 0.001
"""A world that is less behind than this is on time: what it says of the host's clock is when it
should have been there."""
WAITS = -1
"""Planned time of a loop that waits for somebody's answer."""


class Channel(Protocol):
    """The truth of one sensor on its way out."""

    next_ns: int
    """When it wants to be called next, ns."""

    @property
    def preparing(self) -> bool:
        """Whether its first capture is still being set up."""

    @property
    def limit_ns(self) -> int:
        """Time that the world must not pass yet."""

    def work(self, view: WorldBase, sent: Counter[str]) -> None:
        """Read what is due now; count what was published."""

    def release(self) -> None:
        """Publish what was read since the last call."""

    def reset(self) -> None:
        """Begin a new episode at time 0."""


class Periodic(Protocol):
    """Something done at times of its own: /clock, odometry, markers."""

    next_ns: int
    """When it wants to be called next, ns."""

    def work(self, world: WorldBase) -> None:
        """Do it for the present instant and set `next_ns`."""

    def reset(self) -> None:
        """Begin a new episode at time 0."""


class WorldLoop:
    """Drives the world, its truth channels and whatever is periodic."""

    def __init__(
        self,
        world: WorldBase,
        conductor: Conductor,
        pacer: Pacer,
        channels: Sequence[Channel],
        periodics: Sequence[Periodic],
        while_paused: Callable[[], None],
        *,
        wall_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.world = world
        self.conductor = conductor
        self.pacer = pacer
        conductor.follow_host(pacer.factor)
        self._channels = list(channels)
        self._periodics = list(periodics)
        self._while_paused = while_paused
        self._wall_s = wall_s
        self._sent: Counter[str] = Counter()
        self._moving = False
        self.paused = False
        self._steps_left: int | None = None
        self.stop_ns = NEVER_NS
        """Simulated time, on the physics grid, at which the world stands still, ns."""
        self._planned_ns = WAITS
        self._wanted_reset: tuple[int, int] | None = None
        self.resets = 0
        """How often the world was put back to its start."""
        self.held: Callable[[], bool] = lambda: False
        """Whether somebody in this process is being set up, or was since this was last asked; the
        world waits for that, so that a start does not look like a machine that is too slow."""

    # ---- controls -----------------------------------------------------------------------------

    def pause(self) -> None:
        """Stand still."""
        moved = self._moving
        self.paused, self._moving, self._steps_left = True, False, None
        if moved and not self.conductor.lockstep:
            self._tick()  # emulators do not go on by the host's clock

    def resume(self) -> None:
        """Go on."""
        self.paused, self._steps_left = False, None

    def step(self, count: int) -> None:
        """Take `count` physics steps, as fast as the rig's pace allows, then stand still."""
        self.paused, self._steps_left = False, count

    def set_factor(self, factor: float) -> None:
        """Pace at another real-time factor."""
        self.pacer.start(self._wall_s(), self.world.time_ns, factor)
        self.conductor.follow_host(factor)

    def reset(self, episode: int, seed: int) -> None:
        """Put the world back to the start of a new episode, once all have answered this tick."""
        self._wanted_reset = (episode, seed)

    def _reset(self, episode: int, seed: int) -> None:
        self._wanted_reset = None
        self.resets += 1
        self.world.reset(seed=seed, episode=episode)
        for channel in self._channels:
            channel.reset()
        for periodic in self._periodics:
            periodic.reset()
        self._sent.clear()
        self._moving = False
        self.conductor.new_episode(episode, seed, self.world.time_ns)

    # ---- moving ---------------------------------------------------------------------------------

    def advance(self) -> float:
        """Do what is due now; return for how long nothing will be, s."""
        wall_s = self._wall_s()
        conductor, world = self.conductor, self.world
        conductor.attend(wall_s, world.time_ns)
        self._planned_ns = WAITS
        if conductor.blocked:
            self._moving = self._moving and not conductor.in_barrier
            return REPEAT_S / 2
        if self._wanted_reset is not None:
            self._reset(*self._wanted_reset)
            return 0.0
        if self.paused:
            return self._stand_still()
        if any(channel.preparing for channel in self._channels) or self.held():
            self._moving = False  # the clock stands: that is no machine that is too slow
            return WORKER_S
        if not self._moving:
            self._moving = True
            self.pacer.start(wall_s, world.time_ns)
        until_s = wall_s + BUDGET_S
        while not conductor.blocked:
            target_ns = self._target_ns(wall_s)
            if world.time_ns + world.dt_ns > target_ns:
                break
            tick_ns = conductor.next_tick_ns
            self._run_to(min(target_ns, max(tick_ns, world.time_ns + world.dt_ns)))
            if self._steps_left == 0:
                self._finish_steps()
                return 0.0
            if world.time_ns >= tick_ns:
                self._tick()
                if not conductor.lockstep:
                    break  # who has heard it gets its turn, else its samples would go out late
            wall_s = self._wall_s()
            if wall_s > until_s:
                break
        if world.time_ns >= self.stop_ns:
            self._finish_steps()
            return 0.0
        if not conductor.blocked and world.time_ns >= conductor.next_tick_ns:
            self._tick()  # somebody asked late for a time that is already past
        self.pacer.note(wall_s, world.time_ns)
        return self._idle_s(wall_s)

    def _target_ns(self, wall_s: float) -> int:
        """Return how far the world may and should be, ns."""
        target = min(self.pacer.sim_at(wall_s), self.conductor.limit_ns, self.stop_ns)
        for channel in self._channels:
            target = min(target, channel.limit_ns)
        if self._steps_left is not None:
            target = min(target, self.world.time_ns + self._steps_left * self.world.dt_ns)
        return target

    def _run_to(self, stop_ns: int) -> None:
        """Step up to `stop_ns`, capturing and publishing what falls on the way."""
        world, channels, periodics = self.world, self._channels, self._periodics
        last_ns = stop_ns - world.dt_ns
        due_ns = self._next_due_ns()
        while world.time_ns <= last_ns:
            world.step()
            if self._steps_left is not None:
                self._steps_left -= 1
            now_ns = world.time_ns
            if now_ns < due_ns:
                continue
            for channel in channels:
                if channel.next_ns <= now_ns:
                    channel.work(world, self._sent)
            for periodic in periodics:
                if periodic.next_ns <= now_ns:
                    periodic.work(world)
            due_ns = self._next_due_ns()
        for channel in channels:
            channel.release()

    def _next_due_ns(self) -> int:
        due = NEVER_NS
        for channel in self._channels:
            due = min(due, channel.next_ns)
        for periodic in self._periodics:
            due = min(due, periodic.next_ns)
        return due

    def _tick(self) -> None:
        time_ns = self.world.time_ns
        late_s = self._wall_s() - self.pacer.wall_at(time_ns)
        wall_ns = time.time_ns()
        if self._moving and 0.0 < late_s < ON_TIME_S:
            wall_ns -= seconds_to_ns(late_s)
        self.conductor.tick(time_ns, wall_ns, self._sent, stands=not self._moving)
        self._sent.clear()

    # ---- standing still -------------------------------------------------------------------------

    def _finish_steps(self) -> None:
        self.pause()
        if self.conductor.lockstep and not self.conductor.blocked:
            self._tick()

    def _stand_still(self) -> float:
        if self.conductor.wants_barrier:
            self._tick()
        else:
            self.conductor.remind()
        self._while_paused()
        return PAUSED_S

    def _idle_s(self, wall_s: float) -> float:
        """Return the time until something has to happen, s."""
        self._planned_ns = WAITS
        if self.conductor.blocked:
            return REPEAT_S / 2
        next_ns = self.world.time_ns + self.world.dt_ns
        if next_ns > min((channel.limit_ns for channel in self._channels), default=NEVER_NS):
            return WORKER_S
        if next_ns > self.conductor.limit_ns:
            return REPEAT_S / 2
        self._planned_ns = min(
            self.conductor.next_tick_ns,
            min((p.next_ns for p in self._periodics), default=NEVER_NS),
        )
        return max(0.0, self.pacer.wall_at(self._planned_ns) - self._wall_s())

    def is_early(self) -> bool:
        """Whether `advance` has something to do before the time it said."""
        if self.paused or self.conductor.blocked:
            return False
        return self.conductor.next_tick_ns < self._planned_ns or self._planned_ns == WAITS
